// What the kernels are told that reduce features over the points of each voxel.
#pragma once

#include "points/chunk_list.cuh"
#include "points/feature_rows.cuh"
#include "points/reduce_voxels.h"
#include "runtime/aligned_vec.cuh"
#include "voxel_reduce.h"

namespace rbc::cuda {
namespace reduction {

inline constexpr int kWarp = 32;
inline constexpr int kThreads = 128;  // small blocks: each waits for its slowest warp
inline constexpr int kWarpsPerBlock = kThreads / kWarp;

struct ReduceArguments {
  PointGroups groups;
  FeatureRows features;
  VoxelTarget target;
  VoxelMode mode;
  int few_lanes_log2;     // of a voxel with few points
  int chunk_lanes_log2;   // of a point of a chunk
  unsigned chunk_blocks;  // the first ones, which take the chunks
  unsigned empty_blocks;  // those behind them, which fill the voxels without points
  ChunkList list;
  uint64_t* keys;
  void* sums;
};

__device__ inline bool isSum(VoxelMode mode) { return mode <= VoxelMode::kMean; }

// Where the voxel's features begin; null if they are not wanted.
template <class Out>
__device__ Out* targetRow(const VoxelTarget& target, const PointGroups& groups, int32_t voxel) {
  auto* data = static_cast<Out*>(target.data);
  if (target.dense) {
    const VoxelCoords at = target.places(groups.key(voxel));
    return data + at.cloud * target.stride[0] + at.x * target.stride[1] + at.y * target.stride[2] +
           at.z * target.stride[3];
  }
  const int32_t row = target.rows != nullptr ? target.rows[voxel] : voxel;
  return row < target.capacity ? data + row * target.stride[0] : nullptr;
}

// Some neighbouring features of a point, in one word where there are several.
template <class In, int kCount>
__device__ __forceinline__ void loadFeatures(const ReduceArguments& a, int32_t point,
                                             int64_t feature, Compute<In> (&x)[kCount]) {
  const In* row = a.features.row<In>(point);
  if constexpr (kCount == 1) {
    x[0] = widen(row[feature * a.features.stride[2]]);
  } else {
    const auto vec = load<AlignedVec<In, kCount>>(row + feature);
#pragma unroll
    for (int k = 0; k < kCount; ++k) x[k] = widen(vec.element[k]);
  }
}

template <class Out, int kCount>
__device__ __forceinline__ void storeFeatures(const ReduceArguments& a, Out* row, int64_t feature,
                                              const Out (&x)[kCount]) {
  if constexpr (kCount == 1) {
    row[feature * a.target.feature_stride] = x[0];
  } else {
    AlignedVec<Out, kCount> vec;
#pragma unroll
    for (int k = 0; k < kCount; ++k) vec.element[k] = x[k];
    store(row + feature, vec);
  }
}

// What a lane gathers in the first pass.
template <class Number>
__device__ OrderKey<Number> firstTerm(VoxelMode mode, Number x) {
  return isSum(mode) ? magnitude(x) : orderKey(x, mode == VoxelMode::kMin);
}

template <class Out, class Number>
__device__ Out firstResult(VoxelMode mode, OrderKey<Number> key) {
  return narrow<Out>(fromOrderKey<Number>(key, mode == VoxelMode::kMin));
}

template <class Key>
__device__ Key larger(Key a, Key b) {
  return a > b ? a : b;
}

}  // namespace reduction
}  // namespace rbc::cuda
