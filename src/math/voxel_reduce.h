// Reductions of a voxel's features; the result does not depend on the order of the points.
//
// A reduction of n values has up to two passes, each a combination that is associative and
// commutative bit for bit, so that parts of a voxel can be combined in any order.
#pragma once

#include <cstdint>

#include "number.h"
#include "real.h"

namespace rbc {

// ---- max and min --------------------------------------------------------------------------------

template <class Number>
struct OrderBits;
template <>
struct OrderBits<float> {
  using Key = uint32_t;
};
template <>
struct OrderBits<double> {
  using Key = uint64_t;
};
template <class Number>
using OrderKey = typename OrderBits<Number>::Key;

// Less than the key of any number.
template <class Number>
inline constexpr OrderKey<Number> kMinKey = 0;

// An integer with the order of the numbers, with -0 before +0 and NaN last; for a minimum, that of
// the negated number.
template <class Number>
RBC_HD OrderKey<Number> orderKey(Number x, bool minimum) {
  using Key = OrderKey<Number>;
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  if (x != x) return ~Key{0};
  const Key bits = bitCast<Key>(minimum ? -x : x);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

template <class Number>
RBC_HD Number fromOrderKey(OrderKey<Number> key, bool minimum) {
  using Key = OrderKey<Number>;
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  if (key == ~Key{0}) return canonical(bitCast<Number>(key));
  const Number x = bitCast<Number>((key & kSign) != 0 ? key ^ kSign : ~key);
  return minimum ? -x : x;
}

// ---- sums in fixed point ------------------------------------------------------------------------

// |x| as an integer in the order of magnitudes: the first pass takes the largest. Infinity and NaN
// are kNotFinite or more.
template <class Number>
RBC_HD OrderKey<Number> magnitude(Number x) {
  using Key = OrderKey<Number>;
  return bitCast<Key>(x) & static_cast<Key>(~FloatBits<Number>::kSign);
}
template <class Number>
inline constexpr OrderKey<Number> kNotFinite = FloatBits<Number>::kExponent;

// The terms of the second pass, added with wraparound: 64 bits for f32, 128 for f64.
struct Fixed128 {
  uint64_t low;
  uint64_t high;
};
RBC_HD Fixed128 operator+(const Fixed128& a, const Fixed128& b) {
  const uint64_t low = a.low + b.low;
  return {low, a.high + b.high + (low < a.low ? 1u : 0u)};
}

template <class Number>
struct FixedOf;
template <>
struct FixedOf<float> {
  using type = uint64_t;
  static constexpr int kFraction = 62;  // bits below the largest possible sum
};
template <>
struct FixedOf<double> {
  using type = Fixed128;
  static constexpr int kFraction = 124;
};
template <class Number>
using Fixed = typename FixedOf<Number>::type;

// The number of zeros before the leading bit; x > 0.
RBC_HD int leadingZeros(uint64_t x) {
#if defined(__CUDA_ARCH__)
  return __clzll(static_cast<long long>(x));
#else
  return __builtin_clzll(x);
#endif
}

// The least k with n <= 2^k; n >= 1.
RBC_HD int ceilLog2(int64_t n) { return n == 1 ? 0 : 64 - leadingZeros(n - 1); }

// The E with 2^(E-1) <= x < 2^E, for a finite magnitude; some small number for 0.
RBC_HD int exponentPast(uint32_t magnitude) {
  if (magnitude >> 23 != 0) return static_cast<int>(magnitude >> 23) - 126;
  int e = -149;
  for (; magnitude != 0; magnitude >>= 1) ++e;
  return e;
}
RBC_HD int exponentPast(uint64_t magnitude) {
  if (magnitude >> 52 != 0) return static_cast<int>(magnitude >> 52) - 1022;
  int e = -1074;
  for (; magnitude != 0; magnitude >>= 1) ++e;
  return e;
}

// 2^k for k in -1022 .. 1023.
RBC_HD double powerOfTwo(int k) { return bitCast<double>(static_cast<uint64_t>(k + 1023) << 52); }

// The fixed point for n values with the given largest magnitude: values are multiples of 2^-shift.
template <class Number>
RBC_HD int fixedShift(OrderKey<Number> largest, int64_t n) {
  return FixedOf<Number>::kFraction - exponentPast(largest) - ceilLog2(n);
}

// x * 2^shift, rounded to nearest even. f32 is scaled in double, where its product is exact.
RBC_HD uint64_t toFixed(float x, int shift) {
  return static_cast<uint64_t>(llrint(static_cast<double>(x) * powerOfTwo(shift)));
}
RBC_HD Fixed128 toFixed(double x, int shift) {
  const uint64_t bits = magnitude(x);
  const int biased = static_cast<int>(bits >> 52);
  uint64_t digits = bits & 0xfffffffffffffull;
  if (biased != 0) digits |= uint64_t{1} << 52;
  // x is digits * 2^by after scaling, and less than 2^124.
  const int by = (biased != 0 ? biased : 1) - 1075 + shift;
  Fixed128 result = {0, 0};
  if (by >= 64) {
    // by is less than 128, unless another thread has made x larger since the first pass.
    result.high = digits << (by & 63);
  } else if (by > 0) {
    result = {digits << by, digits >> (64 - by)};
  } else if (by == 0) {
    result.low = digits;
  } else if (by > -55) {
    const uint64_t half = uint64_t{1} << (-by - 1);
    const uint64_t rest = digits & ((half << 1) - 1);
    result.low = digits >> -by;
    if (rest > half || (rest == half && (result.low & 1) != 0)) ++result.low;
  }
  if (bitCast<uint64_t>(x) >> 63 == 0) return result;
  return Fixed128{~result.low, ~result.high} + Fixed128{1, 0};
}

// The sum as a double, rounded to nearest even, times 2^-shift.
RBC_HD double fromFixed(uint64_t sum, int shift) {
  return static_cast<double>(static_cast<int64_t>(sum)) * powerOfTwo(-shift);
}
RBC_HD double fromFixed(const Fixed128& sum, int shift) {
  const bool negative = sum.high >> 63 != 0;
  const Fixed128 m = negative ? Fixed128{~sum.low, ~sum.high} + Fixed128{1, 0} : sum;
  // Moves the leading bit to 2^126.
  const int up = m.high != 0 ? leadingZeros(m.high) - 1 : m.low != 0 ? leadingZeros(m.low) + 63 : 0;
  Fixed128 top = m;
  if (up >= 64) {
    top = {0, m.low << (up - 64)};
  } else if (up > 0) {
    top = {m.low << up, m.high << up | m.low >> (64 - up)};
  }
  // 62 bits of it; the last one is set if any lower bit is, so that it rounds as the whole would.
  const uint64_t leading = (top.high >> 1) | ((top.high & 1) != 0 || top.low != 0 ? 1u : 0u);
  const auto rounded = static_cast<double>(static_cast<int64_t>(leading));
  // In two steps: one factor may be out of range.
  const int by = 65 - up - shift;
  const double scaled = rounded * powerOfTwo(by / 2) * powerOfTwo(by - by / 2);
  return negative ? -scaled : scaled;
}

// Infinities and NaN are counted instead: +inf in the lower half of the sum, -inf in the upper, NaN
// in both. n < 2^31 keeps the halves separate.
RBC_HD uint64_t notFiniteTerm(float x) {
  const bool nan = x != x;
  const bool infinite = magnitude(x) == kNotFinite<float>;
  return (nan || (infinite && x > 0) ? 1u : 0u) |
         static_cast<uint64_t>(nan || (infinite && x < 0) ? 1u : 0u) << 32;
}
RBC_HD Fixed128 notFiniteTerm(double x) {
  const bool nan = x != x;
  const bool infinite = magnitude(x) == kNotFinite<double>;
  return {nan || (infinite && x > 0) ? 1u : 0u, nan || (infinite && x < 0) ? 1u : 0u};
}
RBC_HD double notFiniteSum(uint64_t low, uint64_t high) {
  if (low != 0 && high != 0) return bitCast<double>(uint64_t{0x7fffffffffffffff});
  return bitCast<double>(low != 0 ? FloatBits<double>::kExponent
                                  : FloatBits<double>::kExponent | FloatBits<double>::kSign);
}
RBC_HD double notFiniteResult(uint64_t sum) { return notFiniteSum(sum & 0xffffffffu, sum >> 32); }
RBC_HD double notFiniteResult(const Fixed128& sum) { return notFiniteSum(sum.low, sum.high); }

// FixedSum of one value: the value, except for -0.
template <class Number>
RBC_HD double sumOfOne(Number x) {
  return static_cast<double>(x) + 0.0;
}

// The second pass over n values, given their largest magnitude from the first.
template <class Number>
struct FixedSum {
  OrderKey<Number> largest;
  int64_t n;
  int shift;

  RBC_HD FixedSum(OrderKey<Number> largest_magnitude, int64_t count)
      : largest(largest_magnitude), n(count), shift(fixedShift<Number>(largest_magnitude, count)) {}

  RBC_HD bool finite() const { return largest < kNotFinite<Number>; }

  RBC_HD Fixed<Number> term(Number x) const {
    return finite() ? toFixed(x, shift) : notFiniteTerm(x);
  }

  // The sum, or the mean, from the added terms.
  RBC_HD double result(const Fixed<Number>& sum, bool mean) const {
    if (!finite()) return notFiniteResult(sum);
    const double total = fromFixed(sum, shift);
    return mean ? total / static_cast<double>(n) : total;
  }
};

}  // namespace rbc
