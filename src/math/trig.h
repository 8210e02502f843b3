// Sine, cosine and arc tangent without libm, so that every machine gives the same bits: for all
// finite numbers, to 0.8 and 2.2 units in the last place; sine and cosine to 2^-80 as DoubleDouble.
//
// The polynomials in double are Chebyshev interpolants off by less than 2^-55, those in
// DoubleDouble are Taylor's. All constants were computed with at least 400 bits.
#if !defined(RBC_MATH_TRIG_H) || defined(RBC_FORMULAS_AGAIN)
#define RBC_MATH_TRIG_H

#if !defined(RBC_FORMULAS_AGAIN)
#include <cmath>
#include <cstdint>

#include "double_double.h"
#include "number.h"
#include "slerp.h"  // horner()
#endif

namespace RBC_FORMULAS {

template <class Number>
struct SineCosine {
  Number sine;
  Number cosine;
};

// An angle as quarter turns and a remainder of at most an eighth of a turn, or slightly more.
struct ReducedAngle {
  DoubleDouble rest;
  int quarters;  // modulo 4
};

namespace detail {

// pi / 2 in three parts: their sum is off by 6e-50.
constexpr double kQuarter1 = 1.5707963267948966;
constexpr double kQuarter2 = 6.123233995736766e-17;
constexpr double kQuarter3 = -1.4973849048591698e-33;
constexpr double kQuartersPerRadian = 0.6366197723675814;

// Up to here a double can count the quarter turns such that their multiples can be subtracted.
constexpr double kModerateAngle = 0x1p45;

// Cody and Waite's reduction. The first step is exact: its result is below 1, and a multiple of the
// last bit of pi / 2.
RBC_HD ReducedAngle reduceModerate(double angle) {
  const double quarters = roundEven(angle * kQuartersPerRadian);
  const double rest = mulAdd(-quarters, kQuarter1, angle);
  const DoubleDouble second = exactProduct(-quarters, kQuarter2);
  return {DoubleDouble(rest) + second + DoubleDouble(-quarters * kQuarter3),
          static_cast<int>(static_cast<int64_t>(quarters) & 3)};
}

// Payne and Hanek's reduction: of angle * 2 / pi only the relevant bits are computed, 190 after the
// quarter turns. NaN if the angle is not finite.
RBC_HD ReducedAngle reduceLarge(double angle) {
  // A word of zeros, then 2 / pi.
  static constexpr uint32_t kBits[] = {
      0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
      0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c,
      0xb129a73e, 0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4,
      0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf,
      0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea,
      0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab};
  const auto bits = bitCast<uint64_t>(angle);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  if (exponent == 0x7ff) return {DoubleDouble(angle - angle), 0};

  // angle = mantissa * 2^(exponent - 1075). The bits of 2 / pi that give multiples of 4 are
  // dropped.
  const uint64_t mantissa = (bits & 0xfffffffffffffull) | 0x10000000000000ull;
  const auto low = static_cast<uint32_t>(mantissa);
  const auto high = static_cast<uint32_t>(mantissa >> 32);
  const int first = exponent - 1075 + 30;
  const uint32_t* from = kBits + (first >> 5);
  const int shift = first & 31;
  // The product with the mantissa modulo 2^192, last word first; only four words are kept.
  uint32_t word[4] = {};
  uint64_t carry = 0;
  uint32_t behind = 0;  // the word after this one
  for (int i = 5; i >= 0; --i) {
    const auto here = static_cast<uint32_t>(
        ((static_cast<uint64_t>(from[i]) << 32 | from[i + 1]) << shift) >> 32);
    const uint64_t part = static_cast<uint64_t>(here) * low;
    const uint64_t other = static_cast<uint64_t>(behind) * high;
    const uint64_t sum = (carry & 0xffffffff) + (part & 0xffffffff) + (other & 0xffffffff);
    carry = (carry >> 32) + (part >> 32) + (other >> 32) + (sum >> 32);
    behind = here;
    // Word i becomes word[i] of the first four. Shifting avoids a computed index.
    word[3] = word[2];
    word[2] = word[1];
    word[1] = word[0];
    word[0] = static_cast<uint32_t>(sum);
  }
  // Two bits of quarter turns, and a fraction: read as a signed number, it is relative to the
  // nearest turn.
  const uint64_t front = static_cast<uint64_t>(word[0]) << 32 | word[1];
  const uint64_t back = static_cast<uint64_t>(word[2]) << 32 | word[3];
  const uint64_t fraction = front << 2 | back >> 62;
  const auto leading = static_cast<int64_t>(fraction) >> 32;
  const DoubleDouble share =
      exactSum(static_cast<double>(leading) * 0x1p-32,
               static_cast<double>(static_cast<uint32_t>(fraction)) * 0x1p-64) +
      DoubleDouble(static_cast<double>(static_cast<uint32_t>(back >> 30)) * 0x1p-96) +
      DoubleDouble(static_cast<double>(static_cast<uint32_t>(back << 2)) * 0x1p-128);
  const DoubleDouble rest = share * DoubleDouble(kQuarter1, kQuarter2);
  const int quarters = static_cast<int>((front >> 62) + (fraction >> 63));
  const bool negative = bits >> 63 != 0;
  return {negative ? -rest : rest, (negative ? -quarters : quarters) & 3};
}

// ---- at most an eighth of a turn ----------------------------------------------------------------

RBC_HD SineCosine<double> ofEighth(DoubleDouble angle, double) {
  constexpr double sine[] = {-7.58480029363624e-13,   1.6058498934405823e-10,
                             -2.5052106022976373e-08, 2.7557319218726546e-06,
                             -0.00019841269841264266, 0.008333333333333331,
                             -0.16666666666666666};
  constexpr double cosine[] = {-1.1379868183107014e-11, 2.08761072967851e-09,
                               -2.7557317081781786e-07, 2.4801587298393676e-05,
                               -0.0013888888888887148,  0.041666666666666664};
  const double x = angle.head;
  const double square = x * x;
  const double half = 0.5 * square;
  const double most = 1 - half;
  const double tail = (1 - most) - half;  // the part that the subtraction lost
  return {x + mulAdd(x * square, horner(square, sine), angle.tail * most),
          most + mulAdd(square * square, horner(square, cosine), tail - x * angle.tail)};
}

// About 80 bits.
RBC_HD SineCosine<DoubleDouble> ofEighth(DoubleDouble angle, DoubleDouble) {
  constexpr double sine[] = {6.446950284384474e-26,  -3.868170170630684e-23, 1.9572941063391263e-20,
                             -8.22063524662433e-18,  2.8114572543455206e-15, -7.647163731819816e-13,
                             1.6059043836821613e-10, -2.505210838544172e-08};
  constexpr double cosine[] = {1.6117375710961184e-24, -8.896791392450574e-22,
                               4.110317623312165e-19,  -1.5619206968586225e-16,
                               4.779477332387385e-14,  -1.1470745597729725e-11,
                               2.08767569878681e-09};
  const DoubleDouble square = angle * angle;
  DoubleDouble s = horner(square.head, sine);
  s = s * square + DoubleDouble(2.7557319223985893e-06, -1.858393274046472e-22);
  s = s * square + DoubleDouble(-0.0001984126984126984, -1.7209558293420705e-22);
  s = s * square + DoubleDouble(0.008333333333333333, 1.1564823173178714e-19);
  s = s * square + DoubleDouble(-0.16666666666666666, -9.25185853854297e-18);
  DoubleDouble c = horner(square.head, cosine);
  c = c * square + DoubleDouble(-2.755731922398589e-07, -2.3767714622250297e-23);
  c = c * square + DoubleDouble(2.48015873015873e-05, 2.1511947866775882e-23);
  c = c * square + DoubleDouble(-0.001388888888888889, 5.300543954373577e-20);
  c = c * square + DoubleDouble(0.041666666666666664, 2.3129646346357427e-18);
  c = c * square + DoubleDouble(-0.5);
  return {angle + angle * (square * s), DoubleDouble(1) + square * c};
}

}  // namespace detail

RBC_HD ReducedAngle reduce(double angle) {
  return std::fabs(angle) < detail::kModerateAngle ? detail::reduceModerate(angle)
                                                   : detail::reduceLarge(angle);
}

// The tail may be as large as 0.5.
RBC_HD ReducedAngle reduce(DoubleDouble angle) {
  const ReducedAngle head = reduce(angle.head);
  const DoubleDouble rest = head.rest + DoubleDouble(angle.tail);
  const double more = roundEven(rest.head * detail::kQuartersPerRadian);  // -1, 0 or 1
  return {rest + DoubleDouble(-more * detail::kQuarter1, -more * detail::kQuarter2),
          (head.quarters + (more < 0   ? 3
                            : more > 0 ? 1
                                       : 0)) &
              3};
}

template <class Number>
RBC_HD SineCosine<Number> sineCosine(const ReducedAngle& angle) {
  const SineCosine<Number> eighth = detail::ofEighth(angle.rest, Number());
  const bool odd = (angle.quarters & 1) != 0;
  const Number sine = odd ? eighth.cosine : eighth.sine;
  const Number cosine = odd ? eighth.sine : eighth.cosine;
  return {(angle.quarters & 2) != 0 ? -sine : sine,
          ((angle.quarters + 1) & 2) != 0 ? -cosine : cosine};
}

// The angle of (x, y), in [-pi, pi]. The sign of a zero is ignored: (-1, -0) gives pi, and (0, 0)
// gives 0. NaN if the sum of |x| and |y| is not finite.
RBC_HD double arcTangent(double y, double x) {
  constexpr double c[] = {0.01628575685520846,  -0.034570561981416406, 0.04551593220626108,
                          -0.05230454270650148, 0.05878928997834762,   -0.06666424885738254,
                          0.07692296375032143,  -0.09090908753500877,  0.11111111105155447,
                          -0.14285714285659828, 0.19999999999999804,   -0.3333333333333333};
  constexpr double kTangent = 0.41421356237309503;  // of pi / 8
  const double ax = std::fabs(x);
  const double ay = std::fabs(y);
  const bool steep = ay > ax;
  const double low = steep ? ax : ay;
  const double high = steep ? ay : ax;
  // Rotated back by pi / 4 if that leaves a smaller angle.
  const bool turned = low > kTangent * high;
  const double above = turned ? low - high : low;
  const double below = turned ? low + high : high;
  const double tangent = above / (below == 0 ? 1.0 : below);
  const double square = tangent * tangent;
  double rest = mulAdd(tangent * square, detail::horner(square, c), tangent);
  // The whole angle is n pi / 4 plus or minus the remainder.
  int n = turned ? 1 : 0;
  if (steep) {
    rest = -rest;
    n = 2 - n;
  }
  if (x < 0) {
    rest = -rest;
    n = 4 - n;
  }
  const double eighths = n;
  // pi / 4 in two parts; n times the first part is off only by the rounding of the product.
  constexpr double kEighth1 = 0.7853981633974483;
  constexpr double kEighth2 = 3.061616997868383e-17;
  const DoubleDouble base = exactProduct(eighths, kEighth1);
  const double angle = base.head + (rest + mulAdd(eighths, kEighth2, base.tail));
  return y < 0 ? -angle : angle;
}

}  // namespace RBC_FORMULAS

#endif
