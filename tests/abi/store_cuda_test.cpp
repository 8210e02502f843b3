// Gathers of a store's rows on CUDA: registered, staged, and some of each.
#include "support/expect.h"

#if RBC_WITH_CUDA

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "abi/cuda_support.h"
#include "abi/store_support.h"

namespace {

using namespace store_support;
using cuda_support::check;

struct DeviceMemory {
  explicit DeviceMemory(size_t bytes) { check(cudaMalloc(&data, bytes)); }
  ~DeviceMemory() { cudaFree(data); }
  DeviceMemory(const DeviceMemory&) = delete;

  void* data = nullptr;
};

// Gathers rows into device memory that begins `shift` bytes after an aligned address, twice.
void checkGather(const support::Context& cuda, rbcEntry_t entry, const char* name,
                 const std::vector<uint8_t>& expected, std::vector<int64_t> indices, size_t shift,
                 const char* kernel) {
  CAPTURE(name);
  CAPTURE(shift);
  CAPTURE(indices.size());
  rbcTrackInfo info = rbcTrackInfoInit();
  CHECK_SUCCEEDS(rbcEntryGetTrack(entry, name, &info));
  const auto row_bytes = static_cast<size_t>(info.row_bytes);
  const size_t bytes = indices.size() * row_bytes;
  const DeviceMemory memory(bytes + shift + 64);
  std::vector<uint8_t> got(bytes + shift + 64);
  check(cudaMemset(memory.data, 0xab, got.size()));
  auto count = static_cast<int64_t>(indices.size());
  std::vector<int64_t> shape(info.shape, info.shape + info.ndim);
  shape[0] = count;
  const rbcTensor rows = {indices.data(), {RBC_DEVICE_CPU, 0}, 1, kI64, &count, nullptr, 0};
  const rbcTensor out = {static_cast<uint8_t*>(memory.data) + shift,
                         {RBC_DEVICE_CUDA, 0},
                         info.ndim,
                         info.dtype,
                         shape.data(),
                         nullptr,
                         0};
  for (int round = 0; round < 2; ++round) {
    CHECK_SUCCEEDS(rbcEntryGather(cuda.get(), entry, name, &rows, &out));
  }
  CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
  rbcContextInfo launch = rbcContextInfoInit();
  CHECK_SUCCEEDS(rbcContextGetInfo(cuda.get(), &launch));
  if (count > 0) CHECK(std::string(launch.last_launch).find(kernel) != std::string::npos);
  check(cudaMemcpy(got.data(), memory.data, got.size(), cudaMemcpyDeviceToHost));
  bool same = true;
  for (size_t i = 0; i < indices.size(); ++i) {
    same = same && std::memcmp(got.data() + shift + i * row_bytes,
                               expected.data() + static_cast<size_t>(indices[i]) * row_bytes,
                               row_bytes) == 0;
  }
  CHECK(same);
  const auto is_untouched = [](uint8_t byte) { return byte == 0xab; };
  CHECK(std::all_of(got.begin(), got.begin() + static_cast<int64_t>(shift), is_untouched));
  CHECK(std::all_of(got.end() - 64, got.end(), is_untouched));
}

TEST_CASE("store cuda: rows of any size, registered, staged and mixed") {
  REQUIRE_CUDA();
  const Folder folder;
  support::Random random(9);
  const struct {
    const char* name;
    rbcDType dtype;
    std::vector<int64_t> rest;
  } kTracks[] = {{"bytes", kU8, {}},
                 {"odd", kU8, {1021}},
                 {"pairs", {RBC_DTYPE_BFLOAT, 16, 1}, {7}},
                 {"words", kF32, {14}},
                 {"doubles", {RBC_DTYPE_FLOAT, 64, 1}, {3}},
                 {"frames", kU8, {48, 64, 3}},
                 {"nothing", kF32, {0}}};
  const Key key(1);
  std::vector<std::vector<uint8_t>> expected(std::size(kTracks));
  const Store store(folder.path(), anyDisk());
  std::vector<int64_t> offsets = {0};
  constexpr int32_t kSegments = 3;
  uint64_t first_bytes = 0;
  for (int32_t s = 0; s < kSegments; ++s) {
    const int64_t rows = 200 + 100 * s;
    std::vector<Tensor> tensors;
    for (size_t t = 0; t < std::size(kTracks); ++t) {
      std::vector<int64_t> shape = {rows};
      shape.insert(shape.end(), kTracks[t].rest.begin(), kTracks[t].rest.end());
      tensors.push_back(randomTensor(random, kTracks[t].name, kTracks[t].dtype, shape));
      expected[t].insert(expected[t].end(), tensors.back().bytes.begin(),
                         tensors.back().bytes.end());
    }
    writeSegment(store.handle, key, segmentOf(s, s, 1, offsets.back(), rows), tensors, -1, 1 << 20);
    offsets.push_back(offsets.back() + rows);
    if (s == 0) first_bytes = fs::file_size(entryFolder(folder.path(), key) / "000000.rbs");
  }
  CHECK_SUCCEEDS(
      rbcStorePublishEntry(store.handle, key, kSegments, offsets.data(), kSegments + 1, "{}"));
  const auto checkAll = [&](rbcEntry_t entry, const char* kernel) {
    for (size_t t = 0; t < std::size(kTracks); ++t) {
      for (const size_t count : {0, 1, 5, 700}) {
        std::vector<int64_t> indices(count);
        for (int64_t& index : indices) index = random.below(offsets.back());
        if (kTracks[t].rest == std::vector<int64_t>{0}) indices.resize(0);
        for (const size_t shift : {0, 8, 16}) {
          checkGather(cuda, entry, kTracks[t].name, expected[t], indices, shift, kernel);
        }
      }
    }
  };
  SUBCASE("staged") {
    const Entry entry(store.handle, key);
    checkAll(entry.handle, "copy");
    CHECK_SUCCEEDS(rbcEntryRegister(cuda.get(), entry.handle, 0));
    checkAll(entry.handle, "copy");
  }
  SUBCASE("read") {
    rbcStoreParams params = anyDisk();
    params.access = RBC_STORE_ACCESS_READ;
    const Store reading(folder.path(), params);
    const Entry entry(reading.handle, key);
    checkAll(entry.handle, "copy");
    CHECK_FAILS(rbcEntryRegister(cuda.get(), entry.handle, 1 << 20), RBC_STATUS_UNSUPPORTED,
                "entry", "read");
  }
  SUBCASE("registered, all or some") {
    const Entry entry(store.handle, key);
    rbcEntryInfo info = rbcEntryInfoInit();
    CHECK_SUCCEEDS(rbcEntryRegister(cuda.get(), entry.handle, static_cast<int64_t>(first_bytes)));
    CHECK_SUCCEEDS(rbcEntryGetInfo(entry.handle, &info));
    if (info.num_pinned_bytes == 0) SKIP_BECAUSE("this device does not register read-only maps");
    CHECK(info.num_pinned_bytes == first_bytes);
    rbcTensor view;
    CHECK_SUCCEEDS(rbcEntryGetTensor(entry.handle, "words", 0, &view));
    CHECK(view.device.type == RBC_DEVICE_CUDA_HOST);
    CHECK_SUCCEEDS(rbcEntryGetTensor(entry.handle, "words", 1, &view));
    CHECK(view.device.type == RBC_DEVICE_CPU);
    std::vector<int64_t> both = {0, 450, 3, 199, 200, 899};
    for (size_t t = 0; t < std::size(kTracks) - 1; ++t) {
      checkGather(cuda, entry.handle, kTracks[t].name, expected[t], both, 0, "gather");
    }
    CHECK_SUCCEEDS(rbcEntryRegister(cuda.get(), entry.handle, int64_t{1} << 40));
    checkAll(entry.handle, "gather");
    CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
    CHECK_SUCCEEDS(rbcEntryUnregister(cuda.get(), entry.handle));
    checkAll(entry.handle, "copy");
  }
  SUBCASE("a damaged segment is not registered") {
    std::vector<uint8_t> bad = contentOf(entryFolder(folder.path(), key) / "000001.rbs");
    bad[bad.size() / 2] ^= 1;
    replaceFile(entryFolder(folder.path(), key) / "000001.rbs", bad);
    const Entry entry(store.handle, key);
    CHECK_FAILS(rbcEntryRegister(cuda.get(), entry.handle, int64_t{1} << 40), RBC_STATUS_DAMAGED,
                "000001.rbs", "block");
  }
}

TEST_CASE("store cuda: a capture is refused, and calls in turn do not overwrite each other") {
  REQUIRE_CUDA();
  const Folder folder;
  const Key key(1);
  const Store store(folder.path(), anyDisk());
  const auto [states, frames] = writeEntry(store.handle, key, 2);
  const Entry entry(store.handle, key);
  const cuda_support::Stream stream;
  const cuda_support::OnStream on(cuda, stream);
  int64_t index = 0;
  int64_t one = 1;
  int64_t shape[] = {1, 4};
  const DeviceMemory memory(12 * 16);
  const auto gather = [&](int64_t row) {
    index = row;
    const rbcTensor rows = {&index, {RBC_DEVICE_CPU, 0}, 1, kI64, &one, nullptr, 0};
    const rbcTensor out = {static_cast<uint8_t*>(memory.data) + 16 * row,
                           {RBC_DEVICE_CUDA, 0},
                           2,
                           kF32,
                           shape,
                           nullptr,
                           0};
    return rbcEntryGather(cuda.get(), entry.handle, "state", &rows, &out);
  };
  cuda_support::beginCapture(stream);
  CHECK_FAILS(gather(0), RBC_STATUS_UNSUPPORTED, "stream", "captured");
  const cuda_support::Graph graph(stream);
  CHECK(graph.nodes() == 0);
  for (int64_t row = 0; row < 12; ++row) CHECK_SUCCEEDS(gather(row));
  CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
  std::vector<uint8_t> got(12 * 16);
  check(cudaMemcpy(got.data(), memory.data, got.size(), cudaMemcpyDeviceToHost));
  CHECK(got == states);
}

}  // namespace

#endif  // RBC_WITH_CUDA
