#include "statistics/statistics_kernels.h"

#include <cub/block/block_scan.cuh>

#include "quantile.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "statistics/brackets.cuh"

namespace rbc::cuda {
namespace statistics {
namespace {

constexpr int kRefineThreads = 256;
constexpr int kBins = 2048;
constexpr int kBinBits = 11;
constexpr int kSlices = 16;  // per list

struct Arguments {
  StatisticsProblem problem;
  LevelsOfRead levels;
  const Moments* moments;
  const void* brackets;
  const Found* found;
  const void* kept;
  uint32_t* bins;
  Refined* refined;
  void* values;
};

// A list that is long enough to refine, and the ranks in it.
template <class Number>
struct List {
  using Key = ValueKey<Number>;

  bool wanted = false;
  const Number* kept = nullptr;
  int64_t count = 0;
  int64_t inner[2] = {};
  Key low = 0;  // keys of the values
  Key high = 0;
  Key frequent = 0;
  int64_t frequents = 0;

  __device__ List(const Arguments& a, int64_t i) {
    const StatisticsProblem& p = a.problem;
    const int64_t index = i / a.levels.count;
    const int level = static_cast<int>(i - index * a.levels.count);
    const int64_t group = index / p.samples.channels;
    const GroupRange range = rangeOfGroup(p.samples, p.per_row, group);
    const int64_t n = a.moments[index].count;
    if (range.count <= kSampleOf<Number> || n == 0) return;
    const QuantilePlace place = quantilePlace(a.levels.level[level], n);
    const int64_t rank[2] = {place.lower, place.upper};
    const Brackets<Number>& brackets = static_cast<const Brackets<Number>*>(a.brackets)[index];
    const RankPlaces<Number> places = placesOf(brackets, a.found[index], rank);
    if (places.bracket < 0 || !places.is_inner) return;
    const Bracket<Number> bracket(brackets, a.found[index], places.bracket);
    if (bracket.kept <= kFewKept) return;
    wanted = true;
    kept = static_cast<const Number*>(a.kept) + brackets.start[places.bracket];
    count = bracket.kept;
    inner[0] = places.inner[0];
    inner[1] = places.inner[1];
    low = static_cast<Key>(valueKey(bracket.low) + 1);
    high = static_cast<Key>(valueKey(bracket.high) - 1);
    frequents = bracket.frequents;
    if (frequents > 0) frequent = valueKey(bracket.frequent);
  }

  __device__ int shift() const {
    const auto span = static_cast<uint64_t>(high - low);
    const int bits = span == 0 ? 0 : 64 - __clzll(static_cast<long long>(span));
    return bits > kBinBits ? bits - kBinBits : 0;
  }

