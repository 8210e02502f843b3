// How a warp of the kernel of narrow streams copies a recording's samples into shared memory.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "fuse/fuse_narrow_arguments.cuh"
#include "fuse/search_shared.cuh"

namespace rbc::cuda {
namespace narrow_streams {

__device__ __forceinline__ int laneOf() { return static_cast<int>(threadIdx.x % kWarp); }

// What the first thread of the warp has: the compiler sees that it is the same for all.
__device__ __forceinline__ int32_t ofWarp(int32_t number) { return __shfl_sync(~0u, number, 0); }

// A row on its way into shared memory, by a warp. There it begins as far from a multiple of 16
// bytes as in memory, so that most of it goes in words of 16 bytes.
template <class Element>
struct Copy {
  const char* from;
  char* to;
  int head;  // bytes before those words
  int body;  // of those words
  int all;

  __device__ __forceinline__ Copy(const char* row, int32_t count, char* slot) : from(row) {
    const auto skew = static_cast<int>(reinterpret_cast<uintptr_t>(row) % kWordBytes);
    to = slot + skew;
    all = count * static_cast<int>(sizeof(Element));
    head = min((kWordBytes - skew) % kWordBytes, all);
    body = (all - head) / kWordBytes * kWordBytes;
  }

  __device__ __forceinline__ void copyWords() const {
#pragma unroll 4
    for (int i = head + laneOf() * kWordBytes; i < head + body; i += kWarp * kWordBytes)
      __pipeline_memcpy_async(to + i, from + i, kWordBytes);
  }
  // The elements before and behind: fewer than two words.
  __device__ __forceinline__ void copyEnds() const {
    int i = laneOf() * static_cast<int>(sizeof(Element));
    if (i >= head) i += body;
    if (i >= all) return;
    if constexpr (sizeof(Element) >= 4) {
      __pipeline_memcpy_async(to + i, from + i, sizeof(Element));
    } else {
      *reinterpret_cast<Element*>(to + i) = *reinterpret_cast<const Element*>(from + i);
    }
  }
  __device__ __forceinline__ const Element* row() const {
    return reinterpret_cast<const Element*>(to);
  }
};

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
  const Copy<Time> times(recording.times.first, count, shared + task.times_at);
  const Copy<In> values(task.values.at(b, recording.begin), count * task.count * task.vectors,
                        shared + task.values_at);
  times.copyWords();
  values.copyWords();
  times.copyEnds();
  values.copyEnds();
  __pipeline_commit();
  return {times.row(), values.row(), count, timesLeftOf(count)};
}

}  // namespace narrow_streams
}  // namespace rbc::cuda
