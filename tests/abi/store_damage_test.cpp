// Damaged, foreign and hostile files of a store: found, set aside, and made again.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "abi/store_support.h"

namespace {

using namespace store_support;

rbcStoreParams readOnly(int32_t verify = RBC_STORE_VERIFY_OPEN) {
  rbcStoreParams params = anyDisk();
  params.flags = RBC_STORE_FLAG_READ_ONLY;
  params.verify = verify;
  return params;
}

// How an entry is found to be damaged: not at all, when it is opened, or by a verification.
enum class Found { kNot, kByOpening, kByVerifying };

Found look(rbcStore_t store, const uint8_t* key) {
  rbcEntry_t entry = nullptr;
  const rbcStatus_t status = rbcStoreFind(store, key, &entry);
  if (status != RBC_STATUS_SUCCESS) {
    CHECK((status == RBC_STATUS_DAMAGED || status == RBC_STATUS_NOT_FOUND));
    return Found::kByOpening;
  }
  rbcVerifyReport report = rbcVerifyReportInit();
  CHECK_SUCCEEDS(rbcEntryVerify(entry, &report));
  rbcEntryRelease(entry);
  return report.num_damaged_blocks > 0 ? Found::kByVerifying : Found::kNot;
}

TEST_CASE("a store: a changed byte anywhere is found") {
  const Folder folder;
  const Key key(1);
  {
    const Store store(folder.path(), anyDisk());
    writeEntry(store.handle, key, 1);
  }
  const Store store(folder.path(), readOnly());
  const fs::path entry = entryFolder(folder.path(), key);
  for (const char* name : {"000000.rbs", "entry.rbi"}) {
    const std::vector<uint8_t> good = contentOf(entry / name);
    const size_t step = good.size() > 2000 ? 7 : 1;
    for (size_t at = 0; at < good.size(); at += step) {
      std::vector<uint8_t> bad = good;
      bad[at] ^= static_cast<uint8_t>(1u << at % 8);
      replaceFile(entry / name, bad);
      CAPTURE(name);
      CAPTURE(at);
      REQUIRE(look(store.handle, key) != Found::kNot);
    }
    replaceFile(entry / name, good);
    CHECK(look(store.handle, key) == Found::kNot);
  }
}

TEST_CASE("a store: a file of any other length is found when it is opened") {
  const Folder folder;
  const Key key(1);
  {
    const Store store(folder.path(), anyDisk());
    writeEntry(store.handle, key, 1);
  }
  for (const int32_t verify : {RBC_STORE_VERIFY_OPEN, RBC_STORE_VERIFY_NONE}) {
    const Store store(folder.path(), readOnly(verify));
    const fs::path entry = entryFolder(folder.path(), key);
    for (const char* name : {"000000.rbs", "entry.rbi"}) {
      const std::vector<uint8_t> good = contentOf(entry / name);
      for (size_t size = 0; size < good.size() + 20; size += size < 300 ? 1 : 97) {
        std::vector<uint8_t> bad = good;
        bad.resize(size);
        if (bad == good) continue;
        replaceFile(entry / name, bad);
        CAPTURE(name);
        CAPTURE(size);
        REQUIRE(look(store.handle, key) == Found::kByOpening);
      }
      replaceFile(entry / name, good);
    }
  }
}

// Without sums, only checks of sizes and offsets protect the memory. Every call must end.
TEST_CASE("a store: random bytes in heads and indexes never lead outside of the files") {
  const Folder folder;
  const Key key(1);
  {
    const Store store(folder.path(), anyDisk());
    writeEntry(store.handle, key, 2);
  }
  rbcStoreParams params = readOnly(RBC_STORE_VERIFY_NONE);
  const Store store(folder.path(), params);
  const fs::path entry = entryFolder(folder.path(), key);
  support::Random random(3);
  constexpr uint64_t kOdd[] = {0,
                               1,
                               7,
                               63,
                               64,
                               4096,
                               65536,
                               0x7fffffff,
                               0xffffffff,
                               1ull << 48,
                               (1ull << 48) + 1,
                               1ull << 62,
                               ~0ull};
  for (const char* name : {"000001.rbs", "entry.rbi"}) {
    const std::vector<uint8_t> good = contentOf(entry / name);
    const size_t begin = name[0] == '0' ? 4096 : 0;  // of the table, of the index
    const auto places = static_cast<int64_t>(std::min<size_t>(120, (good.size() - begin) / 4 - 1));
    for (int trial = 0; trial < 1500; ++trial) {
      std::vector<uint8_t> bad = good;
      for (int64_t n = 1 + random.below(3); n > 0; --n) {
        const size_t at =
            random.chance(0.1) ? 0 : begin + 4 * static_cast<size_t>(random.below(places));
        const uint64_t number =
            random.chance(0.5) ? random.pick(kOdd) : random.bits() >> random.below(64);
        std::memcpy(bad.data() + at, &number, random.chance(0.5) ? 8 : 4);
      }
      replaceFile(entry / name, bad);
      rbcEntry_t found = nullptr;
      const rbcStatus_t status = rbcStoreFind(store.handle, key, &found);
      if (status != RBC_STATUS_SUCCESS) {
        CHECK((status == RBC_STATUS_DAMAGED || status == RBC_STATUS_NOT_FOUND));
        continue;
      }
      rbcEntryInfo info = rbcEntryInfoInit();
      CHECK_SUCCEEDS(rbcEntryGetInfo(found, &info));
      uint64_t sum = 0;
      for (int64_t t = 0; t < info.num_tensors; ++t) {
        const char* track = nullptr;
        CHECK_SUCCEEDS(rbcEntryGetName(found, t, &track));
        for (int64_t s = 0; s < info.num_segments; ++s) {
          rbcTensor view;
          if (rbcEntryGetTensor(found, track, s, &view) != RBC_STATUS_SUCCESS) continue;
          rbcTensorInfo bytes = rbcTensorInfoInit();
          CHECK_SUCCEEDS(rbcTensorGetInfo(&view, &bytes));
          for (int64_t i = 0; i < bytes.num_bytes; ++i) {
            sum += static_cast<const uint8_t*>(bytes.data)[i];
          }
        }
      }
      rbcTensor episodes;
      CHECK_SUCCEEDS(rbcEntryGetEpisodes(found, &episodes));
      for (int64_t e = 0; e < episodes.shape[0]; ++e) {
        sum += static_cast<uint64_t>(static_cast<const int64_t*>(episodes.data)[3 * e]);
      }
      CHECK(sum != 1);  // the bytes are read
      rbcEntryRelease(found);
    }
    replaceFile(entry / name, good);
  }
}

TEST_CASE("a store: a damaged segment is set aside, and made again with the same bytes") {
  for (const size_t at : {10, 4096, 5000}) {  // the header, the table, a tensor in the same block
    CAPTURE(at);
    const Folder folder;
    const Key key(1);
    const Store store(folder.path(), anyDisk());
    const auto [states, frames] = writeEntry(store.handle, key, 2);
    const fs::path entry = entryFolder(folder.path(), key);
    const std::vector<uint8_t> good = contentOf(entry / "000001.rbs");
    std::vector<uint8_t> bad = good;
    bad[at] ^= 1;
    replaceFile(entry / "000001.rbs", bad);
    rbcEntry_t found = nullptr;
    CHECK_FAILS(rbcStoreFind(store.handle, key, &found), RBC_STATUS_DAMAGED, "000001.rbs",
                "damaged");
    CHECK(!fs::exists(entry / "entry.rbi"));
    CHECK(!fs::exists(entry / "000001.rbs"));
    CHECK(fs::exists(entry / "000000.rbs"));
    CHECK_FAILS(rbcStoreFind(store.handle, key, &found), RBC_STATUS_NOT_FOUND, "no entry");
    const auto again = writeEntry(store.handle, key, 2);
    CHECK(again.first == states);
    CHECK(contentOf(entry / "000001.rbs") == good);
    CHECK(look(store.handle, key) == Found::kNot);
  }
}

TEST_CASE("a store: damage that a gather meets is an error, and ends the entry") {
  const Folder folder;
  const Key key(1);
  rbcStoreParams params = anyDisk();
  params.verify = RBC_STORE_VERIFY_FIRST;
  const Store store(folder.path(), params);
  support::Random random(1);
  const Tensor large = randomTensor(random, "front", kU8, {100, 4096});
  writeSegment(store.handle, key, segmentOf(0, 0, 1, 0, 100), {large}, -1, 1 << 20);
  const int64_t offsets[] = {0, 100};
  CHECK_SUCCEEDS(rbcStorePublishEntry(store.handle, key, 1, offsets, 2, "{}"));
  const fs::path segment = entryFolder(folder.path(), key) / "000000.rbs";
  std::vector<uint8_t> bad = contentOf(segment);
  bad[4096 + 4096 + 90 * 4096] ^= 4;
  replaceFile(segment, bad);
  const Entry entry(store.handle, key);
  rbcContextParams cpu = rbcContextParamsInit();
  cpu.backend = RBC_BACKEND_CPU;
  rbcContext_t context = nullptr;
  CHECK_SUCCEEDS(rbcContextCreate(&cpu, &context));
  int64_t row = 3;
  int64_t one = 1;
  int64_t shape[] = {1, 4096};
  std::vector<uint8_t> got(4096);
  rbcTensor rows = {&row, {RBC_DEVICE_CPU, 0}, 1, kI64, &one, nullptr, 0};
  rbcTensor out = {got.data(), {RBC_DEVICE_CPU, 0}, 2, kU8, shape, nullptr, 0};
  CHECK_SUCCEEDS(rbcEntryGather(context, entry.handle, "front", &rows, &out));
  CHECK(std::memcmp(got.data(), large.bytes.data() + 3 * 4096, 4096) == 0);
  row = 90;
  CHECK_FAILS(rbcEntryGather(context, entry.handle, "front", &rows, &out), RBC_STATUS_DAMAGED,
              "000000.rbs", "block 5");
  CHECK(!fs::exists(segment));
  rbcEntry_t found = nullptr;
  CHECK_FAILS(rbcStoreFind(store.handle, key, &found), RBC_STATUS_NOT_FOUND, "no entry");
  rbcContextDestroy(context);
}

TEST_CASE("a store: files that do not belong there are refused, with the reason") {
  const Folder folder;
  const Key key(1);
  const Store store(folder.path(), anyDisk());
  writeEntry(store.handle, key, 1);
  writeEntry(store.handle, Key(2), 1, 2);
  const fs::path entry = entryFolder(folder.path(), key);
  rbcEntry_t found = nullptr;
  SUBCASE("an index of another entry") {
    replaceFile(entry / "entry.rbi", contentOf(entryFolder(folder.path(), Key(2)) / "entry.rbi"));
    CHECK_FAILS(rbcStoreFind(store.handle, key, &found), RBC_STATUS_DAMAGED, "another key");
  }
  SUBCASE("a segment of another entry") {
    replaceFile(entry / "000000.rbs", contentOf(entryFolder(folder.path(), Key(2)) / "000000.rbs"));
    CHECK_FAILS(rbcStoreFind(store.handle, key, &found), RBC_STATUS_DAMAGED, "another file");
  }
  SUBCASE("a missing segment") {
    fs::remove(entry / "000000.rbs");
    CHECK_FAILS(rbcStoreFind(store.handle, key, &found), RBC_STATUS_DAMAGED, "000000.rbs",
                "missing");
  }
  SUBCASE("a changed version of an index") {
    std::vector<uint8_t> other = contentOf(entry / "entry.rbi");
    other[8] = 2;
    replaceFile(entry / "entry.rbi", other);
    CHECK_FAILS(rbcStoreFind(store.handle, key, &found), RBC_STATUS_DAMAGED, "its sum differs");
    writeEntry(store.handle, key, 1);
    CHECK(look(store.handle, key) == Found::kNot);
  }
  SUBCASE("a changed version of a segment") {
    std::vector<uint8_t> other = contentOf(entry / "000000.rbs");
    other[4096 + 8] = 2;
    replaceFile(entry / "000000.rbs", other);
    CHECK_FAILS(rbcStoreFind(store.handle, key, &found), RBC_STATUS_DAMAGED, "the sum of block 0");
    writeEntry(store.handle, key, 1);
    CHECK(look(store.handle, key) == Found::kNot);
  }
  SUBCASE("a link to a file") {
    fs::rename(entry / "entry.rbi", fs::path(folder.path()) / "elsewhere");
    fs::create_symlink(fs::path(folder.path()) / "elsewhere", entry / "entry.rbi");
    CHECK_FAILS(rbcStoreFind(store.handle, key, &found), RBC_STATUS_IO_ERROR, "entry.rbi");
  }
  SUBCASE("a link to a folder") {
    fs::rename(entry, fs::path(folder.path()) / "elsewhere");
    fs::create_directory_symlink(fs::path(folder.path()) / "elsewhere", entry);
    CHECK_FAILS(rbcStoreFind(store.handle, key, &found), RBC_STATUS_IO_ERROR, key.text().c_str());
  }
  SUBCASE("a pipe") {
    fs::remove(entry / "000000.rbs");
    REQUIRE(mkfifo((entry / "000000.rbs").c_str(), 0600) == 0);
    CHECK_FAILS(rbcStoreFind(store.handle, key, &found), RBC_STATUS_DAMAGED, "not a regular file");
  }
  SUBCASE("a folder that others may write") {
    fs::permissions(fs::path(folder.path()), fs::perms::all);
    rbcStore_t other = nullptr;
    CHECK_FAILS(rbcStoreOpen(folder.path().c_str(), nullptr, &other), RBC_STATUS_UNSUPPORTED,
                "other users may write", "chmod go-w");
  }
  SUBCASE("a file that others may write") {
    fs::permissions(entry / "000000.rbs", fs::perms::all);
    CHECK_FAILS(rbcStoreFind(store.handle, key, &found), RBC_STATUS_UNSUPPORTED, "000000.rbs");
  }
  SUBCASE("a file of another user") {
    if (geteuid() != 0) SKIP_BECAUSE("only root gives files away");
    REQUIRE(chown((entry / "000000.rbs").c_str(), 12345, 12345) == 0);
    CHECK_FAILS(rbcStoreFind(store.handle, key, &found), RBC_STATUS_UNSUPPORTED, "user 12345",
                "trusted");
    rbcStoreParams params = anyDisk();
    params.num_trusted_uids = 1;
    params.trusted_uids[0] = 12345;
    const Store trusting(folder.path(), params);
    const Entry good(trusting.handle, key);
    REQUIRE(chown((entry / "000000.rbs").c_str(), 65534, 65534) == 0);
    CHECK_FAILS(rbcStoreFind(trusting.handle, key, &found), RBC_STATUS_UNSUPPORTED, "container");
  }
}

}  // namespace
