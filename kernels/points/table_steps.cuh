// What the steps of grouping points by a table are told.
#pragma once

#include "points/chunk_list.cuh"
#include "points/group_points.h"
#include "points/points.cuh"
#include "points/sparse_rows.cuh"
#include "points/voxel_table.cuh"

namespace rbc::cuda {
namespace grouping {

// But for where the points are read.
struct TableSteps {
  VoxelTable table;
  PointGroups groups;
  SparseRows rows;
  ChunkList chunks;
  int64_t clouds;
  int64_t* dropped;
  int64_t dropped_stride;
  FastDivmod points_of_block;  // a multiple of kPoints
  FastDivmod groups_of_block;
};

template <class Number>
struct TableArguments {
  PointSource<Number> source;
  TableSteps steps;
};

// A thread's point.
struct TablePoint {
  uint32_t number;
  int32_t key;  // -1: in no voxel, or there is no point
  uint32_t slot;
  int32_t place;  // among those of its voxel, as they came
};

__device__ __forceinline__ int64_t threadOfTable() {
  return static_cast<int64_t>(blockIdx.x) * kTableThreads + threadIdx.x;
}
__device__ __forceinline__ int64_t threadsOfTable() {
  return static_cast<int64_t>(gridDim.x) * kTableThreads;
}

}  // namespace grouping
}  // namespace rbc::cuda
