// Element types for tests: names, and conversions to and from long double.
//
// They use arithmetic, or instructions of the processor, instead of bit tricks, and share no code
// with the library.
#pragma once

#include <cstdint>
#include <string>

#include "robocache/tensor.h"

namespace support {

constexpr rbcDType kF16{RBC_DTYPE_FLOAT, 16, 1};
constexpr rbcDType kBF16{RBC_DTYPE_BFLOAT, 16, 1};
constexpr rbcDType kF32{RBC_DTYPE_FLOAT, 32, 1};
constexpr rbcDType kF64{RBC_DTYPE_FLOAT, 64, 1};
constexpr rbcDType kBool{RBC_DTYPE_BOOL, 8, 1};
constexpr rbcDType kI8{RBC_DTYPE_INT, 8, 1};
constexpr rbcDType kI16{RBC_DTYPE_INT, 16, 1};
constexpr rbcDType kI32{RBC_DTYPE_INT, 32, 1};
constexpr rbcDType kI64{RBC_DTYPE_INT, 64, 1};
constexpr rbcDType kU8{RBC_DTYPE_UINT, 8, 1};
constexpr rbcDType kU16{RBC_DTYPE_UINT, 16, 1};
constexpr rbcDType kU32{RBC_DTYPE_UINT, 32, 1};
constexpr rbcDType kU64{RBC_DTYPE_UINT, 64, 1};

constexpr rbcDType kFloatDTypes[] = {kF16, kBF16, kF32, kF64};
constexpr rbcDType kIntegerDTypes[] = {kBool, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64};
constexpr rbcDType kTimeDTypes[] = {kF32, kF64, kI64};

constexpr bool same(rbcDType a, rbcDType b) { return a.code == b.code && a.bits == b.bits; }
constexpr bool isFloat(rbcDType d) {
  return d.code == RBC_DTYPE_FLOAT || d.code == RBC_DTYPE_BFLOAT;
}
constexpr int64_t sizeOf(rbcDType d) { return d.bits / 8; }

std::string nameOf(rbcDType d);

// ---- floats as numbers --------------------------------------------------------------------------

// A binary floating-point format: significant bits, and the exponent of the smallest normal number.
struct FloatFormat {
  int bits;
  int precision;
  int min_exponent;

  uint64_t infinity() const { return ((uint64_t{1} << (bits - precision)) - 1) << (precision - 1); }
  uint64_t sign() const { return uint64_t{1} << (bits - 1); }
  // The only NaN that the library writes: positive, all payload bits set.
  uint64_t nan() const { return sign() - 1; }
};

constexpr FloatFormat formatOf(rbcDType d) {
  if (d.code == RBC_DTYPE_BFLOAT) return {16, 8, -126};
  if (d.bits == 16) return {16, 11, -14};
  return d.bits == 32 ? FloatFormat{32, 24, -126} : FloatFormat{64, 53, -1022};
}

long double decodeFloat(rbcDType dtype, uint64_t bits);

// Rounds once, to nearest even; every NaN becomes the library's NaN.
uint64_t encodeFloat(rbcDType dtype, long double x);

// Integers of one sign in the order of the numbers; both zeros are 0. Not for NaN.
inline int64_t orderOf(rbcDType dtype, uint64_t bits) {
  const FloatFormat f = formatOf(dtype);
  const auto magnitude = static_cast<int64_t>(bits & (f.sign() - 1));
  return (bits & f.sign()) != 0 ? -magnitude : magnitude;
}

// ---- integers -----------------------------------------------------------------------------------

inline uint64_t encodeInteger(rbcDType dtype, long double x) {
  const uint64_t bits =
      x < 0 ? static_cast<uint64_t>(static_cast<int64_t>(x)) : static_cast<uint64_t>(x);
  return dtype.bits == 64 ? bits : bits & ((uint64_t{1} << dtype.bits) - 1);
}

inline uint64_t encode(rbcDType dtype, long double x) {
  return isFloat(dtype) ? encodeFloat(dtype, x) : encodeInteger(dtype, x);
}

}  // namespace support
