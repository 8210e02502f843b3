// The kernel of any fusion: methods, the kernel itself, and the launch of one of its forms.
#pragma once

#include <algorithm>
#include <type_traits>

#include "element_of.h"
#include "fuse/angle_in_turn.cuh"
#include "fuse/fuse_any_reads.cuh"
#include "fuse/stream_checks.h"
#include "interpolate.h"
#include "runtime/launch.h"
#include "runtime/pdl.cuh"
#include "slerp.h"
#include "visit_dtype.h"

namespace rbc::cuda {
namespace any {

// ---- The methods of the kernel of any fusion, segment by segment.

// An unchanged sample.
template <class Access>
__device__ __forceinline__ bool take(const typename Access::Raw& raw,
                                     typename Access::Number (&out)[Access::kCount]) {
#pragma unroll
  for (int i = 0; i < Access::kCount; ++i) out[i] = Access::number(raw, i);
  return true;
}

// Returns whether there is a value: quaternions may be invalid. kMethod is the method, but kAngle
// stands for all angles.
template <Method kMethod, class Access, class Number, bool kMasked>
__device__ __forceinline__ bool interpolate(const Access& access,
                                            const Query<Number, kMasked>& query, int64_t step,
                                            int v, Method method, DType angle_dtype,
                                            Number (&out)[Access::kCount]) {
  constexpr int kCount = Access::kCount;
  const Weights<Number>& k = query.weights;
  const char* source = query.source;
  // No load waits for another: if a row is not needed, one that is loaded anyway is used instead.
  const RowsAround<true> around = query.around(step);
  const auto v1 = access.read(source, v);
  const auto v2 = access.read(source + around.right, v);
  if constexpr (kMethod == Method::kCubic || kMethod == Method::kPchip) {
    const auto v0 = access.read(source + around.before, v);
    const auto v3 = access.read(source + around.after, v);
    if (k.w == 0) return take<Access>(v1, out);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const Number a0 = Access::number(v0, i);
      const Number a1 = Access::number(v1, i);
      const Number a2 = Access::number(v2, i);
      const Number a3 = Access::number(v3, i);
      out[i] = kMethod == Method::kCubic ? cubic(a0, a1, a2, a3, k) : pchip(a0, a1, a2, a3, k);
    }
  } else if constexpr (kMethod == Method::kSlerp) {
    Number q1[4];
    Number q2[4];  // q1, if w is 0
    take<Access>(v1, q1);
    take<Access>(v2, q2);
    if (!(isRotation(q1) & isRotation(q2))) return false;
    if (k.w == 0) return take<Access>(v1, out);
    slerp(q1, q2, k.w, out);
  } else {
    if constexpr (kMethod == Method::kAngle) {
      if (isInTurn(method)) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
          out[i] =
              angleInTurn(Access::number(v1, i), Access::number(v2, i), k.w, method, angle_dtype);
        }
        return true;
      }
    }
    if (k.w == 0) return take<Access>(v1, out);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const Number a1 = Access::number(v1, i);
      const Number a2 = Access::number(v2, i);
      out[i] = kMethod == Method::kAngle ? lerpAngle(a1, a2, k.w) : lerp(a1, a2, k.w);
    }
  }
  return true;
}

template <int kCount, class Number>
__device__ __forceinline__ void normalize(const StreamTask& task, int64_t channel,
                                          Number (&values)[kCount]) {
  const RealArray& shift = task.stream.shift;
  const RealArray& scale = task.stream.scale;
  if (kCount > 1 && task.affine_in_vecs) {
    using P = AlignedVec<float, kCount>;
    P shifts = {};
    if (shift.data != nullptr) shifts = load<P>(static_cast<const float*>(shift.data) + channel);
    P scales;
#pragma unroll
    for (int i = 0; i < kCount; ++i) scales.element[i] = 1;
    if (scale.data != nullptr) scales = load<P>(static_cast<const float*>(scale.data) + channel);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      values[i] = normalized(values[i], static_cast<Number>(shifts.element[i]),
                             static_cast<Number>(scales.element[i]));
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    values[i] =
        normalized(values[i], shift.data != nullptr ? shift.at<Number>(channel + i) : Number(0),
                   scale.data != nullptr ? scale.at<Number>(channel + i) : Number(1));
  }
}

