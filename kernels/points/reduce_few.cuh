// Voxels with few points, by some lanes each.
#pragma once

#include "points/reduce_arguments.cuh"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace reduction {

// Of the points begin .. end - 1 in the order, few of them.
template <class In, class Out, int kCount>
__device__ __forceinline__ void reduceFeatures(const ReduceArguments& a, int32_t begin, int32_t end,
                                               int64_t feature, Out (&result)[kCount]) {
  using Number = Compute<In>;
  Number first[kCount];
  loadFeatures<In>(a, a.groups.order[begin], feature, first);
  if (end - begin == 1) {
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      result[k] = isSum(a.mode) ? narrow<Out>(sumOfOne(first[k])) : narrow<Out>(first[k]);
    }
    return;
  }
  Number x[kCount];
  OrderKey<Number> key[kCount];
#pragma unroll
  for (int k = 0; k < kCount; ++k) key[k] = firstTerm(a.mode, first[k]);
  for (int32_t i = begin + 1; i < end; ++i) {
    loadFeatures<In>(a, a.groups.order[i], feature, x);
#pragma unroll
    for (int k = 0; k < kCount; ++k) key[k] = larger(key[k], firstTerm(a.mode, x[k]));
  }
  if (!isSum(a.mode)) {
#pragma unroll
    for (int k = 0; k < kCount; ++k) result[k] = firstResult<Out, Number>(a.mode, key[k]);
    return;
  }
  Fixed<Number> sum[kCount];
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    sum[k] = FixedSum<Number>(key[k], end - begin).term(first[k]);
  }
  for (int32_t i = begin + 1; i < end; ++i) {
    loadFeatures<In>(a, a.groups.order[i], feature, x);
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      sum[k] = sum[k] + FixedSum<Number>(key[k], end - begin).term(x[k]);
    }
  }
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    result[k] = narrow<Out>(
        FixedSum<Number>(key[k], end - begin).result(sum[k], a.mode == VoxelMode::kMean));
  }
}

// kCount features a lane.
template <class In, class Out, int kCount>
__device__ __forceinline__ void reduceFew(const ReduceArguments& a, int64_t block) {
  const int lanes = 1 << a.few_lanes_log2;
  const int64_t v = (block * kThreads + threadIdx.x) >> a.few_lanes_log2;
  const int32_t first = (static_cast<int32_t>(threadIdx.x) & (lanes - 1)) * kCount;
  const int64_t voxels = *a.groups.num;
  Out result[kCount] = {};
  if (v >= voxels) {  // a row of no voxel
    if (a.target.dense || v >= a.target.capacity) return;
    auto* out = static_cast<Out*>(a.target.data) + v * a.target.stride[0];
    for (int64_t f = first; f < a.features.count; f += lanes * kCount) {
      storeFeatures(a, out, f, result);
    }
    return;
  }
  const auto voxel = static_cast<int32_t>(v);
  const int2 span = a.groups.span(voxel);
  if (span.y > a.list.few) return;
  Out* out = targetRow<Out>(a.target, a.groups, voxel);
  if (out == nullptr) return;
  for (int64_t f = first; f < a.features.count; f += lanes * kCount) {
    reduceFeatures<In>(a, span.x, span.x + span.y, f, result);
    storeFeatures(a, out, f, result);
  }
}

}  // namespace reduction
}  // namespace rbc::cuda
