// The kernel of any fusion: its arguments, and the code that finds queries and reads samples.
#pragma once

#include "fuse/find_sample.cuh"
#include "fuse/select.h"
#include "fuse_problem.h"
#include "real.h"
#include "runtime/aligned_vec.cuh"
#include "runtime/fast_divmod.h"

namespace rbc::cuda {
namespace any {

// ---- The arguments of the kernel of any fusion.

// Channels of one method, as vectors: the channels that a lane processes at once.
struct SegmentTask {
  int64_t begin;         // its first channel
  int64_t first_vector;  // relative to the stream's
  Method method;
  int32_t count;  // channels per vector
  bool in_vecs;   // vectors of values are aligned
};

struct StreamTask {
  FuseStream stream;
  int64_t first_unit;
  int64_t vectors;
  int64_t range;      // vectors per unit
  FastDivmod ranges;  // per row
  int32_t group;      // queries per unit
  int32_t value_bytes;
  int32_t out_bytes;
  float pace;      // for prefetchTimes()
  bool in_double;  // computes in double
  bool affine_in_vecs;
  bool mask_of_ranges;  // all ranges of a row affect its mask
};

// The arguments that only the causal form has.
template <class Form, bool kCausal = Form::kCausal>
struct CausalLaunch {};
template <class Form>
struct CausalLaunch<Form, true> {
  TimeOffset lag;
  Arrivals arrivals[Form::kStreams];
  ArrivalLines lines[Form::kStreams];
  SegmentAge ages[Form::kSegments];
};

template <class Form>
struct FuseLaunch : CausalLaunch<Form> {
  PlainFuse problem;
  FastDivmod per_row;  // queries
  int64_t units;
  StreamTask streams[Form::kStreams];
  SegmentTask segments[Form::kSegments];
};

// ---- Where the sample and the output of a query begin.

// Where the rows around a query's sample begin, relative to it; 0 for rows that the method does not
// use.
template <bool kMasked>
struct RowsAround {};
template <>
struct RowsAround<true> {
  int64_t before;
  int64_t right;
  int64_t after;
};

// A query of a warp: where its sample and its output begin, at the unit's first channel.
template <class Number, bool kMasked>
struct Query : RowsAround<kMasked> {
  const char* source;  // null: write the fill value
  char* target;
  Weights<Number> weights;

