// Messages between the blocks of a cluster, which a barrier counts by their bytes.
#pragma once

#include <cstdint>

#include "real.h"
#include "runtime/arrivals.cuh"
#include "runtime/shared_memory.cuh"

namespace rbc::cuda {

#if __CUDA_ARCH__ >= 900
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
