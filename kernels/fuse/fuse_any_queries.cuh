// What the kernel of any fusion finds out of a query: where its sample and its output begin.
#pragma once

#include "fuse/find_sample.cuh"
#include "fuse/fuse_any_arguments.cuh"

namespace rbc::cuda {
namespace any {

// Where the rows around a query's sample begin, from there: at 0 where the method has no use for them.
template <bool kMasked>
struct RowsAround {};
template <>
struct RowsAround<true> {
  int64_t before;
  int64_t right;
  int64_t after;
};

// What a warp keeps of a query: where its sample and its output begin, at the unit's first channel.
template <class Number, bool kMasked>
struct Query : RowsAround<kMasked> {
  const char* source;  // null: write the fill value
  char* target;
  Weights<Number> weights;

  // The rows around it, `step` apart where none is missing.
  __device__ __forceinline__ RowsAround<true> around(int64_t step) const {
    if constexpr (kMasked) {
      return {this->before, weights.w != 0 ? this->right : 0, this->after};
    } else {
      const int64_t right = weights.w != 0 ? step : 0;
      return {weights.before ? -right : 0, right, weights.after ? 2 * right : 0};
    }
  }
};

// Room for either kind.
template <class Form, bool kDoubles = Form::kDoubles>
union QuerySlot {
  Query<float, Form::kMasked> in_float;
  Query<double, Form::kMasked> in_double;
};
template <class Form>
union QuerySlot<Form, false> {
  Query<float, Form::kMasked> in_float;
};

// What a lane keeps of its query from segment to segment: in shared memory, for the registers.
template <class Index>
struct QueryState {
  Index b;
  Index t;
  Index guess;  // at its sample
};

// ---- samples, all of them or but for the missing ones -------------------------------------------

template <class Time, class Form, class Index>
__device__ __forceinline__ auto recordingFor(const SampleRows<Index>& rows, const FuseStream& s,
                                             Index b) {
  if constexpr (Form::kMasked) {
    return recordingOf<Time>(rows, sampleMaskOf<Index>(s), b);
  } else {
    return recordingOf<Time>(rows, b);
  }
}

// The weights of a position, and how far the rows around it are of which `step` bytes make one.
template <class Time, class Index>
__device__ __forceinline__ Weights<double> weightsBy(Method method,
                                                     const Recording<Time, Index>& samples,
                                                     const SamplePosition<Time, Index>& position,
                                                     int64_t, RowsAround<false>*) {
  return weightsOf(method, samples.times, samples.count, position);
}
template <class Time, class Index>
__device__ __forceinline__ Weights<double> weightsBy(Method method,
                                                     const MaskedRecording<Time, Index>& samples,
                                                     const SamplePosition<Time, Index>& position,
                                                     int64_t step, RowsAround<true>* around) {
  const Index n = samples.count;
  const Index i = position.index;
  Neighbours<Index> beside = {i, i, i};
  if (position.weight != 0 && takesFour(method)) {
    beside = neighboursOf(samples.valid, n, i);
  } else if (position.weight != 0) {
    beside.right = rightOf(samples.valid, n, i);
  }
  const Weights<double> weights = weightsOf(method, samples.times, n, position, beside);
  *around = {weights.before ? (beside.before - i) * step : 0, (beside.right - i) * step,
             weights.after ? (beside.after - i) * step : 0};
  return weights;
}

// Writes the slot of a query for the channels from `channel` on, and returns its mask.
template <class Time, class Form, class Index>
__device__ __forceinline__ bool findQueryAt(const FuseProblem& p, const StreamTask& task,
                                            Method method, int64_t channel,
                                            QueryState<Index>* query, QuerySlot<Form>* slot) {
  const FuseStream& s = task.stream;
  const Index b = query->b;
  const Index t = query->t;
  const auto rows = sampleRowsOf<Time, Index>(s, task.pace);
  if (query->guess < 0) prefetchTimes(rows, b, t);
  auto samples = recordingFor<Time, Form>(rows, s, b);
  const auto position =
      findSample(queryRowsOf<Time, Index>(p), b, t, offsetAs<Time>(s.clock_offset), &samples,
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
  RowsAround<Form::kMasked> around;
  const Weights<double> weights =
      weightsBy(method, samples, position, s.values_stride[1] * task.value_bytes, &around);
  if constexpr (Form::kDoubles) {
    if (task.in_double) {
      slot->in_double = {around, source, target, weights};
      return position.mask;
    }
  }
  slot->in_float = {around, source, target, weights.template as<float>()};
  return position.mask;
}

template <class Form, class Index>
__device__ __forceinline__ bool findQuery(const FuseProblem& p, const StreamTask& task,
                                          Method method, int64_t channel, QueryState<Index>* query,
                                          QuerySlot<Form>* slot) {
  switch (p.time_dtype) {
    case DType::F32: return findQueryAt<float>(p, task, method, channel, query, slot);
    case DType::F64: return findQueryAt<double>(p, task, method, channel, query, slot);
    default: return findQueryAt<int64_t>(p, task, method, channel, query, slot);
  }
}

}  // namespace any
}  // namespace rbc::cuda
