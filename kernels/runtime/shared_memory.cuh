// Shared memory by its 32-bit addresses, and stores without a branch: for loops where each instruction of a
// chain counts.
#pragma once

#include <cstdint>

namespace rbc::cuda {

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

// Where the condition holds.
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

}  // namespace rbc::cuda
