// rbcVoxelizeTsdf: the arguments of a call as a TsdfProblem.

#include "robocache/tsdf.h"

#include <cinttypes>
#include <cmath>

#include "cloud_call.h"
#include "float_environment.h"
#include "params.h"
#include "tsdf_problem.h"

namespace rbc {
namespace {

static_assert(RBC_TSDF_WEIGHT_CONSTANT == static_cast<int>(TsdfWeighting::kConstant) &&
              RBC_TSDF_WEIGHT_INVERSE_SQUARE == static_cast<int>(TsdfWeighting::kInverseSquare));

struct Arguments {
  const rbcTensor* points;
  const rbcTensor* sensors;
  const rbcTensor* tsdf;
  const rbcTensor* weight;
  const rbcTensor* dropped;
  const rbcTsdfParams* params;
};

rbcTsdfParams checkedParams(const rbcTsdfParams* given) {
  if (given == nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "params: is null, expected a grid and a truncation");
  }
  const rbcTsdfParams params = readParams(given, rbcTsdfParamsInit(), "params");
  if ((params.flags & ~RBC_TSDF_CARVE) != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "flags: 0x%" PRIx32 " has unknown bits, expected RBC_TSDF_CARVE or 0", params.flags);
  }
  if (params.weighting < RBC_TSDF_WEIGHT_CONSTANT ||
      params.weighting > RBC_TSDF_WEIGHT_INVERSE_SQUARE) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "weighting: is %d, expected RBC_TSDF_WEIGHT_CONSTANT or _INVERSE_SQUARE",
         params.weighting);
  }
  if (params.reserved0 != 0) fail(RBC_STATUS_INVALID_ARGUMENT, "params: reserved is not 0");
  requireReserved(params.reserved);
  if (!(static_cast<float>(params.max_weight) > 0)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "max_weight: is %g, expected a float32 of more than 0",
         params.max_weight);
  }
  return params;
}

// As the points' type has it. The volume is of f32 whatever they are.
double checkedTruncation(double given, DType points) {
  if (!(given > 0) || !std::isfinite(given)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "truncation: is %g, expected more than 0", given);
  }
  const auto rounded = static_cast<float>(given);
  if (!std::isfinite(rounded) || !std::isfinite(1 / rounded)) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "truncation: is %g, expected one that is a finite float32, as is its inverse", given);
  }
  return computesInDouble(points) ? given : static_cast<double>(rounded);
}

void addSensors(const CloudCall& cloud, const rbcTensor* sensors, TsdfProblem* p) {
  const View view = cloud.addInput(sensors, "sensors");
  requireRank(view, "sensors", 1, cloud.batched() ? 2 : 1);
  const int64_t shape[] = {p->points.clouds, 3};
  requireShape(view, "sensors", view.ndim, shape + (view.ndim == 2 ? 0 : 1));
  if (view.dtype != DType::F32 && view.dtype != DType::F64) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "sensors: dtype is %s, expected float32 or float64",
         nameOf(view.dtype));
  }
  p->sensors = view.data;
  p->sensors_stride[0] = view.ndim == 2 ? view.strides[0] : 0;
  p->sensors_stride[1] = view.strides[view.ndim - 1];
  p->sensors_dtype = view.dtype;
}

Output<3> volumeOf(const View& view, const char* argument, const VoxelGrid& grid) {
  requireShape(view, argument, 3, grid.shape);
  if (view.dtype != DType::F32) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "%s: dtype is %s, expected float32", argument,
         nameOf(view.dtype));
  }
  return {view.data, {view.strides[0], view.strides[1], view.strides[2]}, view.dtype};
}

TsdfProblem problemOf(const rbcContext& context, const Arguments& call) {
  const rbcTsdfParams params = checkedParams(call.params);
  CloudCall cloud(context);
  const View tsdf = cloud.addOutput(call.tsdf, "tsdf");
  const View weight = cloud.addOutput(call.weight, "weight");
  View dropped = {};
  if (call.dropped != nullptr) dropped = cloud.addOutput(call.dropped, "dropped");
  cloud.addPoints(call.points, params.lengths, params.offsets);

  TsdfProblem p = {};
  p.points = cloud.points();
  addSensors(cloud, call.sensors, &p);
  p.grid = cloud.grid(params.grid);
  for (int axis = 0; axis < 3; ++axis) p.voxel_size[axis] = params.grid.voxel_size[axis];
  p.weighting = static_cast<TsdfWeighting>(params.weighting);
  p.carve = (params.flags & RBC_TSDF_CARVE) != 0;
  p.truncation = checkedTruncation(params.truncation, p.points.dtype);
  p.max_weight = params.max_weight;
  p.tsdf = volumeOf(tsdf, "tsdf", p.grid);
  p.weight = volumeOf(weight, "weight", p.grid);
  if (call.dropped != nullptr) p.dropped = cloud.dropped(dropped, "dropped");
  return p;
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcVoxelizeTsdf(rbcContext_t context, const rbcTensor* points, const rbcTensor* sensors,
                            const rbcTensor* tsdf, const rbcTensor* weight,
                            const rbcTensor* dropped, const rbcTsdfParams* params) {
  return rbc::guard([&] {
    const rbc::DefaultFloats floats;
    const rbc::ContextUse use(context);
    rbcContext& c = *use;
    rbc::TsdfProblem p = rbc::problemOf(c, {points, sensors, tsdf, weight, dropped, params});
    if (p.points.clouds == 0) return;
    const rbc::Scratch scratch = rbc::workspaceFor(c, &p.points, c.backend->tsdfBytes(*c.state, p));
    c.backend->tsdf(*c.state, p, scratch);
  });
}

rbcStatus_t rbcVoxelizeTsdfWorkspaceSize(rbcContext_t context, const rbcTensor* points,
                                         const rbcTensor* sensors, const rbcTensor* tsdf,
                                         const rbcTensor* weight, const rbcTensor* dropped,
                                         const rbcTsdfParams* params, size_t* bytes) {
  return rbc::guard([&] {
    const rbc::DefaultFloats floats;
    if (bytes == nullptr) rbc::fail(RBC_STATUS_INVALID_ARGUMENT, "bytes: is null");
    const rbc::ContextUse use(context);
    rbcContext& c = *use;
    const rbc::TsdfProblem p = rbc::problemOf(c, {points, sensors, tsdf, weight, dropped, params});
    *bytes = p.points.clouds == 0
                 ? 0
                 : rbc::workspaceBytes(c, p.points, c.backend->tsdfBytes(*c.state, p));
  });
}
