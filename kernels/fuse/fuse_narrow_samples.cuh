// How a warp of the kernel of narrow streams copies a recording's samples into shared memory.
#pragma once

#include "fuse/copy_row.cuh"
#include "fuse/fuse_narrow_arguments.cuh"
#include "fuse/search_shared.cuh"

namespace rbc::cuda {
namespace narrow_streams {

__device__ __forceinline__ int laneOf() { return static_cast<int>(threadIdx.x % kWarp); }

// What the first thread of the warp has: the compiler sees that it is the same for all.
__device__ __forceinline__ int32_t ofWarp(int32_t number) { return __shfl_sync(~0u, number, 0); }

// A recording's samples of a stream, in shared memory.
template <class In, class Time>
struct Samples {
  const Time* times;
  const In* values;
  int32_t count;
  int32_t left;  // timesLeftOf(count)

  __device__ __forceinline__ Ends<Time> ends() const { return {times[0], times[count - 1]}; }
};

// Those of a warp, on their way.
template <class In, class Time>
__device__ __forceinline__ Samples<In, Time> copySamples(const Task<Time>& task, int32_t b,
                                                         char* shared) {
  const Recording<Time, int32_t> recording = recordingOf<Time>(task.samples, b);
  const int32_t count = ofWarp(recording.count);
  const CopyRow<Time> times(recording.times.first, count, shared + task.times_at);
  const CopyRow<In> values(task.values.at(b, recording.begin), count * task.count * task.vectors,
                           shared + task.values_at);
  const int lane = laneOf();
  times.copyWords(lane, kWarp);
  values.copyWords(lane, kWarp);
  times.copyEnds(lane);
  values.copyEnds(lane);
  __pipeline_commit();
  return {times.row(), values.row(), count, timesLeftOf(count)};
}

}  // namespace narrow_streams
}  // namespace rbc::cuda
