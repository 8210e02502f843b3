// The way out of a long call: see rbcContextSetCancelCallback.
#pragma once

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cstdint>

#include "robocache/context.h"
#include "status.h"

namespace rbc {

// Asks the caller's function from time to time whether the call should end.
class Interrupt {
 public:
  void set(rbcCancelCallback poll, void* user_data) noexcept {
    poll_ = poll;
    user_data_ = user_data;
    stopped_.store(false, std::memory_order_relaxed);
  }
  bool isSet() const noexcept { return poll_ != nullptr; }

  // For tests: 0 asks each time.
  void setPeriod(int64_t nanoseconds) noexcept { period_ = nanoseconds; }
  int64_t period() const noexcept { return period_; }

  // Runs on the calling thread, before the work.
  void beginCall() noexcept {
    if (poll_ == nullptr) return;
    caller_ = pthread_self();
    due_ = kNotYet;
    stopped_.store(false, std::memory_order_relaxed);
  }

  // Whether the call should end. Every thread of a call checks between pieces of work, not before
  // the first one. The caller's thread also calls the function when it is time. Takes about 5 ns.
  bool stopped() noexcept {
    if (poll_ == nullptr) return false;
    if (stopped_.load(std::memory_order_relaxed)) return true;
    return pthread_equal(pthread_self(), caller_) != 0 && ask();
  }

  // Runs on the calling thread, once no other thread works for it.
  void requireRunning() const {
    if (!stopped_.load(std::memory_order_relaxed)) return;
    fail(RBC_STATUS_CANCELLED, "call: was ended by the function of rbcContextSetCancelCallback");
  }

 private:
  static constexpr int64_t kNotYet = -1;  // the clock is first read after the first piece

  bool ask() noexcept {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);  // a few ms are exact enough
    const int64_t now = time.tv_sec * int64_t{1000000000} + time.tv_nsec;
    if (due_ == kNotYet) due_ = now + period_;
    if (now < due_) return false;
    due_ = now + period_;
    if (poll_(user_data_) == 0) return false;
    stopped_.store(true, std::memory_order_relaxed);
    return true;
  }

  rbcCancelCallback poll_ = nullptr;
  void* user_data_ = nullptr;
  int64_t period_ = 50000000;
  pthread_t caller_ = {};
  int64_t due_ = kNotYet;
  std::atomic<bool> stopped_{false};
};

}  // namespace rbc
