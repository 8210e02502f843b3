// rbcVoxelizeTsdf: the arguments of a call as a TsdfProblem.

#include "robocache/tsdf.h"

#include <cinttypes>
#include <cmath>

#include "params.h"
#include "points/cloud_builder.h"
#include "runtime/dtype_checks.h"
#include "status.h"
#include "tsdf_problem.h"

namespace rbc {

template <>
inline constexpr KnownFlags kKnownFlags<rbcVoxelizeTsdfParams> = {
    RBC_VOXELIZE_TSDF_FLAG_CARVE, "RBC_VOXELIZE_TSDF_FLAG_CARVE or 0"};

namespace {

static_assert(RBC_VOXELIZE_TSDF_WEIGHTING_CONSTANT == static_cast<int>(TsdfWeighting::kConstant) &&
              RBC_VOXELIZE_TSDF_WEIGHTING_INVERSE_SQUARE ==
                  static_cast<int>(TsdfWeighting::kInverseSquare));

struct Arguments {
  const rbcTensor* points;
  const rbcTensor* sensors;
  const rbcTensor* tsdf;
  const rbcTensor* weight;
  const rbcTensor* num_points_unused;
  const rbcVoxelizeTsdfParams* params;
};

rbcVoxelizeTsdfParams checkedParams(const rbcVoxelizeTsdfParams* input) {
  if (input == nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "params: is null, expected a grid and a truncation");
  }
  const rbcVoxelizeTsdfParams params = readParams(input, rbcVoxelizeTsdfParamsInit(), "params");
  if (params.weighting < RBC_VOXELIZE_TSDF_WEIGHTING_CONSTANT ||
      params.weighting > RBC_VOXELIZE_TSDF_WEIGHTING_INVERSE_SQUARE) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "weighting: is %d, expected RBC_VOXELIZE_TSDF_WEIGHTING_CONSTANT or _INVERSE_SQUARE",
         params.weighting);
  }
  if (!(static_cast<float>(params.max_weight) > 0)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "max_weight: is %g, expected a float32 above 0",
         params.max_weight);
  }
  return params;
}

// Rounds the truncation to the compute dtype of the points. It must also be valid in f32, the dtype
// of the volume.
double checkedTruncation(double truncation, DType points) {
  if (!(truncation > 0) || !std::isfinite(truncation)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "truncation: is %g, expected more than 0", truncation);
  }
  const auto rounded = static_cast<float>(truncation);
  if (!std::isfinite(rounded) || !std::isfinite(1 / rounded)) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "truncation: is %g, expected a finite float32 with a finite inverse", truncation);
  }
  return computesInDouble(points) ? truncation : static_cast<double>(rounded);
}

Output<3> volumeOf(const View& view, const char* argument, const VoxelGrid& grid) {
  requireShape(view, argument, 3, grid.shape);
  requireDType(view, argument, DType::F32);
  return {view.data, {view.strides[0], view.strides[1], view.strides[2]}, view.dtype};
}

class TsdfCall : public CloudBuilder {
 public:
  static constexpr const char* kOperation = "voxelize_tsdf";

  TsdfCall(const rbcContext& context, const Arguments& call);
  const TsdfProblem& problem() const { return problem_; }

 private:
  void addSensors(const rbcTensor* sensors);

  TsdfProblem problem_ = {};
};

void TsdfCall::addSensors(const rbcTensor* sensors) {
  TsdfProblem* p = &problem_;
  const View& view = operands.in(sensors, "sensors");
  requireRank(view, "sensors", 1, batched() ? 2 : 1);
  const int64_t shape[] = {p->points.clouds, 3};
  requireShape(view, "sensors", view.ndim, shape + (view.ndim == 2 ? 0 : 1));
  requireF32OrF64(view, "sensors");
  p->sensors = view.data;
  p->sensors_stride[0] = view.ndim == 2 ? view.strides[0] : 0;
  p->sensors_stride[1] = view.strides[view.ndim - 1];
  p->sensors_dtype = view.dtype;
}

TsdfCall::TsdfCall(const rbcContext& context, const Arguments& call)
    : CloudBuilder(context, problem_.points) {
  const rbcVoxelizeTsdfParams params = checkedParams(call.params);
  const View& tsdf = operands.out(call.tsdf, "tsdf");
  const View& weight = operands.out(call.weight, "weight");
  const View* dropped_view = operands.optionalOut(call.num_points_unused, "num_points_unused");
  addPoints(call.points, params.lengths, params.batch_offsets);

  TsdfProblem& p = problem_;
  addSensors(call.sensors);
  p.grid = grid(params.grid);
  p.weighting = static_cast<TsdfWeighting>(params.weighting);
  p.carve = (params.flags & RBC_VOXELIZE_TSDF_FLAG_CARVE) != 0;
  p.truncation = checkedTruncation(params.truncation, p.points.dtype);
  p.max_weight = params.max_weight;
  p.tsdf = volumeOf(tsdf, "tsdf", p.grid);
  p.weight = volumeOf(weight, "weight", p.grid);
  p.dropped = countOutput(dropped_view, "num_points_unused");
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcVoxelizeTsdf(rbcContext_t context, const rbcTensor* points, const rbcTensor* sensors,
                            const rbcTensor* tsdf, const rbcTensor* weight,
                            const rbcTensor* num_points_unused,
                            const rbcVoxelizeTsdfParams* params) {
  return rbc::runCall<rbc::TsdfCall>(
      context, rbc::Arguments{points, sensors, tsdf, weight, num_points_unused, params});
}

rbcStatus_t rbcVoxelizeTsdfWorkspaceSize(rbcContext_t context, const rbcTensor* points,
                                         const rbcTensor* sensors, const rbcTensor* tsdf,
                                         const rbcTensor* weight,
                                         const rbcTensor* num_points_unused,
                                         const rbcVoxelizeTsdfParams* params, size_t* bytes) {
  return rbc::sizeCall<rbc::TsdfCall>(
      context, rbc::Arguments{points, sensors, tsdf, weight, num_points_unused, params}, bytes);
}
