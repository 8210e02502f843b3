// Conversions between storage types and compute types.
//
// Every conversion rounds to nearest even, and every NaN becomes the one NaN of its type (positive,
// quiet, all payload bits set, as in CUDA's instructions), so that both backends write the same
// bits.
#pragma once

#include <cstdint>
#include <type_traits>

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include "dtype.h"
#include "number.h"
#include "platform.h"

namespace rbc {

// The type that values are computed in: f64 if f32 cannot hold them, else f32.
template <class Storage>
using Compute =
    std::conditional_t<std::is_same_v<Storage, double> ||
                           (std::is_integral_v<Storage> && sizeof(Storage) >= sizeof(float)),
                       double, float>;

RBC_HD bool computesInDouble(DType dtype) {
  switch (dtype) {
#define RBC_CASE(name, storage, code, text) \
  case DType::name: return std::is_same_v<Compute<storage>, double>;
    RBC_DTYPES(RBC_CASE)
#undef RBC_CASE
  }
  return false;
}

RBC_HD float canonical(float x) { return x == x ? x : bitCast<float>(0x7fffffffu); }
RBC_HD double canonical(double x) {
  return x == x ? x : bitCast<double>(static_cast<uint64_t>(0x7fffffffffffffff));
}

// ---- to the compute type: exact, except for 64-bit integers -------------------------------------

RBC_HD float widen(float x) { return x; }
RBC_HD double widen(double x) { return x; }
RBC_HD float widen(bf16 x) { return bitCast<float>(static_cast<uint32_t>(x.bits) << 16); }
RBC_HD float widen(f16 x) {
#if defined(__CUDA_ARCH__)
  return __half2float(bitCast<__half>(x.bits));
#else
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000) << 16;
  const uint32_t magnitude = x.bits & 0x7fff;
  if (magnitude >= 0x7c00) return bitCast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x0400) return bitCast<float>(sign | ((magnitude << 13) + (112u << 23)));
  // Subnormal: magnitude * 2^-24, exact in f32.
  const float value = static_cast<float>(magnitude) * 0x1p-24f;
  return bitCast<float>(bitCast<uint32_t>(value) | sign);
#endif
}

template <class Integer, class = std::enable_if_t<std::is_integral_v<Integer>>>
RBC_HD Compute<Integer> widen(Integer x) {
  return static_cast<Compute<Integer>>(x);
}

// ---- to a storage type --------------------------------------------------------------------------

// x rounded to f32 such that rounding the result to a 16-bit float equals rounding x directly:
// truncated, with the last bit set if that lost anything (round to odd).
RBC_HD float toOdd(double x) {
  const auto nearest = static_cast<float>(x);
  const auto back = static_cast<double>(nearest);
  if (back == x || x != x) return nearest;
  const bool away = (x < 0 ? -back : back) > (x < 0 ? -x : x);
  return bitCast<float>((bitCast<uint32_t>(nearest) - (away ? 1u : 0u)) | 1u);
}

template <class Storage>
struct Narrow;

template <>
struct Narrow<float> {
  static RBC_HD float from(float x) { return canonical(x); }
  static RBC_HD float from(double x) { return canonical(static_cast<float>(x)); }
};

template <>
struct Narrow<double> {
  static RBC_HD double from(float x) { return canonical(static_cast<double>(x)); }
  static RBC_HD double from(double x) { return canonical(x); }
};

template <>
struct Narrow<bf16> {
  static RBC_HD bf16 from(float x) {
#if defined(__CUDA_ARCH__)
    return bf16{bitCast<uint16_t>(__float2bfloat16_rn(x))};
#else
    if (x != x) return bf16{0x7fff};
    const uint32_t bits = bitCast<uint32_t>(x);
    return bf16{static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
#endif
  }
  static RBC_HD bf16 from(double x) { return from(toOdd(x)); }
};

template <>
struct Narrow<f16> {
  static RBC_HD f16 from(float x) {
#if defined(__CUDA_ARCH__)
    return f16{bitCast<uint16_t>(__float2half_rn(x))};
#else
    if (x != x) return f16{0x7fff};
    const uint32_t bits = bitCast<uint32_t>(x);
    const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
    const uint32_t magnitude = bits & 0x7fffffff;
    uint32_t half = 0;
    if (magnitude >= 0x477ff000) {  // at least 65520: rounds to infinity
      half = 0x7c00;
    } else if (magnitude >= 0x38800000) {  // normal: at least 2^-14
      half = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    } else {
      // Subnormal: adding 0.5 aligns the units of 2^-24 with the last bit of the sum, which rounds.
      half = bitCast<uint32_t>(bitCast<float>(magnitude) + 0.5f) - bitCast<uint32_t>(0.5f);
    }
    return f16{static_cast<uint16_t>(sign | half)};
#endif
  }
  static RBC_HD f16 from(double x) { return from(toOdd(x)); }
};

template <class Storage, class From>
RBC_HD Storage narrow(From x) {
  return Narrow<Storage>::from(x);
}

}  // namespace rbc
