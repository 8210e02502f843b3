#include "files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "status.h"

namespace rbc::store {
namespace {

constexpr mode_t kFileMode = 0444;
constexpr mode_t kFolderMode = 0700;
constexpr uint32_t kNobody = 65534;  // what a user namespace shows for users that it does not have
constexpr int64_t kMostMinFree = int64_t{10} << 30;

const char* remedyFor(int error) {
  switch (error) {
    case ENOSPC: return "; free some space, or prune the store";
    case EDQUOT: return "; the user's quota is reached: prune the store";
    case EROFS: return "; open it with RBC_STORE_FLAG_READ_ONLY";
    case EACCES:
    case EPERM: return "; the folder must belong to this user, or be opened for reading only";
    case EMFILE: return "; raise the limit of open files (ulimit -n)";
    default: return "";
  }
}

// strerror_r of GNU and of others differ.
[[maybe_unused]] const char* textOf(int, const char* buffer) { return buffer; }
[[maybe_unused]] const char* textOf(const char* text, const char*) { return text; }

}  // namespace

void Fd::reset() noexcept {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

void failSystem(const char* what, const std::string& path, int error) {
  char buffer[128] = "unknown error";
  const char* text = textOf(strerror_r(error, buffer, sizeof buffer), buffer);
  fail(error == ENOMEM ? RBC_STATUS_OUT_OF_MEMORY : RBC_STATUS_IO_ERROR,
       "store: cannot %s %s: %s%s", what, path.c_str(), text, remedyFor(error));
}

// ---- owners -------------------------------------------------------------------------------------

bool Owners::accept(uint32_t uid) const noexcept {
  return uid == 0 || uid == geteuid() ||
         std::find(trusted.begin(), trusted.end(), uid) != trusted.end();
}

void requireOwner(const struct stat& file, const Owners& owners, const std::string& path) {
  if (!owners.accept(file.st_uid)) {
    if (file.st_uid == kNobody) {
      fail(RBC_STATUS_UNSUPPORTED,
           "store: %s belongs to user 65534: this container does not have the user who owns it; "
           " run it with that user's id, or add 65534 to the trusted users",
           path.c_str());
    }
    fail(RBC_STATUS_UNSUPPORTED,
         "store: %s belongs to user %u, expected user %u, root or a trusted user; whoever owns it "
         "chooses what is read from it: add %u to the trusted users if you trust this user",
         path.c_str(), file.st_uid, static_cast<unsigned>(geteuid()), file.st_uid);
  }
  // The group of a user's own, or root's, has no other members.
  const bool by_group =
      (file.st_mode & S_IWGRP) != 0 && file.st_gid != 0 && file.st_gid != file.st_uid;
  const bool by_others = (file.st_mode & S_IWOTH) != 0;
  const bool sticky = S_ISDIR(file.st_mode) && (file.st_mode & S_ISVTX) != 0;
  if ((by_group || by_others) && !sticky) {
    fail(RBC_STATUS_UNSUPPORTED,
         "store: other users may write %s (mode %03o), and so choose what is read from it; use "
         "another folder, or chmod go-w %s",
         path.c_str(), static_cast<unsigned>(file.st_mode & 0777), path.c_str());
  }
}

void requireSafeFolders(const std::string& path, const Owners& owners) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (real == nullptr) failSystem("find", path, errno);
  std::string folder = real.get();
  while (true) {
    struct stat status;
    if (lstat(folder.c_str(), &status) != 0) failSystem("look at", folder, errno);
    requireOwner(status, owners, folder);
    if (folder == "/") return;
    const size_t end = folder.rfind('/');
    folder = end == 0 ? "/" : folder.substr(0, end);
  }
}

// ---- folders and files --------------------------------------------------------------------------

void createFolders(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string folder = path.substr(0, end);
    if (mkdir(folder.c_str(), kFolderMode) != 0 && errno != EEXIST) {
      // A folder that exists may be on a read-only file system, or below one that may not be read.
      const int error = errno;
      struct stat status;
      if (stat(folder.c_str(), &status) != 0) failSystem("create the folder", folder, error);
    }
    if (end == std::string::npos) return;
  }
}

Fd openFolder(int parent, const char* name, const std::string& shown) {
  Fd folder(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder && errno != ENOENT) failSystem("open the folder", shown, errno);
  return folder;
}

