// What the kernels are told that reduce features over the points of each voxel.
#pragma once

#include "points/chunk_list.cuh"
#include "points/feature_rows.cuh"
#include "points/reduce_voxels.h"
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
  int lanes_log2;         // of a chunk's features
  unsigned chunk_blocks;  // the first ones, which take the chunks
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
