// Numbers of 113 bits, for references to computations in double: enough even if 30 bits cancel.
#pragma once

#include <cmath>
#include <cstdint>

namespace support {

#if defined(__SIZEOF_FLOAT128__)
__extension__ typedef __float128 Quad;
#else
using Quad = long double;  // has 113 bits on 64-bit ARM
static_assert(__LDBL_MANT_DIG__ >= 113, "no type of 113 bits");
#endif

inline Quad absolute(Quad x) { return x < 0 ? -x : x; }

inline Quad squareRoot(Quad x) {
  if (!(x > 0)) return 0;
  Quad root = std::sqrt(static_cast<long double>(x));
  for (int i = 0; i < 2; ++i) root = (root + x / root) / 2;
  return root;
}

// The words of pi: the first 32 bits after the point, and so on.
constexpr uint32_t kPiWords[] = {0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344,
                                 0xA4093822, 0x299F31D0, 0x082EFA98, 0xEC4E6C89};

// x - n pi / 2, for |n| of at most 53 bits: each product is exact.
inline Quad lessQuarterTurns(Quad x, Quad n) {
  Quad unit = 0.5;
  Quad rest = x - n * (3 * unit);
  for (const uint32_t word : kPiWords) {
    unit *= 0x1p-32;
    rest -= n * (static_cast<Quad>(word) * unit);
  }
  return rest;
}

inline Quad quadPi() { return -2 * lessQuarterTurns(0, 1); }

// 1 / (m (m + 1)), from m = 1 on: the factors of the terms in both series below.
struct SeriesFactors {
  Quad factors[29];
  SeriesFactors() {
    for (int m = 1; m < 29; ++m) factors[m] = Quad(1) / (m * (m + 1));
  }
};

// By Taylor's series, for |x| below 2^50.
inline void sineCosine(Quad x, Quad* sine, Quad* cosine) {
  const auto n = static_cast<int64_t>(std::nearbyint(static_cast<double>(x) * 0.63661977236758134));
  const Quad r = lessQuarterTurns(x, static_cast<Quad>(n));
  const Quad square = r * r;
  static const SeriesFactors kFactors;
  Quad s = 1;
  Quad c = 1;
  for (int m = 28; m > 0; m -= 2) {
    s = 1 - square * s * kFactors.factors[m];
    c = 1 - square * c * kFactors.factors[m - 1];
  }
  s *= r;
  const Quad turned[] = {s, c, -s, -c, s};
  *sine = turned[n & 3];
  *cosine = turned[(n & 3) + 1];
}

// One step of Newton's method from libm's.
inline Quad arcTangent(Quad y, Quad x) {
  if (x == 0 && y == 0) return 0;
  const Quad guess = std::atan2(static_cast<long double>(y), static_cast<long double>(x));
  Quad s;
  Quad c;
  sineCosine(guess, &s, &c);
  const Quad tangent = (y * c - x * s) / (x * c + y * s);
  return guess + tangent - tangent * tangent * tangent / 3;
}

}  // namespace support
