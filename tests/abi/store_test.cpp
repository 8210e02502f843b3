// The store: what is written is read, in any form, and nothing else is.
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "abi/store_support.h"

namespace {

using namespace store_support;

struct CpuContext {
  CpuContext() {
    rbcContextParams params = rbcContextParamsInit();
    params.backend = RBC_BACKEND_CPU;
    params.num_threads = 2;
    CHECK_SUCCEEDS(rbcContextCreate(&params, &handle));
  }
  ~CpuContext() { rbcContextDestroy(handle); }

  rbcContext_t handle = nullptr;
};

rbcTensor tensorOver(void* data, rbcDType dtype, std::vector<int64_t>& shape) {
  rbcTensor tensor = {};
  tensor.data = data;
  tensor.device = {RBC_DEVICE_CPU, 0};
  tensor.ndim = static_cast<int32_t>(shape.size());
  tensor.dtype = dtype;
  tensor.shape = shape.data();
  return tensor;
}

// Gathers rows of a track and compares each with its bytes.
void checkGather(rbcContext_t context, rbcEntry_t entry, const char* name,
                 const std::vector<uint8_t>& expected, std::vector<int64_t> rows) {
  rbcTrackInfo info = rbcTrackInfoInit();
  CHECK_SUCCEEDS(rbcEntryGetTrack(entry, name, &info));
  std::vector<int64_t> row_shape = {static_cast<int64_t>(rows.size())};
  std::vector<int64_t> shape(info.shape, info.shape + info.ndim);
  shape[0] = row_shape[0];
  const auto row_bytes = static_cast<size_t>(info.row_bytes);
  std::vector<uint8_t> got(rows.size() * row_bytes + 1, 0xab);
  const rbcTensor indices = tensorOver(rows.data(), kI64, row_shape);
  const rbcTensor out = tensorOver(got.data(), info.dtype, shape);
  CHECK_SUCCEEDS(rbcEntryPrefetch(context, entry, name, &indices));
  CHECK_SUCCEEDS(rbcEntryGather(context, entry, name, &indices, &out));
  bool same = got.back() == 0xab;
  for (size_t i = 0; i < rows.size(); ++i) {
    same = same &&
           std::memcmp(got.data() + i * row_bytes,
                       expected.data() + static_cast<size_t>(rows[i]) * row_bytes, row_bytes) == 0;
  }
  CHECK(same);
}

TEST_CASE("a store: every dtype and shape comes back, as views and as rows") {
  const Folder folder;
  const CpuContext context;
  constexpr rbcDType kDTypes[] = {
      {RBC_DTYPE_BOOL, 8, 1},   {RBC_DTYPE_INT, 8, 1},     {RBC_DTYPE_INT, 16, 1},
      {RBC_DTYPE_INT, 32, 1},   {RBC_DTYPE_INT, 64, 1},    {RBC_DTYPE_UINT, 8, 1},
      {RBC_DTYPE_UINT, 16, 1},  {RBC_DTYPE_UINT, 32, 1},   {RBC_DTYPE_UINT, 64, 1},
      {RBC_DTYPE_FLOAT, 16, 1}, {RBC_DTYPE_BFLOAT, 16, 1}, {RBC_DTYPE_FLOAT, 32, 1},
      {RBC_DTYPE_FLOAT, 64, 1}};
  support::Random random(7);
  for (int trial = 0; trial < 12; ++trial) {
    CAPTURE(trial);
    rbcStoreParams params = anyDisk();
    params.verify = static_cast<int32_t>(random.below(3));
    const Store store(folder.path(), params);
    const Key key(static_cast<uint8_t>(trial + 1));
    const auto segments = static_cast<int32_t>(1 + random.below(4));
    const auto tracks = static_cast<size_t>(1 + random.below(6));
    std::vector<std::vector<Tensor>> written(static_cast<size_t>(segments));
    std::vector<rbcDType> dtypes;
    std::vector<std::vector<int64_t>> rests;
    for (size_t t = 0; t < tracks; ++t) {
      dtypes.push_back(random.pick(kDTypes));
      rests.emplace_back();
      for (int64_t k = random.below(4); k > 0; --k) rests.back().push_back(1 + random.below(5));
    }
    std::vector<int64_t> offsets = {0};
    int64_t episode = 0;
    for (int32_t s = 0; s < segments; ++s) {
      const int64_t episodes = random.below(4);
      const int64_t first_row = offsets.back();
      for (int64_t e = 0; e < episodes; ++e) {
        offsets.push_back(offsets.back() + random.below(300));
      }
      const int64_t rows = offsets.back() - first_row;
      for (size_t t = 0; t < tracks; ++t) {
        std::vector<int64_t> shape = {rows};
        shape.insert(shape.end(), rests[t].begin(), rests[t].end());
        written[static_cast<size_t>(s)].push_back(
            randomTensor(random, "track \"" + std::to_string(t) + "\" \xc3\xa9", dtypes[t], shape));
      }
      CHECK(writeSegment(store.handle, key, segmentOf(s, episode, episodes, first_row, rows),
                         written[static_cast<size_t>(s)], -1,
                         static_cast<size_t>(1 + random.below(100000))));
      episode += episodes;
    }
    CHECK_SUCCEEDS(rbcStorePublishEntry(store.handle, key, segments, offsets.data(),
                                        static_cast<int64_t>(offsets.size()), "{}"));
    const Entry entry(store.handle, key);
    rbcEntryInfo info = rbcEntryInfoInit();
    CHECK_SUCCEEDS(rbcEntryGetInfo(entry.handle, &info));
    CHECK(info.num_segments == segments);
    CHECK(info.num_episodes == episode);
    CHECK(info.num_rows == offsets.back());
    CHECK(info.num_tensors == static_cast<int64_t>(tracks));
    rbcTensor episodes;
    CHECK_SUCCEEDS(rbcEntryGetEpisodes(entry.handle, &episodes));
    REQUIRE(episodes.shape[0] == episode + 1);
    for (int64_t e = 0; e <= episode; ++e) {
      CHECK(static_cast<const int64_t*>(episodes.data)[e * episodes.strides[0]] ==
            offsets[static_cast<size_t>(e)]);
    }
    rbcStoreParams reading = params;
    reading.access = RBC_STORE_ACCESS_READ;
    const Store by_reads(folder.path(), reading);
    const Entry read(by_reads.handle, key);
    for (size_t t = 0; t < tracks; ++t) {
      const char* name = nullptr;
      CHECK_SUCCEEDS(rbcEntryGetName(entry.handle, static_cast<int64_t>(t), &name));
      CHECK(std::string(name) == written[0][t].name);
      std::vector<uint8_t> all;
      for (int32_t s = 0; s < segments; ++s) {
        const Tensor& tensor = written[static_cast<size_t>(s)][t];
        all.insert(all.end(), tensor.bytes.begin(), tensor.bytes.end());
        rbcTensor view;
        CHECK_SUCCEEDS(rbcEntryGetTensor(entry.handle, name, s, &view));
        CHECK(view.ndim == static_cast<int32_t>(tensor.shape.size()));
        CHECK(std::equal(tensor.shape.begin(), tensor.shape.end(), view.shape));
        CHECK(reinterpret_cast<uintptr_t>(view.data) % 64 == 0);
        CHECK((tensor.bytes.empty() ||
               std::memcmp(view.data, tensor.bytes.data(), tensor.bytes.size()) == 0));
        CHECK_FAILS(rbcEntryGetTensor(read.handle, name, s, &view), RBC_STATUS_UNSUPPORTED,
                    "rbcEntryGather");
      }
      std::vector<int64_t> rows;
      for (int64_t n = offsets.back() > 0 ? random.below(50) : 0; n > 0; --n) {
        rows.push_back(random.below(offsets.back()));
      }
      checkGather(context.handle, entry.handle, name, all, rows);
      checkGather(context.handle, read.handle, name, all, rows);
    }
    rbcVerifyReport report = rbcVerifyReportInit();
    CHECK_SUCCEEDS(rbcEntryVerify(entry.handle, &report));
    CHECK(report.num_damaged_blocks == 0);
    CHECK(report.num_blocks >= segments);
  }
}

// The distance of the output from the rows, modulo a page, decides how they are copied.
TEST_CASE("a store: rows come back at every distance from a page") {
  const Folder folder;
  const Store store(folder.path(), anyDisk());
  const CpuContext context;
  const Key key(9);
  support::Random random(3);
  constexpr int64_t kRows = 12, kRowBytes = 1000;
  const Tensor front = randomTensor(random, "front", kU8, {kRows, kRowBytes});
  CHECK(writeSegment(store.handle, key, segmentOf(0, 0, 1, 0, kRows), {front}));
  const int64_t offsets[] = {0, kRows};
  CHECK_SUCCEEDS(rbcStorePublishEntry(store.handle, key, 1, offsets, 2, "{}"));
  const Entry entry(store.handle, key);
  rbcTensor view;
  CHECK_SUCCEEDS(rbcEntryGetTensor(entry.handle, "front", 0, &view));
  std::vector<int64_t> rows(kRows);
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<int64_t> row_shape = {kRows}, shape = {kRows, kRowBytes};
  const rbcTensor indices = tensorOver(rows.data(), kI64, row_shape);
  constexpr uintptr_t kPage = 4096;
  for (const uintptr_t ahead : {0, 1, 15, 31, 32, 33, 255, 4095}) {
    std::vector<uint8_t> memory(front.bytes.size() + kPage + 2, 0xab);
    const auto begin = reinterpret_cast<uintptr_t>(memory.data()) + 1;
    const uintptr_t wanted = reinterpret_cast<uintptr_t>(view.data) + ahead;
    uint8_t* const got = memory.data() + 1 + (wanted - begin) % kPage;
    const rbcTensor out = tensorOver(got, kU8, shape);
    CHECK_SUCCEEDS(rbcEntryGather(context.handle, entry.handle, "front", &indices, &out));
    CHECK(std::equal(front.bytes.begin(), front.bytes.end(), got));
    CHECK(got[-1] == 0xab);
    CHECK(got[front.bytes.size()] == 0xab);
  }
}

TEST_CASE("a store: an entry is absent until it is published, and then does not change") {
  const Folder folder;
  const Store store(folder.path(), anyDisk());
  const Key key(3);
  rbcEntry_t none = nullptr;
  CHECK_FAILS(rbcStoreFind(store.handle, key, &none), RBC_STATUS_NOT_FOUND, "no entry 0300");
  support::Random random(1);
  const Tensor tensor = randomTensor(random, "state", kF32, {6, 4});
  CHECK(writeSegment(store.handle, key, segmentOf(0, 0, 2, 0, 6), {tensor}));
  CHECK_FAILS(rbcStoreFind(store.handle, key, &none), RBC_STATUS_NOT_FOUND, "no entry 0300");
  const int64_t offsets[] = {0, 3, 6};
  CHECK_FAILS(rbcStorePublishEntry(store.handle, key, 2, offsets, 3, "{}"), RBC_STATUS_NOT_FOUND,
              "000001.rbs", "missing");
  CHECK_SUCCEEDS(rbcStorePublishEntry(store.handle, key, 1, offsets, 3, "{\"kind\":\"numbers\"}"));
  const fs::path entry = entryFolder(folder.path(), key);
  CHECK(filesBelow(entry) == std::vector<std::string>{"000000.rbs", "about.json", "entry.rbi"});
  struct stat before;
  REQUIRE(stat((entry / "000000.rbs").c_str(), &before) == 0);
  CHECK((before.st_mode & 0777) == 0444);
  CHECK(!writeSegment(store.handle, key, segmentOf(0, 0, 2, 0, 6), {tensor}));
  CHECK_SUCCEEDS(rbcStorePublishEntry(store.handle, key, 1, offsets, 3, "other"));
  struct stat after;
  REQUIRE(stat((entry / "000000.rbs").c_str(), &after) == 0);
  CHECK(before.st_ino == after.st_ino);
  const std::vector<uint8_t> about = contentOf(entry / "about.json");
  CHECK(std::string(about.begin(), about.end()) == "{\"kind\":\"numbers\"}");
  CHECK(fs::exists(fs::path(folder.path()) / "CACHEDIR.TAG"));
  // Another division of the episodes must have another key.
  rbcSegmentWriter_t writer = nullptr;
  const rbcSegmentParams other = segmentOf(0, 0, 1, 0, 3);
  CHECK_FAILS(rbcStoreLockSegment(store.handle, key, &other, 0, &writer),
              RBC_STATUS_INVALID_ARGUMENT, "belongs to the key");
}

TEST_CASE("a store: views outlive the store and a prune") {
  const Folder folder;
  const Key key(5);
  auto* store = new Store(folder.path(), anyDisk());
  const auto [states, frames] = writeEntry(store->handle, key, 2);
  const Entry entry(store->handle, key);
  rbcTensor view;
  CHECK_SUCCEEDS(rbcEntryGetTensor(entry.handle, "state", 1, &view));
  rbcPruneParams all = rbcPruneParamsInit();
  all.max_bytes = 0;
  all.recent_s = 0;
  rbcPruneReport report = rbcPruneReportInit();
  CHECK_SUCCEEDS(rbcStorePrune(store->handle, &all, &report));
  CHECK(report.num_removed == 1);
  CHECK(report.num_kept_bytes == 0);
  delete store;
  CHECK(!fs::exists(entryFolder(folder.path(), key)));
  CHECK(std::memcmp(view.data, states.data() + states.size() / 2, states.size() / 2) == 0);
  const CpuContext context;
  checkGather(context.handle, entry.handle, "front", frames, {11, 0, 5, 6, 11});
}

TEST_CASE("a store: prune keeps what is recent or being built, and removes leftovers") {
  const Folder folder;
  const Store store(folder.path(), anyDisk());
  const fs::path v1 = fs::path(folder.path()) / "v1";
  const auto age = [&](const Key& key, int hours) {
    const auto then = fs::file_time_type::clock::now() - std::chrono::hours(hours);
    for (const auto& each : fs::directory_iterator(entryFolder(folder.path(), key))) {
      fs::last_write_time(each.path(), then);
    }
    fs::last_write_time(entryFolder(folder.path(), key), then);
    if (fs::exists(v1 / "used" / key.text())) fs::last_write_time(v1 / "used" / key.text(), then);
  };
  for (int i = 1; i <= 4; ++i) {
    writeEntry(store.handle, Key(static_cast<uint8_t>(i)), 1);
    age(Key(static_cast<uint8_t>(i)), 10 - i);
  }
  rbcStoreItem items[8];
  size_t count = 0;
  CHECK_FAILS(rbcStoreList(store.handle, nullptr, 0, &count), RBC_STATUS_BUFFER_TOO_SMALL, "4");
  CHECK(count == 4);
  CHECK_SUCCEEDS(rbcStoreList(store.handle, items, 8, &count));
  for (int i = 1; i <= 4; ++i) CHECK(items[i - 1].key[0] == i);  // the oldest use is first
  CHECK(items[0].state == RBC_STORE_ITEM_COMPLETE);
  CHECK(items[0].is_locked == 0);
  const auto bytes = static_cast<int64_t>(items[0].num_bytes);
  // A killed builder's entry, and one that is being built.
  support::Random random(2);
  const Tensor tensor = randomTensor(random, "state", kF32, {6, 4});
  writeSegment(store.handle, Key(7), segmentOf(0, 0, 2, 0, 6), {tensor});
  rbcSegmentWriter_t writer = nullptr;
  const rbcSegmentParams second = segmentOf(1, 2, 2, 6, 6);
  CHECK_SUCCEEDS(rbcStoreLockSegment(store.handle, Key(8), &second, 0, &writer));
  age(Key(7), 30);
  age(Key(8), 30);
  replaceFile(v1 / "tmp" / "12.ab.0", {1, 2, 3});
  replaceFile(v1 / "tmp" / "my.own.notes", {1, 2, 3});

  rbcPruneParams params = rbcPruneParamsInit();
  params.max_bytes =
      2 * bytes + 100 +
      static_cast<int64_t>(fs::file_size(entryFolder(folder.path(), Key(7)) / "000000.rbs"));
  params.flags = RBC_PRUNE_FLAG_DRY_RUN;
  rbcPruneReport report = rbcPruneReportInit();
  const auto before = filesBelow(v1);
  CHECK_SUCCEEDS(rbcStorePrune(store.handle, &params, &report));
  CHECK(report.num_removed == 2);
  CHECK(report.num_incomplete == 1);
  CHECK(filesBelow(v1) == before);
  params.flags = 0;
  CHECK_SUCCEEDS(rbcStorePrune(store.handle, &params, &report));
  CHECK(report.num_removed == 2);
  CHECK(report.num_incomplete == 1);
  CHECK(report.num_kept == 2);
  CHECK(!fs::exists(entryFolder(folder.path(), Key(1))));
  CHECK(!fs::exists(entryFolder(folder.path(), Key(2))));
  CHECK(fs::exists(entryFolder(folder.path(), Key(3))));
  CHECK(!fs::exists(entryFolder(folder.path(), Key(7))));
  CHECK(fs::exists(entryFolder(folder.path(), Key(8))));
  CHECK(fs::exists(v1 / "tmp" / "12.ab.0"));  // it is not a day old
  params = rbcPruneParamsInit();
  params.max_bytes = 0;
  writeEntry(store.handle, Key(9), 1);
  CHECK_SUCCEEDS(rbcStorePrune(store.handle, &params, &report));
  CHECK(report.num_removed == 2);
  CHECK(fs::exists(entryFolder(folder.path(), Key(9))));  // it has just been used
  params.flags = RBC_PRUNE_FLAG_INCOMPLETE;
  params.recent_s = 0;
  CHECK_SUCCEEDS(rbcStorePrune(store.handle, &params, &report));
  CHECK(fs::exists(entryFolder(folder.path(), Key(8))));
  CHECK_SUCCEEDS(rbcSegmentWriterDiscard(writer));
  CHECK_SUCCEEDS(rbcStorePrune(store.handle, &params, &report));
  CHECK(report.num_kept == 0);
  CHECK(filesBelow(v1) == std::vector<std::string>{"tmp/my.own.notes"});
  params = rbcPruneParamsInit();
  params.max_age_s = 5 * 3600;
  for (int i = 1; i <= 2; ++i) {
    writeEntry(store.handle, Key(static_cast<uint8_t>(i)), 1);
    age(Key(static_cast<uint8_t>(i)), 4 * i);
  }
  CHECK_SUCCEEDS(rbcStorePrune(store.handle, &params, &report));
  CHECK(report.num_removed == 1);
  CHECK(!fs::exists(entryFolder(folder.path(), Key(2))));
}

}  // namespace
