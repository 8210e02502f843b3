// Quantiles written where they are wanted.
#pragma once

#include "exact_moments.h"
#include "quantile.h"
#include "statistics_problem.h"

namespace rbc::cuda {
namespace statistics {

template <class T>
__device__ __forceinline__ void put(const Output<2>& out, int64_t group, int64_t channel, T value) {
  if (out.data == nullptr) return;
  static_cast<T*>(out.data)[group * out.stride[0] + channel * out.stride[1]] = value;
}

__device__ __forceinline__ void putQuantile(const StatisticsProblem& p, int64_t group, int level,
                                            int64_t channel, double value) {
  const Output<3>& out = p.quantiles;
  static_cast<double*>(
      out.data)[group * out.stride[0] + level * out.stride[1] + channel * out.stride[2]] = value;
}

// Of all values of a channel, sorted by their keys.
template <class Number>
__device__ __forceinline__ void writeSorted(const StatisticsProblem& p, int64_t group,
                                            int64_t channel, int level,
                                            const ValueKey<Number>* sorted, int count) {
  double value = notANumber();
  if (count > 0) {
    const QuantilePlace place = quantilePlace(p.levels[level], count);
    value =
        quantileBetween(static_cast<double>(fromValueKey<Number>(sorted[place.lower])),
                        static_cast<double>(fromValueKey<Number>(sorted[place.upper])), place.t);
  }
  putQuantile(p, group, level, channel, value);
}

}  // namespace statistics
}  // namespace rbc::cuda
