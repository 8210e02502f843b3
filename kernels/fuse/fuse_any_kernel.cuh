// Fusion on CUDA: any streams, every method, one launch.
//
// The streams' work is laid end to end and cut into units; a warp takes one: a group of up to 32
// consecutive queries of the flattened [B,T] and a range of one stream's channels. First each lane
// finds the position of one query, then the warp walks the group's output, consecutive lanes on
// consecutive channels, 16 bytes a lane where alignment allows. What differs between streams and
// segments of channels - dtypes, methods - is the same for the whole warp, so the branches on it
// cost little.
#pragma once

#include "fuse/fuse_any_methods.cuh"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace any {

inline constexpr int kWarpsPerBlock = 4;

// Blocks that must fit on a multiprocessor, which bounds the registers: as many as fit without
// spills worth the name.
template <class Form>
inline constexpr int kBlocksThatFit = Form::kMasked ? 5 : 6;

// The stream that a unit belongs to.
template <class Form>
__device__ __forceinline__ int streamOf(const FuseLaunch<Form>& launch, int64_t unit) {
  int low = 0;
  int high = launch.problem.num_streams;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (launch.streams[middle].first_unit <= unit ? low : high) = middle;
  }
  return low;
}

// What a warp does at a time: some queries times some vectors of a stream.
struct Unit {
  int n;          // the stream
  int64_t flat;   // its first query, of the flattened batch
  int count;      // of queries
  int64_t first;  // vector
  int64_t end;
};

template <class Form>
__device__ __forceinline__ Unit unitOf(const FuseLaunch<Form>& launch, int64_t unit) {
  const FuseProblem& p = launch.problem;
  const int n = streamOf(launch, unit);
  const StreamTask& task = launch.streams[n];
  const int64_t own = unit - task.first_unit;
  const int64_t group = task.ranges(own);
  const int64_t first = (own - group * static_cast<int64_t>(task.ranges.divisor)) * task.range;
  const int64_t end = first + task.range < task.vectors ? first + task.range : task.vectors;
  const int64_t left = p.batch * p.queries - group * task.group;
  const int count = left < task.group ? static_cast<int>(left) : task.group;
  return {n, group * task.group, count, first, end};
}

// Clears the masks of a unit's queries where a quaternion is none that stands behind the unit's part of
// the row. A function, as it is rare and would cost the others registers.
template <class Form>
__device__ __noinline__ void readBehind(const FuseLaunch<Form>& launch, int64_t number,
                                        QuerySlot<Form>* slots,
                                        QueryState<typename Form::Index>* states, bool* masks) {
  const auto lane = static_cast<int>(threadIdx.x % kWarp);
  const FuseProblem& p = launch.problem;
  const Unit unit = unitOf(launch, number);
  const StreamTask& task = launch.streams[unit.n];
  const int end_segment = task.stream.first_segment + task.stream.num_segments;
  for (int i = task.stream.first_segment; i < end_segment; ++i) {
    const SegmentTask& segment = launch.segments[i];
    const int64_t to = i + 1 < end_segment ? launch.segments[i + 1].first_vector : task.vectors;
    const int64_t from = unit.end > segment.first_vector ? unit.end : segment.first_vector;
    if (segment.method != Method::kSlerp || from >= to) continue;
    const int64_t channel = segment.begin + (from - segment.first_vector) * segment.count;
    if (lane < unit.count) {
      masks[lane] &= findQuery<Form>(p, task, segment.method, channel, &states[lane], &slots[lane]);
    }
    __syncwarp();
    const Part<Form> part = {p, task, slots, masks, channel, unit.count, 0};
    if (!Form::kDoubles || !task.in_double) {
      testQuaternions<float>(part, to - from);
    } else if constexpr (Form::kDoubles) {
      testQuaternions<double>(part, to - from);
    }
    __syncwarp();  // the slots are overwritten by the next round
  }
}

template <class Out, class Form>
__device__ __forceinline__ void doUnit(const FuseLaunch<Form>& launch, int64_t number,
                                       QuerySlot<Form>* slots,
                                       QueryState<typename Form::Index>* states, bool* masks) {
  using Index = typename Form::Index;
  const auto lane = static_cast<int>(threadIdx.x % kWarp);
  const FuseProblem& p = launch.problem;
  const Unit unit = unitOf(launch, number);
  const StreamTask& task = launch.streams[unit.n];
  const bool writes_mask = p.mask != nullptr && unit.first == 0;
  QueryState<Index>& query = states[lane];
  const auto flat = static_cast<Index>(unit.flat + lane);
  query.b = launch.per_row(flat);
  query.t = flat - query.b * static_cast<Index>(p.queries);
  query.guess = -1;
  masks[lane] = true;

  const int end_segment = task.stream.first_segment + task.stream.num_segments;
  for (int i = task.stream.first_segment; i < end_segment; ++i) {
    const SegmentTask& segment = launch.segments[i];
    const int64_t own_end =
        i + 1 < end_segment ? launch.segments[i + 1].first_vector : task.vectors;
    const int64_t from = unit.first > segment.first_vector ? unit.first : segment.first_vector;
    const int64_t to = unit.end < own_end ? unit.end : own_end;
    if (from >= to && !writes_mask) continue;
    const int64_t channel = segment.begin + (from - segment.first_vector) * segment.count;
    if (lane < unit.count) {
      masks[lane] &= findQuery<Form>(p, task, segment.method, channel, &query, &slots[lane]);
    }
    __syncwarp();
    letNextLaunchBegin();
    if (from < to) {
      const Part<Form> part = {
          p, task, slots, masks, channel, unit.count, static_cast<int>(to - from)};
      writeSegment<Out>(part, segment.method, segment.in_vecs);
    }
    __syncwarp();  // the slots are overwritten by the next round
  }
  if constexpr (!std::is_same_v<Out, Words>) {
    if (writes_mask && task.mask_of_ranges) readBehind(launch, number, slots, states, masks);
  }
  if (writes_mask && lane < unit.count) {
    p.mask[query.b * p.mask_stride[0] + query.t * p.mask_stride[1] + unit.n * p.mask_stride[2]] =
        masks[lane] ? 1 : 0;
  }
}

template <class Out, class Form>
__global__ void __launch_bounds__(kWarp* kWarpsPerBlock, kBlocksThatFit<Form>)
    fuseKernel(const __grid_constant__ FuseLaunch<Form> launch) {
  __shared__ QuerySlot<Form> block_slots[kWarpsPerBlock][kWarp];
  __shared__ QueryState<typename Form::Index> block_states[kWarpsPerBlock][kWarp];
  __shared__ bool block_masks[kWarpsPerBlock][kWarp];
  const auto warp = static_cast<int>(threadIdx.x / kWarp);
  waitForLaunchesAhead();  // nothing is read or written before the launches ahead are done
  const int64_t warps = static_cast<int64_t>(gridDim.x) * kWarpsPerBlock;
  for (int64_t unit = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + warp; unit < launch.units;
       unit += warps) {
    doUnit<Out>(launch, unit, block_slots[warp], block_states[warp], block_masks[warp]);
  }
}

}  // namespace any
}  // namespace rbc::cuda
