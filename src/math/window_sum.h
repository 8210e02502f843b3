// Sums of numbers of similar magnitude, and of their squares, in a few registers: each number is
// divided into integers whose products are added in 64 bits. Nothing is rounded.
//
// The caller must add numbers outside of the window: too large, or with bits that are too small.
#pragma once

#include <cstdint>

#include "exact_sum.h"
#include "number.h"
#include "platform.h"

namespace rbc {

// For f32: x = high 2^(top - kHighBits) + low 2^(top - 41) for |x| < 2^top; the pieces are signed,
// of up to 2^kHighBits and 2^22. With one piece there is no low part: this suits numbers with few
// bits.
template <int kPieces>
struct FloatWindow {
  using Number = float;
  static constexpr int kHighBits = kPieces == 1 ? 22 : 18;
  static constexpr int kLowUnit = 41;
  static constexpr int kFields = kPieces == 1 ? 2 : 5;
  // This many additions into one set of fields fit into 64 bits.
  static constexpr int kMaxAdditions = 1 << 17;
  static constexpr int kMinTop = -100;
  static constexpr int kMaxTop = 120;

  int64_t field[kFields];  // sums of high, low, high^2, high low, low^2
  float limit;
  float high_magic;  // adding it leaves the high piece in the lowest bits
  float low_magic;
  int32_t top;

  RBC_HD void start(int at_most) {
    top = at_most < kMinTop ? kMinTop : at_most > kMaxTop ? kMaxTop : at_most;
    limit = powerOfTwo(top);
    high_magic = 1.5f * powerOfTwo(top - kHighBits + 23);
    low_magic = 1.5f * powerOfTwo(top - kLowUnit + 23);
    for (int64_t& f : field) f = 0;
  }

  // Returns whether x is inside. If not, the fields are meaningless until remove(x): there is no
  // branch here.
  RBC_HD bool add(float x) {
    const Pieces p = cut(x);
    change(p, 1);
    return p.inside;
  }
  RBC_HD void remove(float x) { change(cut(x), -1); }

  // Calls add_sum and add_square with (integer, exponent) for the value of each field's total.
  template <class Total, class AddSum, class AddSquare>
  static RBC_HD void expand(int top, const Total (&total)[kFields], AddSum&& add_sum,
                            AddSquare&& add_square) {
    if constexpr (kPieces == 1) {
      add_sum(total[0], top - kHighBits);
      add_square(total[1], 2 * (top - kHighBits));
    } else {
      add_sum(total[0], top - kHighBits);
      add_sum(total[1], top - kLowUnit);
      add_square(total[2], 2 * (top - kHighBits));
      add_square(total[3], 2 * top - kHighBits - kLowUnit + 1);
      add_square(total[4], 2 * (top - kLowUnit));
    }
  }

  // The least top of a window with room for x, which is finite.
  static RBC_HD int topOf(float x) {
    return static_cast<int>(bitCast<uint32_t>(x) >> 23 & 0xff) - 126;
  }

 private:
  struct Pieces {
    int32_t high;
    int32_t low;
    bool inside;
  };

  RBC_HD Pieces cut(float x) const {
    const float shifted = x + high_magic;
    const int32_t high = difference(shifted, high_magic);
    const float rest = x - (shifted - high_magic);
    if constexpr (kPieces == 1) {
      return {high, 0, fabsf(x) < limit && rest == 0};
    } else {
      const float fine = rest + low_magic;
      return {high, difference(fine, low_magic), fabsf(x) < limit && fine - low_magic == rest};
    }
  }

  // Modulo 2^64, so that an addition that overflowed can be removed as well.
  RBC_HD void change(const Pieces& p, int32_t sign) {
    const int64_t high = p.high;
    const int64_t low = p.low;
    accumulate(0, high, sign);
    if constexpr (kPieces == 1) {
      accumulate(1, high * high, sign);
    } else {
      accumulate(1, low, sign);
      accumulate(2, high * high, sign);
      accumulate(3, high * low, sign);
      accumulate(4, low * low, sign);
    }
  }
  RBC_HD void accumulate(int i, int64_t amount, int32_t sign) {
    const auto bits = static_cast<uint64_t>(amount);
    field[i] = static_cast<int64_t>(static_cast<uint64_t>(field[i]) + (sign > 0 ? bits : 0 - bits));
  }

  static RBC_HD int32_t difference(float a, float b) {
    return static_cast<int32_t>(bitCast<uint32_t>(a) - bitCast<uint32_t>(b));
  }
  static RBC_HD float powerOfTwo(int exponent) {
    return bitCast<float>(static_cast<uint32_t>(exponent + 127) << 23);
  }
};

// For f64: x = (first 2^48 + second 2^24 + third) 2^(top - 72), of 24 bits each.
struct DoubleWindow {
  using Number = double;
  static constexpr int kFields = 8;
  static constexpr int kMaxAdditions = 1 << 12;
  static constexpr int kBits = 72;
  static constexpr int kMinTop = -1000;
  static constexpr int kMaxTop = 1024;

