// The state of a query in a block, and the methods on vectors of its channels.
#pragma once

#include <cmath>

#include "fuse/angle_in_turn.cuh"
#include "fuse/find_sample.cuh"
#include "fuse/fuse_rows_instances.h"
#include "interpolate.h"
#include "runtime/aligned_vec.cuh"
#include "slerp.h"

namespace rbc::cuda {
namespace rows {

template <class Number, Kind kKind, bool kMasked = false>
struct QueryWeight {
  Number w;
};
template <class Number>
struct QueryWeight<Number, Kind::kFourRows, false> : Weights<Number> {};
template <class Number, Kind kKind>
struct QueryWeight<Number, kKind, true> {
  Number w;
  int32_t ahead;  // samples from it to the right neighbour; 0 if w is 0
};

// Its mask, if that depends on its rows.
template <Kind kKind>
struct QueryMask {};
template <>
struct QueryMask<Kind::kQuaternions> {
  bool mask;
};

// The state of a query in a block: where its sample and its output begin, at the unit's first
// channel.
template <class Number, Kind kKind, bool kMasked = false>
struct Query : QueryMask<kKind> {
  const char* source;  // null: write the fill value
  char* target;
  QueryWeight<Number, kKind, kMasked> weight;
};

// The rows of values for one row of the output.
template <class P, Kind kKind>
struct RowVecs {
  P v1;
  P v2;
};
template <class P>
struct RowVecs<P, Kind::kFourRows> {
  P v0;
  P v1;
  P v2;
  P v3;
};

template <class P, class Number, Kind kKind>
__device__ __forceinline__ void loadRows(const Query<Number, kKind, true>& query, int v,
                                         int32_t step, RowVecs<P, kKind>* rows) {
  static_assert(kKind == Kind::kLine || kKind == Kind::kTwoRows);
  const char* source = stepped(query.source, v, int32_t{sizeof(P)});
  rows->v1 = load<P>(source);
  rows->v2 = load<P>(stepped(source, query.weight.ahead, step));
}

template <class P, class Number, Kind kKind>
__device__ __forceinline__ void loadRows(const Query<Number, kKind, false>& query, int v,
                                         int32_t step, RowVecs<P, kKind>* rows) {
  // No load waits for another: if a row is not needed, one that is loaded anyway is used instead.
  const char* source = stepped(query.source, v, int32_t{sizeof(P)});
  const int64_t ahead = query.weight.w != 0 ? step : 0;
  rows->v1 = load<P>(source);
  rows->v2 = load<P>(source + ahead);
  if constexpr (kKind == Kind::kFourRows) {
    rows->v0 = load<P>(source - (query.weight.before ? ahead : 0));
    rows->v3 = load<P>(source + (query.weight.after ? 2 * ahead : 0));
  }
}

// Lines between vectors with a result that is not finite. Not inlined: it is rare, and its branches
// among the others took up to 12 % more time.
template <class In, class Number, int kCount>
__device__ __noinline__ AlignedVec<Number, kCount> lineNotFinite(AlignedVec<In, kCount> v1,
                                                                 AlignedVec<In, kCount> v2,
                                                                 Number w) {
  AlignedVec<Number, kCount> out;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    out.element[i] = lerp(widen(v1.element[i]), widen(v2.element[i]), w);
  }
  return out;
}

// For a weight other than 0.
template <class In, class Number, int kCount>
__device__ __forceinline__ void blendLine(const AlignedVec<In, kCount>& left,
                                          const AlignedVec<In, kCount>& right, Number w,
                                          Number (&out)[kCount]) {
  Number v1[kCount];
  Number v2[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    v1[i] = widen(left.element[i]);
    v2[i] = widen(right.element[i]);
  }
  if (lerpFinite(v1, v2, w, out)) return;
  const auto all = lineNotFinite<In, Number, kCount>(left, right, w);
#pragma unroll
  for (int i = 0; i < kCount; ++i) out[i] = all.element[i];
}

template <class In, class Number, int kCount, bool kMasked>
__device__ __forceinline__ void blend(const RowVecs<AlignedVec<In, kCount>, Kind::kLine>& rows,
                                      Method,
                                      const QueryWeight<Number, Kind::kLine, kMasked>& weight,
                                      Number (&out)[kCount]) {
  if (weight.w != 0) return blendLine(rows.v1, rows.v2, weight.w, out);
#pragma unroll
  for (int i = 0; i < kCount; ++i) out[i] = widen(rows.v1.element[i]);
}

// Returns whether all quaternions are certainly rotations, as far as that is known without checking
// each of their components.
template <class In, class Number, int kCount, Kind kKind, bool kMasked>
__device__ __forceinline__ bool blend(const RowVecs<AlignedVec<In, kCount>, kKind>& rows,
                                      Method method,
                                      const QueryWeight<Number, kKind, kMasked>& weight,
                                      DType angle_dtype, Number (&out)[kCount]) {
  const Number w = weight.w;
  bool sure = false;
  if (isInTurn(method)) {
    const auto angles = anglesInTurn<In, Number, kCount>(rows.v1, rows.v2, w, method, angle_dtype);
#pragma unroll
    for (int i = 0; i < kCount; ++i) out[i] = angles.element[i];
  } else if (w == 0) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) out[i] = widen(rows.v1.element[i]);
  } else if (kKind == Kind::kQuaternions && method == Method::kSlerp) {
    sure = true;
#pragma unroll
    for (int i = 0; i + 4 <= kCount; i += 4) {
      Number q1[4];
      Number q2[4];
      Number q[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        q1[j] = widen(rows.v1.element[i + j]);
        q2[j] = widen(rows.v2.element[i + j]);
      }
      const Number squares = slerp(q1, q2, w, q);
      sure &= squares > 0 && squares < static_cast<Number>(INFINITY);
#pragma unroll
      for (int j = 0; j < 4; ++j) out[i + j] = q[j];
    }
  } else if (method == Method::kAngle) {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      out[i] = lerpAngle(widen(rows.v1.element[i]), widen(rows.v2.element[i]), w);
  } else {
    blendLine(rows.v1, rows.v2, w, out);
  }
  return sure;
}

