#include "entry.h"

#include <sys/resource.h>

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <utility>

#include "fork.h"
#include "status.h"

namespace rbc::store {
namespace {

constexpr rlim_t kOtherFiles = 256;  // that a process has open besides

// A store that is read keeps a descriptor for each segment.
void requireDescriptors(int64_t segments) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t needed = static_cast<rlim_t>(segments) + kOtherFiles;
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= needed) return;
  const rlim_t before = limit.rlim_cur;
  if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= needed) {
    limit.rlim_cur = needed;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  }
  if (before < static_cast<rlim_t>(segments)) {
    fail(RBC_STATUS_UNSUPPORTED,
         "store: the entry has %" PRId64 " segments, and this process may open %" PRIu64
         " files; raise the limit (ulimit -n), or open the store with RBC_STORE_ACCESS_MAP",
         segments, static_cast<uint64_t>(before));
  }
}

void openSegments(rbcEntry& entry, const Fd& folder, const std::string& shown) {
  const StoreOptions& options = entry.root->options();
  const int64_t count = entry.index->numSegments();
  if (options.access == RBC_STORE_ACCESS_READ) requireDescriptors(count);
  for (int64_t s = 0; s < count; ++s) {
    const std::string name = segmentName(s);
    const std::string path = shown + "/" + name;
    Fd file = openFile(folder.get(), name.c_str(), path);
    if (!file)
      fail(RBC_STATUS_DAMAGED, "store: %s is missing, and the index lists it", path.c_str());
    const struct stat status = statusOf(file.get(), path);
    requireOwner(status, options.owners, path);
    try {
      auto segment = std::make_unique<SegmentFile>(std::move(file), path, static_cast<uint32_t>(s),
                                                   options.access, options.verify);
      const IndexSegment row = entry.index->segment(s);
      const SegmentRange& range = segment->range();
      if (row.file_bytes != segment->fileBytes() || row.sum_of_sums != segment->sumOfSums() ||
          row.first_episode != range.first_episode || row.num_episodes != range.num_episodes ||
          row.first_row != range.first_row || row.num_rows != range.num_rows) {
        fail(RBC_STATUS_DAMAGED, "store: %s is damaged: the index describes another file",
             path.c_str());
      }
      entry.segments.push_back(std::move(segment));
    } catch (const Error& error) {
      if (error.status() == RBC_STATUS_DAMAGED) {
        entry.root->setAside(entry.key, name.c_str(), status.st_ino);
      }
      throw;
    }
  }
}

void joinTracks(rbcEntry& entry) {
  for (size_t s = 0; s < entry.segments.size(); ++s) {
    for (const StoredTensor& tensor : entry.segments[s]->tensors()) {
      const auto [found, is_new] =
          entry.track_numbers.try_emplace(tensor.name, entry.tracks.size());
      if (is_new) {
        uint64_t row_bytes = static_cast<uint64_t>(sizeOf(tensor.dtype));
        for (size_t i = 1; i < tensor.shape.size(); ++i) {
          row_bytes *= static_cast<uint64_t>(tensor.shape[i]);
        }
        entry.tracks.push_back({tensor.name, tensor.dtype, tensor.shape, row_bytes, {}});
        entry.tracks.back().shape[0] = 0;
      }
      StoredTrack& track = entry.tracks[found->second];
      const bool same =
          track.dtype == tensor.dtype && track.shape.size() == tensor.shape.size() &&
          std::equal(track.shape.begin() + 1, track.shape.end(), tensor.shape.begin() + 1);
      if (!same) {
        fail(RBC_STATUS_DAMAGED,
             "store: %s: tensor \"%.64s\" has another dtype or shape than in the segments before",
             entry.segments[s]->shown().c_str(), tensor.name.c_str());
      }
      if (tensor.shape[0] == 0) continue;
      if (tensor.shape[0] > kMaxRows - track.shape[0]) {
        fail(RBC_STATUS_DAMAGED,
             "store: %s: tensor \"%.64s\" has more than 2^48 rows in all segments",
             entry.segments[s]->shown().c_str(), tensor.name.c_str());
      }
      track.pieces.push_back(
          {static_cast<int64_t>(s), track.shape[0], tensor.shape[0], tensor.begin});
      track.shape[0] += tensor.shape[0];
    }
  }
}

}  // namespace
}  // namespace rbc::store

bool rbcEntry::isPinned(int64_t segment) const noexcept {
  return pinned[static_cast<size_t>(segment)].load(std::memory_order_acquire) != 0 &&
         pin_generation == rbc::forkGeneration();
}