  // The rows around it, `step` apart if none is missing.
  __device__ __forceinline__ RowsAround<true> around(int64_t step) const {
    if constexpr (kMasked) {
      return {this->before, weights.w != 0 ? this->right : 0, this->after};
    } else {
      const int64_t right = weights.w != 0 ? step : 0;
      return {weights.before ? -right : 0, right, weights.after ? 2 * right : 0};
    }
  }
};

// Memory for either kind.
template <class Form, bool kDoubles = Form::kDoubles>
union QuerySlot {
  Query<float, Form::kMasked> in_float;
  Query<double, Form::kMasked> in_double;
};
template <class Form>
union QuerySlot<Form, false> {
  Query<float, Form::kMasked> in_float;
};

// The state of a lane's query between segments: in shared memory, to save registers.
template <class Index>
struct QueryState {
  Index b;
  Index t;
  Index guess;  // its sample
};

// ---- samples, all of them or only the valid ones ------------------------------------------------

template <class Time, class Form, class Index>
__device__ __forceinline__ auto recordingFor(const SampleRows<Index>& rows, const FuseStream& s,
                                             Index b) {
  if constexpr (Form::kMasked) {
    return recordingOf<Time>(rows, sampleMaskOf<Index>(s), b);
  } else {
    return recordingOf<Time>(rows, b);
  }
}

// The weights of a position, and the distances of the rows around it; a row has `step` bytes.
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
  Neighbours<Index> neighbours = {i, i, i};
  if (position.weight != 0 && takesFour(method)) {
    neighbours = neighboursOf(samples.valid, n, i);
  } else if (position.weight != 0) {
    neighbours.right = rightOf(samples.valid, n, i);
  }
  const Weights<double> weights = weightsOf(method, samples.times, n, position, neighbours);
  *around = {weights.before ? (neighbours.before - i) * step : 0, (neighbours.right - i) * step,
             weights.after ? (neighbours.after - i) * step : 0};
  return weights;
}

// Writes the slot of a query for the channels starting at `channel`, and returns its mask.
template <class Time, class Form, class Index>
__device__ __forceinline__ bool findQueryAt(const PlainFuse& p, const StreamTask& task,
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
__device__ __forceinline__ bool findQuery(const PlainFuse& p, const StreamTask& task, Method method,
                                          int64_t channel, QueryState<Index>* query,
                                          QuerySlot<Form>* slot) {
  switch (p.time_dtype) {
    case DType::F32: return findQueryAt<float>(p, task, method, channel, query, slot);
    case DType::F64: return findQueryAt<double>(p, task, method, channel, query, slot);
    default: return findQueryAt<int64_t>(p, task, method, channel, query, slot);
  }
}

// The same where each query has samples of its own, for segment i of stream n.
template <class Time, class Form, class Index>
__device__ __forceinline__ bool findExistingAt(const FuseLaunch<Form>& launch, int n, int i,
                                               int64_t channel, QueryState<Index>* query,
                                               QuerySlot<Form>* slot) {
  using Math = TimeMath<Time>;
  const PlainFuse& p = launch.problem;
  const StreamTask& task = launch.streams[n];
  const FuseStream& s = task.stream;
  const Method method = launch.segments[i].method;
  const Index b = query->b;
  const Index t = query->t;
  const auto samples =
      recordingOf<Time>(sampleRowsOf<Time, Index>(s, 0), sampleMaskOf<Index>(s), b);
  auto answer = Answer<Time, Index>::alone(SamplePosition<Time, Index>::none());
  const auto queries = queryRowsOf<Time, Index>(p);
  if (queries.lengths.data == nullptr || t < queries.lengths[b]) {
    const Time given = *reinterpret_cast<const Time*>(queries.times.at(b, t));
    const Arrivals& arrivals = launch.arrivals[n];
    const ArrivedSamples<Time, Index> existing = {
        samples.valid,
        arrivals.at(b, samples.begin, sizeof(Time)),
        arrivals.stride[1] * static_cast<int>(sizeof(Time)),
        Math::later(given, offsetAs<Time>(launch.lag)),
        samples.begin,
        minimaOf<Time>(launch.lines, n, b, s.samples)};
    answer = answerTo(
        samples.times, samples.count, Math::shifted(given, offsetAs<Time>(s.clock_offset)),
        rulesOf<Time>(s, method), ageRuleOf<Time>(launch.ages[i]), existing, &query->guess);
  }
  const auto& position = answer.position;
  const Neighbours<Index>& neighbours = answer.neighbours;
  const Weights<double> weights =
      weightsOf(method, samples.times, samples.count, position, neighbours);
  const int64_t step = s.values_stride[1] * task.value_bytes;
  const auto away = [&](Index sample) { return (sample - position.index) * step; };
  const RowsAround<true> around = {weights.before ? away(neighbours.before) : 0,
                                   weights.w != 0 ? away(neighbours.right) : 0,
                                   weights.after ? away(neighbours.after) : 0};
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
  if (task.in_double) {
    slot->in_double = {around, source, target, weights};
  } else {
    slot->in_float = {around, source, target, weights.template as<float>()};
  }
  return position.mask;
}

// For segment i of stream n.
template <class Form, class Index>
__device__ __forceinline__ bool findQuery(const FuseLaunch<Form>& launch, int n, int i,
                                          int64_t channel, QueryState<Index>* query,
                                          QuerySlot<Form>* slot) {
  if constexpr (Form::kCausal) {
    switch (launch.problem.time_dtype) {
      case DType::F32: return findExistingAt<float>(launch, n, i, channel, query, slot);
      case DType::F64: return findExistingAt<double>(launch, n, i, channel, query, slot);
      default: return findExistingAt<int64_t>(launch, n, i, channel, query, slot);
    }
  } else {
    return findQuery<Form>(launch.problem, launch.streams[n], launch.segments[i].method, channel,
                           query, slot);
  }
}

// ---- How a warp of the kernel of any fusion iterates over its part of a segment, and reads and
// writes channels.

inline constexpr int kWarp = 32;

// A warp's part of one segment: `count` queries times `width` vectors.
template <class Form>
struct Part {
  const PlainFuse& problem;
  const StreamTask& task;
  const QuerySlot<Form>* slots;
  bool* masks;      // of the queries: cleared where a quaternion is invalid
  int64_t channel;  // the first channel
  int count;
  int width;
};

// Calls visit(query, v, mask) for the lane's items, 32 apart.
template <class Number, class Form, class Visitor>
__device__ __forceinline__ void visitItems(const Part<Form>& part, Visitor&& visit) {
  const auto lane = static_cast<int>(threadIdx.x % kWarp);
  const int width = part.width;
  const int step_queries = kWarp / width;
  const int step_vectors = kWarp - step_queries * width;
  int k = lane / width;
  int v = lane - k * width;
  while (k < part.count) {
    visit(reinterpret_cast<const Query<Number, Form::kMasked>&>(part.slots[k]), v, part.masks + k);
    k += step_queries;
    v += step_vectors;
    if (v >= width) {
      v -= width;
      ++k;
    }
  }
}

// ---- access to channels -------------------------------------------------------------------------

// kElements adjacent channels at once.
template <class In, class Out, int kElements>
struct VecAccess {
  using Number = Compute<In>;
  using Raw = AlignedVec<In, kElements>;
  static constexpr int kCount = kElements;

  template <class Form>
  __device__ __forceinline__ explicit VecAccess(const Part<Form>&) {}

  __device__ __forceinline__ Raw read(const char* row, int v) const {
    return load<Raw>(row + v * static_cast<int>(sizeof(Raw)));
  }
  static __device__ __forceinline__ Number number(const Raw& raw, int i) {
    return widen(raw.element[i]);
  }
  __device__ __forceinline__ void write(char* row, int v,
                                        const AlignedVec<Out, kCount>& vec) const {
    store(row + v * static_cast<int>(sizeof vec), vec);
  }
};

// A channel with a known dtype and any stride.
template <class In, class Out>
struct SingleAccess {
  using Number = Compute<In>;
  using Raw = AlignedVec<In, 1>;
  static constexpr int kCount = 1;

  template <class Form>
  __device__ __forceinline__ explicit SingleAccess(const Part<Form>& part)
      : in_step(part.task.stream.values_stride[2] * static_cast<int>(sizeof(In))),
        out_step(part.problem.out_stride[2] * static_cast<int>(sizeof(Out))) {}

  __device__ __forceinline__ Raw read(const char* row, int v) const {
    return load<Raw>(row + v * in_step);
  }
  static __device__ __forceinline__ Number number(const Raw& raw, int) {
    return widen(raw.element[0]);
  }
  __device__ __forceinline__ void write(char* row, int v, const AlignedVec<Out, 1>& vec) const {
    store(row + v * out_step, vec);
  }

  const int64_t in_step;  // from channel to channel, in bytes
  const int64_t out_step;
};

// Channels of any dtype with the given compute type, one by one.
template <class ComputeType, class Out, int kElements>
struct AnyAccess {
  using Number = ComputeType;
  struct Raw {
    Number element[kElements];
  };
  static constexpr int kCount = kElements;

  template <class Form>
  __device__ __forceinline__ explicit AnyAccess(const Part<Form>& part)
      : dtype(part.task.stream.values_dtype),
        in_step(part.task.stream.values_stride[2] * part.task.value_bytes),
        out_step(part.problem.out_stride[2] * static_cast<int>(sizeof(Out))) {}

  __device__ __forceinline__ Raw read(const char* row, int v) const {
    Raw raw;
#pragma unroll
    for (int i = 0; i < kCount; ++i) raw.element[i] = readOne(row + (v * kCount + i) * in_step);
    return raw;
  }
  static __device__ __forceinline__ Number number(const Raw& raw, int i) { return raw.element[i]; }
  __device__ __forceinline__ void write(char* row, int v,
                                        const AlignedVec<Out, kCount>& vec) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      store(row + (v * kCount + i) * out_step, AlignedVec<Out, 1>{{vec.element[i]}});
  }

 private:
  __device__ __forceinline__ Number readOne(const char* at) const {
    switch (dtype) {
#define RBC_CASE(name, storage, code, text)                      \
  case DType::name:                                              \
    if constexpr (std::is_same_v<Compute<storage>, Number>) {    \
      return widen(load<AlignedVec<storage, 1>>(at).element[0]); \
    }                                                            \
    break;
      RBC_DTYPES(RBC_CASE)
#undef RBC_CASE
    }
    return Number(0);
  }

  const DType dtype;
  const int64_t in_step;
  const int64_t out_step;
};

}  // namespace any

}  // namespace rbc::cuda
