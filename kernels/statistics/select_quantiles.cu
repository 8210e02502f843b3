
#include "statistics/statistics_kernels.h"

#include <algorithm>
#include <cub/block/block_scan.cuh>

#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "statistics/brackets.cuh"
#include "statistics/sample_readers.cuh"
#include "statistics/write_statistics.cuh"
#include "value_key.h"

namespace rbc::cuda {
namespace statistics {

// ---- The values of two ranks among unsorted ones, by a block: histograms over successively
// narrower ranges of keys.

inline constexpr int kSelectThreads = 512;
inline constexpr int kSelectBins = 2048;

struct SelectMemory {
  uint32_t bins[2][kSelectBins];
  uint32_t carries[2][kSelectBins];  // of bins beyond 32 bits
  cub::BlockScan<int64_t, kSelectThreads>::TempStorage scan;
  int64_t bin[2];
  int64_t before[2];
};

// Keys starting at low, and the requested rank among them.
template <class Key>
struct KeyRange {
  Key low;
  Key high;
  int64_t rank;

  __device__ __forceinline__ int shift() const {
    const auto span = static_cast<uint64_t>(high - low);
    const int bits = span == 0 ? 0 : 64 - __clzll(static_cast<long long>(span));
    constexpr int kBinBits = 11;
    return bits > kBinBits ? bits - kBinBits : 0;
  }
};

__device__ __forceinline__ void countInBin(SelectMemory& memory, int rank_index, uint32_t bin,
                                           unsigned long long count) {
  const auto low = static_cast<uint32_t>(count);
  const uint32_t before = atomicAdd(&memory.bins[rank_index][bin], low);
  const uint32_t carry = before + low < before ? 1 : 0;
  const auto high = static_cast<uint32_t>(count >> 32) + carry;
  if (high != 0) atomicAdd(&memory.carries[rank_index][bin], high);
}

// Narrows a range to the bin that contains the rank.
template <class Key>
__device__ __forceinline__ void narrow(SelectMemory& memory, int rank_index, KeyRange<Key>* range) {
  constexpr int kEach = kSelectBins / kSelectThreads;
  const int t = static_cast<int>(threadIdx.x);
  int64_t count[kEach];
  int64_t all = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    count[i] = static_cast<int64_t>(memory.bins[rank_index][t * kEach + i]) |
               static_cast<int64_t>(memory.carries[rank_index][t * kEach + i]) << 32;
    all += count[i];
  }
  int64_t before = 0;
  cub::BlockScan<int64_t, kSelectThreads>(memory.scan).ExclusiveSum(all, before);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (range->rank >= before && range->rank < before + count[i]) {
      memory.bin[rank_index] = t * kEach + i;
      memory.before[rank_index] = before;
    }
    before += count[i];
  }
  __syncthreads();
  const int shift = range->shift();
  const Key low = range->low + (static_cast<Key>(memory.bin[rank_index]) << shift);
  const Key last = low + ((Key{1} << shift) - 1);
  range->high = last < low || last > range->high ? range->high : last;
  range->low = low;
  range->rank -= memory.before[rank_index];
  __syncthreads();
}

