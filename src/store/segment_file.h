// A segment that is open for reading. Nothing in the file is believed: every size and offset is
// checked against the file's size, and the head against its sums.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "files.h"
#include "segment_layout.h"

namespace rbc::store {

class SegmentFile {
 public:
  // `access` is RBC_STORE_ACCESS_MAP or RBC_STORE_ACCESS_READ. Fails with DAMAGED, or with
  // NOT_FOUND if a newer version of the library has written the file.
  SegmentFile(Fd file, std::string shown, uint32_t segment, int32_t access, int32_t verify);
  ~SegmentFile();
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;

  const std::vector<StoredTensor>& tensors() const noexcept { return tensors_; }
  const SegmentRange& range() const noexcept { return range_; }
  uint64_t fileBytes() const noexcept { return bytes_; }
  uint64_t sumOfSums() const noexcept { return sum_of_sums_; }
  const std::string& shown() const noexcept { return shown_; }
  uint64_t inode() const noexcept { return inode_; }

  // The file in memory; null if it is read instead.
  const uint8_t* map() const noexcept { return map_; }
  // Copies bytes of the file. Fails with DAMAGED if the file has become shorter.
  void read(uint64_t begin, uint64_t bytes, void* out) const;

  // Asks the system to read bytes of the file soon.
  void prefetch(uint64_t begin, uint64_t bytes) const noexcept;

  uint64_t numBlocks() const noexcept { return num_sums_; }
  // Whether a block has its sum. `scratch` has room for a block if the file is not mapped.
  bool isWhole(uint64_t block, std::vector<uint8_t>& scratch) const;
  // Checks the blocks of a range that this process has not checked yet. Returns the first damaged
  // block, or -1.
  int64_t checkOnce(uint64_t begin, uint64_t end, std::vector<uint8_t>& scratch) const;

 private:
  void readTable(uint32_t segment, int32_t verify);
  void readSums(uint64_t sums_begin, uint64_t table_end, int32_t verify);
  void readRows(const std::vector<uint8_t>& table, uint32_t num_tensors, uint64_t table_end);
  [[noreturn]] void failDamaged(const char* format, ...) const
      __attribute__((format(printf, 2, 3)));

  std::string shown_;
  Fd file_;  // closed if the file is mapped
  uint64_t bytes_ = 0;
  uint64_t inode_ = 0;
  uint8_t* map_ = nullptr;
  std::vector<StoredTensor> tensors_;
  SegmentRange range_ = {};
  uint64_t sums_begin_ = 0;
  uint64_t num_sums_ = 0;
  uint64_t sum_of_sums_ = 0;
  std::vector<uint64_t> sums_;                       // if the file is not mapped
  std::unique_ptr<std::atomic<uint8_t>[]> checked_;  // by block; null: not requested
};

}  // namespace rbc::store
