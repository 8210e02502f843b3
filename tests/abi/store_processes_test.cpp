// Processes that share a store: each segment is built once, also when builders are killed, stopped or
// forked.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <set>

#include "abi/store_support.h"

namespace {

using namespace store_support;

constexpr int32_t kSegments = 6;

void sleepMs(int ms) {
  const timespec time = {ms / 1000, ms % 1000 * 1000000L};
  nanosleep(&time, nullptr);
}

std::vector<int64_t> offsets() {
  std::vector<int64_t> all = {0};
  for (int32_t s = 0; s < kSegments; ++s) {
    all.push_back(6 * s + 3);
    all.push_back(6 * s + 6);
  }
  return all;
}

// The tensor of a segment: all processes write the same bytes.
Tensor stateOf(int32_t segment) {
  support::Random random(static_cast<uint64_t>(segment) + 1);
  return randomTensor(random, "state", kF32, {6, 4});
}

// Builds the entry as a rank would, beginning with its own segments. Returns how many segments it
// wrote, or -1. In a child nothing may use doctest.
int build(const std::string& folder, const Key& key, int rank, int pause_ms, bool publishes) {
  rbcStoreParams params = anyDisk();
  rbcStore_t store = nullptr;
  if (rbcStoreOpen(folder.c_str(), &params, &store) != RBC_STATUS_SUCCESS) return -1;
  int written = 0;
  for (int32_t k = 0; k < kSegments; ++k) {
    const int32_t s = (k + rank) % kSegments;
    const rbcSegmentParams segment = segmentOf(s, 2 * s, 2, 6 * s, 6);
    rbcSegmentWriter_t writer = nullptr;
    if (rbcStoreLockSegment(store, key, &segment, -1, &writer) != RBC_STATUS_SUCCESS) return -1;
    if (writer == nullptr) continue;
    const Tensor tensor = stateOf(s);
    if (rbcSegmentWriterAdd(writer, "state", tensor.dtype, 2, tensor.shape.data()) !=
        RBC_STATUS_SUCCESS) {
      return -1;
    }
    for (size_t at = 0; at < tensor.bytes.size(); at += 48) {
      if (rbcSegmentWriterWrite(writer, "state", tensor.bytes.data() + at, 48) !=
          RBC_STATUS_SUCCESS) {
        return -1;
      }
      sleepMs(pause_ms);
    }
    if (rbcSegmentWriterPublish(writer) != RBC_STATUS_SUCCESS) return -1;
    rbcSegmentWriterDiscard(writer);
    ++written;
  }
  const std::vector<int64_t> all = offsets();
  if (publishes &&
      rbcStorePublishEntry(store, key, kSegments, all.data(), static_cast<int64_t>(all.size()),
                           "{}") != RBC_STATUS_SUCCESS) {
    return -1;
  }
  rbcStoreClose(store);
  return written;
}

pid_t startBuilder(const std::string& folder, const Key& key, int rank, int pause_ms,
                   bool publishes = true) {
  const pid_t child = fork();
  if (child == 0) {
    const int written = build(folder, key, rank, pause_ms, publishes);
    _exit(written < 0 ? 255 : written);
  }
  return child;
}

int exitOf(pid_t child) {
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void checkWhole(const std::string& folder, const Key& key) {
  const Store store(folder, anyDisk());
  const Entry entry(store.handle, key);
  for (int32_t s = 0; s < kSegments; ++s) {
    rbcTensor view;
    CHECK_SUCCEEDS(rbcEntryGetTensor(entry.handle, "state", s, &view));
    const Tensor expected = stateOf(s);
    CHECK(std::memcmp(view.data, expected.bytes.data(), expected.bytes.size()) == 0);
  }
  rbcVerifyReport report = rbcVerifyReportInit();
  CHECK_SUCCEEDS(rbcEntryVerify(entry.handle, &report));
  CHECK(report.num_damaged_blocks == 0);
}

// The files that are left besides the entry and the time of its use.
std::vector<std::string> leftovers(const std::string& folder, const Key& key) {
  std::vector<std::string> left;
  const std::string entry = fs::relative(entryFolder(folder, key), folder).string();
  for (const std::string& file : filesBelow(folder)) {
    if (file.compare(0, entry.size(), entry) != 0 && file != "v1/used/" + key.text() &&
        file != "CACHEDIR.TAG") {
      left.push_back(file);
    }
  }
  return left;
}

TEST_CASE("processes of a store: eight build each segment once") {
  const Folder folder;
  const Key key(1);
  std::vector<pid_t> children;
  for (int rank = 0; rank < 8; ++rank) {
    children.push_back(startBuilder(folder.path(), key, rank, 1));
  }
  int written = 0;
  for (const pid_t child : children) {
    const int count = exitOf(child);
    REQUIRE(count >= 0);
    REQUIRE(count <= kSegments);
    written += count;
  }
  CHECK(written == kSegments);
  checkWhole(folder.path(), key);
  CHECK(leftovers(folder.path(), key).empty());
}

TEST_CASE("processes of a store: the rest goes on when a builder is killed") {
  for (int trial = 0; trial < 10; ++trial) {
    CAPTURE(trial);
    const Folder folder;
    const Key key(1);
    const pid_t victim = startBuilder(folder.path(), key, 0, 2);
    std::vector<pid_t> others;
    for (int rank = 1; rank < 4; ++rank) {
      others.push_back(startBuilder(folder.path(), key, rank, 2));
    }
    sleepMs(3 * trial);
    kill(victim, SIGKILL);
    const int end = exitOf(victim);
    CHECK((end == -SIGKILL || (end >= 0 && end <= kSegments)));  // or it was done before
    for (const pid_t child : others) {
      const int written = exitOf(child);
      CHECK(written >= 0);
      CHECK(written <= kSegments);
    }
    checkWhole(folder.path(), key);
    const Store store(folder.path(), anyDisk());
    rbcPruneParams params = rbcPruneParamsInit();
    params.flags = RBC_PRUNE_FLAG_INCOMPLETE;
    CHECK_SUCCEEDS(rbcStorePrune(store.handle, &params, nullptr));
    CHECK(leftovers(folder.path(), key).empty());
  }
}

TEST_CASE(
    "processes of a store: a killed builder's entry is absent, and the next build completes") {
  const Folder folder;
  const Key key(1);
  for (int trial = 0; trial < 8; ++trial) {
    const pid_t victim = startBuilder(folder.path(), key, 0, 20, false);
    sleepMs(5 + 30 * trial);
    kill(victim, SIGKILL);
    exitOf(victim);
    const Store store(folder.path(), anyDisk());
    rbcEntry_t entry = nullptr;
    CHECK_FAILS(rbcStoreFind(store.handle, key, &entry), RBC_STATUS_NOT_FOUND, "no entry");
  }
  CHECK(build(folder.path(), key, 0, 0, true) >= 0);
  checkWhole(folder.path(), key);
}

TEST_CASE("processes of a store: who waits learns who builds, and gives up in time") {
  const Folder folder;
  const Key key(1);
  const pid_t builder = startBuilder(folder.path(), key, 0, 300, false);
  const Store store(folder.path(), anyDisk());
  const rbcSegmentParams segment = segmentOf(0, 0, 2, 0, 6);
  rbcSegmentWriter_t writer = nullptr;
  const std::string process = "process " + std::to_string(builder) + " on ";
  while (!fs::exists(fs::path(folder.path()) / "v1/locks" / (key.text() + ".0"))) sleepMs(1);
  sleepMs(20);
  CHECK_FAILS(rbcStoreLockSegment(store.handle, key, &segment, 0, &writer), RBC_STATUS_BUSY,
              "000000.rbs", process.c_str());
  CHECK_FAILS(rbcStoreLockSegment(store.handle, key, &segment, 50, &writer), RBC_STATUS_BUSY,
              process.c_str());
  rbcStoreItem item;
  size_t count = 0;
  CHECK_SUCCEEDS(rbcStoreList(store.handle, &item, 1, &count));
  CHECK(item.is_locked == 1);
  CHECK(item.state == RBC_STORE_ITEM_INCOMPLETE);
  kill(builder, SIGSTOP);
  CHECK_FAILS(rbcStoreLockSegment(store.handle, key, &segment, 0, &writer), RBC_STATUS_BUSY,
              process.c_str());
  // It has been silent for 121 s: it is not waited for, and both build.
  const timespec silent[2] = {{time(nullptr) - 121, 0}, {time(nullptr) - 121, 0}};
  const fs::path lock = fs::path(folder.path()) / "v1/locks" / (key.text() + ".0");
  REQUIRE(utimensat(AT_FDCWD, lock.c_str(), silent, 0) == 0);
  CHECK(writeSegment(store.handle, key, segment, {stateOf(0)}, 0));
  kill(builder, SIGCONT);
  CHECK(exitOf(builder) == kSegments);  // its file of segment 0 was dropped
  CHECK(build(folder.path(), key, 0, 0, true) == 0);
  checkWhole(folder.path(), key);
}

TEST_CASE("processes of a store: a forked worker does not hold the lock of its builder") {
  const Folder folder;
  const Key key(1);
  const pid_t builder = fork();
  if (builder == 0) {
    rbcStoreParams params = anyDisk();
    rbcStore_t store = nullptr;
    rbcSegmentWriter_t writer = nullptr;
    const rbcSegmentParams segment = segmentOf(0, 0, 2, 0, 6);
    if (rbcStoreOpen(folder.path().c_str(), &params, &store) != RBC_STATUS_SUCCESS ||
        rbcStoreLockSegment(store, key, &segment, 0, &writer) != RBC_STATUS_SUCCESS) {
      _exit(1);
    }
    const pid_t worker = fork();
    if (worker == 0) {
      const int64_t shape[] = {6, 4};
      const bool refused =
          rbcSegmentWriterAdd(writer, "state", kF32, 2, shape) == RBC_STATUS_UNSUPPORTED;
      rbcSegmentWriterDiscard(writer);  // removes nothing, and does not wait
      std::ofstream(folder.path() + "/worker") << (refused ? getpid() : 0);
      while (true) pause();
    }
    while (!fs::exists(folder.path() + "/worker")) sleepMs(1);
    sleepMs(20);
    const bool held = fs::exists(fs::path(folder.path()) / "v1/locks" / (key.text() + ".0"));
    raise(held ? SIGKILL : SIGTERM);
  }
  CHECK(exitOf(builder) == -SIGKILL);
  const Store store(folder.path(), anyDisk());
  CHECK(writeSegment(store.handle, key, segmentOf(0, 0, 2, 0, 6), {stateOf(0)}, 0));
  pid_t worker = 0;
  std::ifstream(folder.path() + "/worker") >> worker;
  REQUIRE(worker > 0);
  kill(worker, SIGKILL);
}

TEST_CASE("processes of a store: entries are readable in a forked child") {
  const Folder folder;
  const Key key(1);
  REQUIRE(build(folder.path(), key, 0, 0, true) == kSegments);
  for (const int32_t access : {RBC_STORE_ACCESS_MAP, RBC_STORE_ACCESS_READ}) {
    rbcStoreParams params = anyDisk();
    params.access = access;
    const Store store(folder.path(), params);
    const Entry entry(store.handle, key);
    const pid_t child = fork();
    if (child == 0) {
      rbcVerifyReport report = rbcVerifyReportInit();
      rbcEntry_t again = nullptr;
      const bool good = rbcEntryVerify(entry.handle, &report) == RBC_STATUS_SUCCESS &&
                        report.num_damaged_blocks == 0 &&
                        rbcStoreFind(store.handle, key, &again) == RBC_STATUS_SUCCESS;
      rbcEntryRelease(again);
      _exit(good ? 0 : 1);
    }
    CHECK(exitOf(child) == 0);
  }
}

TEST_CASE("processes of a store: a hit of a store that may only be read writes nothing") {
  const Folder folder;
  const Key key(1);
  REQUIRE(build(folder.path(), key, 0, 0, true) == kSegments);
  fs::remove(fs::path(folder.path()) / "v1/used" / key.text());
  const auto before = filesBelow(folder.path());
  rbcStoreParams params = anyDisk();
  params.flags = RBC_STORE_FLAG_READ_ONLY;
  const Store store(folder.path(), params);
  {
    const Entry entry(store.handle, key);
    CHECK(filesBelow(folder.path()) == before);
  }
  const rbcSegmentParams segment = segmentOf(0, 0, 2, 0, 6);
  rbcSegmentWriter_t writer = nullptr;
  CHECK_FAILS(rbcStoreLockSegment(store.handle, Key(2), &segment, 0, &writer),
              RBC_STATUS_UNSUPPORTED, "reading only");
  CHECK_FAILS(rbcStorePrune(store.handle, nullptr, nullptr), RBC_STATUS_UNSUPPORTED,
              "reading only");
  rbcStore_t none = nullptr;
  CHECK_FAILS(rbcStoreOpen((folder.path() + "/absent").c_str(), &params, &none),
              RBC_STATUS_NOT_FOUND, "absent");
  CHECK(filesBelow(folder.path()) == before);
}

}  // namespace
