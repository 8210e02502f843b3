// Accumulators on CUDA: moments by a pass as in rbcStatistics, and tables of counts by another one.

#include "runtime/cuda_state.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "scratch_layout.h"
#include "statistics/channel_pass.h"
#include "statistics/reduce_channels.cuh"
#include "statistics/sample_readers.cuh"
#include "statistics/statistics_kernels.h"

namespace rbc::cuda {
namespace {

using namespace statistics;

struct CountArguments {
  Samples samples;
  AccumulatorState state;
  PassPlan plan;
};

// The bucket of a channel with a prefix, or -1: by bisection.
__device__ __forceinline__ int64_t bucketOf(const AccumulatorState& state, int64_t channel,
                                            uint64_t prefix) {
  int64_t low = state.first_bucket[channel];
  const int64_t end = state.first_bucket[channel + 1];
  int64_t high = end;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (state.buckets[middle].prefix < prefix) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < end && state.buckets[low].prefix == prefix ? low : -1;
}

// The place of a value in the tables, or -1.
__device__ __forceinline__ int64_t placeOfKey(const AccumulatorState& state, int64_t channel,
                                              uint64_t key) {
  const uint64_t within = key >> state.shift;
  if (state.pass == 1) return channel << state.table_bits | static_cast<int64_t>(within);
  const uint64_t prefix = state.table_bits < 64 ? within >> state.table_bits : 0;
  const int64_t bucket = bucketOf(state, channel, prefix);
  if (bucket < 0) return -1;
  const uint64_t mask = (uint64_t{1} << state.table_bits) - 1;
  return bucket << state.table_bits | static_cast<int64_t>(within & mask);
}

template <class Number>
__global__ void __launch_bounds__(kThreads) countKeys(const __grid_constant__ CountArguments a) {
  __shared__ FieldMemory memory;
  __shared__ GroupRange range_memory;
  waitForLaunchesAhead();
  constexpr uint32_t kWarp = 0xffffffffu;
  const AccumulatorState& state = a.state;
  const Lanes lanes = {a.plan.width, a.plan.phases};
  const bool has_lane = lanes.phase() < lanes.phases;
  const uint32_t lane = threadIdx.x % 32;
  for (int64_t u = blockIdx.x; u < a.plan.chunks * a.plan.parts; u += gridDim.x) {
    const int64_t chunk = u / a.plan.parts;
    const int64_t part = u - chunk * a.plan.parts;
    const int64_t channel = chunk * a.plan.width + lanes.channel();
    const bool active = has_lane && channel < a.samples.channels;
    const GroupRange range = rangeOfBlock(a.samples, false, 0, range_memory);
    const AnyReader<Number> reader(a.samples, range, active ? channel : 0);
    const int64_t of_tile = static_cast<int64_t>(lanes.phases) * kBatch;
    int64_t counts[2] = {};
    for (int64_t first = part * of_tile; first < range.count; first += a.plan.parts * of_tile) {
      Number x[kBatch];
      uint32_t valid = 0;
      if (active) valid = reader.read(first + lanes.phase(), lanes.phases, x);
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        const bool is_valid = (valid >> j & 1) != 0;
        const bool finite = is_valid && isFinite(x[j]);
        counts[0] += finite ? 1 : 0;
        counts[1] += is_valid && !finite ? 1 : 0;
        const int64_t place =
            finite && state.table_bits > 0
                ? placeOfKey(state, channel, static_cast<uint64_t>(valueKey(x[j])))
                : -1;
        // Values are often equal: one addition for all equal ones of a warp.
        const uint32_t alike = __match_any_sync(kWarp, static_cast<unsigned long long>(place));
        if (place >= 0 && lane == static_cast<uint32_t>(__ffs(static_cast<int>(alike)) - 1)) {
          atomicAdd(reinterpret_cast<unsigned long long*>(state.tables + place),
                    static_cast<unsigned long long>(__popc(alike)));
        }
      }
    }
    if (state.pass == 1) continue;
    sumChannels(counts, memory, lanes);
    if (active && lanes.phase() == 0) {
      for (int i = 0; i < 2; ++i) {
        if (counts[i] == 0) continue;
        atomicAdd(reinterpret_cast<unsigned long long*>(state.seen + i * state.channels + channel),
                  static_cast<unsigned long long>(counts[i]));
      }
    }
  }
}

size_t bytes(const AccumulateProblem& p, const LaunchDevice&) {
  ScratchLayout layout(nullptr);
  if (p.state.pass == 1) layout.take<Moments>(p.state.channels);
  return layout.used();
}

cudaError_t launchAccumulate(const AccumulateProblem& p, void* scratch, const LaunchDevice& device,
                             cudaStream_t cuda_stream, LaunchChoice* chosen) {
  const int64_t channels = p.state.channels;
  if (channels == 0) return cudaSuccess;
  cudaError_t error = cudaSuccess;
  if (p.state.pass == 1) {
    ScratchLayout layout(scratch);
    auto* moments = layout.take<Moments>(channels);
    error = statistics::clearMoments(moments, channels, kAllLimbs, device, cuda_stream);
    if (error != cudaSuccess) return error;
    PassArguments arguments = {p.samples, false, {}, moments, nullptr, nullptr, nullptr};
    const PassChoice choice = selectPass(PassKind::kMoments, p.samples, false, 1, device);
    *chosen = choice;
    error = launchPass(choice, arguments, device, cuda_stream);
    if (error != cudaSuccess) return error;
    error = launchMerge(p.state.moments, moments, channels, device, cuda_stream);
    if (error != cudaSuccess || p.state.table_bits == 0) return error;
  }
  constexpr int kBlocks = 4;  // per multiprocessor
  CountArguments arguments = {
      p.samples, p.state,
      planPass(p.samples, 1, int64_t{device.multiprocessors} * kBlocks, kThreads)};
  const int64_t blocks = arguments.plan.units();
  if (p.state.pass > 1) *chosen = onlyKernel("count_keys", blocks, kThreads);
  return launchBlocks(p.state.wide_keys ? countKeys<double> : countKeys<float>, &arguments, blocks,
                      kThreads, device, cuda_stream);
}

// ---- merging ------------------------------------------------------------------------------------

struct AddArguments {
  int64_t* to;
  const int64_t* from;
  int64_t count;
};

__global__ void __launch_bounds__(kThreads) addAll(const __grid_constant__ AddArguments a) {
  waitForLaunchesAhead();
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < a.count;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    a.to[i] += a.from[i];
  }
}

