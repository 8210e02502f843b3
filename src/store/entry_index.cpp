#include "entry_index.h"

#include <sys/mman.h>

#include <cerrno>
#include <cinttypes>
#include <cstring>

#include "checksum.h"
#include "robocache/store.h"
#include "status.h"

namespace rbc::store {

EntryIndex::EntryIndex(Fd file, std::string shown, const uint8_t* key, int32_t verify) {
  const auto failDamaged = [&](const char* what) {
    fail(RBC_STATUS_DAMAGED, "store: %s is damaged: %s", shown.c_str(), what);
  };
  const struct stat status = statusOf(file.get(), shown);
  const auto bytes = static_cast<uint64_t>(status.st_size);
  if (!readAll(file.get(), &header_, sizeof header_, 0, shown)) failDamaged("it is too short");
  if (std::memcmp(header_.magic, kIndexMagic, sizeof header_.magic) != 0) {
    failDamaged("it is not an index");
  }
  if (header_.version != kVersion) {
    // In every version the last number is the sum: a changed byte is no newer version.
    std::vector<uint8_t> all(bytes);
    uint64_t sum;
    if (!readAll(file.get(), all.data(), bytes, 0, shown)) failDamaged("it became shorter");
    std::memcpy(&sum, all.data() + bytes - sizeof sum, sizeof sum);
    if (verify != RBC_STORE_VERIFY_NONE && checksum(all.data(), bytes - sizeof sum) != sum) {
      failDamaged("its sum differs");
    }
    fail(RBC_STATUS_NOT_FOUND,
         "store: %s has version %u of the store, and this library reads version %u", shown.c_str(),
         header_.version, kVersion);
  }
  if (header_.num_segments < 1 || header_.num_segments > kMaxSegments || header_.num_episodes < 0 ||
      header_.num_episodes > kMaxRows || header_.num_rows < 0 || header_.num_rows > kMaxRows) {
    failDamaged("its numbers are impossible");
  }
  const uint64_t expected =
      sizeof header_ + static_cast<uint64_t>(header_.num_segments) * sizeof(IndexSegment) +
      (static_cast<uint64_t>(header_.num_episodes) + 1) * sizeof(IndexEpisode) + sizeof(uint64_t);
  if (header_.file_bytes != bytes || expected != bytes) failDamaged("its size differs");
  if (std::memcmp(header_.key, key, sizeof header_.key) != 0) failDamaged("it has another key");
  void* map = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (map == MAP_FAILED) failSystem("map", shown, errno);
  map_ = static_cast<uint8_t*>(map);
  uint64_t sum;
  std::memcpy(&sum, map_ + bytes - sizeof sum, sizeof sum);
  if (verify != RBC_STORE_VERIFY_NONE && checksum(map_, bytes - sizeof sum) != sum) {
    munmap(map_, bytes);
    failDamaged("its sum differs");
  }
}

EntryIndex::~EntryIndex() { munmap(map_, header_.file_bytes); }

IndexSegment EntryIndex::segment(int64_t number) const noexcept {
  IndexSegment segment;
  std::memcpy(&segment, map_ + sizeof header_ + static_cast<size_t>(number) * sizeof segment,
              sizeof segment);
  return segment;
}

const int64_t* EntryIndex::firstRows() const noexcept {
  return reinterpret_cast<const int64_t*>(
      map_ + sizeof header_ + static_cast<size_t>(header_.num_segments) * sizeof(IndexSegment));
}

std::vector<uint8_t> indexOf(const uint8_t* key, const std::vector<PublishedSegment>& segments,
                             const int64_t* episode_offsets, int64_t num_offsets) {
  const int64_t num_episodes = num_offsets - 1;
  for (int64_t e = 0; e <= num_episodes; ++e) {
    const int64_t before = e == 0 ? 0 : episode_offsets[e - 1];
    const bool good = e == 0 ? episode_offsets[0] == 0
                             : episode_offsets[e] >= before && episode_offsets[e] <= kMaxRows;
    if (!good) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "episode_offsets: is %" PRId64 " at %" PRId64 ", expected %s%" PRId64,
           episode_offsets[e], e, e == 0 ? "" : "at least ", before);
    }
  }
  const size_t bytes = sizeof(IndexHeader) + segments.size() * sizeof(IndexSegment) +
                       static_cast<size_t>(num_offsets) * sizeof(IndexEpisode) + sizeof(uint64_t);
  std::vector<uint8_t> index(bytes);
  IndexHeader header = {};
  std::memcpy(header.magic, kIndexMagic, sizeof header.magic);
  header.version = kVersion;
  std::memcpy(header.key, key, sizeof header.key);
  header.num_segments = static_cast<int64_t>(segments.size());
  header.num_episodes = num_episodes;
  header.num_rows = episode_offsets[num_episodes];
  header.file_bytes = bytes;
  std::memcpy(index.data(), &header, sizeof header);
  uint8_t* next = index.data() + sizeof header;
  for (const PublishedSegment& each : segments) {
    const SegmentRange& range = each.range;
    IndexSegment row = {};
    row.file_bytes = each.file_bytes;
    row.sum_of_sums = each.sum_of_sums;
    row.first_episode = range.first_episode;
    row.num_episodes = range.num_episodes;
    row.first_row = range.first_row;
    row.num_rows = range.num_rows;
    std::memcpy(next, &row, sizeof row);
    next += sizeof row;
  }
  int64_t episode = 0;
  const auto put = [&](int64_t first_row, int64_t segment, int64_t row_in_segment) {
    const IndexEpisode row = {first_row, segment, row_in_segment};
    std::memcpy(next, &row, sizeof row);
    next += sizeof row;
  };
  for (size_t s = 0; s < segments.size(); ++s) {
    const SegmentRange& range = segments[s].range;
    const int64_t end = episode + range.num_episodes;
    if (range.first_episode != episode || end > num_episodes) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "episode_offsets: segment %zu has episodes %" PRId64 " to %" PRId64
           ", expected to begin with %" PRId64 " of %" PRId64,
           s, range.first_episode, range.first_episode + range.num_episodes - 1, episode,
           num_episodes);
    }
    const int64_t rows = episode_offsets[end] - episode_offsets[episode];
    if (range.first_row != episode_offsets[episode] || range.num_rows != rows) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "episode_offsets: segment %zu has %" PRId64 " rows from %" PRId64 ", expected %" PRId64
           " from %" PRId64,
           s, range.num_rows, range.first_row, rows, episode_offsets[episode]);
    }
    for (; episode < end; ++episode) {
      put(episode_offsets[episode], static_cast<int64_t>(s),
          episode_offsets[episode] - range.first_row);
    }
  }
  if (episode != num_episodes) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "episode_offsets: has %" PRId64 " episodes, and the segments have %" PRId64, num_episodes,
         episode);
  }
  put(header.num_rows, header.num_segments, 0);
  const uint64_t sum = checksum(index.data(), bytes - sizeof sum);
  std::memcpy(next, &sum, sizeof sum);
  return index;
}

}  // namespace rbc::store
