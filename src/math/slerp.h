// Spherical linear interpolation of quaternions, by polynomials: the same bits on every machine.
//
// Shoemake's formula, (sin(u a) q1 + sin(w a) q2) / sin(a) with u = 1 - w and a the angle between
// the unit quaternions, is a smooth function of w and of a^2, also where a is 0; and a^2 is a
// smooth function of 2 (1 - cos a), the square of the chord. On the shorter arc, a is at most pi /
// 2. The polynomials are Chebyshev interpolants, off by less than 1 in units of 2^-24 and 2^-53.
#if !defined(RBC_MATH_SLERP_H) || defined(RBC_FORMULAS_AGAIN)
#define RBC_MATH_SLERP_H

#include <type_traits>

#include "number.h"

namespace RBC_FORMULAS {

// Whether four scalars are a quaternion of a rotation: finite, and not all zero. Checks their bits:
// a sum of squares may overflow or vanish for valid ones.
template <class S>
RBC_HD bool isRotation(const S* q) {
  using Bits = FloatBits<S>;
  using Word = std::remove_const_t<decltype(Bits::kExponent)>;
  Word largest = 0;
  for (int i = 0; i < 4; ++i) {
    const Word magnitude = bitCast<Word>(q[i]) & ~Bits::kSign;
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest != 0 && largest < Bits::kExponent;
}

namespace detail {

// c[0] x^(n-1) + ... + c[n-1].
template <class V, int kTerms>
RBC_HD V horner(V x, const Scalar<V> (&c)[kTerms]) {
  V sum = V(c[0]);
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int i = 1; i < kTerms; ++i) sum = mulAdd(sum, x, V(c[i]));
  return sum;
}

// a^2 from the square of the chord in [0, 2]: (2 asin(sqrt(x) / 2))^2.
template <class V>
RBC_HD V squaredAngle(V x) {
  if constexpr (sizeof(Scalar<V>) == 4) {
    constexpr float c[] = {4.24107684e-06f, -1.44252671e-05f, 4.53389123e-05f,
                           2.57248335e-05f, 0.000336005113f,  0.00178091468f,
                           0.0111115765f,   0.083333326f,     1.0f};
    return x * horner(x, c);
  } else {
    constexpr double c[] = {9.318083482324732e-12,  -1.3757207394628598e-10,
                            9.667720343030203e-10,  -4.185551140069434e-09,
                            1.2478521243246657e-08, -2.6795672440756815e-08,
                            4.336064164922302e-08,  -5.1226941179006626e-08,
                            5.356815912954472e-08,  -1.062964371656062e-08,
                            1.2631648506990483e-07, 5.007280925264105e-07,
                            2.4301585506203778e-06, 1.1892463878029034e-05,
                            6.012511360791176e-05,  0.0003174603131680716,
                            0.0017857142858957202,  0.011111111111108078,
                            0.08333333333333334,    1.0};
    return x * horner(x, c);
  }
}

// sin(a) / a from a^2 in [0, (pi / 2)^2].
template <class V>
RBC_HD V sinc(V x) {
  if constexpr (sizeof(Scalar<V>) == 4) {
    constexpr float c[] = {-2.40801903e-08f, 2.75364641e-06f, -0.000198410868f,
                           0.00833333284f,   -0.166666672f,   1.0f};
    return horner(x, c);
  } else {
    constexpr double c[] = {
        2.7314447669863995e-15,  -7.643970296798572e-13, 1.6058977312464087e-10,
        -2.5052107616996182e-08, 2.7557319219163234e-06, -0.00019841269841254974,
        0.008333333333333316,    -0.16666666666666666,   1.0};
    return horner(x, c);
  }
}

// a / sin(a) from a^2 in [0, (pi / 2)^2].
template <class V>
RBC_HD V inverseSinc(V x) {
  if constexpr (sizeof(Scalar<V>) == 4) {
    constexpr float c[] = {5.7875328e-07f, 7.13516386e-07f, 2.39839308e-05f, 0.000207593015f,
                           0.00205127505f, 0.0194442865f,   0.166666671f,    1.0f};
    return horner(x, c);
  } else {
    constexpr double c[] = {1.949427681165374e-14,  -1.68350700297843e-13,
                            1.342595625599846e-12,  -1.6197564434315804e-12,
                            3.270089435686166e-11,  2.117436989401392e-10,
                            2.2705075097689616e-09, 2.2196919476040746e-08,
                            2.1924300713448863e-07, 2.1633431922881768e-06,
                            2.1336046782734737e-05, 0.00020998677230286606,
                            0.002050264550280029,   0.01944444444444393,
                            0.16666666666666666,    1.0};
    return horner(x, c);
  }
}

// 1 / sqrt(x) by Newton's method, to two units in the last place; 0 gives a large number.
template <class V>
RBC_HD V inverseRoot(V x) {
  using S = Scalar<V>;
  const V half = x * V(S(-0.5));
  V y = rootGuess(x);
  for (int step = 0; step < (sizeof(S) == 4 ? 3 : 4); ++step) {
    y = y * mulAdd(half * y, y, V(S(1.5)));
  }
  return y;
}

template <class V>
RBC_HD V dot(const V (&a)[4], const V (&b)[4]) {
  return mulAdd(a[3], b[3], mulAdd(a[2], b[2], mulAdd(a[1], b[1], a[0] * b[0])));
}

}  // namespace detail

// For rotations. out may be q1 or q2. Returns the product of their squared lengths: if that is
// positive and finite, both are certainly rotations.
template <class V>
RBC_HD V slerp(const V (&q1)[4], const V (&q2)[4], V w, V (&out)[4]) {
  using S = Scalar<V>;
  const V square1 = detail::dot(q1, q1);
  const V square2 = detail::dot(q2, q2);
  const V scale1 = detail::inverseRoot(square1);
  const V scale2 = detail::inverseRoot(square2);
  const V cosine = detail::dot(q1, q2) * scale1 * scale2;
  const V zero = V(S(0));
  const V shorter = select(cosine < zero, zero - cosine, cosine);
  const V angle2 = detail::squaredAngle(mulAdd(shorter, V(S(-2)), V(S(2))));
  const V over_sine = detail::inverseSinc(angle2);
  const V u = V(S(1)) - w;
  const V part1 = u * detail::sinc(u * u * angle2) * over_sine * scale1;
  const V part2 = w * detail::sinc(w * w * angle2) * over_sine * scale2;
  const V turned = select(cosine < zero, zero - part2, part2);
  for (int i = 0; i < 4; ++i) out[i] = mulAdd(turned, q2[i], part1 * q1[i]);
  return square1 * square2;
}

}  // namespace RBC_FORMULAS

#endif
