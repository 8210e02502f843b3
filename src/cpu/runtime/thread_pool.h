// The threads of a CPU context.
//
// Workers start at first use, sleep between calls, and are started anew in a forked child, where
// those of the parent do not exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "interrupt.h"

namespace rbc::cpu {

// Room that a thread has for the work on a chunk: the caller's stack may be small.
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
  // `threads` counts the calling thread too. The interrupt, which outlives the pool, ends its work.
  ThreadPool(int threads, Interrupt& interrupt);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const noexcept { return threads_; }

  // Starts the workers that are missing, and returns how many there are then. Where the system
  // refuses threads, there are fewer than threads() - 1, or none.
  int start() noexcept;

  // Of the thread that calls.
  ThreadMemory& memory() { return *memory_; }

  // Calls body(0), ... body(chunks - 1), each once, in any order and on at most `threads` threads,
  // the calling one among them; or body(0, memory), ... with the thread's own. Returns when all are
  // done. Where the call is interrupted no more chunks begin, and it fails once all threads have
  // left: a chunk should take some milliseconds at most, or use inPieces(). One thread takes the
  // chunks in order. The body must not throw.
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

  // For steps of a chunk that take some microseconds or more: whether the call is interrupted. The
  // chunk is then to be given up, half done.
  bool stops() const { return interrupt_.stopped(); }

  // The same for step i of many short ones: it looks after each kPiece of them.
  bool stopsAt(int64_t i) const { return (i & (kPiece - 1)) == kPiece - 1 && stops(); }

  // The same for steps that are too short to be looked at one by one: calls piece(begin, end) for
  // pieces of 0 .. count - 1, in order. Returns false if the call is interrupted meanwhile.
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

}  // namespace rbc::cpu
