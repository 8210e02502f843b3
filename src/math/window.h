// Where the rows of a window lie in their episode, and what becomes of a value after its transform.
#pragma once

#include "locate.h"
#include "number.h"

namespace rbc {

// What poses are of: see window_pose.h.
inline constexpr int kPositionChannels = 3;
inline constexpr int kMaxPoseChannels = kPositionChannels + 9;

enum class PoseKind : uint8_t {
  kRelative,  // Rr^T (p - pr), Rr^T R
  kWorld,     // p - pr, R Rr^T
};

// A row that a window takes as it is.
struct GatheredRow {
  int64_t row;  // -1: there is none, and the element is invalid
  bool valid;   // it was not held
  bool after;   // held past the end
};

// Of an episode's `count` rows, where the window has its anchor at row `anchor`, inside or not.
RBC_HD GatheredRow gatheredRow(int64_t anchor, int64_t offset, int64_t count, Outside outside) {
  // No branches: on a GPU they keep loads from being made together.
  const int64_t row = addSaturated(anchor, offset);
  const bool before = row < 0;
  const bool after = row >= count;
  const bool held = before | after;
  const bool none = held & ((count <= 0) | (outside == Outside::kFill));
  const bool past = after & !none;
  const int64_t nearest = before ? 0 : after ? count - 1 : row;
  return {none ? -1 : nearest, !held, past};
}

// The last of n rows not after time t, or -1.
template <class Row, class Time>
RBC_HD int64_t lastRowUpTo(const Row& times, int64_t n, Time t) {
  if (n <= 0 || !(t >= times[0])) return -1;
  const Time first = times[0];
  const Time last = times[n - 1];
  if (t >= last) return n - 1;
  const float rate = evenRate(first, last, n);
  return bracketOf(times, n, t, evenGuess(first, t, n, rate), rate).i;
}

// One rounding each. A bias that is not given is -0, which leaves every number as it is.
template <class V>
RBC_HD V normalized(V x, V shift, V scale, V bias) {
  return (x - shift) * scale + bias;
}

// Not clamp(): it may take 0 for -0. NaN stays.
template <class V>
RBC_HD V clipped(V x, V low, V high) {
  const V at_least = select(x < low, low, x);
  return select(at_least > high, high, at_least);
}

}  // namespace rbc