template <Method kMethod, class Access, class Out, class Form>
__device__ __forceinline__ void writeBy(const Part<Form>& part, Method method = kMethod) {
  using Number = typename Access::Number;
  constexpr int kCount = Access::kCount;
  const FuseStream& s = part.task.stream;
  const Access access(part);
  const int64_t step = s.values_stride[1] * part.task.value_bytes;
  const bool affine = s.shift.data != nullptr || s.scale.data != nullptr;
  const DType angle_dtype = affine ? DType::F64 : kDTypeOf<Out>;
  visitItems<Number>(part, [&](const Query<Number, Form::kMasked>& query, int v, bool* mask) {
    AlignedVec<Out, kCount> result;
    Number values[kCount];
    if (query.source != nullptr &&
        interpolate<kMethod>(access, query, step, v, method, angle_dtype, values)) {
      if (affine) normalize<kCount>(part.task, part.channel + v * kCount, values);
      result = narrowVec<Out>(values);
    } else {
#pragma unroll
      for (int i = 0; i < kCount; ++i) result.element[i] = elementOf<Out>(s.fill_bits);
      if constexpr (kMethod == Method::kSlerp) *mask = false;
    }
    access.write(query.target, v, result);
  });
}

// Clears the masks of queries with an invalid quaternion.
template <class Number, class Form>
__device__ __forceinline__ void testQuaternions(const Part<Form>& part, int64_t quaternions) {
  const FuseStream& s = part.task.stream;
  const AnyAccess<Number, Number, 4> access(part);
  const int64_t size = 4 * s.values_stride[2] * part.task.value_bytes;
  for (int k = 0; k < part.count; ++k) {
    const auto& query = reinterpret_cast<const Query<Number, Form::kMasked>&>(part.slots[k]);
    if (query.source == nullptr) continue;
    for (int64_t v = threadIdx.x % kWarp; v < quaternions; v += kWarp) {
      const char* sample = query.source + v * size;
      for (int samples = query.weights.w != 0 ? 2 : 1; samples > 0; --samples) {
        const auto q = access.read(sample, 0);
        if (!isRotation(q.element)) part.masks[k] = false;
        sample += query.around(s.values_stride[1] * part.task.value_bytes).right;
      }
    }
  }
}

// Floats per lane: 16 bytes of out. Two doubles, to save registers.
template <class In, class Out>
constexpr int kVecCount = sizeof(In) == 8 ? 2 : 16 / static_cast<int>(sizeof(Out));

// Linear and steps, for floats.
template <class In, class Out, class Form>
__device__ __forceinline__ void writeLines(const Part<Form>& part, bool in_vecs) {
  if (in_vecs) {
    writeBy<Method::kLinear, VecAccess<In, Out, kVecCount<In, Out>>, Out>(part);
  } else {
    writeBy<Method::kLinear, SingleAccess<In, Out>, Out>(part);
  }
}

// Any method, for any dtype.
template <class Number, class Out, class Form>
__device__ __forceinline__ void writeAny(const Part<Form>& part, Method method) {
  using Channel = AnyAccess<Number, Out, 1>;
  using Quaternion = AnyAccess<Number, Out, 4>;
  switch (method) {
    case Method::kCubic: return writeBy<Method::kCubic, Channel, Out>(part);
    case Method::kPchip: return writeBy<Method::kPchip, Channel, Out>(part);
    case Method::kSlerp: return writeBy<Method::kSlerp, Quaternion, Out>(part);
    default: break;
  }
  if (isAngle(method)) {
    writeBy<Method::kAngle, Channel, Out>(part, method);
  } else {
    writeBy<Method::kLinear, Channel, Out>(part);
  }
}

