#include "prune.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "format.h"
#include "status.h"

namespace rbc::store {
namespace {

constexpr int64_t kSecondNs = 1000000000;
constexpr int64_t kLeftoverNs = int64_t{24} * 3600 * kSecondNs;

struct FoundEntry {
  std::string key;
  bool complete = false;
  bool locked = false;
  int64_t segments = 0;
  uint64_t bytes = 0;
  int64_t last_use = 0;
  int64_t last_change = 0;
};

// The keys whose entries are being built.
std::set<std::string> lockedKeys(const StoreRoot& root) {
  std::set<std::string> keys;
  if (root.options().read_only) return keys;
  const LockFolders folders = root.lockFolders();
  for (const std::string& name : namesIn(root.folder(), "locks", folders.shown)) {
    const std::string key = name.substr(0, 2 * RBC_STORE_KEY_BYTES);
    if (isKeyText(key) && SegmentLock::isHeld(folders, name)) keys.insert(key);
  }
  return keys;
}

// The names that a store makes in the folder of an entry.
bool isEntryFile(const std::string& name) {
  return name == kIndexName || name == kAboutName || segmentNumber(name) >= 0;
}

FoundEntry lookAt(const StoreRoot& root, const std::string& key) {
  FoundEntry found;
  found.key = key;
  const std::string path = StoreRoot::entryPath(key);
  for (const std::string& name : namesIn(root.folder(), path.c_str(), root.shown() + "/" + path)) {
    struct stat status;
    const std::string file = path + "/" + name;
    if (fstatat(root.folder(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode)) continue;
    found.bytes += static_cast<uint64_t>(status.st_size);
    found.last_change = std::max(found.last_change, changeTime(status));
    found.segments += segmentNumber(name) >= 0;
    if (name == kIndexName) {
      found.complete = true;
      found.last_use = changeTime(status);
    }
  }
  struct stat status;
  if (fstatat(root.folder(), path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    found.last_change = std::max(found.last_change, changeTime(status));
  }
  found.last_use = std::max(found.last_use, root.lastUse(key));
  return found;
}

std::vector<FoundEntry> findEntries(const StoreRoot& root) {
  const std::set<std::string> locked = lockedKeys(root);
  std::vector<FoundEntry> entries;
  for (const std::string& group : namesIn(root.folder(), "e", root.shown() + "/e")) {
    const std::string folder = "e/" + group;
    struct stat status;
    if (group.size() != 2 ||
        fstatat(root.folder(), folder.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(status.st_mode)) {
      continue;
    }
    for (const std::string& key :
         namesIn(root.folder(), folder.c_str(), root.shown() + "/" + folder)) {
      const std::string path = StoreRoot::entryPath(key);
      if (!isKeyText(key) || key.compare(0, 2, group) != 0 ||
          fstatat(root.folder(), path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
          !S_ISDIR(status.st_mode)) {
        continue;
      }
      entries.push_back(lookAt(root, key));
      entries.back().locked = locked.count(key) != 0;
    }
  }
  std::sort(entries.begin(), entries.end(), [](const FoundEntry& one, const FoundEntry& two) {
    return std::tie(one.last_use, one.key) < std::tie(two.last_use, two.key);
  });
  return entries;
}

// Removes an entry, its index first. Returns false if a process is publishing it, or if names that
// no store makes are left in it.
bool removeEntry(const StoreRoot& root, const std::string& key) {
  std::string holder;
  const auto lock = SegmentLock::tryTake(root.lockFolders(), lockName(key, -1), &holder);
  if (lock == nullptr) return false;
  const std::string path = StoreRoot::entryPath(key);
  const Fd folder = root.openEntry(key);
  if (!folder) return false;
  const auto remove = [&](const std::string& name) {
    if (unlinkat(folder.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
      failSystem("remove", root.shown() + "/" + path + "/" + name, errno);
    }
  };
  remove(kIndexName);
  for (const std::string& name : namesIn(root.folder(), path.c_str(), root.shown() + "/" + path)) {
    if (isEntryFile(name)) remove(name);
  }
  if (unlinkat(root.folder(), path.c_str(), AT_REMOVEDIR) != 0) {
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOENT) return errno == ENOENT;
    failSystem("remove the folder", root.shown() + "/" + path, errno);
  }
  const std::string group = "e/" + key.substr(0, 2);
  unlinkat(root.folder(), group.c_str(), AT_REMOVEDIR);  // if it was the last one
  const std::string used = "used/" + key;
  unlinkat(root.folder(), used.c_str(), 0);
  return true;
}

// A name that NewFile makes, "123.4f0a.0", or setAside: a key, the name of a file, and its inode.
bool isTemporaryName(const std::string& name) {
  const auto consistsOf = [](const std::string& part, const char* letters) {
    return !part.empty() && part.find_first_not_of(letters) == std::string::npos;
  };
  const size_t first = name.find('.');
  const size_t last = name.rfind('.');
  if (first == last || !consistsOf(name.substr(last + 1), "0123456789")) return false;
  const std::string begin = name.substr(0, first);
  const std::string middle = name.substr(first + 1, last - first - 1);
  if (isKeyText(begin)) return isEntryFile(middle);
  return consistsOf(begin, "0123456789") && consistsOf(middle, "0123456789abcdef");
}

// Removes the files of a folder that are older than `age`, if `mayGo` agrees.
template <class MayGo>
void removeOld(const StoreRoot& root, const char* folder_name, int64_t now, int64_t age,
               bool dry_run, rbcPruneReport& report, MayGo&& mayGo) {
  const std::string shown = root.shown() + "/" + folder_name;
  const Fd folder = openFolder(root.folder(), folder_name, shown);
  if (!folder) return;
  for (const std::string& name : namesIn(root.folder(), folder_name, shown)) {
    struct stat status;
    if (fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode) || now - changeTime(status) < age || !mayGo(name)) {
      continue;
    }
    if (!dry_run && unlinkat(folder.get(), name.c_str(), 0) != 0) {
      if (errno == ENOENT) continue;
      failSystem("remove", shown + "/" + name, errno);
    }
    ++report.num_leftovers;
    report.num_removed_bytes += static_cast<uint64_t>(status.st_size);
  }
}

}  // namespace

std::vector<rbcStoreItem> listEntries(const StoreRoot& root) {
  std::vector<rbcStoreItem> items;
  for (const FoundEntry& entry : findEntries(root)) {
    rbcStoreItem item = {};
    for (int i = 0; i < RBC_STORE_KEY_BYTES; ++i) {
      item.key[i] = static_cast<uint8_t>(std::stoi(entry.key.substr(2 * i, 2), nullptr, 16));
    }
    item.state = entry.complete ? RBC_STORE_ITEM_COMPLETE : RBC_STORE_ITEM_INCOMPLETE;
    item.is_locked = entry.locked ? 1 : 0;
    item.num_segments = entry.segments;
    item.num_bytes = entry.bytes;
    item.last_use_ns = std::max(entry.last_use, entry.complete ? 0 : entry.last_change);
    items.push_back(item);
  }
  return items;
}

rbcPruneReport prune(const StoreRoot& root, const rbcPruneParams& params) {
  root.requireWritable("pruning");
  const bool dry_run = (params.flags & RBC_PRUNE_FLAG_DRY_RUN) != 0;
  const int64_t leftover_age = (params.flags & RBC_PRUNE_FLAG_INCOMPLETE) != 0 ? 0 : kLeftoverNs;
  const int64_t now = fileSystemTime(root.temporary(), root.temporary(), root.shown() + "/tmp");
  rbcPruneReport report = rbcPruneReportInit();
  const std::vector<FoundEntry> entries = findEntries(root);
  uint64_t total = 0;
  for (const FoundEntry& entry : entries) total += entry.bytes;
  for (const FoundEntry& entry : entries) {
    const auto age = [&](int64_t time) { return now > time ? now - time : 0; };
    bool removed = false;
    if (!entry.locked && entry.complete) {
      const bool old = params.max_age_s >= 0 && age(entry.last_use) / kSecondNs > params.max_age_s;
      const bool over = params.max_bytes >= 0 && total > static_cast<uint64_t>(params.max_bytes);
      const bool recent = age(entry.last_use) / kSecondNs < params.recent_s;
      removed = (old || over) && !recent && (dry_run || removeEntry(root, entry.key));
      report.num_removed += removed;
    } else if (!entry.locked) {
      removed = age(entry.last_change) >= leftover_age && (dry_run || removeEntry(root, entry.key));
      report.num_incomplete += removed;
    }
    if (removed) {
      total -= entry.bytes;
      report.num_removed_bytes += entry.bytes;
    } else {
      report.num_kept += entry.complete;
      report.num_kept_bytes += entry.bytes;
    }
  }
  const LockFolders locks = root.lockFolders();
  removeOld(root, "locks", now, leftover_age, dry_run, report, [&](const std::string& name) {
    return isKeyText(name.substr(0, 2 * RBC_STORE_KEY_BYTES)) && !SegmentLock::isHeld(locks, name);
  });
  removeOld(root, "tmp", now, leftover_age, dry_run, report, isTemporaryName);
  removeOld(root, "used", now, leftover_age, dry_run, report,
            [&](const std::string& name) { return isKeyText(name) && !root.openEntry(name); });
  return report;
}

}  // namespace rbc::store
