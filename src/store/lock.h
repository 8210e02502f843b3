// Locks of segments: they keep processes from doing the same work. Results never depend on them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "files.h"

namespace rbc::store {

// A builder that has not touched its lock for this long is not waited for.
constexpr int64_t kSilenceNs = int64_t{120} * 1000000000;

// The folders that locks need.
struct LockFolders {
  int locks;
  int temporary;
  std::string shown;  // the folder of locks, for messages
};

// A lock that this process holds. A thread touches its file every 10 s, so that others see that the
// builder lives. A forked child does not hold it.
class SegmentLock {
 public:
  ~SegmentLock();
  SegmentLock(const SegmentLock&) = delete;
  SegmentLock& operator=(const SegmentLock&) = delete;

  // Tries once. Returns null if another process holds the lock; `holder` then names it. A holder
  // that has been silent too long is passed over: the result holds nothing, and the caller builds.
  static std::unique_ptr<SegmentLock> tryTake(const LockFolders& folders, const std::string& name,
                                              std::string* holder);
  // Whether a process holds the lock.
  static bool isHeld(const LockFolders& folders, const std::string& name);

 private:
  SegmentLock(const LockFolders& folders, std::string name, Fd file);
  void startHeart();
  static void closeInChild() noexcept;

  int folder_;
  std::string name_;
  Fd file_;  // empty: a silent holder was passed over, or this is a forked child
  // The thread that touches the file.
  struct Heart {
    std::mutex mutex;
    std::condition_variable end;
    bool ended = false;
    std::thread thread;
  };
  std::unique_ptr<Heart> heart_;  // null: the system refused a thread
  uint64_t generation_;           // forks before
  SegmentLock* next_ = nullptr;   // of the locks that this process holds
};

}  // namespace rbc::store