// Integers, copied unchanged.
template <class Word, class Form>
__device__ __forceinline__ void copyWords(const Part<Form>& part) {
  const FuseStream& s = part.task.stream;
  const int64_t in_step = s.values_stride[2] * part.task.value_bytes;
  const int64_t out_step = part.problem.out_stride[2] * static_cast<int>(sizeof(Word));
  visitItems<float>(part, [&](const Query<float, Form::kMasked>& query, int v, bool*) {
    AlignedVec<Word, 1> word = {{elementOf<Word>(s.fill_bits)}};
    if (query.source != nullptr) word = load<AlignedVec<Word, 1>>(query.source + v * in_step);
    store(query.target + v * out_step, word);
  });
}

// The type that stands for integer output of any size.
struct Words {};

template <class Out, class Form>
__device__ __forceinline__ void writeSegment(const Part<Form>& part, Method method, bool in_vecs) {
  if constexpr (std::is_same_v<Out, Words>) {
    switch (part.task.out_bytes) {
      case 1: return copyWords<uint8_t>(part);
      case 2: return copyWords<uint16_t>(part);
      case 4: return copyWords<uint32_t>(part);
      default: return copyWords<uint64_t>(part);
    }
  } else {
    if (method == Method::kLinear || isStep(method)) {
      switch (part.task.stream.values_dtype) {
#define RBC_CASE(name, storage, code, text)                                    \
  case DType::name:                                                            \
    if constexpr (Form::kDoubles || std::is_same_v<Compute<storage>, float>) { \
      return writeLines<storage, Out>(part, in_vecs);                          \
    }                                                                          \
    break;
        RBC_FLOAT_DTYPES(RBC_CASE)
#undef RBC_CASE
        default: break;
      }
    }
    if (!Form::kDoubles || !part.task.in_double) return writeAny<float, Out>(part, method);
    if constexpr (Form::kDoubles) writeAny<double, Out>(part, method);
  }
}

// ---- Fusion on CUDA: any streams, every method, one launch.
//
// The streams' work is concatenated and divided into units. A warp processes one unit: a group of
// up to 32 consecutive queries of the flattened [B,T] and a range of one stream's channels. First
// each lane finds the position of one query, then the warp writes the group's output, consecutive
// lanes on consecutive channels, 16 bytes per lane where alignment allows. Properties of streams
// and segments of channels (dtypes, methods) are the same for the whole warp, so branches on them
// cost little.

// Blocks that must fit on a multiprocessor, which bounds the registers: as many as fit with hardly
// any spills.
template <class Form>
inline constexpr int kBlocksThatFit = Form::kCausal   ? 4
                                      : Form::kMasked ? 5
                                                      : 6;

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

// The work of a warp: some queries times some vectors of a stream.
struct Unit {
  int n;          // its stream
  int64_t flat;   // its first query, of the flattened batch
  int count;      // number of queries
  int64_t first;  // first vector
  int64_t end;
};

template <class Form>
__device__ __forceinline__ Unit unitOf(const FuseLaunch<Form>& launch, int64_t unit) {
  const PlainFuse& p = launch.problem;
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

// Clears the masks of a unit's queries if a quaternion after the unit's part of the row is invalid.
// Not inlined: it is rare and would cost the others registers.
template <class Form>
__device__ __noinline__ void readBehind(const FuseLaunch<Form>& launch, int64_t number,
                                        QuerySlot<Form>* slots,
                                        QueryState<typename Form::Index>* states, bool* masks) {
  const auto lane = static_cast<int>(threadIdx.x % kWarp);
  const PlainFuse& p = launch.problem;
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
      masks[lane] &= findQuery(launch, unit.n, i, channel, &states[lane], &slots[lane]);
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
  const PlainFuse& p = launch.problem;
  const Unit unit = unitOf(launch, number);
  const StreamTask& task = launch.streams[unit.n];
  const bool writes_mask = p.valid != nullptr && unit.first == 0;
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
      masks[lane] &= findQuery(launch, unit.n, i, channel, &query, &slots[lane]);
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
    p.valid[query.b * p.valid_stride[0] + query.t * p.valid_stride[1] +
            unit.n * p.valid_stride[2]] = masks[lane] ? 1 : 0;
  }
}

