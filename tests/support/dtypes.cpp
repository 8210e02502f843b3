// Names of element types, and their conversions.
#include "support/dtypes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

namespace support {

std::string nameOf(rbcDType d) {
  const char* code = d.code == RBC_DTYPE_BOOL     ? "bool"
                     : d.code == RBC_DTYPE_BFLOAT ? "bf"
                     : d.code == RBC_DTYPE_FLOAT  ? "f"
                     : d.code == RBC_DTYPE_INT    ? "i"
                                                  : "u";
  return d.code == RBC_DTYPE_BOOL ? code : code + std::to_string(d.bits);
}

// ---- floats as numbers --------------------------------------------------------------------------

namespace {

// From f64's last bit to the exponent that shifts it to the units. A table: scalbn() took a third
// of the time of all comparisons.
long double powerOfTwo(int exponent) {
  constexpr int kMost = 1080;
  static const std::array<long double, 2 * kMost + 1> kPowers = [] {
    std::array<long double, 2 * kMost + 1> powers;
    for (int i = -kMost; i <= kMost; ++i) {
      powers[static_cast<size_t>(i + kMost)] = std::scalbn(1.0L, i);
    }
    return powers;
  }();
  return kPowers[static_cast<size_t>(exponent + kMost)];
}

// The processor converts its own formats, in a tenth of the time.
template <class Float, class Bits>
Float floatOf(Bits bits) {
  Float x;
  static_assert(sizeof x == sizeof bits);
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
template <class Bits, class Float>
Bits bitsOfFloat(Float x) {
  Bits bits;
  static_assert(sizeof x == sizeof bits);
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}

}  // namespace

long double decodeFloat(rbcDType dtype, uint64_t bits) {
  if (same(dtype, kF32)) return floatOf<float>(static_cast<uint32_t>(bits));
  if (same(dtype, kF64)) return floatOf<double>(bits);
  const FloatFormat f = formatOf(dtype);
  const uint64_t magnitude = bits & (f.sign() - 1);
  const long double sign = (bits & f.sign()) != 0 ? -1.0L : 1.0L;
  if (magnitude > f.infinity()) return std::numeric_limits<long double>::quiet_NaN();
  if (magnitude == f.infinity()) return sign * std::numeric_limits<long double>::infinity();
  const int field = static_cast<int>(magnitude >> (f.precision - 1));
  const uint64_t fraction = magnitude & ((uint64_t{1} << (f.precision - 1)) - 1);
  const uint64_t significand = field == 0 ? fraction : fraction | uint64_t{1} << (f.precision - 1);
  const int exponent = f.min_exponent - (f.precision - 1) + (field == 0 ? 0 : field - 1);
  return sign * static_cast<long double>(significand) * powerOfTwo(exponent);
}

uint64_t encodeFloat(rbcDType dtype, long double x) {
  const FloatFormat f = formatOf(dtype);
  if (std::isnan(x)) return f.nan();
  if (same(dtype, kF32)) return bitsOfFloat<uint32_t>(static_cast<float>(x));
  if (same(dtype, kF64)) return bitsOfFloat<uint64_t>(static_cast<double>(x));
  const uint64_t sign = std::signbit(x) ? f.sign() : 0;
  const long double a = std::fabs(x);
  if (a == 0) return sign;
  if (std::isinf(a)) return sign | f.infinity();
  const int exponent = std::max(std::ilogb(a), f.min_exponent);
  if (exponent > -f.min_exponent + 1) return sign | f.infinity();
  const auto significand =
      static_cast<uint64_t>(std::rint(a * powerOfTwo(f.precision - 1 - exponent)));
  // A significand that rounds up to the next power of two carries into the exponent field.
  const uint64_t magnitude =
      (static_cast<uint64_t>(exponent - f.min_exponent) << (f.precision - 1)) + significand;
  return sign | std::min(magnitude, f.infinity());
}

}  // namespace support
