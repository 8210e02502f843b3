// A few adjacent channels, loaded and stored as one word where alignment allows.
#pragma once

#include <type_traits>

#include "real.h"

namespace rbc::cuda {

template <class T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) AlignedVec {
  T element[kCount];
};

template <int kBytes>
struct Word;
template <>
struct Word<1> {
  using type = unsigned char;
};
template <>
struct Word<2> {
  using type = unsigned short;
};
template <>
struct Word<4> {
  using type = unsigned int;
};
template <>
struct Word<8> {
  using type = uint2;
};
template <>
struct Word<16> {
  using type = uint4;
};
struct TwoWords {
  uint4 word[2];
};

template <class P>
__device__ __forceinline__ P load(const void* address) {
  if constexpr (sizeof(P) == 32) {
    const auto* words = static_cast<const uint4*>(address);
    return bitCast<P>(TwoWords{{__ldg(words), __ldg(words + 1)}});
  } else {
    return bitCast<P>(__ldg(static_cast<const typename Word<sizeof(P)>::type*>(address)));
  }
}

// Outputs are not read again here: they may leave the caches first.
template <class P>
__device__ __forceinline__ void store(void* address, P vec) {
  if constexpr (sizeof(P) == 32) {
    const auto words = bitCast<TwoWords>(vec);
    __stcs(static_cast<uint4*>(address), words.word[0]);
    __stcs(static_cast<uint4*>(address) + 1, words.word[1]);
  } else {
    using W = typename Word<sizeof(P)>::type;
    __stcs(static_cast<W*>(address), bitCast<W>(vec));
  }
}

// toOdd() of real.h for several numbers, which are then rounded to Out.
template <class Out, int kMost, int kCount>
__device__ __forceinline__ void allToOdd(const double (&values)[kMost], float (&odd)[kCount]) {
  bool normal = true;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float truncated = __double2float_rz(values[i]);
    // In a normal number of f32 the 29 lowest bits are lost.
    const bool lost = (__double2loint(values[i]) & 0x1fffffff) != 0;
    odd[i] = bitCast<float>(bitCast<uint32_t>(truncated) | (lost ? 1u : 0u));
    normal = normal && fabsf(truncated) >= 0x1p-126f;
  }
  if constexpr (!std::is_same_v<Out, f16>) {  // subnormal numbers of f32 round to 0
    if (normal) return;
#pragma unroll
    for (int i = 0; i < kCount; ++i) odd[i] = toOdd(values[i]);
  }
}

// From the compute type, two at a time if CUDA has an instruction for it.
template <class Out, int kCount, class Number>
__device__ __forceinline__ AlignedVec<Out, kCount> narrowVec(const Number (&values)[kCount]) {
  AlignedVec<Out, kCount> out;
  if constexpr (std::is_same_v<Out, bf16> && std::is_same_v<Number, float> && kCount % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const auto pair = bitCast<uint32_t>(__floats2bfloat162_rn(values[i], values[i + 1]));
      out.element[i].bits = static_cast<uint16_t>(pair);
      out.element[i + 1].bits = static_cast<uint16_t>(pair >> 16);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) out.element[i] = narrow<Out>(values[i]);
  }
  return out;
}

}  // namespace rbc::cuda
