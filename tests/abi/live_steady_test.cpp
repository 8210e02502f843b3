// Live fusion after its creation uses no memory, no lock and no system call.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "abi/live_call.h"
#include "abi/malloc_counter.h"
#include "support/sanitizers.h"

#if RBC_TEST_COUNTS_MALLOC

namespace {

std::atomic<int64_t> locks{0};

}  // namespace

// Replaces the C library's function in the whole process.
extern "C" __attribute__((visibility("default"))) int pthread_mutex_lock(
    pthread_mutex_t* mutex) noexcept {
  using Lock = int (*)(pthread_mutex_t*);
  static std::atomic<void*> next{nullptr};
  if (next == nullptr) next = dlsym(RTLD_NEXT, "pthread_mutex_lock");
  locks.fetch_add(1, std::memory_order_relaxed);
  return reinterpret_cast<Lock>(next.load())(mutex);
}

namespace {

using live_call::hostTensor;
using live_call::Live;
using live_call::make;
using support::Context;

// Eight sensors of seven channels, of all kinds, with late samples, and ticks with a history.
class Robot {
 public:
  static constexpr int32_t kStreams = 8;
  static constexpr int64_t kChannels = 7;
  static constexpr int64_t kHistory = 16;

  Robot() : context_(support::cpuContext(1)) {
    constexpr int32_t kMethods[] = {RBC_METHOD_LINEAR, RBC_METHOD_PREVIOUS, RBC_METHOD_CUBIC,
                                    RBC_METHOD_PCHIP,  RBC_METHOD_ANGLE,    RBC_METHOD_NEAREST,
                                    RBC_METHOD_LINEAR, RBC_METHOD_NEXT};
    std::vector<rbcLiveStream> streams;
    for (int32_t n = 0; n < kStreams; ++n) {
      params_[n] = rbcResampleParamsInit();
      params_[n].method = kMethods[n];
      rbcLiveStream stream = rbcLiveStreamInit();
      stream.num_channels = kChannels;
      stream.capacity = 64;
      stream.late_bound = 4;
      if (n % 2 == 0 && kMethods[n] != RBC_METHOD_NEXT) {
        params_[n].flags = RBC_FLAG_CAUSAL;
        params_[n].max_age = n == 2 ? 0.5 : 100;
      }
      stream.params = &params_[n];
      streams.push_back(stream);
    }
    live_ = make(context_, streams, rbcLiveParamsInit());
  }

  // False if a call fails.
  bool run(int begin, int end) {
    const rbcTensor times = hostTensor(&time_, support::kF64, 1, row_shape_);
    const rbcTensor arrivals = hostTensor(&arrival_, support::kF64, 1, row_shape_);
    const rbcTensor values = hostTensor(row_, support::kF32, 2, row_shape_);
    const rbcTensor queries = hostTensor(queries_, support::kF64, 1, out_shape_);
    const rbcTensor outs = hostTensor(out_, support::kF32, 2, out_shape_);
    const rbcTensor masks = hostTensor(mask_, support::kU8, 2, mask_shape_);
    const rbcTensor ages = hostTensor(ages_, support::kF64, 1, mask_shape_ + 1);
    bool right = true;
    for (int i = begin; i < end; ++i) {
      arrival_ = i;
      for (int32_t n = 0; n < kStreams; ++n) {
        time_ = i - (i % 5 == 0 ? 2.5 : 0) - (i % 50 == 0 ? 20 : 0);  // late, and too late
        right &= rbcLivePush(live_.get(), n, &values, &times, n < 3 ? &arrivals : nullptr) ==
                 RBC_STATUS_SUCCESS;
      }
      for (int t = 0; t < kHistory; ++t) queries_[t] = i - 0.75 * (kHistory - 1 - t);
      right &=
          rbcLiveFuse(live_.get(), &queries, &outs, &masks, &ages, nullptr) == RBC_STATUS_SUCCESS;
    }
    return right;
  }

 private:
  Context context_;
  rbcResampleParams params_[kStreams];
  Live live_;
  double time_ = 0;
  double arrival_ = 0;
  float row_[kChannels] = {};
  double queries_[kHistory];
  float out_[kHistory][kStreams * kChannels];
  uint8_t mask_[kHistory][kStreams];
  double ages_[kStreams];
  int64_t row_shape_[2] = {1, kChannels};
  int64_t out_shape_[2] = {kHistory, kStreams* kChannels};
  int64_t mask_shape_[2] = {kHistory, kStreams};
};

}  // namespace

TEST_CASE("live: no allocation and no lock in steady state") {
  Robot robot;
  CHECK(robot.run(0, 200));
  const int64_t allocations = malloc_counter::counts().process;
  const int64_t before = locks.load();
  CHECK(robot.run(200, 1000));
  CHECK(malloc_counter::counts().process == allocations);
  CHECK(locks.load() == before);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  CHECK(locks.load() == before + 1);  // locks are counted
}

// The kernel kills a process that makes any system call except read, write and exit.
TEST_CASE("live: no system call in steady state") {
  constexpr int kForbidden = 3, kFailed = 4;
  const auto statusOf = [](bool call) {
    const pid_t child = fork();
    if (child != 0) {
      int status = 0;
      waitpid(child, &status, 0);
      return status;
    }
    Robot robot;
    if (!robot.run(0, 200)) _exit(kFailed);
    if (prctl(PR_SET_SECCOMP, 1) != 0) _exit(kForbidden);
    const bool right = robot.run(200, 1000);
    if (call) syscall(SYS_getppid);
    syscall(SYS_exit, right ? 0 : kFailed);
    return 0;
  };
  const int caught = statusOf(true);
  if (WIFEXITED(caught) && WEXITSTATUS(caught) == kForbidden) {
    MESSAGE("SKIPPED: calls of the system cannot be forbidden here");
    return;
  }
  CHECK(WIFSIGNALED(caught));
  const int status = statusOf(false);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

#endif