void rbcEntry::unpinAll() noexcept {
  for (size_t s = 0; s < segments.size(); ++s) {
    if (isPinned(static_cast<int64_t>(s))) unpin(segments[s]->map());
    pinned[s] = 0;
  }
  pinned_bytes = 0;
}

namespace rbc::store {

const TrackPiece& StoredTrack::pieceOf(int64_t row) const noexcept {
  if (pieces.size() == 1) return pieces.front();
  const auto after =
      std::upper_bound(pieces.begin(), pieces.end(), row,
                       [](int64_t at, const TrackPiece& piece) { return at < piece.first_row; });
  return *(after - 1);
}

std::unique_ptr<rbcEntry> findEntry(const StorePointer& root, const uint8_t* key) {
  auto entry = std::make_unique<rbcEntry>();
  entry->root = root;
  entry->key = keyText(key);
  const std::string shown = root->shown() + "/" + StoreRoot::entryPath(entry->key);
  const Fd folder = root->openEntry(entry->key);
  const std::string index_path = shown + "/" + kIndexName;
  Fd file = folder ? openFile(folder.get(), kIndexName, index_path) : Fd();
  if (!file) {
    fail(RBC_STATUS_NOT_FOUND, "store: %s has no entry %s", root->shown().c_str(),
         entry->key.c_str());
  }
  const struct stat status = statusOf(file.get(), index_path);
  requireOwner(status, root->options().owners, index_path);
  try {
    entry->index =
        std::make_unique<EntryIndex>(std::move(file), index_path, key, root->options().verify);
    openSegments(*entry, folder, shown);
    joinTracks(*entry);
    entry->episodes_shape[0] = entry->index->numEpisodes() + 1;
    entry->pinned = std::make_unique<std::atomic<uint8_t>[]>(entry->segments.size());
  } catch (const Error& error) {
    // Without its index the entry is absent, and a builder makes again what is missing.
    if (error.status() == RBC_STATUS_DAMAGED) {
      root->setAside(entry->key, kIndexName, status.st_ino);
    }
    throw;
  }
  root->touchUsed(entry->key);
  return entry;
}

rbcEntry& requireEntry(rbcEntry* entry) {
  if (entry == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "entry: is null");
  return *entry;
}

const StoredTrack& trackOf(const rbcEntry& entry, const char* name) {
  if (name == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "name: is null");
  const auto found = entry.track_numbers.find(name);
  if (found != entry.track_numbers.end()) return entry.tracks[found->second];
  std::string names;
  for (size_t i = 0; i < entry.tracks.size() && i < 8; ++i) {
    names += (i == 0 ? "\"" : ", \"") + entry.tracks[i].name.substr(0, 64) + "\"";
  }
  if (entry.tracks.size() > 8) names += ", ...";
  fail(RBC_STATUS_NOT_FOUND, "name: is \"%.64s\", and the entry has %s", name,
       names.empty() ? "no tensor" : names.c_str());
}

const StoredTensor* tensorOf(const rbcEntry& entry, const char* name, int64_t segment) {
  for (const StoredTensor& tensor : entry.segments[static_cast<size_t>(segment)]->tensors()) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

void failBlock(const rbcEntry& entry, int64_t segment, int64_t block) {
  const SegmentFile& file = *entry.segments[static_cast<size_t>(segment)];
  const Fd folder = entry.root->openEntry(entry.key);
  struct stat status;
  if (folder && !entry.root->options().read_only) {
    const Fd index = openFile(folder.get(), kIndexName, file.shown());
    if (index) {
      status = statusOf(index.get(), file.shown());
      entry.root->setAside(entry.key, kIndexName, status.st_ino);
    }
    entry.root->setAside(entry.key, segmentName(segment).c_str(), file.inode());
  }
  fail(RBC_STATUS_DAMAGED, "store: %s is damaged: the sum of block %" PRId64 " differs",
       file.shown().c_str(), block);
}

void checkOnce(const rbcEntry& entry, int64_t segment, uint64_t begin, uint64_t end,
               std::vector<uint8_t>& scratch) {
  const int64_t block =
      entry.segments[static_cast<size_t>(segment)]->checkOnce(begin, end, scratch);
  if (block >= 0) failBlock(entry, segment, block);
}

void releaseEntry(rbcEntry* entry) noexcept {
  if (entry == nullptr || entry->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  entry->unpinAll();
  delete entry;
}

}  // namespace rbc::store
