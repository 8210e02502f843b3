// Shared memory: addresses of it, and barriers that count arrivals and bytes.
#pragma once

#include <cstdint>

namespace rbc::cuda {

// ---- Shared memory by its 32-bit addresses, and stores without a branch: for loops in which every
// instruction of a dependency chain matters.

inline __device__ uint32_t sharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

inline __device__ int32_t loadShared(uint32_t address) {
  int32_t x;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(address) : "memory");
  return x;
}

inline __device__ void storeShared(uint32_t address, int32_t x) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(x) : "memory");
}

// Stores if the condition holds.
inline __device__ void storeSharedIf(bool condition, uint32_t address, uint32_t x, uint32_t y) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %0, 0; @p st.shared.v2.b32 [%1], {%2, %3}; }" ::"r"(
                   condition ? 1 : 0),
               "r"(address), "r"(x), "r"(y)
               : "memory");
}
inline __device__ void storeSharedIf(bool condition, uint32_t address, uint64_t x, uint32_t y) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %0, 0; @p st.shared.b64 [%1], %2;"
      " @p st.shared.b32 [%1 + 8], %3; }" ::"r"(condition ? 1 : 0),
      "r"(address), "l"(x), "r"(y)
      : "memory");
}
inline __device__ void storeSharedIf(bool condition, uint32_t address, const float (&x)[3],
                                     uint32_t y) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %0, 0; @p st.shared.v4.b32 [%1], {%2, %3, %4, %5}; }" ::"r"(
          condition ? 1 : 0),
      "r"(address), "f"(x[0]), "f"(x[1]), "f"(x[2]), "r"(y)
      : "memory");
}
inline __device__ void storeSharedIf(bool condition, uint32_t address, const double (&x)[3],
                                     uint64_t y) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %0, 0; @p st.shared.v2.b64 [%1], {%2, %3};"
      " @p st.shared.v2.b64 [%1 + 16], {%4, %5}; }" ::"r"(condition ? 1 : 0),
      "r"(address), "d"(x[0]), "d"(x[1]), "d"(x[2]), "l"(y)
      : "memory");
}

// ---- A barrier in shared memory that waits for bytes to arrive.

#if __CUDA_ARCH__ >= 900
// Visible to the hardware that copies the bytes; other threads need a block barrier before they use
// it.
inline __device__ void initArrivals(uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sharedAddress(barrier)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
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

// Copies whole words of 16 bytes to shared memory, by one thread; the barrier must expect them.
inline __device__ void copyInBulk(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(sharedAddress(to)),
      "l"(from), "r"(bytes), "r"(sharedAddress(barrier))
      : "memory");
}
#endif

}  // namespace rbc::cuda
