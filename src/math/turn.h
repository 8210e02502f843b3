// The ranges of angles: [-P/2, P/2) or [0, P) with a period P of 2 pi, 360 or 1. Radians from -pi
// to pi, RBC_PERIOD_RADIANS, have no range here: see wrapAngle().
#pragma once

#include "dtype.h"
#include "method.h"
#include "platform.h"

namespace rbc {

// 2 pi in two parts (Cody and Waite, "Software manual for the elementary functions", 1980).
RBC_HD float twoPiHigh(float) { return 6.28318548f; }
RBC_HD float twoPiLow(float) { return -1.74845553e-7f; }
RBC_HD double twoPiHigh(double) { return 6.283185307179586; }
RBC_HD double twoPiLow(double) { return 2.4492935982947064e-16; }

template <class S>
struct Turn {
  S length;   // P, except for
  S rest;     // the part of 2 pi that this type cannot hold
  S inverse;  // slightly less than 1 / P, so that half a turn is less than half of one
  S shift;    // 0.5 for [0, P), else 0
  S begin;
  S last;  // the largest number of the range
  S top;   // the largest that is still in it after rounding to the dtype of the result
  S far;   // the largest |angle| that is wrapped in one step
};

// The rounding unit of a dtype for a number just below 1.
template <class S>
RBC_HD S spacingOf(DType dtype) {
  constexpr S own = sizeof(S) == 4 ? S(0x1p-24) : S(0x1p-53);
  switch (dtype) {
    case DType::F16: return S(0x1p-11);
    case DType::BF16: return S(0x1p-8);
    case DType::F32: return S(0x1p-24);
    default: return own;
  }
}

// For a method that isInTurn(), with results of the dtype `out`.
template <class S>
RBC_HD Turn<S> turnOf(Method method, DType out) {
  constexpr bool single = sizeof(S) == 4;
  const bool positive = method >= Method::kAnglePositive;
  Turn<S> turn;
  turn.shift = positive ? S(0.5) : S(0);
  if (method == Method::kAnglePositive) {
    turn.length = twoPiHigh(S());
    turn.rest = twoPiLow(S());
    turn.inverse = single ? S(0x1.45f302p-3) : S(0x1.45f306dc9c881p-3);
    turn.begin = S(0);
    // Less than 2 pi rounded to the type, which results will be compared to.
    turn.last = single ? S(6.283185005187988) : S(6.283185307179585);
    turn.top = out == DType::F16 || out == DType::BF16 ? S(6.28125)
               : out == DType::F32                     ? S(6.283185005187988)
                                                       : turn.last;
  } else {
    const bool degrees = method == Method::kAngleDegrees || method == Method::kAngleDegreesPositive;
    turn.length = degrees ? S(360) : S(1);
    turn.rest = S(0);
    if (degrees) {
      turn.inverse = single ? S(0x1.6c16bep-9) : S(0x1.6c16c16c16c15p-9);
    } else {
      turn.inverse = single ? S(0x1.fffffcp-1) : S(0x1.ffffffffffffep-1);
    }
    const S half = turn.length * S(0.5);
    const S end = positive ? turn.length : half;
    const S binade = (degrees ? S(512) : S(1)) * (positive ? S(1) : S(0.5));
    turn.begin = positive ? S(0) : -half;
    turn.last = end - binade * (single ? S(0x1p-24) : S(0x1p-53));
    turn.top = end - binade * spacingOf<S>(out);
  }
  turn.far = turn.length * (single ? S(0x1p18) : S(0x1p47));
  return turn;
}

}  // namespace rbc