Fd openFile(int folder, const char* name, const std::string& shown) {
  // O_NONBLOCK: someone may have put a pipe there.
  Fd file(openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT) return file;
    failSystem("open", shown, errno);
  }
  const struct stat status = statusOf(file.get(), shown);
  if (!S_ISREG(status.st_mode)) {
    fail(RBC_STATUS_DAMAGED, "store: %s is not a regular file", shown.c_str());
  }
  return file;
}

Fd makeFolder(int parent, const char* name, const std::string& shown) {
  Fd folder = openFolder(parent, name, shown);
  if (folder) return folder;
  if (mkdirat(parent, name, kFolderMode) != 0 && errno != EEXIST) {
    failSystem("create the folder", shown, errno);
  }
  folder = openFolder(parent, name, shown);
  if (!folder) failSystem("open the folder", shown, ENOENT);
  return folder;
}

struct stat statusOf(int file, const std::string& shown) {
  struct stat status;
  if (fstat(file, &status) != 0) failSystem("look at", shown, errno);
  return status;
}

void writeAll(int file, const void* data, size_t bytes, uint64_t at, const std::string& shown) {
  const auto* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = pwrite(file, next, bytes, static_cast<off_t>(at));
    if (written < 0) {
      if (errno == EINTR) continue;
      failSystem("write to", shown, errno);
    }
    if (written == 0) failSystem("write to", shown, ENOSPC);
    next += written;
    at += static_cast<uint64_t>(written);
    bytes -= static_cast<size_t>(written);
  }
}

bool readAll(int file, void* data, size_t bytes, uint64_t at, const std::string& shown) {
  auto* next = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = pread(file, next, bytes, static_cast<off_t>(at));
    if (got < 0) {
      if (errno == EINTR) continue;
      failSystem("read", shown, errno);
    }
    if (got == 0) return false;
    next += got;
    at += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

// ---- new files ----------------------------------------------------------------------------------

NewFile::NewFile(int folder, int temporary, std::string shown)
    : folder_(folder), temporary_(temporary), shown_(std::move(shown)) {
  file_ = Fd(openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, kFileMode));
  if (!file_) {
    // The errors of kernels and file systems that do not have such files.
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL) {
      failSystem("create a file in", shown_, errno);
    }
    static std::atomic<uint64_t> count{0};
    do {
      char name[64];
      timespec now;
      clock_gettime(CLOCK_REALTIME, &now);
      std::snprintf(
          name, sizeof name, "%ld.%" PRIx64 ".%" PRIu64, static_cast<long>(getpid()),
          static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec),
          count.fetch_add(1));
      name_ = name;
      file_ = Fd(openat(temporary, name, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC,
                        kFileMode | S_IWUSR));
    } while (!file_ && errno == EEXIST);
    if (!file_) {
      name_.clear();
      failSystem("create a file for", shown_, errno);
    }
  }
}

NewFile::~NewFile() {
  if (!name_.empty()) unlinkat(temporary_, name_.c_str(), 0);
}

