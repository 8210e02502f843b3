// What the kernel of any fusion finds out of a query: where its sample and its output begin.
#pragma once

#include "fuse/find_sample.cuh"
#include "fuse/fuse_any_arguments.cuh"

namespace rbc::cuda {
namespace any {

// What a warp keeps of a query: where its sample and its output begin, at the unit's first channel.
template <class Number>
struct Query {
  const char* source;  // null: write the fill value
  char* target;
  Weights<Number> weights;
};

// Room for either kind.
template <bool kDoubles>
union QuerySlot {
  Query<float> in_float;
  Query<double> in_double;
};
template <>
union QuerySlot<false> {
  Query<float> in_float;
};

// What a lane keeps of its query from segment to segment: in shared memory, for the registers.
template <class Index>
struct QueryState {
  Index b;
  Index t;
  Index guess;  // at its sample
};

// Writes the slot of a query for the channels from `channel` on, and returns its mask.
template <class Time, bool kDoubles, class Index>
__device__ __forceinline__ bool findQuery(const FuseProblem& p, const StreamTask& task,
                                          Method method, int64_t channel, QueryState<Index>* query,
                                          QuerySlot<kDoubles>* slot) {
  const FuseStream& s = task.stream;
  const Index b = query->b;
  const Index t = query->t;
  const auto rows = sampleRowsOf<Time, Index>(s, task.pace);
  if (query->guess < 0) prefetchTimes(rows, b, t);
  const auto samples = recordingOf<Time>(rows, b);
  const auto position =
      findSample(queryRowsOf<Time, Index>(p), b, t, offsetAs<Time>(s.clock_offset), samples,
                 rulesOf<Time>(s, method), &query->guess);
  const char* source = nullptr;
  if (position.index >= 0) {
    const auto values = batchRows<Index>(static_cast<const char*>(s.values), s.values_stride[0],
                                         s.values_stride[1], task.value_bytes);
    source = values.at(b, samples.begin + position.index) +
             channel * s.values_stride[2] * task.value_bytes;
  }
  const auto out =
      batchRows<Index>(static_cast<char*>(p.out), p.out_stride[0], p.out_stride[1], task.out_bytes);
  char* target = out.at(b, t) + (s.out_begin + channel) * p.out_stride[2] * task.out_bytes;
  const Weights<double> weights = weightsOf(method, samples.times, samples.count, position);
  if constexpr (kDoubles) {
    if (task.in_double) {
      slot->in_double = {source, target, weights};
      return position.mask;
    }
  }
  slot->in_float = {source, target, weights.as<float>()};
  return position.mask;
}

template <bool kDoubles, class Index>
__device__ __forceinline__ bool findQuery(const FuseProblem& p, const StreamTask& task,
                                          Method method, int64_t channel, QueryState<Index>* query,
                                          QuerySlot<kDoubles>* slot) {
  switch (p.time_dtype) {
    case DType::F32: return findQuery<float>(p, task, method, channel, query, slot);
    case DType::F64: return findQuery<double>(p, task, method, channel, query, slot);
    default: return findQuery<int64_t>(p, task, method, channel, query, slot);
  }
}

}  // namespace any
}  // namespace rbc::cuda