cudaError_t launchAdd(int64_t* to, const int64_t* from, int64_t count, const LaunchDevice& device,
                      cudaStream_t cuda_stream) {
  if (count == 0) return cudaSuccess;
  AddArguments arguments = {to, from, count};
  return launchBlocks(addAll, &arguments, blocksFor(count, kThreads, 4096), kThreads, device,
                      cuda_stream);
}

cudaError_t launchMergeStates(const MergeProblem& p, void*, const LaunchDevice& device,
                              cudaStream_t cuda_stream, LaunchChoice*) {
  const AccumulatorState& to = p.to;
  const AccumulatorState& from = p.from;
  if (to.channels == 0) return cudaSuccess;
  cudaError_t error = to.pass == 1
                          ? launchMerge(to.moments, from.moments, to.channels, device, cuda_stream)
                          : launchAdd(to.seen, from.seen, 2 * to.channels, device, cuda_stream);
  if (error != cudaSuccess || to.table_bits == 0) return error;
  const int64_t tables = to.pass == 1 ? to.channels : to.num_buckets;
  return launchAdd(to.tables, from.tables, tables << to.table_bits, device, cuda_stream);
}

}  // namespace

extern const Operation<AccumulateProblem> kAccumulate = {
    bytesOn<AccumulateProblem, bytes>, launchOn<AccumulateProblem, launchAccumulate>};
extern const Operation<MergeProblem> kMerge = {noBytes<MergeProblem>,
                                               launchOn<MergeProblem, launchMergeStates>};

cudaError_t loadAccumulate(const LaunchDevice&) { return loadKernelsBeside(countKeys<float>); }
// loadAccumulate loads the kernels of this file, also those of kMerge.
cudaError_t loadMerge(const LaunchDevice&) { return cudaSuccess; }

}  // namespace rbc::cuda
