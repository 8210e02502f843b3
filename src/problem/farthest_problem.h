// Farthest points as plain numbers: the input of a backend.
#pragma once

#include "voxel_problem.h"

namespace rbc {

struct FarthestProblem {
  PointClouds points;
  int64_t count;        // K
  int64_t start;        // of all clouds, unless `starts` has them
  IndexArray starts;    // by cloud; data may be null
  Output<2> indices;    // cloud, place; i32 or i64
  Output<2> distances;  // cloud, place; data may be null
};

// Index within the cloud's points; the cloud has at least one.
RBC_HD int64_t startOf(const FarthestProblem& p, int64_t cloud, int64_t points) {
  const int64_t start = p.starts.data != nullptr ? p.starts[cloud] : p.start;
  return clampIndex(start, 0, points - 1);
}

// Writes the point at a place: its index in its cloud, or -1, and its squared distance.
RBC_HD void putFarthest(const FarthestProblem& p, int64_t cloud, int64_t place, int64_t row,
                        double distance) {
  const int64_t at = cloud * p.indices.stride[0] + place * p.indices.stride[1];
  if (p.indices.dtype == DType::I64) {
    static_cast<int64_t*>(p.indices.data)[at] = row;
  } else {
    static_cast<int32_t*>(p.indices.data)[at] = static_cast<int32_t>(row);
  }
  if (p.distances.data == nullptr) return;
  const int64_t to = cloud * p.distances.stride[0] + place * p.distances.stride[1];
  switch (p.distances.dtype) {
    case DType::F16: static_cast<f16*>(p.distances.data)[to] = narrow<f16>(distance); break;
    case DType::BF16: static_cast<bf16*>(p.distances.data)[to] = narrow<bf16>(distance); break;
    case DType::F32: static_cast<float*>(p.distances.data)[to] = narrow<float>(distance); break;
    default: static_cast<double*>(p.distances.data)[to] = narrow<double>(distance);
  }
}

template <class Number>
RBC_HD bool isFinite(Number x) {
  return x - x == 0;
}

template <class Number>
RBC_HD Number squaredDistance(Number dx, Number dy, Number dz) {
  return (dx * dx + dy * dy) + dz * dz;
}

}  // namespace rbc
