// Pinned host memory in which the CPU puts bytes for a copy to the device.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "interrupt.h"
#include "runtime/check_cuda.h"
#include "thread_pool.h"

namespace rbc::cuda {

// A piece of memory, and the last copy out of it.
struct Staging {
  void* memory = nullptr;
  size_t bytes = 0;
  cudaEvent_t copied = nullptr;
  uint64_t turn = 0;  // of its last use

  bool isFree() const {
    if (copied == nullptr) return true;
    const cudaError_t error = cudaEventQuery(copied);
    if (error == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    checkCuda(error, "cudaEventQuery");
    return true;
  }

  // Waits until the memory is free, and grows it if necessary.
  void take(size_t needed) {
    if (copied == nullptr) {
      checkCuda(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming), "cudaEventCreate");
    }
    checkCuda(cudaEventSynchronize(copied), "cudaEventSynchronize");
    if (needed <= bytes) return;
    free();
    const size_t room = needed + needed / 4;  // batches differ a little
    checkCuda(cudaHostAlloc(&memory, room, cudaHostAllocPortable | cudaHostAllocMapped),
              "cudaHostAlloc");
    bytes = room;
  }

  void release() noexcept {
    if (copied == nullptr) return;
    if (cudaEventSynchronize(copied) != cudaSuccess) cudaGetLastError();
    free();
    if (cudaEventDestroy(copied) != cudaSuccess) cudaGetLastError();
    copied = nullptr;
  }

 private:
  void free() noexcept {
    if (memory != nullptr && cudaFreeHost(memory) != cudaSuccess) cudaGetLastError();
    memory = nullptr;
    bytes = 0;
  }
};

// The pieces of a context, and the threads that fill them. While one is copied, others are filled.
class StagingArea {
 public:
  // A free piece of at least this size, or the one that was used first, after waiting for it.
  Staging& next(size_t needed) {
    const auto rank = [&](const Staging& piece) {
      return std::pair(piece.isFree() ? (piece.bytes >= needed ? 0 : 1) : 2, piece.turn);
    };
    Staging* best = &pieces_[0];
    auto best_rank = rank(*best);
    for (Staging& piece : pieces_) {
      const auto own = rank(piece);
      if (own < best_rank) {
        best = &piece;
        best_rank = own;
      }
    }
    best->take(needed);
    best->turn = ++turns_;
    return *best;
  }

  ThreadPool& threads() {
    if (threads_ == nullptr) threads_ = std::make_unique<ThreadPool>(kThreads, never_);
    return *threads_;
  }

  void release() noexcept {
    for (Staging& piece : pieces_) piece.release();
  }

 private:
  static constexpr int kPieces = 3;
  static constexpr int kThreads = 8;  // fill 55 GB/s, what the bus takes

  Staging pieces_[kPieces];
  uint64_t turns_ = 0;
  Interrupt never_;  // calls on CUDA are not ended
  std::unique_ptr<ThreadPool> threads_;
};

}  // namespace rbc::cuda
