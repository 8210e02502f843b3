// The samples around queries, many queries at a time against one row of times; best for queries in
// order.
#pragma once

#include <cstdint>

#include "fuse/rows.h"
#include "fuse_problem.h"
#include "locate.h"
#include "runtime/simd.h"

namespace rbc::cpu {

// The brackets of up to kMaxRows queries.
template <class Time>
struct Brackets {
  Time q[kMaxRows];     // on the samples' clock
  int64_t i[kMaxRows];  // -1: q is NaN or outside
  Time t0[kMaxRows];    // times[i]
  Time t1[kMaxRows];    // times[i + 1]
  bool all;             // no query is NaN, outside, at the last sample, or at one at -inf
};

// A row of n times.
template <class Time>
struct TimesInOrder {
  TimesInOrder(const TimeRow<Time>& row, int64_t count)
      : times(row),
        n(count),
        first(n > 0 ? times[0] : Time()),
        last(n > 0 ? times[n - 1] : Time()),
        rate(n > 0 ? evenRate(first, last, n) : 0) {}

  const TimeRow<Time> times;
  const int64_t n;
  const Time first;
  const Time last;
  const float rate;
};

// The prediction of the next brackets from the previous queries.
struct Pace {
  int64_t origin = 0;  // the last bracket found
  int64_t pace = 0;    // brackets passed in the last few queries
  bool steady = false;
};

// Finds the brackets of `count` queries; their clock is ahead by `offset`.
template <class Time>
using FindBrackets = void (*)(const TimesInOrder<Time>& row, const TimeRow<Time>& queries,
                              const TimeOffset& offset, int count, Pace* pace,
                              Brackets<Time>* found);

template <class Time>
FindBrackets<Time> findBrackets(SimdLevel level);

}  // namespace rbc::cpu
