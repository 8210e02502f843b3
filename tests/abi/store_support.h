// A store in a temporary folder, and entries whose bytes are known.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "robocache/robocache.h"
#include "support/expect.h"
#include "support/random.h"

namespace store_support {

namespace fs = std::filesystem;

// A folder that is removed at the end.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "robocache_store_XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;

  std::string path() const { return path_; }

 private:
  std::string path_;
};

struct Store {
  explicit Store(const std::string& path, const rbcStoreParams& params = rbcStoreParamsInit()) {
    CHECK_SUCCEEDS(rbcStoreOpen(path.c_str(), &params, &handle));
  }
  ~Store() { rbcStoreClose(handle); }
  Store(const Store&) = delete;

  rbcStore_t handle = nullptr;
};

// In tests, disks may be nearly full.
inline rbcStoreParams anyDisk() {
  rbcStoreParams params = rbcStoreParamsInit();
  params.min_free_bytes = 0;
  return params;
}

struct Entry {
  Entry(rbcStore_t store, const uint8_t* key) { CHECK_SUCCEEDS(rbcStoreFind(store, key, &handle)); }
  ~Entry() { rbcEntryRelease(handle); }
  Entry(const Entry&) = delete;

  rbcEntry_t handle = nullptr;
};

struct Key {
  explicit Key(uint8_t first) { bytes[0] = first; }
  operator const uint8_t*() const { return bytes; }
  std::string text() const {
    char digits[2 * RBC_STORE_KEY_BYTES + 1];
    for (int i = 0; i < RBC_STORE_KEY_BYTES; ++i) {
      std::snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
    }
    return digits;
  }

  uint8_t bytes[RBC_STORE_KEY_BYTES] = {};
};

inline fs::path entryFolder(const std::string& store, const Key& key) {
  return fs::path(store) / "v1/e" / key.text().substr(0, 2) / key.text();
}

// A tensor that is written: bytes of [rows, ...].
struct Tensor {
  std::string name;
  rbcDType dtype;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

inline Tensor randomTensor(support::Random& random, const std::string& name, rbcDType dtype,
                           std::vector<int64_t> shape) {
  int64_t bytes = dtype.bits / 8;
  for (const int64_t extent : shape) bytes *= extent;
  Tensor tensor = {name, dtype, std::move(shape), std::vector<uint8_t>(static_cast<size_t>(bytes))};
  for (uint8_t& byte : tensor.bytes) byte = static_cast<uint8_t>(random.bits());
  return tensor;
}

inline rbcSegmentParams segmentOf(int32_t segment, int64_t first_episode, int64_t num_episodes,
                                  int64_t first_row, int64_t num_rows) {
  rbcSegmentParams params = rbcSegmentParamsInit();
  params.segment = segment;
  params.first_episode = first_episode;
  params.num_episodes = num_episodes;
  params.first_row = first_row;
  params.num_rows = num_rows;
  return params;
}

// Writes a segment, in pieces of any size. Returns whether this call wrote it.
inline bool writeSegment(rbcStore_t store, const uint8_t* key, const rbcSegmentParams& segment,
                         const std::vector<Tensor>& tensors, int64_t wait_ms = -1,
                         size_t piece = 1000) {
  rbcSegmentWriter_t writer = nullptr;
  CHECK_SUCCEEDS(rbcStoreLockSegment(store, key, &segment, wait_ms, &writer));
  if (writer == nullptr) return false;
  for (const Tensor& tensor : tensors) {
    CHECK_SUCCEEDS(rbcSegmentWriterAdd(writer, tensor.name.c_str(), tensor.dtype,
                                       static_cast<int32_t>(tensor.shape.size()),
                                       tensor.shape.data()));
  }
  for (const Tensor& tensor : tensors) {
    for (size_t at = 0; at < tensor.bytes.size(); at += piece) {
      const size_t bytes = std::min(piece, tensor.bytes.size() - at);
      CHECK_SUCCEEDS(
          rbcSegmentWriterWrite(writer, tensor.name.c_str(), tensor.bytes.data() + at, bytes));
    }
  }
  CHECK_SUCCEEDS(rbcSegmentWriterPublish(writer));
  CHECK_SUCCEEDS(rbcSegmentWriterDiscard(writer));
  return true;
}

constexpr rbcDType kF32 = {RBC_DTYPE_FLOAT, 32, 1};
constexpr rbcDType kI64 = {RBC_DTYPE_INT, 64, 1};
constexpr rbcDType kU8 = {RBC_DTYPE_UINT, 8, 1};

// An entry of `segments` segments with 2 episodes of 3 rows each: "state" f32 [6,4] and "front" u8
// [6,5,7,3] in each segment. Returns the bytes of both tracks.
inline std::pair<std::vector<uint8_t>, std::vector<uint8_t>> writeEntry(rbcStore_t store,
                                                                        const uint8_t* key,
                                                                        int32_t segments,
                                                                        uint64_t seed = 1) {
  support::Random random(seed);
  std::vector<uint8_t> states;
  std::vector<uint8_t> frames;
  std::vector<int64_t> offsets = {0};
  for (int32_t s = 0; s < segments; ++s) {
    const Tensor state = randomTensor(random, "state", kF32, {6, 4});
    const Tensor front = randomTensor(random, "front", kU8, {6, 5, 7, 3});
    writeSegment(store, key, segmentOf(s, 2 * s, 2, 6 * s, 6), {state, front});
    states.insert(states.end(), state.bytes.begin(), state.bytes.end());
    frames.insert(frames.end(), front.bytes.begin(), front.bytes.end());
    offsets.push_back(offsets.back() + 3);
    offsets.push_back(offsets.back() + 3);
  }
  CHECK_SUCCEEDS(rbcStorePublishEntry(store, key, segments, offsets.data(),
                                      static_cast<int64_t>(offsets.size()), "{\"made\":\"here\"}"));
  return {states, frames};
}

inline std::vector<uint8_t> contentOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Puts other bytes in the place of a file.
inline void replaceFile(const fs::path& path, const std::vector<uint8_t>& bytes) {
  fs::remove(path);
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

// All files below a folder, by relative path.
inline std::vector<std::string> filesBelow(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& each : fs::recursive_directory_iterator(folder)) {
    if (each.is_regular_file()) files.push_back(fs::relative(each.path(), folder).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace store_support
