// rbcVoxelize: the arguments of a call as a VoxelizeProblem.

#include "robocache/voxelize.h"

#include <cinttypes>

#include "params.h"
#include "points/cloud_builder.h"
#include "runtime/dtype_checks.h"
#include "status.h"

namespace rbc {
namespace {

static_assert(RBC_VOXEL_OCCUPANCY == static_cast<int>(VoxelMode::kOccupancy) &&
              RBC_VOXEL_COUNT == static_cast<int>(VoxelMode::kCount) &&
              RBC_VOXEL_SUM == static_cast<int>(VoxelMode::kSum) &&
              RBC_VOXEL_MEAN == static_cast<int>(VoxelMode::kMean) &&
              RBC_VOXEL_MAX == static_cast<int>(VoxelMode::kMax) &&
              RBC_VOXEL_MIN == static_cast<int>(VoxelMode::kMin));

struct Arguments {
  const rbcTensor* points;
  const rbcTensor* features;
  const rbcTensor* out;
  const rbcTensor* dropped;
  const rbcVoxelizeParams* params;
};

rbcVoxelizeParams checkedParams(const rbcVoxelizeParams* given) {
  if (given == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "params: is null, expected a grid");
  const rbcVoxelizeParams params = readParams(given, rbcVoxelizeParamsInit(), "params");
  if (params.mode < RBC_VOXEL_OCCUPANCY || params.mode > RBC_VOXEL_MIN) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "mode: is %d, expected RBC_VOXEL_OCCUPANCY to _MIN",
         params.mode);
  }
  return params;
}

void requireOutDtype(const View& out, VoxelMode mode) {
  if (isFloat(out.dtype)) return;
  const bool bits = out.dtype == DType::Bool || out.dtype == DType::U8;
  if (mode == VoxelMode::kOccupancy && (bits || out.dtype == DType::I32)) return;
  if (mode == VoxelMode::kCount && (out.dtype == DType::I32 || out.dtype == DType::I64)) return;
  fail(RBC_STATUS_DTYPE_MISMATCH, "out: dtype is %s, expected %s", nameOf(out.dtype),
       mode == VoxelMode::kOccupancy ? "bool, uint8, int32 or a float for occupancy"
       : mode == VoxelMode::kCount   ? "int32, int64 or a float for count"
                                     : "a float for features");
}

class VoxelizeCall : public CloudBuilder {
 public:
  static constexpr const char* kOperation = "voxelize";

  VoxelizeCall(const rbcContext& context, const Arguments& call);
  const VoxelizeProblem& problem() const { return problem_; }

 private:
  VoxelizeProblem problem_ = {};
};

VoxelizeCall::VoxelizeCall(const rbcContext& context, const Arguments& call)
    : CloudBuilder(context, problem_.points) {
  const rbcVoxelizeParams params = checkedParams(call.params);
  const View& out = operands.out(call.out, "out");
  const View* dropped_view = operands.optionalOut(call.dropped, "dropped");
  addPoints(call.points, params.lengths, params.offsets);

  VoxelizeProblem& p = problem_;
  p.grid = grid(params.grid);
  p.mode = static_cast<VoxelMode>(params.mode);
  requireOutDtype(out, p.mode);
  const int64_t* shape = p.grid.shape;
  if (reducesFeatures(p.mode)) {
    p.features = features(call.features);
    const int64_t full[] = {p.points.clouds, shape[0], shape[1], shape[2], p.features.count};
    p.out = batchOutput(out, "out", full);
  } else {
    if (call.features != nullptr) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "features: are for sum, mean, max and min, expected null");
    }
    p.features.count = 1;
    const int64_t full[] = {p.points.clouds, shape[0], shape[1], shape[2]};
    const Output<4> plain = batchOutput(out, "out", full);
    p.out = {plain.data,
             {plain.stride[0], plain.stride[1], plain.stride[2], plain.stride[3], 1},
             plain.dtype};
  }
  p.empty_bits = elementBits(params.empty_value, out.dtype, "empty_value");
  p.dropped = dropped(dropped_view);
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcVoxelize(rbcContext_t context, const rbcTensor* points, const rbcTensor* features,
                        const rbcTensor* out, const rbcTensor* dropped,
                        const rbcVoxelizeParams* params) {
  return rbc::runCall<rbc::VoxelizeCall>(context,
                                         rbc::Arguments{points, features, out, dropped, params});
}

rbcStatus_t rbcVoxelizeWorkspaceSize(rbcContext_t context, const rbcTensor* points,
                                     const rbcTensor* features, const rbcTensor* out,
                                     const rbcTensor* dropped, const rbcVoxelizeParams* params,
                                     size_t* bytes) {
  return rbc::sizeCall<rbc::VoxelizeCall>(
      context, rbc::Arguments{points, features, out, dropped, params}, bytes);
}
