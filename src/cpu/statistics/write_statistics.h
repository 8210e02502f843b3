// The outputs of rbcStatistics.
#pragma once

#include "statistics_problem.h"

namespace rbc::cpu {

template <class T, int Rank, class... Index>
void put(const Output<Rank>& out, T value, Index... index) {
  if (out.data == nullptr) return;
  const int64_t at[] = {index...};
  int64_t place = 0;
  for (int i = 0; i < Rank; ++i) place += at[i] * out.stride[i];
  static_cast<T*>(out.data)[place] = value;
}

inline void writeMoments(const StatisticsProblem& p, int64_t group, int64_t channel,
                         const Moments& m) {
  put(p.count, m.count, group, channel);
  put(p.nonfinite, m.nonfinite, group, channel);
  put(p.min, smallest(m), group, channel);
  put(p.max, largest(m), group, channel);
  if (p.mean.data != nullptr) put(p.mean, exactMean(m), group, channel);
  if (p.std.data != nullptr) put(p.std, exactStd(m, p.ddof), group, channel);
}

// Of n values; sorted(rank) is one of them.
template <class Sorted>
void writeQuantile(const StatisticsProblem& p, int64_t group, int64_t level, int64_t channel,
                   int64_t n, Sorted&& sorted) {
  double value = notANumber();
  if (n > 0) {
    const QuantilePlace place = quantilePlace(p.levels[level], n);
    const auto at = [&](int64_t rank) { return static_cast<double>(sorted(rank)) + 0.0; };
    value = quantileBetween(at(place.lower), at(place.upper), place.t);
  }
  put(p.quantiles, value, group, level, channel);
}

}  // namespace rbc::cpu