void NewFile::allocate(uint64_t bytes, int64_t min_free) const {
  struct statvfs space;
  if (fstatvfs(file_.get(), &space) != 0) failSystem("look at the space of", shown_, errno);
  const double unit = static_cast<double>(space.f_frsize);
  const double free = static_cast<double>(space.f_bavail) * unit;
  const double all = static_cast<double>(space.f_blocks) * unit;
  const double least = min_free >= 0 ? static_cast<double>(min_free)
                                     : std::min(0.05 * all, static_cast<double>(kMostMinFree));
  // A file system that does not know its size says 0.
  if (all > 0 && free - static_cast<double>(bytes) < least) {
    fail(RBC_STATUS_IO_ERROR,
         "store: %s: %.3f MB are needed, %.1f MB of %.1f MB are free, and %.1f MB must stay free; "
         "free some space, prune the store, or lower min_free_bytes",
         shown_.c_str(), static_cast<double>(bytes) / 1e6, free / 1e6, all / 1e6, least / 1e6);
  }
  if (bytes == 0) return;
  int error;
  do {
    error = fallocate(file_.get(), 0, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error != 0 && error != EOPNOTSUPP && error != ENOSYS) {
    failSystem("allocate a file in", shown_, error);
  }
}

bool NewFile::publish(const char* name) {
  const std::string shown = shown_ + "/" + name;
  if (fchmod(file_.get(), kFileMode) != 0) failSystem("set the mode of", shown, errno);
  // If this fails, the kernel may have dropped the pages and forgotten it: the file is not synced
  // again, but dropped.
  if (fsync(file_.get()) != 0) failSystem("write to the disk", shown, errno);
  bool published = true;
  if (name_.empty()) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", file_.get());
    if (linkat(AT_FDCWD, path, folder_, name, AT_SYMLINK_FOLLOW) != 0) {
      // Without /proc, a link needs a privilege.
      if (errno == EEXIST) {
        published = false;
      } else if (errno != ENOENT || linkat(file_.get(), "", folder_, name, AT_EMPTY_PATH) != 0) {
        if (errno != EEXIST) failSystem("give its name to", shown, errno);
        published = false;
      }
    }
  } else if (syscall(SYS_renameat2, temporary_, name_.c_str(), folder_, name,
                     static_cast<unsigned>(RENAME_NOREPLACE)) == 0) {
    name_.clear();
  } else if (errno == EEXIST) {
    published = false;
  } else if (errno == EINVAL || errno == ENOSYS) {
    if (linkat(temporary_, name_.c_str(), folder_, name, 0) != 0) {
      if (errno == EEXIST) {
        published = false;
      } else if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS) {
        fail(RBC_STATUS_UNSUPPORTED,
             "store: the file system of %s has neither links nor a rename that keeps an existing "
             "file; put the store on another one",
             shown_.c_str());
      } else {
        failSystem("give its name to", shown, errno);
      }
    }
  } else {
    failSystem("give its name to", shown, errno);
  }
  // Another process's file, too: its name may not be on the disk yet.
  if (fsync(folder_) != 0 && errno != EINVAL && errno != EROFS) {
    failSystem("write to the disk", shown_, errno);
  }
  return published;
}

void publishBytes(int folder, int temporary, const char* name, const void* data, size_t bytes,
                  int64_t min_free, const std::string& shown) {
  NewFile file(folder, temporary, shown);
  file.allocate(bytes, min_free);
  writeAll(file.get(), data, bytes, 0, shown + "/" + name);
  file.publish(name);
}

int64_t changeTime(const struct stat& file) noexcept {
  return int64_t{file.st_mtim.tv_sec} * 1000000000 + file.st_mtim.tv_nsec;
}

int64_t fileSystemTime(int folder, int temporary, const std::string& shown) {
  const NewFile file(folder, temporary, shown);
  return changeTime(statusOf(file.get(), shown));
}

// ---- names --------------------------------------------------------------------------------------

std::vector<std::string> namesIn(int parent, const char* name, const std::string& shown) {
  std::vector<std::string> names;
  Fd folder = openFolder(parent, name, shown);
  if (!folder) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(folder.get()), &closedir);
  if (entries == nullptr) failSystem("list", shown, errno);
  folder.release();  // the entries close it
  while (true) {
    errno = 0;
    const dirent* entry = readdir(entries.get());
    if (entry == nullptr) {
      if (errno != 0) failSystem("list", shown, errno);
      break;
    }
    const std::string found = entry->d_name;
    if (found != "." && found != "..") names.push_back(found);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string keyText(const uint8_t* key) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int i = 0; i < RBC_STORE_KEY_BYTES; ++i) {
    text += kDigits[key[i] >> 4];
    text += kDigits[key[i] & 15];
  }
  return text;
}

bool isKeyText(const std::string& text) noexcept {
  return text.size() == 2 * RBC_STORE_KEY_BYTES &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string segmentName(int64_t segment) {
  char name[32];
  std::snprintf(name, sizeof name, "%06" PRId64 ".rbs", segment);
  return name;
}

int64_t segmentNumber(const std::string& name) noexcept {
  if (name.size() != 10 || name.compare(6, 4, ".rbs") != 0) return -1;
  int64_t number = 0;
  for (int i = 0; i < 6; ++i) {
    if (name[i] < '0' || name[i] > '9') return -1;
    number = 10 * number + (name[i] - '0');
  }
  return number;
}

}  // namespace rbc::store
