// Pinned host memory in which the CPU puts bytes for a copy to the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "runtime/check_cuda.h"

namespace rbc::cuda {

struct Staging {
  void* memory = nullptr;
  size_t bytes = 0;
  cudaEvent_t copied = nullptr;  // the last copy out of the memory

  // Waits until the memory is free, and grows it if necessary.
  void* take(size_t needed) {
    if (copied == nullptr) {
      checkCuda(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming), "cudaEventCreate");
    }
    checkCuda(cudaEventSynchronize(copied), "cudaEventSynchronize");
    if (needed > bytes) {
      free();
      const size_t room = needed + needed / 4;  // batches differ a little
      checkCuda(cudaHostAlloc(&memory, room, cudaHostAllocPortable | cudaHostAllocMapped),
                "cudaHostAlloc");
      bytes = room;
    }
    return memory;
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

}  // namespace rbc::cuda
