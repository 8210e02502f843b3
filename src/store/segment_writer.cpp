#include "segment_writer.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <map>
#include <utility>

#include "checksum.h"
#include "entry.h"
#include "entry_index.h"
#include "fork.h"
#include "segment_file.h"
#include "status.h"

using namespace rbc;
using namespace rbc::store;

rbcSegmentWriter::rbcSegmentWriter(StorePointer store, std::string entry_key, uint32_t number,
                                   const SegmentRange& episodes)
    : root(std::move(store)),
      key(std::move(entry_key)),
      segment(number),
      range(episodes),
      generation(forkGeneration()),
      shown(root->shown() + "/" + StoreRoot::entryPath(key)),
      folder(root->makeEntry(key)) {}

void rbcSegmentWriter::requireState(State state, const char* what) const {
  if (generation != forkGeneration()) {
    fail(RBC_STATUS_UNSUPPORTED,
         "writer: belongs to the process that made it, and this is its forked child");
  }
  if (state_ == State::kEnded) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "writer: has ended; %s must come before", what);
  }
  if (state == State::kDeclaring && state_ != state) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "writer: rows have been written; all tensors are declared before");
  }
}

void rbcSegmentWriter::add(const char* name, DType dtype, int32_t ndim, const int64_t* shape) {
  requireState(State::kDeclaring, "a declaration");
  if (name == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "name: is null");
  const std::string own(name, strnlen(name, kMaxNameBytes + 1));  // the caller's may change
  requireTensorName(own);
  if (ndim < 1 || ndim > kMaxRank) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "ndim: is %d, expected 1 to %d", ndim, kMaxRank);
  }
  if (shape == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "shape: is null");
  StoredTensor tensor;
  tensor.name = own;
  tensor.dtype = dtype;
  tensor.shape.assign(shape, shape + ndim);
  tensor.bytes = bytesOf(dtype, ndim, tensor.shape.data());
  for (const int64_t extent : tensor.shape) {
    if (extent > kMaxRows) {
      fail(RBC_STATUS_SHAPE_MISMATCH, "shape: an extent is %" PRId64 ", expected at most 2^48",
           extent);
    }
  }
  for (const StoredTensor& other : declared_) {
    if (other.name == tensor.name) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "name: \"%.64s\" is declared already", own.c_str());
    }
  }
  if (declared_.size() == kMaxTensors) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "name: a segment has at most %u tensors", kMaxTensors);
  }
  declared_.push_back(std::move(tensor));
}

void rbcSegmentWriter::begin() {
  layout_ = layoutOf(declared_, segment, range);
  folder = root->makeEntry(key);  // a prune may have removed the empty folder
  auto file = std::make_unique<NewFile>(folder.get(), root->temporary(), shown);
  file->allocate(layout_.file_bytes, root->options().min_free);
  writeAll(file->get(), layout_.head.data(), layout_.head.size(), 0, shown);
  written_.assign(layout_.tensors.size(), 0);
  file_ = std::move(file);
  state_ = State::kWriting;
}

void rbcSegmentWriter::write(const char* name, const void* rows, size_t bytes) {
  requireState(State::kWriting, "rows");
  if (name == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "name: is null");
  size_t number = 0;
  while (number < declared_.size() && declared_[number].name != name) ++number;
  if (number == declared_.size()) {
    fail(RBC_STATUS_NOT_FOUND, "name: is \"%.64s\", and no such tensor is declared", name);
  }
  const uint64_t before = written_.empty() ? 0 : written_[number];
  const uint64_t room = declared_[number].bytes - before;
  if (bytes > room) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "num_bytes: is %zu, and tensor \"%.64s\" has room for %" PRIu64 " of %" PRIu64 " bytes",
         bytes, name, room, declared_[number].bytes);
  }
  if (rows == nullptr && bytes > 0) fail(RBC_STATUS_INVALID_ARGUMENT, "rows: is null");
  if (state_ == State::kDeclaring) begin();
  writeAll(file_->get(), rows, bytes, layout_.tensors[number].begin + before, shown);
  written_[number] += bytes;
}

void rbcSegmentWriter::publish() {
  requireState(State::kWriting, "publishing");
  if (state_ == State::kDeclaring) begin();
  for (size_t i = 0; i < layout_.tensors.size(); ++i) {
    const StoredTensor& tensor = layout_.tensors[i];
    if (written_[i] != tensor.bytes) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "writer: tensor \"%.64s\" has %" PRIu64 " of its %" PRIu64 " bytes", tensor.name.c_str(),
           written_[i], tensor.bytes);
    }
  }
  state_ =
      State::kEnded;  // also if the following fails: a file that could not be synced is dropped
  std::vector<uint64_t> sums;
  std::vector<uint8_t> bytes(kBlockBytes);
  for (uint64_t at = 0; at < layout_.sums_begin; at += kBlockBytes) {
    const uint64_t count = std::min(kBlockBytes, layout_.sums_begin - at);
    if (!readAll(file_->get(), bytes.data(), count, at, shown)) {
      // Where the file system could not allocate the file, nothing may have written its end.
      if (ftruncate(file_->get(), static_cast<off_t>(layout_.sums_begin)) != 0 ||
          !readAll(file_->get(), bytes.data(), count, at, shown)) {
        failSystem("read back", shown, EIO);
      }
    }
    sums.push_back(checksum(bytes.data(), count));
  }
  sums.push_back(checksum(sums.data(), 8 * sums.size()));
  writeAll(file_->get(), sums.data(), 8 * sums.size(), layout_.sums_begin, shown);
  file_->publish(segmentName(segment).c_str());
  file_.reset();
}

