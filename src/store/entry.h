// An open entry: its index, its segments, and its tracks, which run through all segments.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "entry_index.h"
#include "segment_file.h"
#include "store_root.h"

namespace rbc::store {

// The rows of a track in one segment.
struct TrackPiece {
  int64_t segment;
  int64_t first_row;
  int64_t num_rows;
  uint64_t begin;  // in the file
};

struct StoredTrack {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;  // the first extent is the sum over the segments
  uint64_t row_bytes;
  std::vector<TrackPiece> pieces;  // in the order of rows, none of them empty

  const TrackPiece& pieceOf(int64_t row) const noexcept;
};

}  // namespace rbc::store

struct rbcEntry {
  rbc::store::StorePointer root;
  std::string key;
  std::unique_ptr<rbc::store::EntryIndex> index;
  std::vector<std::unique_ptr<rbc::store::SegmentFile>> segments;
  std::vector<rbc::store::StoredTrack> tracks;  // in the order of their first segment
  std::unordered_map<std::string, size_t> track_numbers;
  int64_t episodes_shape[1] = {};  // of the view that rbcEntryGetEpisodes returns
  int64_t episodes_strides[1] = {3};
  std::atomic<int64_t> references{1};

  // Segments that are registered for CUDA, in this process only. Readers take no lock: a child may
  // have been forked while another thread held it.
  std::mutex pin_mutex;                            // of registrations
  std::unique_ptr<std::atomic<uint8_t>[]> pinned;  // by segment
  std::atomic<uint64_t> pinned_bytes{0};
  std::atomic<uint64_t> pin_generation{0};  // forks before the registration
  void (*unpin)(const void* map) noexcept = nullptr;
  bool isPinned(int64_t segment) const noexcept;
  void unpinAll() noexcept;
};

namespace rbc::store {

// Fails with NOT_FOUND or DAMAGED: see rbcStoreFind.
std::unique_ptr<rbcEntry> findEntry(const StorePointer& root, const uint8_t* key);

// The entry of a caller; fails with INVALID_ARGUMENT if it is null.
rbcEntry& requireEntry(rbcEntry* entry);

// Fails with NOT_FOUND and some names of the entry.
const StoredTrack& trackOf(const rbcEntry& entry, const char* name);

// A segment of a track without rows, or with them: its shape there and its place in the file.
const StoredTensor* tensorOf(const rbcEntry& entry, const char* name, int64_t segment);

// Checks the blocks of a piece of a segment once, if the store asks for it. Fails with DAMAGED.
void checkOnce(const rbcEntry& entry, int64_t segment, uint64_t begin, uint64_t end,
               std::vector<uint8_t>& scratch);

// Fails with DAMAGED for a block, after the segment is set aside.
[[noreturn]] void failBlock(const rbcEntry& entry, int64_t segment, int64_t block);

void releaseEntry(rbcEntry* entry) noexcept;

}  // namespace rbc::store