template <class In, class Number, int kCount>
__device__ __forceinline__ void blend(const RowVecs<AlignedVec<In, kCount>, Kind::kFourRows>& rows,
                                      Method method,
                                      const QueryWeight<Number, Kind::kFourRows, false>& weight,
                                      Number (&out)[kCount]) {
  const auto each = [&](auto formula) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      out[i] = formula(widen(rows.v0.element[i]), widen(rows.v1.element[i]),
                       widen(rows.v2.element[i]), widen(rows.v3.element[i]));
    }
  };
  if (weight.w == 0) {
    each([](Number, Number v1, Number, Number) { return v1; });
  } else if (method == Method::kCubic) {
    each([&](Number v0, Number v1, Number v2, Number v3) { return cubic(v0, v1, v2, v3, weight); });
  } else if (weight.before & weight.after) {
    each([&](Number v0, Number v1, Number v2, Number v3) {
      return pchipInside(v0, v1, v2, v3, weight);
    });
  } else {
    // With two samples it is a line, for streams whose method uses only two.
    each([&](Number v0, Number v1, Number v2, Number v3) {
      return pchipAtEnd(v0, v1, v2, v3, weight);
    });
  }
}

// Whether both quaternions for the elements from the i-th on are rotations.
template <class In, int kCount>
__device__ __forceinline__ bool areRotations(
    const RowVecs<AlignedVec<In, kCount>, Kind::kQuaternions>& rows, int i) {
  Compute<In> q1[4];
  Compute<In> q2[4];  // q1, if the weight is 0
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    q1[j] = widen(rows.v1.element[i + j]);
    q2[j] = widen(rows.v2.element[i + j]);
  }
  return isRotation(q1) & isRotation(q2);
}

template <class Number, int kCount>
__device__ __forceinline__ void normalize(const float* shifts, const float* scales, int channel,
                                          Number (&values)[kCount]) {
  using P = AlignedVec<float, kCount>;
  P shift = {};
  P scale;
#pragma unroll
  for (int i = 0; i < kCount; ++i) scale.element[i] = 1;
  if (shifts != nullptr) shift = load<P>(shifts + channel);
  if (scales != nullptr) scale = load<P>(scales + channel);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    values[i] = normalized(values[i], static_cast<Number>(shift.element[i]),
                           static_cast<Number>(scale.element[i]));
  }
}

}  // namespace rows
}  // namespace rbc::cuda
