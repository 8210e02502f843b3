// rbcVoxelize: the arguments of a call as a VoxelizeProblem.

#include "robocache/voxelize.h"

#include <cinttypes>

#include "params.h"
#include "points/cloud_builder.h"
#include "runtime/dtype_checks.h"
#include "status.h"

namespace rbc {
namespace {

static_assert(RBC_REDUCE_OCCUPANCY == static_cast<int>(Reduction::kOccupancy) &&
              RBC_REDUCE_COUNT == static_cast<int>(Reduction::kCount) &&
              RBC_REDUCE_SUM == static_cast<int>(Reduction::kSum) &&
              RBC_REDUCE_MEAN == static_cast<int>(Reduction::kMean) &&
              RBC_REDUCE_MAX == static_cast<int>(Reduction::kMax) &&
              RBC_REDUCE_MIN == static_cast<int>(Reduction::kMin));

struct Arguments {
  const rbcTensor* points;
  const rbcTensor* features;
  const rbcTensor* out;
  const rbcTensor* num_points_outside;
  const rbcVoxelizeParams* params;
};

rbcVoxelizeParams checkedParams(const rbcVoxelizeParams* input) {
  if (input == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "params: is null, expected a grid");
  const rbcVoxelizeParams params = readParams(input, rbcVoxelizeParamsInit(), "params");
  if (params.reduction < RBC_REDUCE_OCCUPANCY || params.reduction > RBC_REDUCE_MIN) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "reduction: is %d, expected RBC_REDUCE_OCCUPANCY to _MIN",
         params.reduction);
  }
  return params;
}

void requireOutDtype(const View& out, Reduction mode) {
  if (isFloat(out.dtype)) return;
  const bool bits = out.dtype == DType::Bool || out.dtype == DType::U8;
  if (mode == Reduction::kOccupancy && (bits || out.dtype == DType::I32)) return;
  if (mode == Reduction::kCount && (out.dtype == DType::I32 || out.dtype == DType::I64)) return;
  fail(RBC_STATUS_DTYPE_MISMATCH, "out: dtype is %s, expected %s", nameOf(out.dtype),
       mode == Reduction::kOccupancy ? "bool, uint8, int32 or a float for occupancy"
       : mode == Reduction::kCount   ? "int32, int64 or a float for count"
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
  const View* dropped_view = operands.optionalOut(call.num_points_outside, "num_points_outside");
  addPoints(call.points, params.lengths, params.batch_offsets);

  VoxelizeProblem& p = problem_;
  p.grid = grid(params.grid);
  p.mode = static_cast<Reduction>(params.reduction);
  requireOutDtype(out, p.mode);
  const int64_t* shape = p.grid.shape;
  if (reducesFeatures(p.mode)) {
    p.features = features(call.features);
    const int64_t full[] = {p.points.clouds, shape[0], shape[1], shape[2], p.features.count};
    p.out = batchOutput(out, "out", full);
  } else {
    if (call.features != nullptr) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "features: are only used by sum, mean, max and min, expected null");
    }
    p.features.count = 1;
    const int64_t full[] = {p.points.clouds, shape[0], shape[1], shape[2]};
    const Output<4> plain = batchOutput(out, "out", full);
    p.out = {plain.data,
             {plain.stride[0], plain.stride[1], plain.stride[2], plain.stride[3], 1},
             plain.dtype};
  }
  p.empty_bits = elementBits(params.fill_value, out.dtype, "fill_value");
  p.dropped = countOutput(dropped_view, "num_points_outside");
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcVoxelize(rbcContext_t context, const rbcTensor* points, const rbcTensor* features,
                        const rbcTensor* out, const rbcTensor* num_points_outside,
                        const rbcVoxelizeParams* params) {
  return rbc::runCall<rbc::VoxelizeCall>(
      context, rbc::Arguments{points, features, out, num_points_outside, params});
}

rbcStatus_t rbcVoxelizeWorkspaceSize(rbcContext_t context, const rbcTensor* points,
                                     const rbcTensor* features, const rbcTensor* out,
                                     const rbcTensor* num_points_outside,
                                     const rbcVoxelizeParams* params, size_t* bytes) {
  return rbc::sizeCall<rbc::VoxelizeCall>(
      context, rbc::Arguments{points, features, out, num_points_outside, params}, bytes);
}
