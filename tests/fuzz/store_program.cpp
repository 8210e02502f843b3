// Stores: calls in any order, in a temporary folder.
#include <cstdlib>
#include <filesystem>

#include "fuzz/fill.h"
#include "fuzz/programs.h"
#include "fuzz/spoil.h"

namespace fuzz {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kArguments = {
    "store",   "path",         "params",      "key",     "entry",           "name",    "info",
    "offsets", "view",         "rows",        "report",  "writer",          "dtype",   "ndim",
    "shape",   "num_bytes",    "wait_ms",     "about",   "items",           "count",   "capacity",
    "index",   "num_segments", "num_offsets", "context", "episode_offsets", "segment", "max_bytes",
    "out"};

constexpr rbcDType kF32 = {RBC_DTYPE_FLOAT, 32, 1};

struct Folder {
  Folder() {
    path = (fs::temp_directory_path() / "robocache_fuzz_XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) throw Defect("mkdtemp");
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;

  std::string path;
};

// Everything that a program holds.
struct Handles {
  rbcStore_t store = nullptr;
  rbcEntry_t entry = nullptr;
  rbcSegmentWriter_t writer = nullptr;
  ~Handles() {
    rbcSegmentWriterDiscard(writer);
    rbcEntryRelease(entry);
    rbcStoreClose(store);
  }
};

class StorePlay {
 public:
  StorePlay(Machine& machine, Choices& choices, Transcript& transcript)
      : machine_(machine), choices_(choices), transcript_(transcript) {}

  void open() {
    rbcStoreParams params = rbcStoreParamsInit();
    params.min_free_bytes = choices_.chance(95) ? 0 : choices_.pick<int64_t>({-2, -1, INT64_MAX});
    params.verify = static_cast<int32_t>(choices_.chance(95) ? choices_.below(3) : 7);
    params.access = static_cast<int32_t>(choices_.chance(95) ? choices_.below(3) : -1);
    params.num_trusted_uids = choices_.chance(95) ? 0 : choices_.pick({-1, 1, 16, 17, INT32_MAX});
    if (choices_.chance(5)) params.flags = choices_.pick({RBC_STORE_FLAG_READ_ONLY, 1u, ~0u});
    ended(rbcStoreOpen(folder_.path.c_str(), choices_.chance(5) ? nullptr : &params, &held_.store),
          "rbcStoreOpen");
  }

  // Most programs have an entry to read.
  void buildWhole() {
    build(0);
    build(1);
    publish();
    find();
  }

  void build(int32_t number) {
    rbcSegmentParams segment = rbcSegmentParamsInit();
    segment.segment = choices_.chance(99) ? number : choices_.pick({-1, 1000000, INT32_MIN});
    segment.first_episode = number;
    segment.num_episodes = choices_.chance(99) ? 1 : choices_.pick<int64_t>({-1, 2, INT64_MAX});
    segment.first_row = 4 * number;
    segment.num_rows = 4;
    rbcSegmentWriterDiscard(held_.writer);
    held_.writer = nullptr;
    const int64_t wait = choices_.chance(95) ? 0 : choices_.pick<int64_t>({-2, 1});
    ended(rbcStoreLockSegment(store(), key(), choices_.chance(99) ? &segment : nullptr, wait,
                              &held_.writer),
          "rbcStoreLockSegment");
    const int64_t shape[] = {choices_.chance(99) ? 4 : choices_.pick<int64_t>({-1, 0, INT64_MAX}),
                             3};
    ended(rbcSegmentWriterAdd(writer(), name(), kF32, choices_.chance(99) ? 2 : 0, shape),
          "rbcSegmentWriterAdd");
    const float rows[12] = {1, 2, 3};
    const size_t bytes =
        choices_.chance(95) ? sizeof rows : static_cast<size_t>(choices_.below(40));
    ended(rbcSegmentWriterWrite(writer(), name(), rows, bytes), "rbcSegmentWriterWrite");
    ended(rbcSegmentWriterPublish(writer()), "rbcSegmentWriterPublish");
    ended(rbcSegmentWriterDiscard(held_.writer), "rbcSegmentWriterDiscard");
    held_.writer = nullptr;
  }

  void publish() {
    const int64_t offsets[] = {0, 4, choices_.chance(95) ? 8 : choices_.pick<int64_t>({3, 9})};
    const int64_t count = choices_.chance(95) ? 3 : choices_.below(3);
    ended(rbcStorePublishEntry(store(), key(), choices_.chance(95) ? 2 : choices_.between(-1, 3),
                               choices_.chance(99) ? offsets : nullptr, count,
                               choices_.chance(99) ? "{}" : nullptr),
          "rbcStorePublishEntry");
  }

  void find() {
    ended(rbcEntryRelease(held_.entry), "rbcEntryRelease");
    held_.entry = nullptr;
    ended(rbcStoreFind(store(), key(), &held_.entry), "rbcStoreFind");
  }

  void look() {
    rbcEntryInfo info = rbcEntryInfoInit();
    ended(rbcEntryGetInfo(entry(), &info), "rbcEntryGetInfo");
    transcript_.bytes(&info.num_segments, sizeof info.num_segments);
    const char* found = nullptr;
    ended(rbcEntryGetName(entry(), choices_.between(-1, 1), &found), "rbcEntryGetName");
    rbcTrackInfo track = rbcTrackInfoInit();
    ended(rbcEntryGetTrack(entry(), name(), &track), "rbcEntryGetTrack");
    transcript_.bytes(track.shape, sizeof track.shape);
    rbcTensor view = {};
    ended(rbcEntryGetEpisodes(entry(), &view), "rbcEntryGetEpisodes");
    view = {};
    if (ended(rbcEntryGetTensor(entry(), name(), choices_.between(-1, 2), &view),
              "rbcEntryGetTensor") == RBC_STATUS_SUCCESS) {
      transcript_.bytes(view.data, 48);
    }
    rbcVerifyReport report = rbcVerifyReportInit();
    ended(rbcEntryVerify(entry(), &report), "rbcEntryVerify");
    transcript_.bytes(&report.num_blocks, sizeof report.num_blocks);
    if (ended(rbcEntryRetain(entry()), "rbcEntryRetain") == RBC_STATUS_SUCCESS) {
      rbcEntryRelease(held_.entry);
    }
  }

  void gather() {
    Call call("rbcEntryGather");
    const int64_t count = choices_.below(6);
    Tensor* rows = call.add(choices_, "rows", support::kI64, {count}, Role::kInput, Where::kHost);
    fillIntegers(call, *rows, choices_, 0, 7);
    if (choices_.chance(5)) fillConstant(call, *rows, choices_.pick({-1.0, 8.0}));
    Tensor* out = call.addPlain("out", kF32, {count, 3}, Role::kOutput);
    if (choices_.chance(15)) spoil(call, choices_);
    call.names = kArguments;
    call.run = [&](rbcContext_t context, const fuzz::Handles&) {
      const rbcStatus_t asked = rbcEntryPrefetch(context, held_.entry, "state", rows->get());
      if (asked == RBC_STATUS_OUT_OF_MEMORY) return asked;
      return rbcEntryGather(context, held_.entry, "state", rows->get(), out->get());
    };
    if (held_.entry != nullptr) transcript_.outcome(run(machine_, call, 0x5A));
    ended(rbcEntryRegister(machine_.context(), entry(), choices_.between(-1, 1 << 20)),
          "rbcEntryRegister");
    ended(rbcEntryUnregister(machine_.context(), entry()), "rbcEntryUnregister");
  }

  void keepHouse() {
    rbcStoreItem items[4];
    size_t count = 0;
    ended(rbcStoreList(store(), items, static_cast<size_t>(choices_.below(5)), &count),
          "rbcStoreList");
    transcript_.bytes(&count, sizeof count);
    rbcPruneParams params = rbcPruneParamsInit();
    params.max_bytes = choices_.pick<int64_t>({-2, -1, 0, 5000, INT64_MAX});
    params.max_age_s = choices_.pick<int64_t>({-2, -1, 1000, INT64_MAX});
    params.recent_s = choices_.pick<int64_t>({-1, 0, 7200, INT64_MAX});
    params.flags = choices_.pick({0u, RBC_PRUNE_FLAG_DRY_RUN, RBC_PRUNE_FLAG_INCOMPLETE, 1u});
    rbcPruneReport report = rbcPruneReportInit();
    ended(rbcStorePrune(store(), choices_.chance(90) ? &params : nullptr, &report),
          "rbcStorePrune");
    transcript_.bytes(&report.num_removed, sizeof report.num_removed);
  }

  void close() {
    ended(rbcStoreClose(held_.store), "rbcStoreClose");
    held_.store = nullptr;
  }

 private:
  rbcStatus_t ended(rbcStatus_t status, const char* function) {
    return transcript_.ended(status, function, kArguments, true);
  }
  rbcStore_t store() { return choices_.chance(99) ? held_.store : nullptr; }
  rbcEntry_t entry() { return choices_.chance(99) ? held_.entry : nullptr; }
  rbcSegmentWriter_t writer() { return choices_.chance(99) ? held_.writer : nullptr; }
  const uint8_t* key() { return choices_.chance(99) ? key_ : nullptr; }
  const char* name() {
    return choices_.chance(94) ? "state" : choices_.pick({"", "rbc.sums", "\xff", "other"});
  }

  Machine& machine_;
  Choices& choices_;
  Transcript& transcript_;
  const Folder folder_;
  const uint8_t key_[RBC_STORE_KEY_BYTES] = {1};
  Handles held_;
};

}  // namespace

void storeProgram(Machine& machine, Choices choices, Transcript& transcript) {
  StorePlay play(machine, choices, transcript);
  play.open();
  if (choices.chance(60)) play.buildWhole();
  for (int64_t step = choices.between(4, 14); step > 0; --step) {
    switch (choices.below(12)) {
      case 0:
      case 1:
      case 2:
      case 3: play.build(static_cast<int32_t>(choices.below(2))); break;
      case 4:
      case 5: play.publish(); break;
      case 6:
      case 7: play.find(); break;
      case 8: play.look(); break;
      case 9:
      case 10: play.gather(); break;
      default: play.keepHouse(); break;
    }
  }
  play.find();
  play.look();
  play.gather();
  play.close();
}

}  // namespace fuzz
