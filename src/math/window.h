// The rows of a window in their episode, and the steps that follow a transform.
#pragma once

#include "locate.h"
#include "number.h"

namespace rbc {

// The position channels of a pose: see window_pose.h.
inline constexpr int kPositionChannels = 3;
inline constexpr int kMaxPoseChannels = kPositionChannels + 9;

enum class PoseKind : uint8_t {
  kRelative,  // Rr^T (p - pr), Rr^T R
  kWorld,     // p - pr, R Rr^T
};

// A row that a window copies unchanged.
struct GatheredRow {
  int64_t row;  // -1: no row, and the element is invalid
  bool valid;   // it was not held
  bool after;   // held past the end
};

// For a window with its anchor at row `anchor`, inside or not, of an episode with `count` rows.
RBC_HD GatheredRow gatheredRow(int64_t anchor, int64_t offset, int64_t count, Outside outside) {
  // Branchless: on a GPU branches keep loads from being issued together.
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

// One rounding each. A missing bias is -0, which leaves every number unchanged.
template <class V>
RBC_HD V normalized(V x, V shift, V scale, V bias, bool divides) {
  x = x - shift;
  return (divides ? x / scale : x * scale) + bias;
}

// Not clamp(), which may return 0 for -0. NaN stays.
template <class V>
RBC_HD V clipped(V x, V low, V high) {
  const V at_least = select(x < low, low, x);
  return select(at_least > high, high, at_least);
}

}  // namespace rbc
