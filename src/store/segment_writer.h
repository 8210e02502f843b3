// A segment that is being written.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "files.h"
#include "lock.h"
#include "segment_layout.h"
#include "store_root.h"

struct rbcSegmentWriter {
  rbcSegmentWriter(rbc::store::StorePointer store, std::string entry_key, uint32_t number,
                   const rbc::store::SegmentRange& episodes);
  void add(const char* name, rbc::DType dtype, int32_t ndim, const int64_t* shape);
  void write(const char* name, const void* rows, size_t bytes);
  void publish();

  rbc::store::StorePointer root;
  std::string key;
  uint32_t segment;
  rbc::store::SegmentRange range;
  uint64_t generation;  // forks before: a child must not write
  std::string shown;
  rbc::store::Fd folder;
  std::unique_ptr<rbc::store::SegmentLock> lock;  // after the store, which has its folder

 private:
  enum class State { kDeclaring, kWriting, kEnded };

  void requireState(State state, const char* what) const;
  void begin();

  State state_ = State::kDeclaring;
  std::vector<rbc::store::StoredTensor> declared_;
  rbc::store::SegmentLayout layout_;
  std::vector<uint64_t> written_;  // bytes by tensor
  std::unique_ptr<rbc::store::NewFile> file_;
};

namespace rbc::store {

// Takes the lock of a segment. Returns null if the segment is there. Fails with BUSY after wait_ms;
// -1: waits without limit.
std::unique_ptr<rbcSegmentWriter> lockSegment(const StorePointer& root, const uint8_t* key,
                                              uint32_t segment, const SegmentRange& range,
                                              int64_t wait_ms);

// Writes the index of an entry whose segments are there.
void publishEntry(const StorePointer& root, const uint8_t* key, int64_t num_segments,
                  const int64_t* episode_offsets, int64_t num_offsets, const char* about);

}  // namespace rbc::store