  int64_t field[kFields];  // sums of the pieces, and of products with equal weights
  int32_t top;

  RBC_HD void start(int at_most) {
    top = at_most < kMinTop ? kMinTop : at_most > kMaxTop ? kMaxTop : at_most;
    for (int64_t& f : field) f = 0;
  }

  // As in FloatWindow.
  RBC_HD bool add(double x) { return change(x, 1); }
  RBC_HD void remove(double x) { change(x, -1); }

  template <class Total, class AddSum, class AddSquare>
  static RBC_HD void expand(int top, const Total (&total)[kFields], AddSum&& add_sum,
                            AddSquare&& add_square) {
    const int unit = top - kBits;
    add_sum(total[0], unit + 48);
    add_sum(total[1], unit + 24);
    add_sum(total[2], unit);
    add_square(total[3], 2 * unit + 96);
    add_square(total[4], 2 * unit + 73);
    add_square(total[5], 2 * unit + 48);
    add_square(total[6], 2 * unit + 25);
    add_square(total[7], 2 * unit);
  }

  static RBC_HD int topOf(double x) {
    return static_cast<int>(bitCast<uint64_t>(x) >> 52 & 0x7ff) - 1022;
  }

 private:
  RBC_HD bool change(double x, int32_t sign) {
    const uint64_t bits = bitCast<uint64_t>(x);
    const int biased = static_cast<int>(bits >> 52 & 0x7ff);
    // The significand's last bit weighs 2^(biased - 1075).
    const int distance = biased - 1075 - (top - kBits);
    constexpr int kMaxShift = kBits - 53;
    // Infinities and NaN are larger than any window, subnormal numbers smaller.
    const bool inside = static_cast<uint32_t>(distance) <= static_cast<uint32_t>(kMaxShift) &&
                        biased != 0 && biased != 0x7ff;
    const int shift = distance & 31;
    const uint64_t implied = x == 0 ? 0 : uint64_t{1} << 52;
    const uint64_t significand = (bits & ((uint64_t{1} << 52) - 1)) | implied;
    const uint64_t shifted = significand << shift;
    const auto above = static_cast<uint32_t>(significand >> 1 >> (63 - shift));
    const int64_t third = static_cast<uint32_t>(shifted) & 0xffffff;
    const int64_t second = static_cast<uint32_t>(shifted >> 24) & 0xffffff;
    const int64_t first = (static_cast<uint32_t>(shifted >> 48) | above << 16) & 0xffffff;
    const int32_t signed_one = bits >> 63 != 0 ? -sign : sign;
    accumulate(0, first, signed_one);
    accumulate(1, second, signed_one);
    accumulate(2, third, signed_one);
    accumulate(3, first * first, sign);
    accumulate(4, first * second, sign);
    accumulate(5, 2 * first * third + second * second, sign);
    accumulate(6, second * third, sign);
    accumulate(7, third * third, sign);
    return inside || x == 0;
  }
  RBC_HD void accumulate(int i, int64_t amount, int32_t sign) {
    const auto bits = static_cast<uint64_t>(amount);
    field[i] = static_cast<int64_t>(static_cast<uint64_t>(field[i]) + (sign > 0 ? bits : 0 - bits));
  }
};

// total * 2^exponent in limbs, as in splitScaled().
template <class Limbs, class Add>
RBC_HD void splitTotal(int128 total, int exponent, Add&& add) {
  if (total == 0) return;
  const bool negative = total < 0;
  const uint128 magnitude =
      negative ? 0 - static_cast<uint128>(total) : static_cast<uint128>(total);
  splitScaled128<Limbs>(magnitude, exponent, negative, add);
}

// The limbs that values of a dtype can reach: a part of all.
template <int kMinExponent, int kMaxExponent>
struct LimbRange {
  static constexpr int kFirstSum = (kMinExponent + SumLimbs::kUnit) >> 5;
  static constexpr int kSums = ((kMaxExponent + SumLimbs::kUnit) >> 5) + 2 - kFirstSum;
  static constexpr int kFirstSquare = (2 * kMinExponent + SquareLimbs::kUnit) >> 5;
  static constexpr int kSquares = ((2 * kMaxExponent + SquareLimbs::kUnit) >> 5) + 2 - kFirstSquare;
  static constexpr LimbSpan kSpan = {kFirstSum, kSums, kFirstSquare, kSquares};
};

// For values computed in f32, and in f64.
using FloatLimbs = LimbRange<-149, 128>;
using DoubleLimbs = LimbRange<-1074, 1024>;

}  // namespace rbc
