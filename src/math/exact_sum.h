// Exact sums of f64: integers in limbs of 32 bits, with enough bits that every finite value is a
// multiple of their unit.
//
// A limb is stored in an int64, so that limbs can be added without carries, also by atomics and in
// any order: 2^31 additions fit before normalizeLimbs() must bring all except the last limb back to
// 0 .. 2^32 - 1.
#pragma once

#include <cstdint>

#include "number.h"
#include "platform.h"

namespace rbc {

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

// Limb k weighs 2^(32 k - kUnit): room for the smallest subnormal (2^-1074, and its square), and
// for 2^40 times the largest number (2^1024, and its square).
struct SumLimbs {
  static constexpr int kCount = 68;
  static constexpr int kUnit = 1088;
};
struct SquareLimbs {
  static constexpr int kCount = 134;
  static constexpr int kUnit = 2176;
};

// The most additions to a limb, of less than 2^32 each, between two normalizations.
inline constexpr int64_t kMaxLimbAdditions = int64_t{1} << 30;

// The limbs that may differ from 0: `count` limbs starting at `first`.
struct LimbSpan {
  int first_sum;
  int sums;
  int first_square;
  int squares;
};
inline constexpr LimbSpan kAllLimbs = {0, SumLimbs::kCount, 0, SquareLimbs::kCount};

// The statistics of a channel except its quantiles. min and max are keys of value_key.h, so that
// they do not depend on the order of values either.
struct Moments {
  int64_t count;
  int64_t nonfinite;
  uint64_t min_key;  // UINT64_MAX without values
  uint64_t max_key;  // 0 without values
  int64_t sum[SumLimbs::kCount];
  int64_t squares[SquareLimbs::kCount];
};
static_assert(sizeof(Moments) == 1648);

RBC_HD void clearMoments(Moments* moments) {
  *moments = {};
  moments->min_key = ~uint64_t{0};
}

// Calls add(limb, amount) for the parts of magnitude * 2^exponent in limbs whose unit is 2^-unit;
// amounts have the sign. The number must be a multiple of the unit.
template <class Limbs, class Add>
RBC_HD void splitScaled(uint64_t magnitude, int exponent, bool negative, Add&& add) {
  const int place = exponent + Limbs::kUnit;
  const int limb = place >> 5;
  const uint128 bits = static_cast<uint128>(magnitude) << (place & 31);
  const int64_t parts[3] = {static_cast<int64_t>(static_cast<uint32_t>(bits)),
                            static_cast<int64_t>(static_cast<uint32_t>(bits >> 32)),
                            static_cast<int64_t>(static_cast<uint32_t>(bits >> 64))};
  for (int i = 0; i < 3; ++i) {
    if (parts[i] != 0) add(limb + i, negative ? -parts[i] : parts[i]);
  }
}

// value * 2^exponent; 2^exponent may be less than the unit if the product is a multiple of it.
template <class Limbs, class Add>
RBC_HD void splitScaled(int64_t value, int exponent, Add&& add) {
  const bool negative = value < 0;
  uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  const int below = -(exponent + Limbs::kUnit);
  if (below > 0) {
    magnitude = below < 64 ? magnitude >> below : 0;
    exponent += below;
  }
  if (magnitude != 0) splitScaled<Limbs>(magnitude, exponent, negative, add);
}

// The same for 128 bits.
template <class Limbs, class Add>
RBC_HD void splitScaled128(uint128 magnitude, int exponent, bool negative, Add&& add) {
  const auto low = static_cast<uint64_t>(magnitude);
  const auto high = static_cast<uint64_t>(magnitude >> 64);
  if (low != 0) splitScaled<Limbs>(low, exponent, negative, add);
  if (high != 0) splitScaled<Limbs>(high, exponent + 64, negative, add);
}

// A finite number as an integer and a power of two: |x| = significand * 2^exponent.
struct Split {
  uint64_t significand;  // less than 2^53
  int exponent;          // at least -1074
  bool negative;
};

RBC_HD Split splitOf(double x) {
  const uint64_t bits = bitCast<uint64_t>(x);
  const int biased = static_cast<int>(bits >> 52 & 0x7ff);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  const bool normal = biased != 0;
  return {normal ? fraction | uint64_t{1} << 52 : fraction, normal ? biased - 1075 : -1074,
          bits >> 63 != 0};
}

// Adds a finite x to a sum and its square to a sum of squares: add_sum and add_square get (limb,
// amount).
template <class AddSum, class AddSquare>
RBC_HD void splitValue(double x, AddSum&& add_sum, AddSquare&& add_square) {
  const Split s = splitOf(x);
  if (s.significand == 0) return;
  splitScaled<SumLimbs>(s.significand, s.exponent, s.negative, add_sum);
  splitScaled128<SquareLimbs>(static_cast<uint128>(s.significand) * s.significand, 2 * s.exponent,
                              false, add_square);
}

// Imported states may hold any limbs: their sums wrap around rather than overflow.
RBC_HD int64_t wrappingSum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// Propagates carries, so that all limbs except the last are in 0 .. 2^32 - 1; the last has the
// sign. Equal numbers get equal limbs.
RBC_HD void normalizeLimbs(int64_t* limbs, int count) {
  int64_t carry = 0;
  for (int k = 0; k < count - 1; ++k) {
    const int64_t all = limbs[k] + carry;
    limbs[k] = all & 0xffffffff;
    carry = all >> 32;
  }
  limbs[count - 1] = wrappingSum(limbs[count - 1], carry);
}

RBC_HD void normalizeMoments(Moments* moments) {
  normalizeLimbs(moments->sum, SumLimbs::kCount);
  normalizeLimbs(moments->squares, SquareLimbs::kCount);
}

// Adds normalized moments to normalized ones, and normalizes the result.
RBC_HD void mergeMoments(Moments* to, const Moments& from) {
  to->count += from.count;
  to->nonfinite += from.nonfinite;
  if (from.min_key < to->min_key) to->min_key = from.min_key;
  if (from.max_key > to->max_key) to->max_key = from.max_key;
  for (int k = 0; k < SumLimbs::kCount; ++k) to->sum[k] = wrappingSum(to->sum[k], from.sum[k]);
  for (int k = 0; k < SquareLimbs::kCount; ++k) {
    to->squares[k] = wrappingSum(to->squares[k], from.squares[k]);
  }
  normalizeMoments(to);
}

}  // namespace rbc
