// Integration into a truncated signed distance field as plain numbers.
#pragma once

#include "tsdf_ray.h"
#include "voxel_problem.h"

namespace rbc {

// Values as in tsdf.h.
enum class TsdfWeighting : int32_t { kConstant, kInverseSquare };

struct TsdfProblem {
  PointClouds points;
  VoxelGrid grid;
  const void* sensors;
  int64_t sensors_stride[2];  // cloud, coordinate; the first is 0 if the clouds share one sensor
  DType sensors_dtype;        // F32 or F64
  TsdfWeighting weighting;
  bool carve;
  double truncation;  // rounded to the points' dtype
  double max_weight;
  Output<3> tsdf;     // x, y, z; f32
  Output<3> weight;   // x, y, z; f32
  Output<1> dropped;  // cloud; i64
};

template <class Number>
RayField<Number> fieldAs(const TsdfProblem& p) {
  RayField<Number> field;
  field.grid = gridAs<Number>(p.grid);
  for (int axis = 0; axis < 3; ++axis) {
    field.extent[axis] = static_cast<int32_t>(p.grid.shape[axis]);
  }
  field.truncation = static_cast<Number>(p.truncation);
  field.inverse_truncation = 1 / field.truncation;
  field.carve = p.carve;
  field.inverse_square = p.weighting == TsdfWeighting::kInverseSquare;
  return field;
}

template <class Number>
RBC_HD void sensorOf(const TsdfProblem& p, int64_t cloud, Number (&sensor)[3]) {
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t i = cloud * p.sensors_stride[0] + axis * p.sensors_stride[1];
    sensor[axis] = p.sensors_dtype == DType::F64
                       ? static_cast<Number>(static_cast<const double*>(p.sensors)[i])
                       : static_cast<Number>(static_cast<const float*>(p.sensors)[i]);
  }
}

// Writes a voxel of the volume, given its observations.
RBC_HD void integrateAt(const TsdfProblem& p, const VoxelCoords& at, const TsdfSums& sums) {
  const auto elementOf = [&](const Output<3>& out) {
    return static_cast<float*>(out.data) + at.x * out.stride[0] + at.y * out.stride[1] +
           at.z * out.stride[2];
  };
  integrate(sums, p.truncation, p.max_weight, elementOf(p.tsdf), elementOf(p.weight));
}

}  // namespace rbc
