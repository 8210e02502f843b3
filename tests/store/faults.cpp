// A builder that is killed at each of its system calls, and each of them failing with each error of
// disks and file systems. Afterwards the entry is absent or whole, the next build completes, and
// after a prune nothing is left.
//
//   robocache_store_faults [every]    (tries one of `every` calls)
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "robocache/robocache.h"
#include "shim.h"

namespace {

namespace fs = std::filesystem;

constexpr int32_t kSegments = 2;
constexpr int kDone = 0;
constexpr int kFailed = 2;  // with a status that the documentation names
constexpr int kWrong = 3;

const uint8_t kKey[RBC_STORE_KEY_BYTES] = {0xab, 0xcd};
const char* const kKeyText = "abcd000000000000000000000000000000000000000000000000000000000000";

[[noreturn]] void stop(const std::string& what) {
  fprintf(stderr, "%s: %s\n", what.c_str(), rbcGetLastError());
  exit(1);
}

std::vector<uint8_t> bytesOf(int32_t segment) {
  std::vector<uint8_t> bytes(70000);  // two blocks of sums
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(i * 31 + static_cast<size_t>(segment) + (i >> 8));
  }
  return bytes;
}

bool isExpected(rbcStatus_t status) {
  return status == RBC_STATUS_IO_ERROR || status == RBC_STATUS_UNSUPPORTED ||
         status == RBC_STATUS_BUSY || status == RBC_STATUS_NOT_FOUND ||
         status == RBC_STATUS_DAMAGED;
}

// The work of a process: it looks for an entry, builds it, looks again and prunes.
rbcStatus_t work(const std::string& folder) {
  rbcStoreParams params = rbcStoreParamsInit();
  params.min_free_bytes = 0;
  rbcStore_t store = nullptr;
  rbcStatus_t status = rbcStoreOpen(folder.c_str(), &params, &store);
  if (status != RBC_STATUS_SUCCESS) return status;
  rbcEntry_t entry = nullptr;
  status = rbcStoreFind(store, kKey, &entry);
  for (int32_t s = 0; s < kSegments && entry == nullptr; ++s) {
    rbcSegmentParams segment = rbcSegmentParamsInit();
    segment.segment = s;
    segment.first_episode = s;
    segment.num_episodes = 1;
    segment.first_row = 70000 * s;
    segment.num_rows = 70000;
    rbcSegmentWriter_t writer = nullptr;
    status = rbcStoreLockSegment(store, kKey, &segment, 0, &writer);
    if (writer != nullptr) {
      const std::vector<uint8_t> bytes = bytesOf(s);
      const int64_t shape[] = {70000};
      status = rbcSegmentWriterAdd(writer, "track", {RBC_DTYPE_UINT, 8, 1}, 1, shape);
      for (size_t at = 0; at < bytes.size() && status == RBC_STATUS_SUCCESS; at += 35000) {
        status = rbcSegmentWriterWrite(writer, "track", bytes.data() + at, 35000);
      }
      if (status == RBC_STATUS_SUCCESS) status = rbcSegmentWriterPublish(writer);
      rbcSegmentWriterDiscard(writer);
    }
    if (status != RBC_STATUS_SUCCESS) break;
  }
  if (entry == nullptr && status == RBC_STATUS_SUCCESS) {
    const int64_t offsets[] = {0, 70000, 140000};
    status = rbcStorePublishEntry(store, kKey, kSegments, offsets, 3, "{}");
    if (status == RBC_STATUS_SUCCESS) status = rbcStoreFind(store, kKey, &entry);
  }
  rbcEntryRelease(entry);
  if (status == RBC_STATUS_SUCCESS) status = rbcStorePrune(store, nullptr, nullptr);
  rbcStoreClose(store);
  return status;
}

enum class Entry { kAbsent, kWhole };

Entry look(rbcStore_t store, const std::string& where) {
  rbcEntry_t entry = nullptr;
  const rbcStatus_t status = rbcStoreFind(store, kKey, &entry);
  if (status == RBC_STATUS_NOT_FOUND) return Entry::kAbsent;
  if (status != RBC_STATUS_SUCCESS) stop(where + ": the entry is damaged");
  for (int32_t s = 0; s < kSegments; ++s) {
    rbcTensor view;
    if (rbcEntryGetTensor(entry, "track", s, &view) != RBC_STATUS_SUCCESS) stop(where + ": view");
    const std::vector<uint8_t> bytes = bytesOf(s);
    if (memcmp(view.data, bytes.data(), bytes.size()) != 0) stop(where + ": wrong bytes");
  }
  rbcEntryRelease(entry);
  return Entry::kWhole;
}

