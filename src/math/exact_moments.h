// Mean and standard deviation from exact sums: computed in integers and rounded once.
#pragma once

#include <cmath>
#include <cstdint>

#include "exact_sum.h"
#include "number.h"
#include "platform.h"
#include "value_key.h"

namespace rbc {

// The maximum number of samples: n (n - 1), and n with 16 more bits, then fit in 64 bits.
inline constexpr int64_t kMaxSamples = int64_t{1} << 40;

RBC_HD int bitLength(uint64_t x) {
  int length = 0;
  for (int step = 32; step > 0; step >>= 1) {
    if (x >> step != 0) {
      x >>= step;
      length += step;
    }
  }
  return length + (x != 0 ? 1 : 0);
}

RBC_HD int bitLength(uint128 x) {
  const auto high = static_cast<uint64_t>(x >> 64);
  return high != 0 ? 64 + bitLength(high) : bitLength(static_cast<uint64_t>(x));
}

// significand * 2^exponent, and a little more if `more`, to the nearest f64, ties to even. The
// significand has at least 54 bits, or the exponent is at most -1076, so that the dropped part is
// below a half.
RBC_HD double roundToF64(uint128 significand, int exponent, bool more) {
  if (significand == 0) return 0;
  const int leading = bitLength(significand) - 1 + exponent;
  const int unit = leading - 52 > -1074 ? leading - 52 : -1074;
  const int shift = unit - exponent;
  uint64_t kept = 0;
  if (shift <= 0) {
    kept = static_cast<uint64_t>(significand << -shift);
  } else if (shift < 128) {
    kept = static_cast<uint64_t>(significand >> shift);
    const uint128 half = static_cast<uint128>(1) << (shift - 1);
    const uint128 rest = significand & ((half << 1) - 1);
    const bool up = rest > half || (rest == half && (more || (kept & 1) != 0));
    kept += up ? 1 : 0;
  }
  // A carry out of the significand goes to the exponent.
  constexpr uint64_t kOne = uint64_t{1} << 52;
  if (kept < kOne) return bitCast<double>(kept);
  return bitCast<double>((static_cast<uint64_t>(unit + 1074) << 52) + kept);
}

// The limbs from the lowest that is not 0 to the highest, as a magnitude.
template <class Limbs>
struct Magnitude {
  uint32_t limb[Limbs::kCount];  // low to high
  int low = Limbs::kCount;
  int high = -1;  // less than low: the magnitude is 0
  bool negative;

  RBC_HD explicit Magnitude(const int64_t (&limbs)[Limbs::kCount])
      : Magnitude(limbs, 0, Limbs::kCount) {}

  // Uses `count` limbs from `first` on; the others are 0. They need not be normalized.
  RBC_HD Magnitude(const int64_t* limbs, int first, int count) {
    int64_t carry = 0;
    for (int k = first; k < first + count; ++k) {
      const int64_t all = limbs[k] + carry;
      limb[k] = static_cast<uint32_t>(all);
      carry = all >> 32;
      if (limb[k] == 0) continue;
      if (low > k) low = k;
      high = k;
    }
    negative = carry < 0;
    if (!negative || high < 0) return;
    // The complement: above the lowest limb all bits are inverted.
    limb[low] = 0 - limb[low];
    high = low;
    for (int k = low + 1; k < first + count; ++k) {
      limb[k] = ~limb[k];
      if (limb[k] != 0) high = k;
    }
  }
};

// A divisor for repeated use: at most kMaxSamples.
struct Divisor {
  int64_t n;
  double inverse;

  RBC_HD explicit Divisor(int64_t number) : n(number), inverse(1.0 / static_cast<double>(number)) {}

  // The next 16 bits of a long division, by the inverse; it is off by at most one.
  RBC_HD uint32_t digit(uint32_t next, int64_t* remainder) const {
    const int64_t all = *remainder << 16 | next;  // less than 2^56
    auto quotient = static_cast<int64_t>(static_cast<double>(all) * inverse);
    int64_t rest = all - quotient * n;
    if (rest < 0) {
      rest += n;
      --quotient;
    } else if (rest >= n) {
      rest -= n;
      ++quotient;
    }
    *remainder = rest;
    return static_cast<uint32_t>(quotient);
  }
  RBC_HD uint32_t limb(uint32_t next, int64_t* remainder) const {
    const uint32_t high = digit(next >> 16, remainder);
    return high << 16 | digit(next & 0xffff, remainder);
  }
};

RBC_HD double notANumber() { return canonical(bitCast<double>(~uint64_t{0})); }

RBC_HD double exactMean(const Moments& moments, const LimbSpan& span = kAllLimbs) {
  if (moments.count == 0) return notANumber();
  const Magnitude<SumLimbs> sum(moments.sum, span.first_sum, span.sums);
  const Divisor divisor(moments.count);
  // Four limbs: at least 56 bits of the quotient, if it has that many.
  const int base = sum.high >= 3 ? sum.high - 3 : 0;
  uint128 quotient = 0;
  int64_t remainder = 0;
  for (int k = sum.high; k >= base; --k) {
    const uint32_t limb = k >= sum.low ? sum.limb[k] : 0;
    quotient = quotient << 32 | divisor.limb(limb, &remainder);
  }
  const double mean =
      roundToF64(quotient, 32 * base - SumLimbs::kUnit, remainder != 0 || sum.low < base);
  return sum.negative ? -mean : mean;
}

RBC_HD uint64_t integerRoot(uint128 x) {
  const double guess = sqrt(static_cast<double>(static_cast<uint64_t>(x >> 64)) * 0x1p64 +
                            static_cast<double>(static_cast<uint64_t>(x)));
  auto root = static_cast<uint64_t>(guess);
  while (static_cast<uint128>(root) * root > x) --root;
  while (static_cast<uint128>(root + 1) * (root + 1) <= x) ++root;
  return root;
}

// n times the sum of squares minus the square of the sum, in units of 2^-kUnit of the squares.
struct Spread {
  static constexpr int kCount = SquareLimbs::kCount + 4;
  uint32_t limb[kCount];  // low to high
  int low = kCount;
  int high = -1;

