// Results of statistics: quantiles, and the moments of channels.
#pragma once

#include "exact_moments.h"
#include "quantile.h"
#include "statistics_problem.h"

namespace rbc::cuda {
namespace statistics {

// ---- Writes quantiles to the outputs.

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

// For all values of a channel, sorted by their keys.
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

// ---- Results of exact sums. One thread takes long for them, so that they are best computed in
// parallel with other work.

inline constexpr int kFinishChannels = 32;  // per block
inline constexpr int kFinishThreads = 64;   // that it uses

// Groups' moments, whose limbs need not be normalized.
struct FinishArguments {
  StatisticsProblem problem;
  const Moments* moments;
  LimbSpan span;
};

// Block i of the blocks that finish. Threads of one warp take the same branch: the first warp
// computes the means, the second one the deviations.
inline __device__ __noinline__ void finishChannels(const StatisticsProblem& p,
                                                   const Moments* moments, const LimbSpan& span,
                                                   int64_t block) {
  const int t = static_cast<int>(threadIdx.x);
  if (t >= kFinishThreads) return;
  const int64_t i = block * kFinishChannels + t % kFinishChannels;
  const int64_t channels = p.samples.channels;
  if (i >= p.groups() * channels) return;
  const int64_t group = i / channels;
  const int64_t channel = i - group * channels;
  const Moments& m = moments[i];
  if (t < kFinishChannels) {
    put(p.count, group, channel, m.count);
    put(p.nonfinite, group, channel, m.nonfinite);
    put(p.min, group, channel, smallest(m));
    put(p.max, group, channel, largest(m));
    if (p.mean.data != nullptr) put(p.mean, group, channel, exactMean(m, span));
  } else if (p.std.data != nullptr) {
    put(p.std, group, channel, exactStd(m, p.ddof, span));
  }
}

}  // namespace statistics

}  // namespace rbc::cuda