  // Calls visit(number, valid) for the values of a slice; all threads make the same number of
  // calls.
  template <class Visitor>
  __device__ __forceinline__ void visitSlice(int slice, Visitor&& visit) const {
    constexpr int kTurn = kRefineThreads * kBatch;
    for (int64_t first = static_cast<int64_t>(slice) * kTurn; first < count;
         first += static_cast<int64_t>(kSlices) * kTurn) {
      Number x[kBatch];
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        const int64_t i = first + j * kRefineThreads + threadIdx.x;
        x[j] = i < count ? load<Number>(kept + i) : NotANumber<Number>::value();
      }
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        if (isFinite(x[j])) visit(x[j]);
      }
    }
  }
};

template <class Number>
__global__ void __launch_bounds__(kRefineThreads) countKept(const __grid_constant__ Arguments a) {
  using Key = ValueKey<Number>;
  __shared__ uint32_t bins[kBins];
  waitForLaunchesAhead();
  const int64_t i = blockIdx.x / kSlices;
  const int slice = static_cast<int>(blockIdx.x % kSlices);
  const List<Number> list(a, i);
  if (!list.wanted) return;
  for (int b = static_cast<int>(threadIdx.x); b < kBins; b += kRefineThreads) bins[b] = 0;
  __syncthreads();
  const int shift = list.shift();
  const Key low = list.low;
  const Key high = list.high;
  list.visitSlice(slice, [&](Number x) {
    const Key key = valueKey(x);
    // If the offsets of groups descend, their lists overlap and contain each other's values.
    if (key >= low && key <= high)
      atomicAdd(&bins[static_cast<uint32_t>((key - low) >> shift)], 1u);
  });
  __syncthreads();
  for (int b = static_cast<int>(threadIdx.x); b < kBins; b += kRefineThreads) {
    if (bins[b] != 0) atomicAdd(&a.bins[i * kBins + b], bins[b]);
  }
}

template <class Number>
__global__ void __launch_bounds__(kRefineThreads) collectKept(const __grid_constant__ Arguments a) {
  using Key = ValueKey<Number>;
  using Scan = cub::BlockScan<int64_t, kRefineThreads>;
  constexpr int kEach = kBins / kRefineThreads;
  __shared__ typename Scan::TempStorage scan;
  __shared__ int32_t bin[2];
  __shared__ int64_t bin_before;
  waitForLaunchesAhead();
  const int64_t i = blockIdx.x / kSlices;
  const int slice = static_cast<int>(blockIdx.x % kSlices);
  const List<Number> list(a, i);
  if (!list.wanted) return;
  const int t = static_cast<int>(threadIdx.x);
  const int shift = list.shift();
  const int of_frequent =
      list.frequents > 0 ? static_cast<int>((list.frequent - list.low) >> shift) : -1;
  // If a list contains other groups' values, a rank may not be found; any result will do.
  if (t == 0) bin_before = bin[0] = bin[1] = 0;
  int64_t count[kEach];
  int64_t all = 0;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    count[k] = a.bins[i * kBins + t * kEach + k];
    if (t * kEach + k == of_frequent) count[k] += list.frequents;
    all += count[k];
  }
  int64_t before = 0;
  Scan(scan).ExclusiveSum(all, before);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    for (int end_index = 0; end_index < 2; ++end_index) {
      if (list.inner[end_index] < before || list.inner[end_index] >= before + count[k]) continue;
      bin[end_index] = t * kEach + k;
      if (end_index == 0) bin_before = before;
    }
    before += count[k];
  }
  __syncthreads();
  const Key first = list.low + (static_cast<Key>(bin[0]) << shift);
  const Key end = list.low + (static_cast<Key>(bin[1]) << shift) + ((Key{1} << shift) - 1);
  const Key last = end < first || end > list.high ? list.high : end;
  Refined& refined = a.refined[i];
  // Values with few bits are often equal: a bin has one distinct value, or none.
  if constexpr (sizeof(Number) == 4) {
    const DType dtype = a.problem.samples.dtype;
    const int empty_bits = keyWidth(dtype) - keyBits(dtype);
    if (empty_bits > 0 && shift <= empty_bits) {
      if (slice > 0 || t > 0) return;
      for (int end_index = 0; end_index < 2; ++end_index) {
        const Key bin_low = list.low + (static_cast<Key>(bin[end_index]) << shift);
        refined.found[end_index] = onlyKey(bin_low, bin_low + ((Key{1} << shift) - 1), empty_bits);
      }
      refined.is_found = 1;
      return;
    }
  }
  Number* const values = static_cast<Number*>(a.values) + i * kMaxRefined;
  list.visitSlice(slice, [&](Number x) {
    const Key key = valueKey(x);
    if (key < first || key > last) return;
    const unsigned long long place = atomicAdd(&refined.count, 1ull);
    if (place < static_cast<unsigned long long>(kMaxRefined)) values[place] = x;
  });
  if (slice == 0 && t == 0) {
    refined.low = first;
    refined.high = last;
    refined.before = bin_before;
  }
}

}  // namespace

void RefineMemory::take(ScratchLayout& layout, int64_t lists, bool wide) {
  if (lists > kMaxListsToRefine) return;
  layout.take(&refined, lists);
  const size_t before = layout.used() - sizeof(Refined) * static_cast<size_t>(lists);
  layout.take(&bins, lists * kBins);
  cleared_bytes = layout.used() - before;
  values = wide ? static_cast<void*>(layout.take<double>(lists * kMaxRefined))
                : static_cast<void*>(layout.take<float>(lists * kMaxRefined));
}

cudaError_t launchRefine(const StatisticsProblem& problem, const LevelsOfRead& levels,
                         const Moments* moments, const void* brackets, const Found* found,
                         const void* kept, const RefineMemory& memory, const LaunchDevice& device,
                         cudaStream_t cuda_stream) {
  const int64_t lists = problem.groups() * problem.samples.channels * levels.count;
  if (memory.refined == nullptr) return cudaSuccess;
  cudaError_t error = cudaMemsetAsync(memory.refined, 0, memory.cleared_bytes, cuda_stream);
  if (error != cudaSuccess) return error;
  Arguments arguments = {problem, levels,      moments,        brackets,     found,
                         kept,    memory.bins, memory.refined, memory.values};
  const bool wide = computesInDouble(problem.samples.dtype);
  error = launchBlocks(wide ? countKept<double> : countKept<float>, &arguments, lists * kSlices,
                       kRefineThreads, device, cuda_stream);
  if (error != cudaSuccess) return error;
  return launchBlocks(wide ? collectKept<double> : collectKept<float>, &arguments, lists * kSlices,
                      kRefineThreads, device, cuda_stream);
}

cudaError_t loadRefineKept() { return loadKernelsBeside(countKept<float>); }

}  // namespace statistics
}  // namespace rbc::cuda
