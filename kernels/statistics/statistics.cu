// Statistics on CUDA: a pass for the moments and for brackets around up to five quantiles, which
// come from a sample, and one more pass for every five more quantiles; then a selection among the
// values in the brackets.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/cuda_state.h"
#include "scratch_layout.h"
#include "statistics/brackets.cuh"
#include "statistics/channel_pass.h"
#include "statistics/statistics_kernels.h"
#include "window_sum.h"

namespace rbc::cuda {
namespace {

using namespace statistics;

constexpr int kMaxReads = (kMaxLevels + kMaxBrackets - 1) / kMaxBrackets;

// The share of the samples in a level's bracket, plus half of it: a sample gives it only roughly.
double shareOf(double level, DType dtype) {
  const auto size = static_cast<double>(sampleSize(dtype));
  const double reach = kBracketDeviations * std::sqrt(size * level * (1 - level)) + kBracketMargin;
  const double below = std::min(level * size, reach);
  const double above = std::min((1 - level) * size, reach);
  return std::min((1.5 * (below + above + 2) + 16) / size, 1.0);
}

struct Plan {
  int reads = 0;
  LevelsOfRead levels[kMaxReads] = {};
  int64_t kept = 0;  // values that the largest pass keeps
  Moments* moments = nullptr;
  void* brackets = nullptr;
  Found* found = nullptr;
  void* lists = nullptr;
  RefineMemory refined;
  size_t bytes = 0;

  Plan(const StatisticsProblem& p, void* scratch) {
    const int64_t all = p.groups() * p.samples.channels;
    ScratchLayout layout(scratch);
    if (p.needsMoments() || (p.num_levels > 0 && !sortsAll(p))) layout.take(&moments, all);
    if (p.num_levels > 0 && !sortsAll(p)) {
      addLevels(p);
      layout.take(&found, all);
      const bool wide = computesInDouble(p.samples.dtype);
      if (wide) {
        brackets = layout.take<Brackets<double>>(all);
        lists = layout.take<double>(kept);
      } else {
        brackets = layout.take<Brackets<float>>(all);
        lists = layout.take<float>(kept);
      }
      refined.take(layout, all * std::min<int64_t>(p.num_levels, kMaxBrackets), wide);
    }
    bytes = layout.used();
  }

 private:
  void addLevels(const StatisticsProblem& p) {
    int order[kMaxLevels];
    std::iota(order, order + p.num_levels, 0);
    std::sort(order, order + p.num_levels, [&](int a, int b) { return p.levels[a] < p.levels[b]; });
    for (int first = 0; first < p.num_levels; first += kMaxBrackets) {
      LevelsOfRead& read = levels[reads++];
      read.count = std::min(p.num_levels - first, kMaxBrackets);
      for (int i = 0; i < read.count; ++i) {
        read.index[i] = order[first + i];
        read.level[i] = p.levels[order[first + i]];
        read.share[i] = shareOf(read.level[i], p.samples.dtype);
        read.shares += read.share[i];
      }
      read.places_of_channel = firstPlace(read, p.groups(), p.samples.total(), 0) + 1;
      int64_t places = 0;
      if (__builtin_mul_overflow(read.places_of_channel, p.samples.channels, &places)) {
        places = INT64_MAX / 16;  // more than any memory
      }
      kept = std::max(kept, places);
    }
  }
};

size_t bytes(const StatisticsProblem& p, const LaunchDevice&) { return Plan(p, nullptr).bytes; }

cudaError_t launchStatistics(const StatisticsProblem& p, void* scratch, const LaunchDevice& device,
                             cudaStream_t cuda_stream, LaunchChoice* chosen) {
  const StatisticsChoice choice = selectStatistics(p, device);
  *chosen = choice;
  const Plan plan(p, scratch);
  const int64_t all = p.groups() * p.samples.channels;
  PassArguments arguments = {p.samples,     p.per_row,  {},        plan.moments,
                             plan.brackets, plan.found, plan.lists};
  const LimbSpan& span = computesInDouble(p.samples.dtype) ? DoubleLimbs::kSpan : FloatLimbs::kSpan;
  cudaError_t error = cudaSuccess;
  const auto then = [&](auto&& launch) {
    if (error == cudaSuccess) error = launch();
  };
  if (plan.moments != nullptr) {
    then([&] { return statistics::clearMoments(plan.moments, all, span, device, cuda_stream); });
  }
  if (plan.reads == 0) {
    if (p.num_levels > 0) {
      then([&] { return launchSample(p, LevelsOfRead{}, true, nullptr, device, cuda_stream); });
    }
    if (plan.moments != nullptr) {
      then([&] { return launchPass(choice.first, arguments, device, cuda_stream); });
    }
  }
  for (int i = 0; i < plan.reads; ++i) {
    const LevelsOfRead& levels = plan.levels[i];
    then([&] {
      return cudaMemsetAsync(plan.found, 0, sizeof(Found) * static_cast<size_t>(all), cuda_stream);
    });
    then([&] { return launchSample(p, levels, i == 0, plan.brackets, device, cuda_stream); });
    then([&] {
      return launchPass(i == 0 ? choice.first : choice.later, arguments, device, cuda_stream);
    });
    then([&] {
      return launchRefine(p, levels, plan.moments, plan.brackets, plan.found, plan.lists,
                          plan.refined, device, cuda_stream);
    });
    then([&] {
      return launchSelect(p, levels, plan.moments, plan.brackets, plan.found, plan.lists,
                          plan.refined, i == 0 && p.needsMoments() ? &span : nullptr, device,
                          cuda_stream);
    });
  }
  if (p.needsMoments() && plan.reads == 0) {
    then([&] { return launchFinish(p, plan.moments, span, device, cuda_stream); });
  }
  return error;
}

}  // namespace

extern const Operation<StatisticsProblem> kStatistics = {
    bytesOn<StatisticsProblem, bytes>, launchOn<StatisticsProblem, launchStatistics>};

cudaError_t loadStatistics(const LaunchDevice&) {
  for (const auto load : {loadMoments, loadPassFloat, loadPassAnyFloat, loadPassHalf,
                          loadPassDouble, loadRefineKept, loadSampleGroups, loadSelectQuantiles}) {
    const cudaError_t error = load();
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace rbc::cuda
