// The functions that the formulas need of a number, besides + - * / and comparisons: here for float
// and double. The CPU's vectors (src/cpu/fuse/lanes-inl.h) have the same functions, so that each formula
// is written once.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "platform.h"

// The namespace of the formulas. A compiler uses a SIMD level's instructions only in text that it
// reads under that level's flags, so the CPU includes interpolate.h, hermite.h and slerp.h again
// for each.
#if !defined(RBC_FORMULAS)
#define RBC_FORMULAS rbc
#endif

namespace rbc {

template <class To, class From>
RBC_HD To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From), "bitCast keeps the size");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

// The scalar that a number consists of.
template <class V>
struct ScalarOf {
  using type = V;
};
template <class V>
using Scalar = typename ScalarOf<V>::type;

// a * b + c, rounded once.
RBC_HD float mulAdd(float a, float b, float c) { return fmaf(a, b, c); }
RBC_HD double mulAdd(double a, double b, double c) { return fma(a, b, c); }

// Rounds to the nearest integer, ties to even.
RBC_HD float roundEven(float x) { return rintf(x); }
RBC_HD double roundEven(double x) { return rint(x); }

RBC_HD float select(bool condition, float yes, float no) { return condition ? yes : no; }
RBC_HD double select(bool condition, double yes, double no) { return condition ? yes : no; }

// Whether x, or every number of a vector, is finite.
RBC_HD bool allFinite(float x) { return fabsf(x) < INFINITY; }
RBC_HD bool allFinite(double x) { return fabs(x) < static_cast<double>(INFINITY); }

// Whether both are finite and no further from 0 than the limit.
RBC_HD bool areWithin(float x, float y, float limit) {
  return fabsf(x) <= limit && fabsf(y) <= limit;
}
RBC_HD bool areWithin(double x, double y, double limit) {
  return fabs(x) <= limit && fabs(y) <= limit;
}

// x clamped to a range; NaN stays.
template <class V>
RBC_HD V clamp(V x, V low, V high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (sizeof(V) == 4) {
    asm("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(low));
    asm("min.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(high));
    return x;
  }
#endif
  const V at_least = select(x < low, low, x);
  return select(at_least > high, high, at_least);
}

// The constants of a float's bits that toUnit(), rootGuess() and isRotation() use.
template <class S>
struct FloatBits;
template <>
struct FloatBits<float> {
  static constexpr uint32_t kSign = 0x80000000u;
  static constexpr uint32_t kExponent = 0x7f800000u;
  static constexpr uint32_t kTwiceOne = 0x7f000000u;  // the sum of the exponents of x and 1 / x
  static constexpr uint32_t kRoot = 0x5f3759dfu;
};
template <>
struct FloatBits<double> {
  static constexpr uint64_t kSign = 0x8000000000000000ull;
  static constexpr uint64_t kExponent = 0x7ff0000000000000ull;
  static constexpr uint64_t kTwiceOne = 0x7fe0000000000000ull;
  static constexpr uint64_t kRoot = 0x5fe6eb50c7b537a9ull;
};

// The power of two that brings x to [1, 2), with the sign of x. Unspecified if x is 0, not finite,
// or too small or large for such a power.
RBC_HD float toUnit(float x) {
  using Bits = FloatBits<float>;
  const uint32_t bits = bitCast<uint32_t>(x);
  return bitCast<float>((Bits::kTwiceOne - (bits & Bits::kExponent)) | (bits & Bits::kSign));
}
RBC_HD double toUnit(double x) {
  using Bits = FloatBits<double>;
  const uint64_t bits = bitCast<uint64_t>(x);
  return bitCast<double>((Bits::kTwiceOne - (bits & Bits::kExponent)) | (bits & Bits::kSign));
}

// a / b, rounded to nearest, for 2^-64 < b < 2^96 and |a| <= 2^96.
RBC_HD float divide(float a, float b) {
#if defined(__CUDA_ARCH__)
  // CUDA's own division without the branch for operands that these limits exclude.
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(b));
  inverse = fmaf(inverse, fmaf(-b, inverse, 1.0f), inverse);
  float q = a * inverse;
  q = fmaf(fmaf(-b, q, a), inverse, q);
  return fmaf(fmaf(-b, q, a), inverse, q);
#else
  return a / b;
#endif
}
RBC_HD double divide(double a, double b) { return a / b; }

// 1 / sqrt(x) to about 4 percent, by halving the exponent; x > 0 and normal.
RBC_HD float rootGuess(float x) {
  return bitCast<float>(FloatBits<float>::kRoot - (bitCast<uint32_t>(x) >> 1));
}
RBC_HD double rootGuess(double x) {
  return bitCast<double>(FloatBits<double>::kRoot - (bitCast<uint64_t>(x) >> 1));
}

}  // namespace rbc
