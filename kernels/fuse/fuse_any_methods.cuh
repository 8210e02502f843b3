// The methods of the kernel of any fusion, segment by segment.
#pragma once

#include "element_of.h"
#include "fuse/angle_in_turn.cuh"
#include "fuse/fuse_any_access.cuh"
#include "interpolate.h"
#include "slerp.h"

namespace rbc::cuda {
namespace any {

// A sample as it is.
template <class Access>
__device__ __forceinline__ bool take(const typename Access::Raw& raw,
                                     typename Access::Number (&out)[Access::kCount]) {
#pragma unroll
  for (int i = 0; i < Access::kCount; ++i) out[i] = Access::number(raw, i);
  return true;
}

// Returns whether there is a value: quaternions may be none. kMethod is the method, but kAngle all
// angles.
template <Method kMethod, class Access, class Number, bool kMasked>
__device__ __forceinline__ bool interpolate(const Access& access,
                                            const Query<Number, kMasked>& query, int64_t step,
                                            int v, Method method, DType angle_dtype,
                                            Number (&out)[Access::kCount]) {
  constexpr int kCount = Access::kCount;
  const Weights<Number>& k = query.weights;
  const char* source = query.source;
  // No load waits for another: where a row is not needed, one that is loaded anyway stands for it.
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
  const RealArray& mean = task.stream.mean;
  const RealArray& inv_std = task.stream.inv_std;
  if (kCount > 1 && task.affine_in_vecs) {
    using P = AlignedVec<float, kCount>;
    P center = {};
    if (mean.data != nullptr) center = load<P>(static_cast<const float*>(mean.data) + channel);
    P scale;
#pragma unroll
    for (int i = 0; i < kCount; ++i) scale.element[i] = 1;
    if (inv_std.data != nullptr) scale = load<P>(static_cast<const float*>(inv_std.data) + channel);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      values[i] = normalized(values[i], static_cast<Number>(center.element[i]),
                             static_cast<Number>(scale.element[i]));
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    values[i] =
        normalized(values[i], mean.data != nullptr ? mean.at<Number>(channel + i) : Number(0),
                   inv_std.data != nullptr ? inv_std.at<Number>(channel + i) : Number(1));
  }
}

template <Method kMethod, class Access, class Out, class Form>
__device__ __forceinline__ void writeBy(const Part<Form>& part, Method method = kMethod) {
  using Number = typename Access::Number;
  constexpr int kCount = Access::kCount;
  const FuseStream& s = part.task.stream;
  const Access access(part);
  const int64_t step = s.values_stride[1] * part.task.value_bytes;
  const bool affine = s.mean.data != nullptr || s.inv_std.data != nullptr;
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

// Clears the masks of queries that have a quaternion that is none.
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

// Floats of a lane: 16 bytes of out. Doubles: two, for the registers.
template <class In, class Out>
constexpr int kVecCount = sizeof(In) == 8 ? 2 : 16 / static_cast<int>(sizeof(Out));

// Linear and the steps, of floats.
template <class In, class Out, class Form>
__device__ __forceinline__ void writeLines(const Part<Form>& part, bool in_vecs) {
  if (in_vecs) {
    writeBy<Method::kLinear, VecAccess<In, Out, kVecCount<In, Out>>, Out>(part);
  } else {
    writeBy<Method::kLinear, SingleAccess<In, Out>, Out>(part);
  }
}

// Any method, of any dtype.
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

// Integers that stay what they are.
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

// What the output of integers is called as a type: words of any size.
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

}  // namespace any
}  // namespace rbc::cuda
