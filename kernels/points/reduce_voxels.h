// The launcher of reducing features over the points of each voxel.
#pragma once

#include <cuda_runtime_api.h>

#include "points/group_points.h"
#include "points/points.cuh"
#include "runtime/fast_divmod.h"
#include "voxel_problem.h"

namespace rbc::cuda {

// ---- Rows of features by the row of their point.

struct FeatureRows {
  const void* data;
  int64_t stride[3];  // cloud, point, feature
  int64_t count;
  FastDivmod per_cloud;
  int64_t rows;
  bool flat;  // a point's row alone says where it is

  template <class Storage>
  __device__ const Storage* row(int32_t point) const {
    const auto* first = static_cast<const Storage*>(data);
    if (flat) return first + point * stride[1];
    const int64_t cloud = per_cloud(static_cast<int64_t>(point));
    return first + cloud * stride[0] + (point - cloud * rows) * stride[1];
  }
};

inline FeatureRows featureRowsOf(const Features& f, const PointClouds& points) {
  const bool flat = points.inOneLine(f.stride[0], f.stride[1]);
  return {f.data,      {f.stride[0], f.stride[1], f.stride[2]},
          f.count,     FastDivmod(points.rows),
          points.rows, flat};
}

// What the reduction fills voxels without points with, where those that hold some are told by bits, and rows
// of features are whole vectors of 16 bytes that lie one after the other.
struct EmptyVoxels {
  int64_t voxels;       // of the grid; 0: it fills none
  FastDivmod row_vecs;  // vectors of a row
  uint4 value;
};

// Where a voxel's features go: by its place in the grid, or by its row in a list.
struct VoxelTarget {
  void* data;
  DType dtype;
  // Dense: cloud, x, y, z. Else the first is that of the rows.
  int64_t stride[4];
  int64_t feature_stride;
  bool dense;
  VoxelCoordsOf places;
  const int32_t* rows;  // of the voxels; null: in their own order
  int64_t capacity;     // rows that there are
  EmptyVoxels empty;
};

class VoxelReduction {
 public:
  VoxelReduction(const PointClouds& points, const Features& features, Reduction mode,
                 ScratchLayout* cutter);

  // To be filled while points are grouped, once what it says is cleared.
  const ChunkList& chunks() const { return chunks_; }
  cudaError_t clear(cudaStream_t cuda_stream) const;
  // Fills it where nothing else does.
  cudaError_t listChunks(const PointGroups& groups, const LaunchDevice& device,
                         cudaStream_t cuda_stream) const;

  cudaError_t launch(const PointGroups& groups, const VoxelTarget& target,
                     const LaunchDevice& device, cudaStream_t cuda_stream) const;

 private:
  PointClouds points_;
  Features features_;
  Reduction mode_;
  int64_t most_chunks_ = 0;
  int64_t most_large_ = 0;
  ChunkList chunks_ = {};
  uint64_t* keys_ = nullptr;  // [most_large_, features]: what the first pass finds
  void* sums_ = nullptr;      // likewise: what the second adds up
};

cudaError_t loadReduceVoxels();

}  // namespace rbc::cuda
