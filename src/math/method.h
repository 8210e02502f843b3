// The methods that compute a value from the samples around a query.
#pragma once

#include <cstdint>

#include "platform.h"

namespace rbc {

// Up to kAngle the numbers equal RBC_METHOD_...; the other periods of RBC_METHOD_ANGLE follow in
// the order of RBC_PERIOD_...: kAngle plus the period.
enum class Method : int32_t {
  kLinear = 0,
  kNearest = 1,
  kPrevious = 2,
  kNext = 3,
  kCubic = 4,
  kPchip = 5,
  kSlerp = 6,
  kAngle = 7,  // radians, -pi to pi
  kAngleDegrees = 8,
  kAngleTurns = 9,
  kAnglePositive = 10,
  kAngleDegreesPositive = 11,
  kAngleTurnsPositive = 12,
};
inline constexpr int kMethods = 8;  // RBC_METHOD_...
inline constexpr int kPeriods = 6;  // RBC_PERIOD_...

// Whether a method returns one sample unchanged; only these have a tolerance.
RBC_HD bool isStep(Method method) {
  return method == Method::kNearest || method == Method::kPrevious || method == Method::kNext;
}

// Whether a method uses the neighbours of the two samples around a query.
RBC_HD bool takesFour(Method method) {
  return method == Method::kCubic || method == Method::kPchip;
}

RBC_HD bool isAngle(Method method) { return method >= Method::kAngle; }

// Whether it is an angle that stays in its own range: see turn.h.
RBC_HD bool isInTurn(Method method) { return method > Method::kAngle; }

}  // namespace rbc
