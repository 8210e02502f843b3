#include "statistics/select_quantiles.h"

#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "statistics/brackets.cuh"
#include "statistics/sample_groups.h"
#include "statistics/sample_readers.cuh"
#include "statistics/select_ranks.cuh"
#include "statistics/write_quantiles.cuh"

namespace rbc::cuda {
namespace statistics {
namespace {

struct Arguments {
  StatisticsProblem problem;
  LevelsOfRead levels;
  const Moments* moments;
  const void* brackets;
  const Found* found;
  const void* kept;
};

// What is known of a bracket's values, in their order: some at its low end, those within, of which
// some equal the frequent value, and some at its high end.
template <class Number>
struct Bracket {
  Number low;
  Number high;
  Number frequent;
  int64_t below;
  int64_t at_low;
  int64_t at_high;
  int64_t frequents;  // strictly within
  int64_t kept;
  bool complete;

  __device__ Bracket(const Brackets<Number>& brackets, const Found& found, int b)
      : low(brackets.low[b]),
        high(brackets.high[b]),
        frequent(brackets.frequent),
        below(static_cast<int64_t>(found.below[b])),
        at_low(static_cast<int64_t>(found.at_low[b])),
        at_high(static_cast<int64_t>(found.at_high[b])),
        frequents(0),
        kept(static_cast<int64_t>(found.kept[b])),
        complete(kept <= brackets.capacity[b]) {
    const auto count = static_cast<int64_t>(found.frequent);
    if (frequent == low) {
      at_low += count;
    } else if (frequent == high) {
      at_high += count;
    } else if (frequent > low && frequent < high) {
      frequents = count;
    }
  }

  __device__ int64_t within() const { return kept + frequents; }
  __device__ bool holds(int64_t rank) const {
    return rank >= below && rank < below + at_low + within() + at_high;
  }
};

// The ranks among a channel's values; all threads take part. False if the bracket does not tell.
template <class Number>
__device__ __forceinline__ bool selectKept(SelectMemory& memory, const Bracket<Number>& bracket,
                                           const Number* kept, const int64_t (&rank)[2],
                                           ValueKey<Number> (&found)[2]) {
  using Key = ValueKey<Number>;
  if (!bracket.holds(rank[0]) || !bracket.holds(rank[1])) return false;
  int64_t inner[2];
  bool is_inner[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    inner[i] = rank[i] - bracket.below - bracket.at_low;
    is_inner[i] = inner[i] >= 0 && inner[i] < bracket.within();
    if (inner[i] < 0) found[i] = valueKey(bracket.low);
    if (inner[i] >= bracket.within()) found[i] = valueKey(bracket.high);
  }
  if (!is_inner[0] && !is_inner[1]) return true;
  if (!bracket.complete) return false;
  const int64_t wanted[2] = {is_inner[0] ? inner[0] : inner[1], is_inner[1] ? inner[1] : inner[0]};
  Key keys[2];
  const auto source = [&](auto&& visit) {
    constexpr int kTurn = kSelectThreads * kBatch;
    const int t = static_cast<int>(threadIdx.x);
    for (int64_t first = t; first < bracket.kept; first += kTurn) {
      Number x[kBatch];
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        const int64_t i = first + j * kSelectThreads;
        x[j] = i < bracket.kept ? load<Number>(kept + i) : NotANumber<Number>::value();
      }
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        if (isFinite(x[j])) visit(valueKey(x[j]), 1ull);
      }
    }
    if (t == 0 && bracket.frequents > 0) {
      visit(valueKey(bracket.frequent), static_cast<unsigned long long>(bracket.frequents));
    }
  };
  selectTwo<Key>(memory, static_cast<Key>(valueKey(bracket.low) + 1),
                 static_cast<Key>(valueKey(bracket.high) - 1), wanted, source, keys);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (is_inner[i]) found[i] = keys[i];
  }
  return true;
}

// The same of all samples.
template <class Number>
__device__ __noinline__ void selectAny(SelectMemory& memory, const StatisticsProblem& p,
                                       const GroupRange& range, int64_t channel, const Moments& m,
                                       const int64_t (&rank)[2], ValueKey<Number> (&found)[2]) {
  using Key = ValueKey<Number>;
  const AnyReader<Number> reader(p.samples, range, channel);
  const auto source = [&](auto&& visit) {
    constexpr int kTurn = kSelectThreads * kBatch;
    for (int64_t first = threadIdx.x; first < range.count; first += kTurn) {
      Number x[kBatch];
      reader.read(first, kSelectThreads, x);
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        if (isFinite(x[j])) visit(valueKey(x[j]), 1ull);
      }
    }
  };
  selectTwo<Key>(memory, valueKey(static_cast<Number>(smallest(m))),
                 valueKey(static_cast<Number>(largest(m))), rank, source, found);
}

// A block has a level of a channel of a group.
template <class Number>
__global__ void __launch_bounds__(kSelectThreads) select(const __grid_constant__ Arguments a) {
  using Key = ValueKey<Number>;
  __shared__ SelectMemory memory;
  waitForLaunchesAhead();
  const StatisticsProblem& p = a.problem;
  const int64_t channels = p.samples.channels;
  const int64_t all = p.groups() * channels * a.levels.count;
  for (int64_t i = blockIdx.x; i < all; i += gridDim.x) {
    const int64_t index = i / a.levels.count;
    const int level = static_cast<int>(i - index * a.levels.count);
    const int64_t group = index / channels;
    const int64_t channel = index - group * channels;
    const GroupRange range = rangeOfGroup(p.samples, p.per_row, group);
    if (range.count <= kSampleOf<Number>) continue;  // these have been sorted whole
    const Moments& m = a.moments[index];
    double value = notANumber();
    if (m.count > 0) {
      const QuantilePlace place = quantilePlace(a.levels.level[level], m.count);
      const int64_t rank[2] = {place.lower, place.upper};
      Key keys[2];
      bool known = false;
      const Brackets<Number>& brackets = static_cast<const Brackets<Number>*>(a.brackets)[index];
      for (int b = 0; b < kMostBrackets && !known; ++b) {
        if (!(brackets.low[b] <= brackets.high[b])) break;  // no more of them
        known =
            selectKept<Number>(memory, Bracket<Number>(brackets, a.found[index], b),
                               static_cast<const Number*>(a.kept) + brackets.start[b], rank, keys);
      }
      if (!known) selectAny<Number>(memory, p, range, channel, m, rank, keys);
      value = quantileBetween(static_cast<double>(fromValueKey<Number>(keys[0])),
                              static_cast<double>(fromValueKey<Number>(keys[1])), place.t);
    }
    if (threadIdx.x == 0) putQuantile(p, group, a.levels.index[level], channel, value);
  }
}

}  // namespace

cudaError_t launchSelect(const StatisticsProblem& problem, const LevelsOfRead& levels,
                         const Moments* moments, const void* brackets, const Found* found,
                         const void* kept, const LaunchDevice& device, cudaStream_t cuda_stream) {
  Arguments arguments = {problem, levels, moments, brackets, found, kept};
  const int64_t blocks = problem.groups() * problem.samples.channels * levels.count;
  return launchBlocks(computesInDouble(problem.samples.dtype) ? select<double> : select<float>,
                      &arguments, blocks, kSelectThreads, device, cuda_stream);
}

cudaError_t loadSelectQuantiles() { return loadKernelsBeside(select<float>); }

}  // namespace statistics
}  // namespace rbc::cuda
