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

// Samples a query, as prefetchTimes() is told; 0: it is of no use. Where queries are many to a sample,
// their times are in the caches soon enough.
inline float paceOf(const FuseProblem& p, const FuseStream& s) {
  constexpr int64_t kMostQueries = 64;
  if (s.offsets.data != nullptr || p.queries > kMostQueries * s.samples) return 0;
  return static_cast<float>(s.samples) / static_cast<float>(p.queries);
}

// Asks for the times of a query as if queries and samples were spread alike over a recording: they
// are on their way while the ends of the row are read. Only a hint, but within the row.
template <class Time, class Index>
__device__ __forceinline__ void prefetchTimes(const FuseStream& s, Index b, Index t, float pace) {
  if (pace == 0) return;
  const auto last = static_cast<Index>(s.samples - 1);
  const Index near = min(static_cast<Index>(static_cast<float>(t) * pace), last);
  const RowRange row = {0, s.samples};
  const auto times = timesOf<Time>(s, b, row);
  asm volatile(
      "prefetch.global.L2 [%0];" ::"l"(times.first + static_cast<int64_t>(near) * times.stride));
}

template <class Time, class Index>
__device__ __forceinline__ Tap findTap(const TimeRow<Time, Index>& times, int64_t n,
                                       const QueryTime<Time>& query, const Rules<Time>& rules,
                                       Index* guess) {
  return query.valid ? tapOf(times, static_cast<Index>(n), query.time, rules, guess) : invalidTap();
}

}  // namespace rbc
