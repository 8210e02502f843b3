// The threads of a CPU context.
//
// Workers start at first use, sleep between calls, and are started anew in a forked child, where
// those of the parent do not exist.
#pragma once

#include <cstdint>
#include <type_traits>

namespace rbc {

class ThreadPool {
 public:
  // `threads` counts the calling thread too.
  explicit ThreadPool(int threads) noexcept;
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const noexcept { return threads_; }

  // Starts the workers that are missing, and returns how many there are then. Where the system
  // refuses threads, there are fewer than threads() - 1, or none.
  int start() noexcept;

  // Calls body(0), ... body(chunks - 1), each once and in any order, on at most `threads` threads,
  // the calling one among them. Returns when all are done. The body must not throw.
  template <class Body>
  void parallelFor(int64_t chunks, int threads, Body&& body) noexcept {
    if (threads <= 1 || chunks <= 1 || threads_ <= 1) {
      for (int64_t i = 0; i < chunks; ++i) body(i);
      return;
    }
    using Plain = std::remove_reference_t<Body>;
    run({[](void* context, int64_t i) { (*static_cast<Plain*>(context))(i); },
         const_cast<void*>(static_cast<const void*>(&body)), chunks},
        threads);
  }

 private:
  struct Crew;
  struct Job {
    void (*call)(void* context, int64_t chunk);
    void* context;
    int64_t chunks;
  };

  void run(const Job& job, int threads) noexcept;
  void leaveParentsCrew() noexcept;

  int threads_;
  Crew* crew_ = nullptr;
  uint64_t fork_generation_ = 0;  // of crew_
};

}  // namespace rbc
