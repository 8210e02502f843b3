// Reduces features over the points of each voxel.
#pragma once

#include <cuda_runtime_api.h>

#include "points/group_points.h"
#include "points/points.cuh"
#include "runtime/fast_divmod.h"
#include "voxel_problem.h"

namespace rbc::cuda {

// ---- Rows of features, by the row of their point.

struct FeatureRows {
  const void* data;
  int64_t stride[3];  // cloud, point, feature
  int64_t count;
  FastDivmod per_cloud;
  int64_t rows;
  bool flat;  // the address depends only on a point's row

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

// How the reduction fills voxels without points, if voxels with points are marked by bits, and rows
// of features are contiguous whole vectors of 16 bytes.
struct EmptyVoxels {
  int64_t voxels;       // in the grid; 0: fills none
  FastDivmod row_vecs;  // vectors per row
  uint4 value;
};

// The destination of a voxel's features: by its place in the grid, or by its row in a list.
struct VoxelTarget {
  void* data;
  DType dtype;
  // Dense: cloud, x, y, z. Else the first is the stride of rows.
  int64_t stride[4];
  int64_t feature_stride;
  bool dense;
  VoxelCoordsOf places;
  const int32_t* rows;  // of the voxels; null: in their own order
  int64_t capacity;     // number of rows
  EmptyVoxels empty;
};

class VoxelReduction {
 public:
  VoxelReduction(const PointClouds& points, const Features& features, Reduction mode,
                 ScratchLayout* cutter);

  // The list to fill while points are grouped, after clear().
  const ChunkList& chunks() const { return chunks_; }
  cudaError_t clear(cudaStream_t cuda_stream) const;
  // Fills the list if no other kernel does.
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
  uint64_t* keys_ = nullptr;  // [most_large_, features]: results of the first pass
  void* sums_ = nullptr;      // [most_large_, features]: sums of the second pass
};

cudaError_t loadReduceVoxels();

}  // namespace rbc::cuda