  RBC_HD uint32_t limbAt(int k) const { return k >= low ? limb[k] : 0; }

  RBC_HD Spread(const Moments& moments, const LimbSpan& span) {
    const Magnitude<SumLimbs> sum(moments.sum, span.first_sum, span.sums);
    const Magnitude<SquareLimbs> squares(moments.squares, span.first_square, span.squares);
    const int first = squares.low < 2 * sum.low ? squares.low : 2 * sum.low;
    const int last = (squares.high > 2 * sum.high ? squares.high : 2 * sum.high) + 2;
    int128 carry = 0;
    for (int k = first; k <= last && k < kCount; ++k) {
      if (k >= squares.low && k <= squares.high) {
        carry += static_cast<int128>(squares.limb[k]) * moments.count;
      }
      const int from = k - sum.high > sum.low ? k - sum.high : sum.low;
      const int to = k - sum.low < sum.high ? k - sum.low : sum.high;
      for (int i = from; i <= to; ++i) {
        carry -= static_cast<int128>(static_cast<uint64_t>(sum.limb[i]) * sum.limb[k - i]);
      }
      limb[k] = static_cast<uint32_t>(carry);
      carry >>= 32;
      if (limb[k] == 0) continue;
      if (low > k) low = k;
      high = k;
    }
  }
};

RBC_HD double exactStd(const Moments& moments, int ddof, const LimbSpan& span = kAllLimbs) {
  if (moments.count <= ddof) return notANumber();
  const Spread spread(moments, span);
  if (spread.high < 0) return 0;
  // Eight limbs, divided by n (n - ddof): at least 142 bits of the quotient, if it has that many.
  constexpr int kLimbs = 8;
  const int base = spread.high >= kLimbs - 1 ? spread.high - (kLimbs - 1) : 0;
  uint32_t quotient[kLimbs] = {};
  bool more = spread.low < base;
  const Divisor by_count(moments.count);
  const Divisor by_freedom(moments.count - ddof);
  int64_t remainder = 0;
  for (int k = spread.high; k >= base; --k) {
    quotient[k - base] = by_count.limb(spread.limbAt(k), &remainder);
  }
  more = more || remainder != 0;
  remainder = 0;
  for (int k = spread.high - base; k >= 0; --k) {
    quotient[k] = by_freedom.limb(quotient[k], &remainder);
  }
  more = more || remainder != 0;

  // The square root to 55 bits, from the leading 109 or 110 bits with an even exponent.
  int length = 0;
  for (int k = 0; k < kLimbs; ++k) {
    if (quotient[k] != 0) length = 32 * k + bitLength(uint64_t{quotient[k]});
  }
  const int shift = length > 110 ? (length - 110 + 1) & ~1 : 0;
  uint128 leading = 0;
  for (int k = kLimbs - 1; k >= 0; --k) {
    const int place = 32 * k - shift;
    if (quotient[k] == 0) continue;
    if (place >= 0) {
      leading |= static_cast<uint128>(quotient[k]) << place;
    } else if (place > -32) {
      leading |= quotient[k] >> -place;
      more = more || (quotient[k] & ((uint32_t{1} << -place) - 1)) != 0;
    } else {
      more = more || quotient[k] != 0;
    }
  }
  const uint64_t root = integerRoot(leading);
  more = more || static_cast<uint128>(root) * root != leading;
  return roundToF64(root, (32 * base - SquareLimbs::kUnit + shift) / 2, more);
}

// NaN if there are no values.
RBC_HD double smallest(const Moments& moments) {
  return moments.count > 0 ? fromValueKey<double>(moments.min_key) : notANumber();
}
RBC_HD double largest(const Moments& moments) {
  return moments.count > 0 ? fromValueKey<double>(moments.max_key) : notANumber();
}

}  // namespace rbc
