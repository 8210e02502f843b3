// The index of an entry: which segments and episodes it has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "files.h"
#include "format.h"
#include "segment_layout.h"

namespace rbc::store {

// An index that is open for reading.
class EntryIndex {
 public:
  // Fails with DAMAGED, or with NOT_FOUND if a newer version of the library has written the file.
  EntryIndex(Fd file, std::string shown, const uint8_t* key, int32_t verify);
  ~EntryIndex();
  EntryIndex(const EntryIndex&) = delete;
  EntryIndex& operator=(const EntryIndex&) = delete;

  int64_t numSegments() const noexcept { return header_.num_segments; }
  int64_t numEpisodes() const noexcept { return header_.num_episodes; }
  int64_t numRows() const noexcept { return header_.num_rows; }
  uint64_t fileBytes() const noexcept { return header_.file_bytes; }
  IndexSegment segment(int64_t number) const noexcept;
  // The first row of episode 0; those of the others follow at a distance of 3 numbers.
  const int64_t* firstRows() const noexcept;

 private:
  IndexHeader header_;
  uint8_t* map_ = nullptr;
};

// A segment as an index describes it.
struct PublishedSegment {
  uint64_t file_bytes;
  uint64_t sum_of_sums;
  SegmentRange range;
};

// The bytes of an index. Fails with INVALID_ARGUMENT unless the segments join and the offsets match.
std::vector<uint8_t> indexOf(const uint8_t* key, const std::vector<PublishedSegment>& segments,
                             const int64_t* episode_offsets, int64_t num_offsets);

}  // namespace rbc::store