template <class Out, class Form>
__global__ void __launch_bounds__(kWarp* kWarpsPerBlock, kBlocksThatFit<Form>)
    fuseKernel(const __grid_constant__ FuseLaunch<Form> launch) {
  __shared__ QuerySlot<Form> block_slots[kWarpsPerBlock][kWarp];
  __shared__ QueryState<typename Form::Index> block_states[kWarpsPerBlock][kWarp];
  __shared__ bool block_masks[kWarpsPerBlock][kWarp];
  const auto warp = static_cast<int>(threadIdx.x / kWarp);
  waitForLaunchesAhead();  // nothing is read or written before the preceding launches have finished
  const int64_t warps = static_cast<int64_t>(gridDim.x) * kWarpsPerBlock;
  for (int64_t unit = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + warp; unit < launch.units;
       unit += warps) {
    doUnit<Out>(launch, unit, block_slots[warp], block_states[warp], block_masks[warp]);
  }
}

// ---- The launch of the kernel of any fusion, in one of its forms.

template <class Form>
void describe(const Plan& plan, const FuseProblem& p, FuseLaunch<Form>* launch) {
  launch->problem = p;
  launch->per_row = FastDivmod(p.queries);
  launch->units = 0;
  for (int n = 0; n < p.num_streams; ++n) {
    StreamTask& task = launch->streams[n];
    const FuseStream& s = task.stream = p.streams[n];
    task.value_bytes = sizeOf(s.values_dtype);
    task.out_bytes = sizeOf(p.out_dtype);
    task.pace = paceOf(p, s);
    task.in_double = computesInDouble(s.values_dtype);
    task.affine_in_vecs = suitsVecs(s.shift) && suitsVecs(s.scale);
    task.vectors = 0;
    for (int i = s.first_segment; i < s.first_segment + s.num_segments; ++i) {
      const ChannelSegment& segment = p.segments[i];
      const int log2 = plan.count_log2[i];
      launch->segments[i] = {segment.begin, task.vectors, segment.method, 1 << log2,
                             plan.in_vecs[i]};
      task.vectors += segment.count >> log2;
      task.affine_in_vecs &= segment.begin % 4 == 0;
    }
    const Tiling& tiling = plan.tiling[n];
    task.first_unit = launch->units;
    task.range = tiling.range;
    task.ranges = FastDivmod(tiling.ranges);
    task.group = tiling.group;
    task.mask_of_ranges = tiling.ranges > 1 && hasQuaternions(p, s);
    launch->units += tiling.groups * tiling.ranges;
  }
  if constexpr (Form::kCausal) {
    launch->lag = p.causal->lag;
    std::copy_n(p.causal->arrivals, p.num_streams, launch->arrivals);
    std::copy_n(p.causal->ages, p.num_segments, launch->ages);
  }
}

template <class Out, class Form>
cudaError_t launch(const FuseChoice& choice, const FuseProblem& p, const LaunchDevice& device,
                   cudaStream_t cuda_stream) {
  FuseLaunch<Form> arguments;
  describe(choice.any_plan, p, &arguments);
  return launchBlocks(fuseKernel<Out, Form>, &arguments, choice.grid, choice.threads, device,
                      cuda_stream);
}

// Calls visitor(Tag<Out>).
template <class Visitor>
decltype(auto) visitOut(DType out, Visitor&& visitor) {
  return isFloat(out) ? visitFloat(out, visitor) : visitor(Tag<Words>{});
}

}  // namespace any

}  // namespace rbc::cuda