// Calls source(visit) a few times; it must call visit(key, count) for all keys, by all threads of
// the block together. The ranks are among the keys in a range; all threads get both keys.
template <class Key, class Source>
__device__ __forceinline__ void selectTwo(SelectMemory& memory, Key low, Key high,
                                          const int64_t (&rank)[2], Source&& source,
                                          Key (&found)[2]) {
  KeyRange<Key> range[2] = {{low, high, rank[0]}, {low, high, rank[1]}};
  while (range[0].low < range[0].high || range[1].low < range[1].high) {
    const bool same = range[0].low == range[1].low && range[0].high == range[1].high;
    for (int i = static_cast<int>(threadIdx.x); i < kSelectBins; i += kSelectThreads) {
      memory.bins[0][i] = memory.bins[1][i] = memory.carries[0][i] = memory.carries[1][i] = 0;
    }
    // If another thread writes the samples meanwhile, a rank may not be found; any result will do.
    if (threadIdx.x < 2) memory.bin[threadIdx.x] = memory.before[threadIdx.x] = 0;
    __syncthreads();
    const int shift[2] = {range[0].shift(), range[1].shift()};
    source([&](Key key, unsigned long long count) {
      if (key >= range[0].low && key <= range[0].high) {
        countInBin(memory, 0, static_cast<uint32_t>((key - range[0].low) >> shift[0]), count);
      }
      if (!same && key >= range[1].low && key <= range[1].high) {
        countInBin(memory, 1, static_cast<uint32_t>((key - range[1].low) >> shift[1]), count);
      }
    });
    __syncthreads();
    narrow(memory, 0, &range[0]);
    narrow(memory, same ? 0 : 1, &range[1]);
  }
  found[0] = range[0].low;
  found[1] = range[1].low;
}
namespace {

struct Arguments {
  StatisticsProblem problem;
  LevelsOfRead levels;
  const Moments* moments;
  const void* brackets;
  const Found* found;
  const void* kept;
  const Refined* refined;  // of each list, or null
  const void* refined_values;
  int64_t finish_blocks;  // the first blocks finish the moments
  LimbSpan span;
};

// The inner ranks among a bracket's values; all threads take part.
template <class Number>
__device__ __forceinline__ void selectKept(SelectMemory& memory, const Bracket<Number>& bracket,
                                           const Number* kept, const Refined* refined,
                                           const Number* refined_values,
                                           RankPlaces<Number>& places) {
  using Key = ValueKey<Number>;
  int64_t count = bracket.kept;
  auto low = static_cast<Key>(valueKey(bracket.low) + 1);
  auto high = static_cast<Key>(valueKey(bracket.high) - 1);
  int64_t wanted[2] = {places.inner[0], places.inner[1]};
  if (refined != nullptr && refined->high != 0 &&
      refined->count <= static_cast<unsigned long long>(kMaxRefined)) {
    count = static_cast<int64_t>(refined->count);
    low = static_cast<Key>(refined->low);
    high = static_cast<Key>(refined->high);
    wanted[0] -= refined->before;
    wanted[1] -= refined->before;
    kept = refined_values;
  }
  Key keys[2];
  const auto source = [&](auto&& visit) {
    constexpr int kTurn = kSelectThreads * kBatch;
    const int t = static_cast<int>(threadIdx.x);
    for (int64_t first = t; first < count; first += kTurn) {
      Number x[kBatch];
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        const int64_t i = first + j * kSelectThreads;
        x[j] = i < count ? load<Number>(kept + i) : NotANumber<Number>::value();
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
  selectTwo<Key>(memory, low, high, wanted, source, keys);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (places.each_is_inner[i]) places.found[i] = keys[i];
  }
}

// The same for all samples.
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

// A block processes one level of a channel of a group.
template <class Number>
__global__ void __launch_bounds__(kSelectThreads) select(const __grid_constant__ Arguments a) {
  __shared__ SelectMemory memory;
  __shared__ GroupRange range_memory;
  waitForLaunchesAhead();
  const StatisticsProblem& p = a.problem;
  const int64_t channels = p.samples.channels;
  const int64_t all = p.groups() * channels * a.levels.count;
  for (int64_t block = blockIdx.x; block < a.finish_blocks + all; block += gridDim.x) {
    if (block < a.finish_blocks) {
      finishChannels(p, a.moments, a.span, block);
      continue;
    }
    const int64_t i = block - a.finish_blocks;
    const int64_t index = i / a.levels.count;
    const int level = static_cast<int>(i - index * a.levels.count);
    const int64_t group = index / channels;
    const int64_t channel = index - group * channels;
    const GroupRange range = rangeOfBlock(p.samples, p.per_row, group, range_memory);
    if (range.count <= kSampleOf<Number>) continue;  // these were sorted completely
    const Moments& m = a.moments[index];
    double value = notANumber();
    if (m.count > 0) {
      const QuantilePlace place = quantilePlace(a.levels.level[level], m.count);
      const int64_t rank[2] = {place.lower, place.upper};
      const Brackets<Number>& brackets = static_cast<const Brackets<Number>*>(a.brackets)[index];
      RankPlaces<Number> places = placesOf(brackets, a.found[index], rank);
      if (places.bracket < 0) {
        selectAny<Number>(memory, p, range, channel, m, rank, places.found);
      } else if (places.is_inner && a.refined != nullptr && a.refined[i].is_found != 0) {
        for (int k = 0; k < 2; ++k) {
          if (places.each_is_inner[k]) {
            places.found[k] = static_cast<ValueKey<Number>>(a.refined[i].found[k]);
          }
        }
      } else if (places.is_inner) {
        selectKept<Number>(memory, Bracket<Number>(brackets, a.found[index], places.bracket),
                           static_cast<const Number*>(a.kept) + brackets.start[places.bracket],
                           a.refined != nullptr ? a.refined + i : nullptr,
                           static_cast<const Number*>(a.refined_values) + i * kMaxRefined, places);
      }
      value = quantileBetween(static_cast<double>(fromValueKey<Number>(places.found[0])),
                              static_cast<double>(fromValueKey<Number>(places.found[1])), place.t);
    }
    if (threadIdx.x == 0) putQuantile(p, group, a.levels.index[level], channel, value);
  }
}

}  // namespace

cudaError_t launchSelect(const StatisticsProblem& problem, const LevelsOfRead& levels,
                         const Moments* moments, const void* brackets, const Found* found,
                         const void* kept, const RefineMemory& refined, const LimbSpan* finish,
                         const LaunchDevice& device, cudaStream_t cuda_stream) {
  const int64_t all = problem.groups() * problem.samples.channels;
  const int64_t finish_blocks = finish != nullptr ? ceilDiv(all, kFinishChannels) : 0;
  Arguments arguments = {problem,         levels,
                         moments,         brackets,
                         found,           kept,
                         refined.refined, refined.values,
                         finish_blocks,   finish != nullptr ? *finish : kAllLimbs};
  constexpr int64_t kBlocks = 32;  // per multiprocessor
  const int64_t blocks =
      std::min(finish_blocks + all * levels.count, device.multiprocessors * kBlocks);
  return launchBlocks(computesInDouble(problem.samples.dtype) ? select<double> : select<float>,
                      &arguments, blocks, kSelectThreads, device, cuda_stream);
}

cudaError_t loadSelectQuantiles() { return loadKernelsBeside(select<float>); }

}  // namespace statistics

}  // namespace rbc::cuda
