#include "lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <system_error>

#include "fork.h"
#include "status.h"

namespace rbc::store {
namespace {

constexpr auto kBeat = std::chrono::seconds(10);
constexpr mode_t kLockMode = 0644;
constexpr size_t kHolderBytes = 160;

// The locks of this process, for a forked child to close.
std::mutex held_mutex;
SegmentLock* held = nullptr;

std::string describeSelf() {
  char host[65] = "";
  gethostname(host, sizeof host - 1);
  char text[kHolderBytes];
  std::snprintf(text, sizeof text, "process %ld on %s\n", static_cast<long>(getpid()), host);
  return text;
}

std::string readHolder(int file) {
  char text[kHolderBytes] = "";
  const ssize_t got = pread(file, text, sizeof text - 1, 0);
  std::string holder(text, got > 0 ? static_cast<size_t>(got) : 0);
  // It is shown: only what describeSelf writes.
  for (char& letter : holder) {
    if (letter < ' ' || letter > '~') letter = ' ';
  }
  while (!holder.empty() && holder.back() == ' ') holder.pop_back();
  return holder.empty() ? "another process" : holder;
}

bool isRefusal(int error) {
  return error == ENOLCK || error == EOPNOTSUPP || error == ENOSYS || error == EINVAL;
}

// Whether the descriptor is the file that has the name now.
bool isNamed(int folder, const std::string& name, int file) {
  struct stat named;
  struct stat opened;
  return fstatat(folder, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         fstat(file, &opened) == 0 && named.st_ino == opened.st_ino &&
         named.st_dev == opened.st_dev;
}

}  // namespace

SegmentLock::SegmentLock(const LockFolders& folders, std::string name, Fd file)
    : folder_(folders.locks),
      name_(std::move(name)),
      file_(std::move(file)),
      generation_(forkGeneration()) {
  if (!file_) return;
  // A full disk does not matter here: the name is only for messages.
  const std::string self = describeSelf();
  const ssize_t written = pwrite(file_.get(), self.data(), self.size(), 0);
  static_cast<void>(written);
  futimens(file_.get(), nullptr);
  startHeart();
  static const int registered =
      pthread_atfork([] { held_mutex.lock(); }, [] { held_mutex.unlock(); },
                     [] {
                       closeInChild();
                       held_mutex.unlock();
                     });
  static_cast<void>(registered);
  const std::lock_guard<std::mutex> guard(held_mutex);
  next_ = held;
  held = this;
}

void SegmentLock::startHeart() {
  auto heart = std::make_unique<Heart>();
  // Signals are for the threads of the program.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    heart->thread = std::thread([beat = heart.get(), file_number = file_.get()] {
      std::unique_lock<std::mutex> guard(beat->mutex);
      while (!beat->end.wait_for(guard, kBeat, [beat] { return beat->ended; })) {
        futimens(file_number, nullptr);
      }
    });
    heart_ = std::move(heart);
  } catch (const std::system_error&) {
    // Without a thread others may build the segment, too, after a while.
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

SegmentLock::~SegmentLock() {
  if (generation_ != forkGeneration()) {
    // A forked child: its file is closed. The destructors would wait for a thread that it does not
    // have.
    static_cast<void>(heart_.release());
    return;
  }
  if (heart_ != nullptr) {
    {
      const std::lock_guard<std::mutex> guard(heart_->mutex);
      heart_->ended = true;
    }
    heart_->end.notify_all();
    heart_->thread.join();
  }
  const std::lock_guard<std::mutex> guard(held_mutex);
  for (SegmentLock** link = &held; *link != nullptr; link = &(*link)->next_) {
    if (*link == this) {
      *link = next_;
      break;
    }
  }
  if (file_ && isNamed(folder_, name_, file_.get())) unlinkat(folder_, name_.c_str(), 0);
}

void SegmentLock::closeInChild() noexcept {
  for (SegmentLock* lock = held; lock != nullptr; lock = lock->next_) lock->file_.reset();
  held = nullptr;
}

std::unique_ptr<SegmentLock> SegmentLock::tryTake(const LockFolders& folders,
                                                  const std::string& name, std::string* holder) {
  const std::string shown = folders.shown + "/" + name;
  for (int attempt = 0; attempt < 100; ++attempt) {
    // Opened for writing, which locks need on NFS.
    Fd file(
        openat(folders.locks, name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kLockMode));
    if (!file) failSystem("open the lock", shown, errno);
    int error;
    do {
      error = flock(file.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    } while (error == EINTR);
    if (error == 0) {
      // The holder before may have removed the file between the two calls.
      if (!isNamed(folders.locks, name, file.get())) continue;
      return std::unique_ptr<SegmentLock>(new SegmentLock(folders, name, std::move(file)));
    }
    const bool refused = isRefusal(error);
    if (!refused && error != EWOULDBLOCK) failSystem("lock", shown, error);
    if (refused) {
      file.reset();
      const std::string lease = name + ".lease";
      file = Fd(openat(folders.locks, lease.c_str(),
                       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kLockMode));
      if (file) {
        unlinkat(folders.locks, name.c_str(), 0);
        return std::unique_ptr<SegmentLock>(new SegmentLock(folders, lease, std::move(file)));
      }
      if (errno != EEXIST) failSystem("create the lease", shown, errno);
      file = Fd(openat(folders.locks, lease.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
      if (!file) {
        if (errno == ENOENT) continue;  // it has just ended
        failSystem("open the lease", shown, errno);
      }
    }
    const int64_t now = fileSystemTime(folders.locks, folders.temporary, folders.shown);
    if (now - changeTime(statusOf(file.get(), shown)) <= kSilenceNs) {
      *holder = readHolder(file.get());
      return nullptr;
    }
    if (refused) {  // its builder has died: the next round takes its place
      unlinkat(folders.locks, (name + ".lease").c_str(), 0);
      continue;
    }
    return std::unique_ptr<SegmentLock>(new SegmentLock(folders, name, Fd()));
  }
  *holder = "other processes";
  return nullptr;
}

bool SegmentLock::isHeld(const LockFolders& folders, const std::string& name) {
  const Fd file(openat(folders.locks, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return false;
  const bool is_lease = name.size() > 6 && name.compare(name.size() - 6, 6, ".lease") == 0;
  if (!is_lease) {
    if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) return false;
    if (errno == EWOULDBLOCK) return true;
  }
  struct stat status;
  if (fstat(file.get(), &status) != 0) return false;
  return fileSystemTime(folders.locks, folders.temporary, folders.shown) - changeTime(status) <=
         kSilenceNs;
}

}  // namespace rbc::store
