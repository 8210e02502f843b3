// Messages between the blocks of a cluster, which a barrier counts by their bytes.
#pragma once

#include <cstdint>

#include "real.h"
#include "runtime/shared_memory.cuh"

namespace rbc::cuda {

// A barrier that waits for bytes from other blocks of the cluster. Unlike the cluster's barrier, it does
// not wait for what a block has written to global memory.
#if __CUDA_ARCH__ >= 900
inline __device__ void initArrivals(uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sharedAddress(barrier)) : "memory");
}

inline __device__ void expectBytes(uint64_t* barrier, uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sharedAddress(barrier)),
      "r"(bytes)
      : "memory");
}

inline __device__ void awaitBytes(uint64_t* barrier, uint32_t parity) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
        " selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(sharedAddress(barrier)), "r"(parity)
        : "memory");
  }
}

// To the same address in another block, and its barrier.
template <class T>
__device__ void send(const T& value, T* to, uint64_t* barrier, int rank) {
  constexpr int kWords = sizeof(T) / 8;
  static_assert(alignof(T) % 16 == 0);
  struct Words {
    uint64_t word[kWords];
  };
  const auto words = bitCast<Words>(value);
  uint32_t remote, remote_barrier;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(sharedAddress(to)), "r"(rank));
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(remote_barrier)
      : "r"(sharedAddress(barrier)), "r"(rank));
#pragma unroll
  for (int i = 0; i < kWords; i += 2) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];" ::
            "r"(remote + 8 * i),
        "l"(words.word[i]), "l"(words.word[i + 1]), "r"(remote_barrier)
        : "memory");
  }
}
#endif

}  // namespace rbc::cuda