namespace rbc::store {
namespace {

constexpr int64_t kShortestWaitMs = 10;
constexpr int64_t kLongestWaitMs = 200;
constexpr int kIndexAttempts = 50;  // then it is published without the lock

int64_t milliseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

void sleepMs(int64_t ms) {
  const timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, nullptr);
}

// Whether the segment is there. A damaged one, which can only come from a power failure or from
// outside, is set aside.
bool isThere(const rbcSegmentWriter& writer) {
  const std::string name = segmentName(writer.segment);
  const std::string path = writer.shown + "/" + name;
  Fd file = openFile(writer.folder.get(), name.c_str(), path);
  if (!file) return false;
  const struct stat status = statusOf(file.get(), path);
  requireOwner(status, writer.root->options().owners, path);
  try {
    const SegmentFile segment(std::move(file), path, writer.segment, RBC_STORE_ACCESS_READ,
                              RBC_STORE_VERIFY_OPEN);
    const SegmentRange& found = segment.range();
    const SegmentRange& wanted = writer.range;
    if (found.first_episode != wanted.first_episode || found.num_episodes != wanted.num_episodes ||
        found.first_row != wanted.first_row || found.num_rows != wanted.num_rows) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "params: the segment that is there has %" PRId64 " episodes from %" PRId64
           ", expected %" PRId64 " from %" PRId64 ": how episodes are divided belongs to the key",
           found.num_episodes, found.first_episode, wanted.num_episodes, wanted.first_episode);
    }
  } catch (const Error& error) {
    if (error.status() != RBC_STATUS_DAMAGED) throw;
    // Unless another builder has put a new file there: a lock may have been passed over.
    struct stat named;
    if (fstatat(writer.folder.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        named.st_ino == status.st_ino && unlinkat(writer.folder.get(), name.c_str(), 0) != 0 &&
        errno != ENOENT) {
      failSystem("remove the damaged file", path, errno);
    }
    return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<rbcSegmentWriter> lockSegment(const StorePointer& root, const uint8_t* key,
                                              uint32_t segment, const SegmentRange& range,
                                              int64_t wait_ms) {
  root->requireWritable("a builder");
  auto writer = std::make_unique<rbcSegmentWriter>(root, keyText(key), segment, range);
  const std::string name = lockName(writer->key, segment);
  const int64_t begin = milliseconds();
  int64_t pause = kShortestWaitMs;
  while (true) {
    std::string holder;
    writer->lock = SegmentLock::tryTake(root->lockFolders(), name, &holder);
    if (writer->lock != nullptr) {
      return isThere(*writer) ? nullptr : std::move(writer);
    }
    const std::string file = segmentName(segment);
    if (faccessat(writer->folder.get(), file.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
      return nullptr;  // the holder has just published it
    }
    const int64_t waited = milliseconds() - begin;
    if (wait_ms >= 0 && waited >= wait_ms) {
      fail(RBC_STATUS_BUSY, "store: %s is being built by %s", (writer->shown + "/" + file).c_str(),
           holder.c_str());
    }
    sleepMs(wait_ms < 0 ? pause : std::min(pause, wait_ms - waited));
    pause = std::min(2 * pause, kLongestWaitMs);
  }
}

void publishEntry(const StorePointer& root, const uint8_t* key, int64_t num_segments,
                  const int64_t* episode_offsets, int64_t num_offsets, const char* about) {
  root->requireWritable("publishing");
  const std::string text = keyText(key);
  const std::string shown = root->shown() + "/" + StoreRoot::entryPath(text);
  // Under this lock, no prune removes the segments.
  std::string holder;
  std::unique_ptr<SegmentLock> lock;
  for (int attempt = 0; lock == nullptr && attempt < kIndexAttempts; ++attempt) {
    if (attempt > 0) sleepMs(kLongestWaitMs);
    lock = SegmentLock::tryTake(root->lockFolders(), lockName(text, -1), &holder);
  }
  const Fd folder = root->makeEntry(text);
  std::vector<PublishedSegment> published;
  std::map<std::string, StoredTensor> tracks;
  for (int64_t s = 0; s < num_segments; ++s) {
    const std::string name = segmentName(s);
    const std::string path = shown + "/" + name;
    Fd file = openFile(folder.get(), name.c_str(), path);
    if (!file) {
      fail(RBC_STATUS_NOT_FOUND, "store: %s is missing: it must be published before the entry",
           path.c_str());
    }
    requireOwner(statusOf(file.get(), path), root->options().owners, path);
    const SegmentFile segment(std::move(file), path, static_cast<uint32_t>(s),
                              RBC_STORE_ACCESS_READ, RBC_STORE_VERIFY_OPEN);
    published.push_back({segment.fileBytes(), segment.sumOfSums(), segment.range()});
    for (const StoredTensor& tensor : segment.tensors()) {
      const StoredTensor& first = tracks.try_emplace(tensor.name, tensor).first->second;
      if (first.dtype != tensor.dtype || first.shape.size() != tensor.shape.size() ||
          !std::equal(first.shape.begin() + 1, first.shape.end(), tensor.shape.begin() + 1)) {
        fail(RBC_STATUS_INVALID_ARGUMENT,
             "store: %s: tensor \"%.64s\" has another dtype or shape than in the segments before",
             path.c_str(), tensor.name.c_str());
      }
    }
  }
  // Read once: the caller's numbers may change.
  const std::vector<int64_t> offsets(episode_offsets, episode_offsets + num_offsets);
  const std::vector<uint8_t> index = indexOf(key, published, offsets.data(), num_offsets);
  const int64_t min_free = root->options().min_free;
  publishBytes(folder.get(), root->temporary(), kAboutName, about, std::strlen(about), min_free,
               shown);
  publishBytes(folder.get(), root->temporary(), kIndexName, index.data(), index.size(), min_free,
               shown);
  root->touchUsed(text);
}

}  // namespace rbc::store
