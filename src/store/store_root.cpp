#include "store_root.h"

#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "status.h"

namespace rbc::store {
namespace {

constexpr int64_t kHourNs = int64_t{3600} * 1000000000;
constexpr char kTag[] =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder is a cache of RoboCache: its files can be made again.\n"
    "# See https://bford.info/cachedir/\n";

// Network file systems, and those that run in another process: a map of a file that a server
// truncates, or cannot reach, ends the process.
bool isRemote(int folder) {
  struct statfs status;
  if (fstatfs(folder, &status) != 0) return false;
  switch (static_cast<uint32_t>(status.f_type)) {
    case 0x6969:      // NFS
    case 0x0bd00bd0:  // Lustre
    case 0x65735546:  // FUSE
    case 0xff534d42:  // CIFS
    case 0xfe534d42:  // SMB 2
    case 0x517b:      // SMB
    case 0x00c36400:  // Ceph
    case 0x01021997:  // 9P
    case 0x19830326:  // BeeGFS
    case 0x47504653:  // GPFS
    case 0x5346414f:  // AFS
      return true;
    default: return false;
  }
}

}  // namespace

StoreRoot::StoreRoot(const std::string& path, StoreOptions options)
    : options_(std::move(options)), shown_(path + "/v1") {
  open(path);
  if (options_.access == RBC_STORE_ACCESS_AUTO) {
    options_.access = isRemote(folder_.get()) ? RBC_STORE_ACCESS_READ : RBC_STORE_ACCESS_MAP;
  }
}

void StoreRoot::open(const std::string& path) {
  if (!options_.read_only) createFolders(path);
  const Fd root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) {
    if (errno == ENOENT) {
      fail(RBC_STATUS_NOT_FOUND, "store: there is no folder %s", path.c_str());
    }
    failSystem("open the folder", path, errno);
  }
  requireSafeFolders(path, options_.owners);
  if (options_.read_only) {
    folder_ = openFolder(root.get(), "v1", shown_);
    if (!folder_) {
      fail(RBC_STATUS_NOT_FOUND,
           "store: %s has no folder v1: it is not a store, or has another version", path.c_str());
    }
    requireOwner(statusOf(folder_.get(), shown_), options_.owners, shown_);
    return;
  }
  folder_ = makeFolder(root.get(), "v1", shown_);
  requireOwner(statusOf(folder_.get(), shown_), options_.owners, shown_);
  makeFolder(folder_.get(), "e", shown_ + "/e");
  temporary_ = makeFolder(folder_.get(), "tmp", shown_ + "/tmp");
  locks_ = makeFolder(folder_.get(), "locks", shown_ + "/locks");
  used_ = makeFolder(folder_.get(), "used", shown_ + "/used");
  if (faccessat(root.get(), "CACHEDIR.TAG", F_OK, AT_SYMLINK_NOFOLLOW) != 0) {
    publishBytes(root.get(), temporary_.get(), "CACHEDIR.TAG", kTag, sizeof kTag - 1, 0, path);
  }
}

void StoreRoot::requireWritable(const char* what) const {
  if (options_.read_only) {
    fail(RBC_STATUS_UNSUPPORTED, "store: %s is open for reading only, and %s writes",
         shown_.c_str(), what);
  }
}

std::string StoreRoot::entryPath(const std::string& key) {
  return "e/" + key.substr(0, 2) + "/" + key;
}

Fd StoreRoot::openEntry(const std::string& key) const {
  const std::string group = key.substr(0, 2);
  const Fd entries = openFolder(folder_.get(), "e", shown_ + "/e");
  if (!entries) return {};
  const Fd keys = openFolder(entries.get(), group.c_str(), shown_ + "/e/" + group);
  if (!keys) return {};
  const std::string shown = shown_ + "/" + entryPath(key);
  Fd entry = openFolder(keys.get(), key.c_str(), shown);
  if (entry) requireOwner(statusOf(entry.get(), shown), options_.owners, shown);
  return entry;
}

Fd StoreRoot::makeEntry(const std::string& key) const {
  const std::string group = key.substr(0, 2);
  const Fd entries = makeFolder(folder_.get(), "e", shown_ + "/e");
  const Fd keys = makeFolder(entries.get(), group.c_str(), shown_ + "/e/" + group);
  const std::string shown = shown_ + "/" + entryPath(key);
  Fd entry = makeFolder(keys.get(), key.c_str(), shown);
  requireOwner(statusOf(entry.get(), shown), options_.owners, shown);
  return entry;
}

void StoreRoot::touchUsed(const std::string& key) const noexcept {
  if (!used_) return;
  struct stat status;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const int64_t present = int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
  if (fstatat(used_.get(), key.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    const int64_t age = present - changeTime(status);
    if (age >= 0 && age < kHourNs) return;  // if the clock went back, it is touched
  }
  const Fd file(
      openat(used_.get(), key.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (file) futimens(file.get(), nullptr);
}

int64_t StoreRoot::lastUse(const std::string& key) const noexcept {
  struct stat status;
  char name[sizeof "used/" + 2 * RBC_STORE_KEY_BYTES];  // a string would allocate memory
  const int length = std::snprintf(name, sizeof name, "used/%s", key.c_str());
  if (length < 0 || static_cast<size_t>(length) >= sizeof name) return 0;
  return fstatat(folder_.get(), name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? changeTime(status) : 0;
}

void StoreRoot::setAside(const std::string& key, const char* name, uint64_t inode) const noexcept {
  if (options_.read_only) return;
  char message[512];  // of the damage: what follows may fail, too
  std::snprintf(message, sizeof message, "%s", rbcGetLastError());
  try {
    moveAside(key, name, inode);
  } catch (...) {
    // The caller reports the damage.
  }
  setLastError("%s", message);
}

void StoreRoot::moveAside(const std::string& key, const char* name, uint64_t inode) const {
  std::string holder;
  const auto lock =
      SegmentLock::tryTake(lockFolders(), lockName(key, segmentNumber(name)), &holder);
  if (lock == nullptr) return;
  const Fd entry = openEntry(key);
  struct stat status;
  if (!entry || fstatat(entry.get(), name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      status.st_ino != inode) {
    return;
  }
  const std::string aside = key + "." + name + "." + std::to_string(inode);
  if (renameat(entry.get(), name, temporary_.get(), aside.c_str()) != 0) {
    unlinkat(entry.get(), name, 0);
  }
}

std::string lockName(const std::string& key, int64_t segment) {
  return segment < 0 ? key + ".index" : key + "." + std::to_string(segment);
}

}  // namespace rbc::store