std::vector<std::string> filesBelow(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& each : fs::recursive_directory_iterator(folder)) {
    if (each.is_regular_file()) files.push_back(fs::relative(each.path(), folder).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void requireFiles(const std::string& folder, std::vector<std::string> expected,
                  const std::string& where) {
  std::sort(expected.begin(), expected.end());
  const std::vector<std::string> found = filesBelow(folder);
  if (found == expected) return;
  std::string text = where + ": files are left:";
  for (const std::string& file : found) text += " " + file;
  stop(text);
}

struct Counts {
  int cases = 0;
  int killed = 0;
  int failed = 0;
  int absorbed = 0;  // a call failed, and the process went on: a lock's time, an mtime
  int absent = 0;
  int whole = 0;
  std::map<std::string, int> functions;
};

// One process with one fault, and what it leaves behind. Returns false if the process has fewer
// calls.
bool tryOne(const std::string& parent, const shim::Plan& plan, shim::Seen* seen, Counts* counts) {
  const std::string folder = parent + "/store";
  const pid_t child = fork();
  if (child == 0) {
    shim::begin(plan, seen);
    const rbcStatus_t status = work(folder);
    shim::end();
    _exit(status == RBC_STATUS_SUCCESS ? kDone : isExpected(status) ? kFailed : kWrong);
  }
  int end = 0;
  if (waitpid(child, &end, 0) != child) stop("waitpid");
  if (!seen->fired) {
    if (!WIFEXITED(end) || WEXITSTATUS(end) != kDone) stop("a build without a fault failed");
    fs::remove_all(folder);
    return false;
  }
  const std::string where = std::string(seen->function) + ", call " + std::to_string(plan.target) +
                            ", " + (plan.error == 0 ? "killed" : strerror(plan.error));
  ++counts->cases;
  ++counts->functions[seen->function];
  if (plan.error == 0) {
    if (!WIFSIGNALED(end) || WTERMSIG(end) != SIGKILL) stop(where + ": the process lives");
    ++counts->killed;
  } else {
    if (!WIFEXITED(end) || (WEXITSTATUS(end) != kDone && WEXITSTATUS(end) != kFailed)) {
      stop(where + ": the process ended with " + std::to_string(end));
    }
    ++(WEXITSTATUS(end) == kDone ? counts->absorbed : counts->failed);
  }
  rbcStoreParams params = rbcStoreParamsInit();
  params.min_free_bytes = 0;
  rbcStore_t store = nullptr;
  fs::create_directories(folder);  // the fault may have been there
  fs::permissions(folder, fs::perms::owner_all);
  if (rbcStoreOpen(folder.c_str(), &params, &store) != RBC_STATUS_SUCCESS) stop(where + ": open");
  ++(look(store, where) == Entry::kWhole ? counts->whole : counts->absent);
  // A lease has no owner that the system knows: its builder must have been silent for a while.
  if (plan.no_locks) {
    for (const auto& each : fs::directory_iterator(folder + "/v1/locks")) {
      fs::last_write_time(each.path(),
                          fs::file_time_type::clock::now() - std::chrono::seconds(121));
    }
  }
  shim::Plan calm = plan;
  calm.target = 0;
  shim::Seen ignored = {};
  shim::begin(calm, &ignored);
  const rbcStatus_t again = work(folder);
  rbcPruneParams prune = rbcPruneParamsInit();
  prune.flags = RBC_PRUNE_FLAG_INCOMPLETE;
  const rbcStatus_t pruned = rbcStorePrune(store, &prune, nullptr);
  shim::end();
  if (again != RBC_STATUS_SUCCESS) stop(where + ": the next build");
  if (pruned != RBC_STATUS_SUCCESS) stop(where + ": prune");
  if (look(store, where) != Entry::kWhole) stop(where + ": the next build gave no entry");
  const std::string entry = std::string("v1/e/ab/") + kKeyText + "/";
  requireFiles(folder,
               {"CACHEDIR.TAG", entry + "000000.rbs", entry + "000001.rbs", entry + "about.json",
                entry + "entry.rbi", std::string("v1/used/") + kKeyText},
               where);
  prune.max_bytes = 0;
  prune.recent_s = 0;
  if (rbcStorePrune(store, &prune, nullptr) != RBC_STATUS_SUCCESS) stop(where + ": prune");
  requireFiles(folder, {"CACHEDIR.TAG"}, where);
  rbcStoreClose(store);
  fs::remove_all(folder);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const int every = argc > 1 ? std::max(1, atoi(argv[1])) : 1;
  // In memory, where a sync takes no time.
  std::string parent = fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path().string();
  parent += "/robocache_faults_XXXXXX";
  if (mkdtemp(parent.data()) == nullptr) stop("mkdtemp");
  auto* seen = static_cast<shim::Seen*>(
      mmap(nullptr, sizeof(shim::Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const struct {
    const char* name;
    shim::Plan plan;
  } systems[] = {{"a local file system", {}},
                 {"no files without a name", {0, 0, true, false, false}},
                 {"no locks", {0, 0, false, true, false}},
                 {"no files without a name, no renameat2", {0, 0, true, false, true}}};
  constexpr int kErrors[] = {0, ENOSPC, EIO, EDQUOT, ENOLCK, EROFS};
  for (const auto& system : systems) {
    Counts counts;
    for (const int error : kErrors) {
      shim::Plan plan = system.plan;
      plan.error = error;
      int call = 1;
      for (plan.target = call; tryOne(parent, plan, seen, &counts); plan.target = call) {
        call += every;
      }
    }
    printf(
        "%s: %d cases of %zu functions: %d killed, %d failed, %d went on; "
        "afterwards %d absent, %d whole, 0 damaged; after prune 0 files left\n",
        system.name, counts.cases, counts.functions.size(), counts.killed, counts.failed,
        counts.absorbed, counts.absent, counts.whole);
    if (every == 1) {
      for (const auto& [function, number] : counts.functions) {
        printf("  %s %d", function.c_str(), number);
      }
      printf("\n");
    }
  }
  fs::remove_all(parent);
  return 0;
}
