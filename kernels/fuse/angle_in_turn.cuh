// Angles in a turn, as function calls: they are rare, and inlined they would cost the other methods
// registers.
#pragma once

#include <type_traits>

#include "interpolate.h"
#include "real.h"
#include "runtime/aligned_vec.cuh"

namespace rbc::cuda {

template <class Out>
constexpr DType kDTypeOf = std::is_same_v<Out, f16>     ? DType::F16
                           : std::is_same_v<Out, bf16>  ? DType::BF16
                           : std::is_same_v<Out, float> ? DType::F32
                                                        : DType::F64;

// For a method that isInTurn(), with results of the dtype `out`.
template <class In, class Number, int kCount>
__device__ __noinline__ AlignedVec<Number, kCount> anglesInTurn(AlignedVec<In, kCount> v1,
                                                                AlignedVec<In, kCount> v2, Number w,
                                                                Method method, DType out) {
  const Turn<Number> turn = turnOf<Number>(method, out);
  AlignedVec<Number, kCount> angles;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    angles.element[i] = lerpInTurn(static_cast<Number>(widen(v1.element[i])),
                                   static_cast<Number>(widen(v2.element[i])), w, turn);
  }
  return angles;
}

template <class Number>
__device__ __forceinline__ Number angleInTurn(Number v1, Number v2, Number w, Method method,
                                              DType out) {
  const AlignedVec<Number, 1> left = {{v1}};
  const AlignedVec<Number, 1> right = {{v2}};
  return anglesInTurn<Number, Number, 1>(left, right, w, method, out).element[0];
}

}  // namespace rbc::cuda
