// What tests of CUDA have in common: streams of their own, and a way to keep one busy.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/expect.h"
#include "support/run.h"

#define REQUIRE_CUDA()                                       \
  std::string why_;                                          \
  const support::Context cuda = support::cudaContext(&why_); \
  if (cuda == nullptr) SKIP_BECAUSE(why_)

namespace cuda_support {

inline void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// Puts a context on a stream for a while.
class OnStream {
 public:
  OnStream(const support::Context& context, const Stream& stream) : context_(context) {
    support::require(rbcContextSetStream(context.get(), stream.get()));
  }
  ~OnStream() { rbcContextSetStream(context_.get(), nullptr); }
  OnStream(const OnStream&) = delete;

 private:
  const support::Context& context_;
};

// Keeps a stream busy until it is told to go on.
class Blocker {
 public:
  explicit Blocker(cudaStream_t stream) {
    check(cudaLaunchHostFunc(
        stream,
        [](void* user) {
          auto* blocker = static_cast<Blocker*>(user);
          const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
          while (!blocker->open_ && std::chrono::steady_clock::now() < end)
            std::this_thread::yield();
          if (!blocker->open_) blocker->timed_out_ = true;
        },
        this));
  }
  void open() { open_ = true; }
  bool timedOut() const { return timed_out_; }

 private:
  std::atomic<bool> open_{false};
  std::atomic<bool> timed_out_{false};
};

}  // namespace cuda_support
