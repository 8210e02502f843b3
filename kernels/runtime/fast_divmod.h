// Division by a number that is the same for the whole launch.
#pragma once

#include <cstdint>

namespace rbc::cuda {

// n / divisor by one multiplication for n < 2^31, as in Granlund and Montgomery, "Division by
// invariant integers using multiplication" (1994); by the 64-bit division beyond that.
struct FastDivmod {
  uint64_t divisor;
  uint32_t magic;
  uint32_t shift;

  FastDivmod() = default;
  explicit FastDivmod(int64_t value)
      : divisor(static_cast<uint64_t>(value > 0 ? value : 1)), magic(0), shift(0) {
    if (divisor >> 31 != 0) return;  // needs the general division
    while ((uint64_t{1} << shift) < divisor) ++shift;
    magic = static_cast<uint32_t>((((uint64_t{1} << shift) - divisor) << 32) / divisor + 1);
  }

#if defined(__CUDACC__)
  // Both 0 <= n and the divisor are below 2^31.
  __device__ __forceinline__ int32_t operator()(int32_t n) const {
    const auto bits = static_cast<uint32_t>(n);
    return static_cast<int32_t>((__umulhi(bits, magic) + bits) >> shift);
  }

  __device__ __forceinline__ int64_t operator()(int64_t n) const {
    const auto wide = static_cast<uint64_t>(n);
    if ((wide | divisor) >> 31 == 0) return (*this)(static_cast<int32_t>(n));
    return static_cast<int64_t>(wide / divisor);
  }
#endif
};

}  // namespace rbc::cuda
