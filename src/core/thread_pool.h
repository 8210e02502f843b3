// The threads of a context: all of the CPU backend's work, and on CUDA what gathers rows for a copy.
//
// Workers start at first use, sleep between calls, and are started again in a forked child, where
// the parent's workers do not exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "interrupt.h"

namespace rbc {

// Memory of a thread for the work on a chunk: the caller's stack may be small.
struct ThreadMemory {
  alignas(64) std::byte bytes[192 << 10];

  template <class T>
  T* as() {
    static_assert(sizeof(T) <= sizeof bytes && alignof(T) <= 64);
    return reinterpret_cast<T*>(bytes);
  }
};

class ThreadPool {
 public:
  // `threads` includes the calling thread. The interrupt ends the work, and must outlive the pool.
  ThreadPool(int threads, Interrupt& interrupt);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const noexcept { return threads_; }

  // Starts the missing workers, and returns the number of workers. If the system refuses threads,
  // there are fewer than threads() - 1, or none.
  int start() noexcept;

  // The calling thread's memory.
  ThreadMemory& memory() { return *memory_; }

  // Calls body(0), ... body(chunks - 1), each once, in any order and on at most `threads` threads,
  // the calling one among them; or body(0, memory), ... with the thread's memory. Returns when all
  // are done. If the call is interrupted, no more chunks begin, and it fails once all threads have
  // finished: a chunk should take a few milliseconds at most, or use inPieces(). A single thread
  // takes the chunks in order. The body must not throw.
  template <class Body>
  void parallelFor(int64_t chunks, int threads, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    const auto call = [](void* context, int64_t i, ThreadMemory& memory) {
      if constexpr (std::is_invocable_v<Plain&, int64_t, ThreadMemory&>) {
        (*static_cast<Plain*>(context))(i, memory);
      } else {
        (*static_cast<Plain*>(context))(i);
      }
    };
    void* context = const_cast<void*>(static_cast<const void*>(&body));
    if (threads <= 1 || chunks <= 1 || threads_ <= 1) {
      runHere({call, context, chunks});
    } else {
      run({call, context, chunks}, threads);
    }
    interrupt_.requireRunning();
  }

  // For steps of a chunk that take at least a few microseconds: whether the call is interrupted.
  // The chunk must then be abandoned.
  bool stops() const { return interrupt_.stopped(); }

  // The same for step i of many short ones: checks after every kPiece of them.
  bool stopsAt(int64_t i) const { return (i & (kPiece - 1)) == kPiece - 1 && stops(); }

  // The same for steps that are too short to check each one: calls piece(begin, end) for pieces of
  // 0 .. count - 1, in order. Returns false if the call is interrupted.
  template <class Piece>
  bool inPieces(int64_t count, Piece&& piece) const {
    for (int64_t begin = 0; begin < count; begin += kPiece) {
      if (begin > 0 && stops()) return false;
      piece(begin, count - begin < kPiece ? count : begin + kPiece);
    }
    return true;
  }

 private:
  static constexpr int64_t kPiece = 1 << 16;

  struct Workers;
  struct Job {
    void (*call)(void* context, int64_t chunk, ThreadMemory& memory);
    void* context;
    int64_t chunks;
  };

  void run(const Job& job, int threads) noexcept;
  void runHere(const Job& job) noexcept {
    for (int64_t i = 0; i < job.chunks; ++i) {
      if (i > 0 && interrupt_.stopped()) return;
      job.call(job.context, i, *memory_);
    }
  }
  void leaveParentsWorkers() noexcept;

  int threads_;
  Interrupt& interrupt_;
  std::unique_ptr<ThreadMemory> memory_;
  Workers* workers_ = nullptr;
  uint64_t fork_generation_ = 0;  // of workers_
};

}  // namespace rbc
