// Limits and offsets of times as arguments, in the dtype of times.
#pragma once

#include <type_traits>

#include "fuse_problem.h"
#include "times.h"

namespace rbc {

// `name` is the name to tell; infinity is no limit.
TimeLimit timeLimitOf(double limit, DType time_dtype, const char* name);

// Whether two times are further apart than a limit allows.
template <class Time>
bool isFurther(Time a, Time b, TimeLimit limit) {
  if (!limit.set) return false;
  const auto span = a > b ? TimeMath<Time>::span(a, b) : TimeMath<Time>::span(b, a);
  if constexpr (std::is_same_v<Time, int64_t>) return span > limit.ticks;
  return static_cast<double>(span) > limit.real;
}

// Of the two fields the one that suits the times; fails if the other one is set.
TimeOffset clockOffsetOf(double clock_offset, int64_t clock_offset_ticks, DType time_dtype);

}  // namespace rbc
