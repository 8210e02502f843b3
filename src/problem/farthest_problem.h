// Farthest points as plain numbers: what the entry hands to a backend.
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

// Within the cloud's points, of which there is one at least.
RBC_HD int64_t startOf(const FarthestProblem& p, int64_t cloud, int64_t points) {
  const int64_t start = p.starts.data != nullptr ? p.starts[cloud] : p.start;
  return clampIndex(start, 0, points - 1);
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
