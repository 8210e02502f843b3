// Conversions of floats, compared with rounding in exact arithmetic.
#include <algorithm>
#include <cmath>

#include "real.h"

#include "support/cases.h"
#include "support/expect.h"

namespace {

using rbc::bf16;
using rbc::bitCast;
using rbc::f16;
using support::kBF16;
using support::kF16;
using support::kF32;
using support::kF64;

bool sameFloat(float a, float b) {
  return (a != a && b != b) || bitCast<uint32_t>(a) == bitCast<uint32_t>(b);
}

// Every f32 that is critical for rounding to a 16-bit float: around each value of it and each
// midpoint.
template <class Check>
void eachCriticalFloat(rbcDType dtype, Check&& check) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto value = static_cast<float>(support::decodeFloat(dtype, bits));
    const auto next =
        static_cast<float>(support::decodeFloat(dtype, std::min<uint32_t>(bits + 1, 0xffff)));
    for (const float x : {value, value + (next - value) / 2}) {
      for (const int32_t step : {-2, -1, 0, 1, 2}) {
        check(bitCast<float>(bitCast<uint32_t>(x) + static_cast<uint32_t>(step)));
      }
    }
  }
  // And a dense sweep over all exponents and both signs.
  for (uint64_t bits = 0; bits <= 0xffffffff; bits += 4093)
    check(bitCast<float>(static_cast<uint32_t>(bits)));
}

}  // namespace

TEST_CASE("real: every f16 and bf16 widens to its number, and comes back as itself") {
  int wrong = 0;
  for (uint32_t i = 0; i <= 0xffff; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const auto half = static_cast<float>(support::decodeFloat(kF16, i));
    const auto brain = static_cast<float>(support::decodeFloat(kBF16, i));
    wrong += sameFloat(rbc::widen(f16{bits}), half) ? 0 : 1;
    wrong += sameFloat(rbc::widen(bf16{bits}), brain) ? 0 : 1;
    wrong += rbc::narrow<f16>(rbc::widen(f16{bits})).bits == (half == half ? bits : 0x7fff) ? 0 : 1;
    wrong +=
        rbc::narrow<bf16>(rbc::widen(bf16{bits})).bits == (brain == brain ? bits : 0x7fff) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("real: f32 rounds to f16 and bf16 to nearest even") {
  int wrong = 0;
  eachCriticalFloat(kF16, [&](float x) {
    if (rbc::narrow<f16>(x).bits != support::encodeFloat(kF16, x) && ++wrong < 5) {
      MESSAGE("f16 of ", x, " is ", rbc::narrow<f16>(x).bits, ", expected ",
              support::encodeFloat(kF16, x));
    }
  });
  eachCriticalFloat(kBF16, [&](float x) {
    if (rbc::narrow<bf16>(x).bits != support::encodeFloat(kBF16, x) && ++wrong < 5) {
      MESSAGE("bf16 of ", x, " is ", rbc::narrow<bf16>(x).bits, ", expected ",
              support::encodeFloat(kBF16, x));
    }
  });
  CHECK(wrong == 0);
  CHECK(rbc::narrow<f16>(65519.0f).bits == 0x7bff);
  CHECK(rbc::narrow<f16>(65520.0f).bits == 0x7c00);
  CHECK(rbc::narrow<f16>(-65520.0f).bits == 0xfc00);
  CHECK(rbc::narrow<f16>(0x1p-25f).bits == 0);
  CHECK(rbc::narrow<f16>(0x1.000002p-25f).bits == 1);
  CHECK(rbc::narrow<bf16>(3.4e38f).bits == 0x7f80);
}

TEST_CASE("real: f64 rounds to each float once") {
  int wrong = 0;
  const auto check = [&](double x) {
    wrong += rbc::narrow<f16>(x).bits == support::encodeFloat(kF16, x) ? 0 : 1;
    wrong += rbc::narrow<bf16>(x).bits == support::encodeFloat(kBF16, x) ? 0 : 1;
    wrong += bitCast<uint32_t>(rbc::narrow<float>(x)) == support::encodeFloat(kF32, x) ? 0 : 1;
    wrong += bitCast<uint64_t>(rbc::narrow<double>(x)) == support::encodeFloat(kF64, x) ? 0 : 1;
  };
  support::Random random(3);
  for (int i = 0; i < 200000; ++i) {
    check(std::ldexp(random.uniform(-2, 2), static_cast<int>(random.below(300)) - 160));
    check(bitCast<double>(random.bits()));
  }
  CHECK(wrong == 0);
  // Just above a midpoint of two 16-bit floats, by less than f32 can represent: rounding through
  // f32 would lose it and then round to even.
  for (const double sign : {1.0, -1.0}) {
    for (const double tiny : {0x1p-40, -0x1p-40}) {
      for (int k = 0; k < 64; ++k) {
        const double midpoint = sign * (1 + (2 * k + 1) * 0x1p-11);
        check(midpoint + sign * tiny);
        check(sign * (1 + (2 * k + 1) * 0x1p-8) + sign * tiny);
        check((midpoint + sign * tiny) * 0x1p-14);
      }
      check(sign * (65520 + tiny));
      check(sign * (0x1p-25 + tiny * 0x1p-20));
    }
  }
  CHECK_MESSAGE(wrong == 0, wrong,
                " roundings of f64 to f16 or bf16 went wrong: are they done twice?");
}

TEST_CASE("real: every NaN becomes the one NaN") {
  for (const uint32_t bits :
       {0x7f800001u, 0x7fc00000u, 0xffc00000u, 0xffffffffu, 0xff800001u, 0x7fffffffu}) {
    const auto x = bitCast<float>(bits);
    CHECK(bitCast<uint32_t>(rbc::narrow<float>(x)) == 0x7fffffffu);
    CHECK(bitCast<uint64_t>(rbc::narrow<double>(x)) == 0x7fffffffffffffffu);
    CHECK(rbc::narrow<f16>(x).bits == 0x7fff);
    CHECK(rbc::narrow<bf16>(x).bits == 0x7fff);
  }
  for (const uint64_t bits : {uint64_t{0x7ff0000000000001}, uint64_t{0xfff8000000000000}}) {
    const auto x = bitCast<double>(bits);
    CHECK(bitCast<uint32_t>(rbc::narrow<float>(x)) == 0x7fffffffu);
    CHECK(bitCast<uint64_t>(rbc::narrow<double>(x)) == 0x7fffffffffffffffu);
    CHECK(rbc::narrow<f16>(x).bits == 0x7fff);
    CHECK(rbc::narrow<bf16>(x).bits == 0x7fff);
  }
}
