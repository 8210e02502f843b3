// Rows of features by the row of their point.
#pragma once

#include "runtime/fast_divmod.cuh"
#include "voxel_problem.h"

namespace rbc::cuda {

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

}  // namespace rbc::cuda
