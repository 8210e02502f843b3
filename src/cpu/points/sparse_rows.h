// The rows that rbcVoxelizeSparse writes.
#pragma once

#include <algorithm>

#include "points/group_points.h"
#include "points/point_rows.h"
#include "points/reduce_features.h"
#include "voxel_problem.h"

namespace rbc::cpu {

class SparseRows {
 public:
  SparseRows(const CpuState& state, const SparseProblem& p);

  // Asks for what write() reads of a point.
  __attribute__((always_inline)) void prefetch(int32_t point) const {
    if (p_.reduced.data != nullptr || p_.grouped.data != nullptr) reduced_.prefetch(point);
  }

  // The row of a voxel.
  void write(int64_t row, const PointGroup& group) const;
  // Says of a voxel's points which row they are in.
  void writePoints(int64_t row, const PointGroup& group) const;
  // Rows begin .. end - 1, which have none.
  void clear(int64_t begin, int64_t end) const;
  // Says of points, begin .. end - 1 of the line, that they are in no row.
  void clearPoints(int64_t begin, int64_t end) const;
  // Of one point, whose row may be -1.
  void writePoint(int32_t point, int64_t row) const;

  // The points that `counts` tells of a voxel.
  int64_t counted(const PointGroup& group) const { return std::min(group.count, p_.max_points); }

 private:
  void writeCoords(int64_t row, const VoxelCoords& place) const;
  void writeCount(int64_t row, int64_t count) const;
  FeatureRow reducedAt(int64_t row) const;
  FeatureRow groupedAt(int64_t row, int64_t i) const;

  const ThreadPool& pool_;
  const SparseProblem& p_;
  FeatureReducer reduced_;
  FeatureReducer grouped_;
  PointRows points_;  // of point_to_voxel
};

}  // namespace rbc::cpu
