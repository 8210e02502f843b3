// Errors of the store, its structs as other releases pass them, and the C++ wrapper.
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <limits>

#include "abi/store_support.h"
#include "abi/struct_calls.h"
#include "robocache/robocache.hpp"

namespace {

using namespace store_support;

constexpr auto kInvalid = RBC_STATUS_INVALID_ARGUMENT;

const support::StructCallsOf kStoreStructs([](support::StructCalls& calls) {
  // The calls live as long as the tests, and so does the folder.
  static const Folder folder;
  static const Store store(folder.path(), anyDisk());
  static const Key key(1);
  static const bool made = (writeEntry(store.handle, key, 1), true);
  static_cast<void>(made);
  static const Entry entry(store.handle, key);
  calls.add("rbcStoreParams", rbcStoreParamsInit(), {rbcStoreParamsInit()}, "params",
            [](const rbcStoreParams* params) {
              rbcStore_t opened = nullptr;
              const rbcStatus_t status = rbcStoreOpen(folder.path().c_str(), params, &opened);
              rbcStoreClose(opened);
              return status;
            });
  calls.add("rbcSegmentParams", rbcSegmentParamsInit(), {segmentOf(0, 0, 2, 0, 6)}, "params",
            [](const rbcSegmentParams* params) {
              rbcSegmentWriter_t writer = nullptr;
              const rbcStatus_t status = rbcStoreLockSegment(store.handle, key, params, 0, &writer);
              rbcSegmentWriterDiscard(writer);
              return status;
            });
  calls.add(
      "rbcPruneParams", rbcPruneParamsInit(), {rbcPruneParamsInit()}, "params",
      [](const rbcPruneParams* params) { return rbcStorePrune(store.handle, params, nullptr); });
  calls.addFilled<rbcPruneReport>("rbcPruneReport", [](rbcPruneReport* report) {
    return rbcStorePrune(store.handle, nullptr, report);
  });
  calls.addFilled<rbcEntryInfo>(
      "rbcEntryInfo", [](rbcEntryInfo* info) { return rbcEntryGetInfo(entry.handle, info); });
  calls.addFilled<rbcTrackInfo>("rbcTrackInfo", [](rbcTrackInfo* info) {
    return rbcEntryGetTrack(entry.handle, "state", info);
  });
  calls.addFilled<rbcVerifyReport>("rbcVerifyReport", [](rbcVerifyReport* report) {
    return rbcEntryVerify(entry.handle, report);
  });
});

TEST_CASE("store errors: opening") {
  const Folder folder;
  rbcStore_t store = reinterpret_cast<rbcStore_t>(&store);
  const auto refuse = [&](const char* told, auto&& change) {
    rbcStoreParams params = rbcStoreParamsInit();
    change(params);
    store = reinterpret_cast<rbcStore_t>(&store);
    CHECK_FAILS(rbcStoreOpen(folder.path().c_str(), &params, &store), kInvalid, told);
    CHECK(store == nullptr);
  };
  refuse("verify: is 3", [](auto& p) { p.verify = 3; });
  refuse("verify: is -1", [](auto& p) { p.verify = -1; });
  refuse("access: is 3", [](auto& p) { p.access = 3; });
  refuse("num_trusted_uids: is 17", [](auto& p) { p.num_trusted_uids = 17; });
  refuse("num_trusted_uids: is -1", [](auto& p) { p.num_trusted_uids = -1; });
  refuse("min_free_bytes: is -2", [](auto& p) { p.min_free_bytes = -2; });
  refuse("flags", [](auto& p) { p.flags = 1; });
  CHECK_FAILS(rbcStoreOpen(nullptr, nullptr, &store), kInvalid, "path: is null");
  CHECK_FAILS(rbcStoreOpen("", nullptr, &store), kInvalid, "path: is empty");
  CHECK_FAILS(rbcStoreOpen(folder.path().c_str(), nullptr, nullptr), kInvalid, "store: is null");
  std::ofstream(folder.path() + "/file") << "text";
  CHECK_FAILS(rbcStoreOpen((folder.path() + "/file").c_str(), nullptr, &store), RBC_STATUS_IO_ERROR,
              "/file", "Not a directory");
  CHECK_SUCCEEDS(rbcStoreClose(nullptr));
  // Folders that are missing are created for this user only.
  const Store deep(folder.path() + "/a/b///", anyDisk());
  struct stat status;
  REQUIRE(stat((folder.path() + "/a").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
}

TEST_CASE(
    "store errors: a full disk and a small limit of files are found before anything is written") {
  const Folder folder;
  const Key key(1);
  rbcStoreParams params = rbcStoreParamsInit();
  params.min_free_bytes = std::numeric_limits<int64_t>::max();
  const Store full(folder.path() + "/full", anyDisk());
  const Store reopened(folder.path() + "/full", params);
  const rbcSegmentParams segment = segmentOf(0, 0, 1, 0, 3);
  rbcSegmentWriter_t writer = nullptr;
  CHECK_SUCCEEDS(rbcStoreLockSegment(reopened.handle, key, &segment, 0, &writer));
  const int64_t shape[] = {3};
  CHECK_SUCCEEDS(rbcSegmentWriterAdd(writer, "state", kF32, 1, shape));
  const float rows[3] = {};
  CHECK_FAILS(rbcSegmentWriterWrite(writer, "state", rows, sizeof rows), RBC_STATUS_IO_ERROR,
              "must stay free", "prune");
  CHECK_SUCCEEDS(rbcSegmentWriterDiscard(writer));
  for (const std::string& file : filesBelow(folder.path() + "/full")) CHECK(file == "CACHEDIR.TAG");

  rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {1 << 16, before.rlim_max};
  CHECK_SUCCEEDS(rbcStoreLockSegment(full.handle, key, &segment, 0, &writer));
  const int64_t large[] = {1 << 20};
  CHECK_SUCCEEDS(rbcSegmentWriterAdd(writer, "state", kF32, 1, large));
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const rbcStatus_t status = rbcSegmentWriterWrite(writer, "state", rows, sizeof rows);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK_FAILS(status, RBC_STATUS_IO_ERROR, "File too large");
  CHECK_SUCCEEDS(rbcSegmentWriterDiscard(writer));
  for (const std::string& file : filesBelow(folder.path() + "/full")) CHECK(file == "CACHEDIR.TAG");
}

TEST_CASE("store errors: writing") {
  const Folder folder;
  const Key key(1);
  const Store store(folder.path(), anyDisk());
  rbcSegmentWriter_t writer = nullptr;
  rbcSegmentParams segment = segmentOf(0, 0, 1, 0, 3);
  CHECK_FAILS(rbcStoreLockSegment(nullptr, key, &segment, 0, &writer), kInvalid, "store: is null");
  CHECK_FAILS(rbcStoreLockSegment(store.handle, nullptr, &segment, 0, &writer), kInvalid,
              "key: is null");
  CHECK_FAILS(rbcStoreLockSegment(store.handle, key, nullptr, 0, &writer), kInvalid,
              "params: is null");
  CHECK_FAILS(rbcStoreLockSegment(store.handle, key, &segment, 0, nullptr), kInvalid,
              "writer: is null");
  CHECK_FAILS(rbcStoreLockSegment(store.handle, key, &segment, -2, &writer), kInvalid,
              "wait_ms: is -2");
  const auto refuse = [&](const char* told, auto&& change) {
    rbcSegmentParams bad = segment;
    change(bad);
    CHECK_FAILS(rbcStoreLockSegment(store.handle, key, &bad, 0, &writer), kInvalid, told);
    CHECK(writer == nullptr);
  };
  refuse("segment: is -1", [](auto& p) { p.segment = -1; });
  refuse("segment: is 1000000", [](auto& p) { p.segment = 1000000; });
  refuse("first_episode: is -1", [](auto& p) { p.first_episode = -1; });
  refuse("num_episodes: is -1", [](auto& p) { p.num_episodes = -1; });
  refuse("first_row: is -1", [](auto& p) { p.first_row = -1; });
  refuse("num_rows: is -1", [](auto& p) { p.num_rows = -1; });

  CHECK_SUCCEEDS(rbcStoreLockSegment(store.handle, key, &segment, 0, &writer));
  const int64_t shape[] = {3, 2};
  const auto add = [&](const char* name, int32_t ndim = 2, rbcDType dtype = kF32) {
    return rbcSegmentWriterAdd(writer, name, dtype, ndim, shape);
  };
  CHECK_FAILS(rbcSegmentWriterAdd(nullptr, "state", kF32, 2, shape), kInvalid, "writer: is null");
  CHECK_FAILS(add(nullptr), kInvalid, "name: is null");
  CHECK_FAILS(add(""), kInvalid, "name: has 0 bytes");
  CHECK_FAILS(add(std::string(1025, 'a').c_str()), kInvalid, "expected 1 to 1024");
  CHECK_FAILS(add("rbc.table"), kInvalid, "the file uses itself");
  CHECK_FAILS(add("__metadata__"), kInvalid, "the file uses itself");
  CHECK_FAILS(add("a\nb"), kInvalid, "byte 1 is a control character");
  for (const char* bad : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3"}) {
    CHECK_FAILS(add(bad), kInvalid, "byte 0 is not UTF-8");
  }
  CHECK_FAILS(add("state", 0), RBC_STATUS_SHAPE_MISMATCH, "ndim: is 0");
  CHECK_FAILS(add("state", 9), RBC_STATUS_SHAPE_MISMATCH, "ndim: is 9");
  CHECK_FAILS(add("state", 2, {RBC_DTYPE_FLOAT, 24, 1}), RBC_STATUS_DTYPE_MISMATCH, "dtype");
  CHECK_FAILS(rbcSegmentWriterAdd(writer, "state", kF32, 2, nullptr), kInvalid, "shape: is null");
  const int64_t negative[] = {-1, 2};
  CHECK_FAILS(rbcSegmentWriterAdd(writer, "state", kF32, 2, negative), RBC_STATUS_SHAPE_MISMATCH,
              "extent 0 is -1");
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  CHECK_FAILS(rbcSegmentWriterAdd(writer, "state", kF32, 2, huge), RBC_STATUS_SHAPE_MISMATCH,
              "2^56");
  CHECK_SUCCEEDS(add("state"));
  CHECK_FAILS(add("state"), kInvalid, "declared already");
  const float rows[7] = {1, 2, 3, 4, 5, 6, 7};
  CHECK_FAILS(rbcSegmentWriterWrite(writer, "action", rows, 4), RBC_STATUS_NOT_FOUND, "\"action\"");
  CHECK_FAILS(rbcSegmentWriterWrite(writer, nullptr, rows, 4), kInvalid, "name: is null");
  CHECK_FAILS(rbcSegmentWriterWrite(writer, "state", rows, sizeof rows), kInvalid,
              "num_bytes: is 28", "24 of 24");
  CHECK_FAILS(rbcSegmentWriterWrite(writer, "state", nullptr, 4), kInvalid, "rows: is null");
  CHECK_SUCCEEDS(rbcSegmentWriterWrite(writer, "state", rows, 20));
  CHECK_FAILS(add("late"), kInvalid, "all tensors are declared before");
  CHECK_FAILS(rbcSegmentWriterPublish(writer), kInvalid, "\"state\"", "20 of its 24 bytes");
  CHECK_SUCCEEDS(rbcSegmentWriterWrite(writer, "state", rows + 5, 4));
  CHECK_SUCCEEDS(rbcSegmentWriterPublish(writer));
  CHECK_FAILS(rbcSegmentWriterPublish(writer), kInvalid, "writer: has ended");
  CHECK_FAILS(rbcSegmentWriterWrite(writer, "state", rows, 4), kInvalid, "writer: has ended");
  CHECK_SUCCEEDS(rbcSegmentWriterDiscard(writer));
  CHECK_SUCCEEDS(rbcSegmentWriterDiscard(nullptr));

  const auto publish = [&](std::vector<int64_t> offsets, int64_t segments = 1) {
    return rbcStorePublishEntry(store.handle, key, segments, offsets.data(),
                                static_cast<int64_t>(offsets.size()), "{}");
  };
  CHECK_FAILS(publish({0, 3}, 0), kInvalid, "num_segments: is 0");
  CHECK_FAILS(publish({}), kInvalid, "episode_offsets");
  CHECK_FAILS(publish({1, 3}), kInvalid, "episode_offsets: is 1 at 0, expected 0");
  CHECK_FAILS(publish({0, 3, 2}), kInvalid, "episode_offsets: is 2 at 2, expected at least 3");
  CHECK_FAILS(publish({0, 4}), kInvalid, "segment 0 has 3 rows from 0, expected 4 from 0");
  CHECK_FAILS(publish({0}), kInvalid, "segment 0 has episodes 0 to 0");
  CHECK_FAILS(publish({0, 3, 3}), kInvalid, "has 2 episodes, and the segments have 1");
  CHECK_FAILS(rbcStorePublishEntry(store.handle, key, 1, nullptr, 2, "{}"), kInvalid,
              "episode_offsets: is null");
  const int64_t offsets[] = {0, 3};
  CHECK_FAILS(rbcStorePublishEntry(store.handle, key, 1, offsets, 2, nullptr), kInvalid,
              "about: is null");
  CHECK_SUCCEEDS(publish({0, 3}));
}

TEST_CASE("store errors: reading and pruning") {
  const Folder folder;
  const Key key(1);
  const Store store(folder.path(), anyDisk());
  writeEntry(store.handle, key, 1);
  const Entry entry(store.handle, key);
  rbcEntry_t none = nullptr;
  CHECK_FAILS(rbcStoreFind(nullptr, key, &none), kInvalid, "store: is null");
  CHECK_FAILS(rbcStoreFind(store.handle, nullptr, &none), kInvalid, "key: is null");
  CHECK_FAILS(rbcStoreFind(store.handle, key, nullptr), kInvalid, "entry: is null");
  CHECK_FAILS(rbcEntryRetain(nullptr), kInvalid, "entry: is null");
  CHECK_SUCCEEDS(rbcEntryRelease(nullptr));
  CHECK_SUCCEEDS(rbcEntryRetain(entry.handle));
  CHECK_SUCCEEDS(rbcEntryRelease(entry.handle));
  const char* name = nullptr;
  CHECK_FAILS(rbcEntryGetName(entry.handle, 2, &name), kInvalid, "index: is 2, expected 0 to 1");
  CHECK_FAILS(rbcEntryGetName(entry.handle, -1, &name), kInvalid, "index: is -1");
  rbcTrackInfo info = rbcTrackInfoInit();
  CHECK_FAILS(rbcEntryGetTrack(entry.handle, "stat", &info), RBC_STATUS_NOT_FOUND,
              "name: is \"stat\"", "\"state\", \"front\"");
  rbcTensor view;
  CHECK_FAILS(rbcEntryGetTensor(entry.handle, "state", 1, &view), kInvalid,
              "segment: is 1, expected 0 to 0");
  CHECK_FAILS(rbcEntryGetTensor(entry.handle, "state", 0, nullptr), kInvalid, "view: is null");
  CHECK_FAILS(rbcEntryGetEpisodes(entry.handle, nullptr), kInvalid, "offsets: is null");

  const support::Context context = support::cpuContext(1);
  std::vector<int64_t> indices = {0, 5};
  std::vector<float> out(8);
  int64_t two = 2;
  int64_t shape[] = {2, 4};
  rbcTensor rows = {indices.data(), {RBC_DEVICE_CPU, 0}, 1, kI64, &two, nullptr, 0};
  rbcTensor written = {out.data(), {RBC_DEVICE_CPU, 0}, 2, kF32, shape, nullptr, 0};
  const auto gather = [&](rbcStatus_t status, const char* told, auto&& change) {
    rbcTensor bad_rows = rows;
    rbcTensor bad_out = written;
    change(bad_rows, bad_out);
    std::fill(out.begin(), out.end(), -1.f);
    CHECK_FAILS(rbcEntryGather(context.get(), entry.handle, "state", &bad_rows, &bad_out), status,
                told);
    CHECK(std::count(out.begin(), out.end(), -1.f) == 8);
  };
  gather(kInvalid, "rows: is 6 at [1], expected one of the 6 rows", [&](auto&, auto&) {
    indices = {0, 6};
  });
  gather(kInvalid, "rows: is -1 at [0]", [&](auto&, auto&) { indices = {-1, 0}; });
  indices = {0, 5};
  gather(RBC_STATUS_DTYPE_MISMATCH, "rows: dtype is float32",
         [](auto& r, auto&) { r.dtype = kF32; });
  gather(RBC_STATUS_SHAPE_MISMATCH, "rows", [](auto& r, auto&) { r.ndim = 0; });
  gather(RBC_STATUS_DEVICE_MISMATCH, "rows: is on a GPU", [](auto& r, auto&) {
    r.device = {RBC_DEVICE_CUDA, 0};
  });
  gather(RBC_STATUS_DTYPE_MISMATCH, "out: dtype is", [](auto&, auto& o) {
    o.dtype = {RBC_DTYPE_INT, 32, 1};
  });
  gather(RBC_STATUS_SHAPE_MISMATCH, "out: shape", [&](auto&, auto& o) { o.ndim = 1; });
  int64_t strides[] = {1, 2};
  gather(kInvalid, "out: is not contiguous", [&](auto&, auto& o) { o.strides = strides; });
  gather(RBC_STATUS_DEVICE_MISMATCH, "out", [](auto&, auto& o) {
    o.device = {RBC_DEVICE_CUDA, 0};
  });
  CHECK_FAILS(rbcEntryGather(context.get(), entry.handle, "stat", &rows, &written),
              RBC_STATUS_NOT_FOUND, "stat");
  CHECK_FAILS(rbcEntryGather(context.get(), nullptr, "state", &rows, &written), kInvalid,
              "entry: is null");
  CHECK_FAILS(rbcEntryRegister(context.get(), entry.handle, -1), kInvalid, "max_bytes: is -1");
  CHECK_SUCCEEDS(rbcEntryRegister(context.get(), entry.handle, 1 << 20));
  CHECK_SUCCEEDS(rbcEntryUnregister(context.get(), entry.handle));
  CHECK_SUCCEEDS(rbcEntryGather(context.get(), entry.handle, "state", &rows, &written));

  rbcPruneParams prune = rbcPruneParamsInit();
  prune.max_bytes = -2;
  CHECK_FAILS(rbcStorePrune(store.handle, &prune, nullptr), kInvalid, "max_bytes: is -2");
  prune = rbcPruneParamsInit();
  prune.recent_s = -1;
  CHECK_FAILS(rbcStorePrune(store.handle, &prune, nullptr), kInvalid, "recent_s: is -1");
  prune = rbcPruneParamsInit();
  prune.flags = 4;
  CHECK_FAILS(rbcStorePrune(store.handle, &prune, nullptr), kInvalid, "flags");
}

TEST_CASE("wrapper: a store, from an empty folder to rows") {
  const Folder folder;
  robocache::StoreOptions options;
  options.min_free_bytes = 0;
  options.verify = robocache::StoreVerify::kFirst;
  const robocache::Store store = robocache::Store::open(folder.path(), options);
  const robocache::StoreKey key = {1, 2, 3};
  CHECK_THROWS_AS(store.find(key), robocache::Error);
  {
    robocache::SegmentWriter writer = store.lockSegment(key, segmentOf(0, 0, 2, 0, 3));
    REQUIRE(writer);
    const std::vector<float> states = {0, 1, 10, 11, 20, 21};
    writer.add("state", robocache::dtypeOf<float>(), {3, 2});
    writer.write("state", states.data(), states.size() * sizeof(float));
    writer.publish();
  }
  CHECK(!store.lockSegment(key, segmentOf(0, 0, 2, 0, 3)));
  store.publishEntry(key, 1, {0, 1, 3}, "{}");
  robocache::StoreEntry entry = store.find(key);
  CHECK(entry.info().num_episodes == 2);
  CHECK(entry.name(0) == "state");
  CHECK(entry.track("state").row_bytes == 8);
  CHECK(entry.episodes().shape(0) == 3);
  CHECK(static_cast<const float*>(entry.tensor("state", 0).data())[5] == 21);
  CHECK(!entry.tensor("state", 0).writable());
  CHECK(entry.verify().num_damaged_blocks == 0);
  const robocache::Context context = robocache::Context::cpu(1);
  const std::vector<int64_t> rows = {2, 0};
  std::vector<float> out(4);
  entry.prefetch(context, "state", rows);
  entry.pin(context, 1 << 20);
  entry.gather(context, "state", rows, {out, {2, 2}});
  entry.unpin(context);
  CHECK(out == std::vector<float>{20, 21, 0, 1});
  REQUIRE(store.list().size() == 1);
  CHECK(store.list()[0].key[2] == 3);
  robocache::PruneOptions all;
  all.max_bytes = 0;
  all.recent_s = 0;
  CHECK(store.prune(all).num_removed == 1);
  CHECK(store.list().empty());
}

}  // namespace
