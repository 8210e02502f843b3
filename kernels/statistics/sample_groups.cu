#include "statistics/statistics_kernels.h"

#include <cub/block/block_radix_sort.cuh>
#include <cub/warp/warp_merge_sort.cuh>

#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "statistics/brackets.cuh"
#include "statistics/sample_readers.cuh"
#include "statistics/write_statistics.cuh"

namespace rbc::cuda {
namespace statistics {
namespace {

constexpr int kWarp = 32;

struct Arguments {
  StatisticsProblem problem;
  LevelsOfRead levels;
  bool first;
  void* brackets;
};

template <class Number>
constexpr int kEach = static_cast<int>(kSampleOf<Number>) / kSortThreads;

template <class Number>
struct Pick {
  Number low;
  Number high;
  Number center;
  int run;  // samples that equal the center
};

template <class Key>
__device__ __forceinline__ int countBelow(const Key* sorted, int count, Key key, bool or_equal) {
  int low = 0;
  int high = count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (sorted[middle] < key || (or_equal && sorted[middle] == key)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The values of a sample between which a level's quantile most probably is: some standard
// deviations of a sample's rank around it.
template <class Number>
__device__ __forceinline__ Pick<Number> pickOf(const ValueKey<Number>* sorted, int count,
                                               double level) {
  const Number most = Limits<Number>::most();
  if (count == 0) return {-most, most, NotANumber<Number>::value(), 0};
  const double center = level * (count - 1);
  const double reach = kBracketDeviations * sqrt(count * level * (1 - level)) + kBracketMargin;
  const int low = static_cast<int>(floor(center - reach));
  const int high = static_cast<int>(ceil(center + reach));
  const ValueKey<Number> middle = sorted[static_cast<int>(center)];
  return {low < 0 ? -most : fromValueKey<Number>(sorted[low]),
          high >= count ? most : fromValueKey<Number>(sorted[high]), fromValueKey<Number>(middle),
          countBelow(sorted, count, middle, true) - countBelow(sorted, count, middle, false)};
}

// Brackets of levels that overlap are merged, with the room of both.
template <class Number>
__device__ void writeBrackets(const LevelsOfRead& levels, const Pick<Number>* picks,
                              int64_t samples, int64_t first_place, Brackets<Number>* to) {
  Brackets<Number> made;
  int count = 0;
  int frequent = 0;
  int64_t place = first_place;
#pragma unroll 1
  for (int i = 0; i < levels.count; ++i) {
    const Pick<Number>& pick = picks[i];
    const int64_t capacity = capacityOf(levels.share[i], samples);
    if (pick.run > picks[frequent].run) frequent = i;
    if (count > 0 && pick.low <= made.high[count - 1]) {
      if (pick.high > made.high[count - 1]) made.high[count - 1] = pick.high;
      made.capacity[count - 1] += capacity;
    } else {
      made.low[count] = pick.low;
      made.high[count] = pick.high;
      made.start[count] = place;
      made.capacity[count] = capacity;
      ++count;
    }
    place += capacity;
  }
#pragma unroll 1
  for (int b = 0; b < count; ++b) {
    if (made.capacity[b] > kMaxCapacity) made.capacity[b] = kMaxCapacity;
  }
  made.frequent = picks[frequent].run > 1 ? picks[frequent].center : NotANumber<Number>::value();
#pragma unroll 1
  for (; count < kMaxBrackets; ++count) {
    made.low[count] = Limits<Number>::infinity();
    made.high[count] = -Limits<Number>::infinity();
    made.start[count] = made.capacity[count] = 0;
  }
  *to = made;
}

template <class Number>
__device__ void writeNoBrackets(Brackets<Number>* to) {
  for (int b = 0; b < kMaxBrackets; ++b) {
    to->low[b] = Limits<Number>::infinity();
    to->high[b] = -Limits<Number>::infinity();
    to->start[b] = to->capacity[b] = 0;
  }
  to->frequent = NotANumber<Number>::value();
}

template <class Number>
__device__ __forceinline__ ValueKey<Number> keyOrLast(Number x) {
  return isFinite(x) ? valueKey(x) : ~ValueKey<Number>{0};  // no finite number has this key
}

// Values that are not counted come last.
template <class Number, int kCount>
__device__ __forceinline__ void readKeys(const AnyReader<Number>& reader,
                                         const int64_t (&at)[kCount],
                                         ValueKey<Number> (&keys)[kCount]) {
  Number x[kCount];
  reader.readAt(at, x);
#pragma unroll
  for (int j = 0; j < kCount; ++j) keys[j] = keyOrLast(x[j]);
}

// A block processes one channel of a group.
template <class Number>
__global__ void __launch_bounds__(kSortThreads) sampleMany(const __grid_constant__ Arguments a) {
  using Key = ValueKey<Number>;
  constexpr int kItems = kEach<Number>;
  constexpr int kSize = kItems * kSortThreads;
  using Sort = cub::BlockRadixSort<Key, kSortThreads, kItems>;
  __shared__ union {
    typename Sort::TempStorage sort;
    Key sorted[kSize];
  } memory;
  __shared__ Pick<Number> picks[kMaxBrackets];
  __shared__ GroupRange range_memory;
  waitForLaunchesAhead();
  const StatisticsProblem& p = a.problem;
  const int t = static_cast<int>(threadIdx.x);
  const int64_t channels = p.samples.channels;
  for (int64_t i = blockIdx.x; i < p.groups() * channels; i += gridDim.x) {
    const int64_t group = i / channels;
    const int64_t channel = i - group * channels;
    const GroupRange range = rangeOfBlock(p.samples, p.per_row, group, range_memory);
    Brackets<Number>* const brackets = static_cast<Brackets<Number>*>(a.brackets) + i;
    const bool whole = range.count <= kSize;
    if (whole && t == 0 && a.brackets != nullptr) writeNoBrackets(brackets);
    if (range.count <= kFew || (whole && !a.first)) continue;
    const AnyReader<Number> reader(p.samples, range, channel);
    Key keys[kItems];
    int valid = 0;
    const double step = static_cast<double>(range.count) / kSize;
    int64_t at[kItems];
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      const int64_t sample = j * kSortThreads + t;
      at[j] = sample;
      if (!whole) {  // one per stretch, not at even distances
        const uint64_t hash =
            static_cast<uint64_t>(sample + 1) * 0x9e3779b97f4a7c15ull >> 32 & 0xffffffffull;
        at[j] = static_cast<int64_t>(
            (static_cast<double>(sample) + static_cast<double>(hash) * 0x1p-32) * step);
        at[j] = at[j] < range.count ? at[j] : range.count - 1;
      }
    }
    readKeys(reader, at, keys);
    Sort(memory.sort).Sort(keys);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      memory.sorted[t * kItems + j] = keys[j];
      valid += keys[j] != ~Key{0} ? 1 : 0;
    }
    __syncthreads();
    const int count = countBelow(memory.sorted, kSize, ~Key{0}, false);
    if (whole) {
      for (int q = t; q < p.num_levels; q += kSortThreads) {
        writeSorted<Number>(p, group, channel, q, memory.sorted, count);
      }
    } else if (t < a.levels.count) {
      picks[t] = pickOf<Number>(memory.sorted, count, a.levels.level[t]);
    }
    __syncthreads();
    if (!whole && t == 0) {
      const int64_t before = p.per_row && !p.samples.packed() ? group * p.samples.rows
                             : p.per_row                      ? range.begin
                                                              : 0;
      writeBrackets(a.levels, picks, range.count, firstPlace(a.levels, group, before, channel),
                    brackets);
    }
    __syncthreads();
  }
}

// A warp processes one channel of a group with few samples.
template <class Number>
__global__ void __launch_bounds__(kFewThreads) sortFew(const __grid_constant__ Arguments a) {
  using Key = ValueKey<Number>;
  constexpr int kItems = kFew / kWarp;
  constexpr int kWarps = kFewThreads / kWarp;
  using Sort = cub::WarpMergeSort<Key, kItems, kWarp>;
  __shared__ union {
    typename Sort::TempStorage sort;
    Key sorted[kFew];
  } memory[kWarps];
  waitForLaunchesAhead();
  const StatisticsProblem& p = a.problem;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t channels = p.samples.channels;
  const int64_t all = p.groups() * channels;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kWarps + warp; i < all;
       i += static_cast<int64_t>(gridDim.x) * kWarps) {
    const int64_t group = i / channels;
    const int64_t channel = i - group * channels;
    const GroupRange range = rangeOfGroup(p.samples, p.per_row, group);
    if (range.count > kFew) continue;
    const AnyReader<Number> reader(p.samples, range, channel);
    Key keys[kItems];
    int64_t at[kItems];
#pragma unroll
    for (int j = 0; j < kItems; ++j) at[j] = j * kWarp + lane;
    readKeys(reader, at, keys);
    Sort(memory[warp].sort).Sort(keys, [](Key x, Key y) { return x < y; });
    __syncwarp();
#pragma unroll
    for (int j = 0; j < kItems; ++j) memory[warp].sorted[lane * kItems + j] = keys[j];
    __syncwarp();
    const int count = countBelow(memory[warp].sorted, kFew, ~Key{0}, false);
    for (int q = lane; q < p.num_levels; q += kWarp) {
      writeSorted<Number>(p, group, channel, q, memory[warp].sorted, count);
    }
    __syncwarp();
  }
}

template <class Number>
cudaError_t launchOf(Arguments arguments, const SampleGrids& grids, const LaunchDevice& device,
                     cudaStream_t cuda_stream) {
  cudaError_t error = cudaSuccess;
  if (grids.few > 0) {
    error = launchBlocks(sortFew<Number>, &arguments, grids.few, kFewThreads, device, cuda_stream);
  }
  if (error == cudaSuccess && grids.many > 0) {
    error =
        launchBlocks(sampleMany<Number>, &arguments, grids.many, kSortThreads, device, cuda_stream);
  }
  return error;
}

}  // namespace

cudaError_t launchSample(const StatisticsProblem& problem, const LevelsOfRead& levels, bool first,
                         void* brackets, const LaunchDevice& device, cudaStream_t cuda_stream) {
  const Arguments arguments = {problem, levels, first, brackets};
  const SampleGrids grids = selectSample(problem, first, device);
  return computesInDouble(problem.samples.dtype)
             ? launchOf<double>(arguments, grids, device, cuda_stream)
             : launchOf<float>(arguments, grids, device, cuda_stream);
}

cudaError_t loadSampleGroups() { return loadKernelsBeside(sampleMany<float>); }

}  // namespace statistics
}  // namespace rbc::cuda
