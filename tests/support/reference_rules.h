// The rules 1 to 6 of resample.h, by scanning a row of times one by one.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "reference_methods.h"
#include "robocache/resample.h"
#include "stream_case.h"

namespace support {

enum class Kind { kInvalid, kSample, kBetween };

// The answer to one query: nothing, a sample, or a value between two samples.
struct Answer {
  Kind kind = Kind::kInvalid;
  int64_t sample[2] = {};
  bool mask = false;
  double weight = 0;  // in the arithmetic of the times' dtype
  Between exact = {};
};

// Limits are in the unit of the times.
struct ReferenceRules {
  int32_t method;
  int32_t outside;
  double max_gap;
  double tolerance;
  bool causal;
  double max_age;  // with causal
};

namespace reference {

inline Answer invalid() { return {}; }
inline Answer sampleAt(int64_t i, bool mask) { return {Kind::kSample, {i, i}, mask, 0, {}}; }

// later - earlier, rounded to f32 or f64; exact for i64.
inline float difference(float later, float earlier) { return later - earlier; }
inline double difference(double later, double earlier) { return later - earlier; }
static_assert(LDBL_MANT_DIG >= 64, "long double holds every difference of two i64");
inline long double difference(int64_t later, int64_t earlier) {
  return static_cast<long double>(later) - static_cast<long double>(earlier);
}

template <class Time>
long double exactDifference(Time later, Time earlier) {
  return static_cast<long double>(later) - static_cast<long double>(earlier);
}

// Whether a difference exceeds a limit; the limit is rounded to the dtype of times (i64: down).
inline bool exceeds(float d, double limit) { return d > static_cast<float>(limit); }
inline bool exceeds(double d, double limit) { return d > limit; }
inline bool exceeds(long double ticks, double limit) { return ticks > std::floor(limit); }

inline double quotient(float a, float b) { return static_cast<double>(a / b); }
inline double quotient(double a, double b) { return a / b; }
inline double quotient(long double a, long double b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

// A query on a stream's own clock.
inline float onClock(float q, const StreamCase& c) {
  return q - static_cast<float>(c.clock_offset);
}
inline double onClock(double q, const StreamCase& c) { return q - c.clock_offset; }
inline int64_t onClock(int64_t q, const StreamCase& c) {
  const long double exact = difference(q, c.clock_offset_ticks);
  if (exact < static_cast<long double>(INT64_MIN)) return INT64_MIN;
  if (exact > static_cast<long double>(INT64_MAX)) return INT64_MAX;
  return static_cast<int64_t>(exact);
}

// The time up to which samples may have arrived for a query.
inline float untilOf(float q, const SharedCase& c) {
  return q + static_cast<float>(lagOf<double>(c));
}
inline double untilOf(double q, const SharedCase& c) { return q + lagOf<double>(c); }
inline int64_t untilOf(int64_t q, const SharedCase& c) {
  const long double exact = static_cast<long double>(q) + lagOf<int64_t>(c);
  if (exact < static_cast<long double>(INT64_MIN)) return INT64_MIN;
  if (exact > static_cast<long double>(INT64_MAX)) return INT64_MAX;
  return static_cast<int64_t>(exact);
}

template <class Time>
Answer between(const std::vector<Time>& t, Time q, int64_t i, int64_t j, bool mask) {
  const auto n = static_cast<int64_t>(t.size());
  const auto at = [&](int64_t k) { return t[static_cast<size_t>(k)]; };
  Answer answer{Kind::kBetween, {i, j}, mask, 0, {}};
  answer.weight = quotient(difference(q, at(i)), difference(at(j), at(i)));
  answer.exact.here = exactDifference(at(j), at(i));
  answer.exact.weight = exactDifference(q, at(i)) / answer.exact.here;
  answer.exact.before = i > 0 ? exactDifference(at(i), at(i - 1)) : 0;
  answer.exact.after = j + 1 < n ? exactDifference(at(j + 1), at(j)) : 0;
  return answer;
}

// With RBC_FLAG_CAUSAL; all of the times exist for the query.
template <class Time>
Answer causalAnswerTo(const std::vector<Time>& t, Time q, const ReferenceRules& rules) {
  const auto n = static_cast<int64_t>(t.size());
  const auto at = [&](int64_t i) { return t[static_cast<size_t>(i)]; };
  int64_t k = -1;
  for (int64_t i = 0; i < n; ++i) {
    if (at(i) <= q) k = i;
  }
  if (k < 0) return invalid();  // also if q is NaN
  const bool valid = std::isinf(rules.max_age) || !exceeds(difference(q, at(k)), rules.max_age);
  if (!valid && rules.outside == RBC_OUTSIDE_FILL) return invalid();
  const bool holds =
      at(k) == q || rules.method == RBC_METHOD_PREVIOUS || k + 1 == n ||
      (!std::isinf(rules.max_gap) && exceeds(difference(at(k + 1), at(k)), rules.max_gap));
  if (holds) return sampleAt(k, valid);
  if (rules.method != RBC_METHOD_NEAREST) return between(t, q, k, k + 1, valid);
  return sampleAt(difference(q, at(k)) <= difference(at(k + 1), q) ? k : k + 1, valid);
}

template <class Time>
Answer answerTo(const std::vector<Time>& t, Time q, const ReferenceRules& rules) {
  if (rules.causal) return causalAnswerTo(t, q, rules);
  const auto n = static_cast<int64_t>(t.size());
  const auto at = [&](int64_t i) { return t[static_cast<size_t>(i)]; };
  if (n == 0 || q != q) return invalid();  // 1
  int64_t equal = -1;
  int64_t before = -1;  // the last sample earlier than q
  int64_t after = n;    // the first one later
  for (int64_t i = 0; i < n; ++i) {
    if (at(i) == q) equal = i;
    if (at(i) < q) before = i;
    if (at(i) > q && after == n) after = i;
  }
  if (equal >= 0) return sampleAt(equal, true);  // 2

  // The sample that nearest, previous or next choose, or -1.
  int64_t taken = -1;
  if (rules.method == RBC_METHOD_PREVIOUS) taken = before;
  if (rules.method == RBC_METHOD_NEXT) taken = after < n ? after : -1;
  if (rules.method == RBC_METHOD_NEAREST) {
    const bool only_after = before < 0;
    const bool only_before = after == n;
    taken = only_after                                              ? after
            : only_before                                           ? before
            : difference(q, at(before)) <= difference(at(after), q) ? before
                                                                    : after;
  }
  if (isStep(rules.method) && !std::isinf(rules.tolerance)) {  // 3
    if (taken < 0) return invalid();
    const auto distance = at(taken) < q ? difference(q, at(taken)) : difference(at(taken), q);
    return exceeds(distance, rules.tolerance) ? invalid() : sampleAt(taken, true);
  }
  if (before < 0 || after == n) {  // 4
    if (rules.outside == RBC_OUTSIDE_FILL) return invalid();
    if (rules.outside == RBC_OUTSIDE_HOLD || rules.method != RBC_METHOD_LINEAR)
      return sampleAt(before < 0 ? 0 : n - 1, false);
    // The outermost distinct times; on each side the line uses the sample next to the inside.
    int64_t left = n - 1;
    int64_t right = 0;
    if (before < 0) {
      left = 0;
      while (left + 1 < n && at(left + 1) == at(0)) ++left;
      right = left + 1;
    } else {
      right = n - 1;
      while (right > 0 && at(right - 1) == at(n - 1)) --right;
      left = right - 1;
    }
    return left < 0 || right >= n ? invalid() : between(t, q, left, right, false);
  }
  if (!std::isinf(rules.max_gap) && exceeds(difference(at(after), at(before)), rules.max_gap)) {
    return invalid();  // 5
  }
  return isStep(rules.method) ? sampleAt(taken, true) : between(t, q, before, after, true);  // 6
}

}  // namespace reference
}  // namespace support
