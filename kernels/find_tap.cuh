// The search of one query, for kernels.
#pragma once

#include "fuse_problem.h"

namespace rbc {

// Whether the indexes of rows, samples and queries fit int32_t with room, which saves registers.
inline bool suitsShortIndexes(const FuseProblem& p, const FuseStream& s) {
  constexpr int64_t kFew = 1 << 30;
  return s.times_stride[1] < kFew && s.times_stride[1] > -kFew && s.values_stride[1] < kFew &&
         s.values_stride[1] > -kFew && s.samples < kFew && p.channels < kFew && p.batch < kFew &&
         p.queries < kFew && p.batch * p.queries < kFew;
}

// A query's time, on the stream's clock; none if it lies beyond query_lengths.
template <class Time>
struct QueryTime {
  Time time;
  bool valid;
};

template <class Time, class Index>
__device__ __forceinline__ QueryTime<Time> queryAt(const FuseProblem& p, const FuseStream& s,
                                                   Index b, Index t) {
  if (t >= queriesOf(p, b)) return {Time(), false};
  const auto* times = static_cast<const Time*>(p.query_times);
  return {onClock(s.clock_offset, times[b * p.query_stride[0] + t * p.query_stride[1]]), true};
}

template <class Time, class Index>
__device__ __forceinline__ TimeRow<Time, Index> timesOf(const FuseStream& s, Index b,
                                                        const RowRange& samples) {
  return {
      static_cast<const Time*>(s.times) + b * s.times_stride[0] + samples.begin * s.times_stride[1],
      static_cast<Index>(s.times_stride[1])};
}

template <class Time, class Index>
__device__ __forceinline__ Tap findTap(const TimeRow<Time, Index>& times, int64_t n,
                                       const QueryTime<Time>& query, const Rules<Time>& rules,
                                       Index* guess) {
  return query.valid ? tapOf(times, static_cast<Index>(n), query.time, rules, guess) : invalidTap();
}

}  // namespace rbc
