// rbcVoxelizeSparse: the arguments of a call as a SparseProblem.

#include <cinttypes>

#include "params.h"
#include "points/cloud_builder.h"
#include "robocache/voxelize.h"
#include "runtime/dtype_checks.h"
#include "status.h"

namespace rbc {
namespace {

static_assert(RBC_VOXELIZE_SPARSE_ORDER_LEXICOGRAPHIC ==
                  static_cast<int>(VoxelOrder::kLexicographic) &&
              RBC_VOXELIZE_SPARSE_ORDER_FIRST_POINT == static_cast<int>(VoxelOrder::kFirstPoint));

rbcVoxelizeSparseParams checkedParams(const rbcVoxelizeSparseParams* input) {
  if (input == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "params: is null, expected a grid");
  const rbcVoxelizeSparseParams params = readParams(input, rbcVoxelizeSparseParamsInit(), "params");
  if (params.reduction < RBC_REDUCE_SUM || params.reduction > RBC_REDUCE_MIN) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "reduction: is %d, expected RBC_REDUCE_SUM, _MEAN, _MAX or _MIN", params.reduction);
  }
  if (params.order < RBC_VOXELIZE_SPARSE_ORDER_LEXICOGRAPHIC ||
      params.order > RBC_VOXELIZE_SPARSE_ORDER_FIRST_POINT) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "order: is %d, expected RBC_VOXELIZE_SPARSE_ORDER_LEXICOGRAPHIC or _FIRST_POINT",
         params.order);
  }
  return params;
}

rbcVoxelizeSparseOutputs checkedOutputs(const rbcVoxelizeSparseOutputs* input) {
  if (input == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "outputs: is null");
  return readParams(input, rbcVoxelizeSparseOutputsInit(), "outputs");
}

// Reads an output without a batch. An output without elements is ignored, for any number of rows.
template <int Rank>
Output<Rank> outputOf(const View& view, const char* argument, const int64_t (&shape)[Rank]) {
  requireShape(view, argument, Rank, shape);
  Output<Rank> out = {view.count > 0 ? view.data : nullptr, {}, view.dtype};
  for (int i = 0; i < Rank; ++i) out.stride[i] = view.strides[i];
  return out;
}

struct Arguments {
  const rbcTensor* points;
  const rbcTensor* features;
  const rbcVoxelizeSparseOutputs* outputs;
  const rbcVoxelizeSparseParams* params;
};

class SparseCall : public CloudBuilder {
 public:
  static constexpr const char* kOperation = "voxelize_sparse";

  SparseCall(const rbcContext& context, const Arguments& call);
  const SparseProblem& problem() const { return problem_; }
  bool empty() const { return false; }  // its outputs are written even without clouds

 private:
  int64_t* number(const rbcOutput* tensor, const char* argument);

  SparseProblem problem_ = {};
};

// Returns a tensor [] of i64, or null if it was not passed.
int64_t* SparseCall::number(const rbcOutput* tensor, const char* argument) {
  const View* view = operands.optionalOut(tensor, argument);
  if (view == nullptr) return nullptr;
  requireShape(*view, argument, 0, nullptr);
  requireDType(*view, argument, DType::I64);
  return reinterpret_cast<int64_t*>(view->data);
}

SparseCall::SparseCall(const rbcContext& context, const Arguments& call)
    : CloudBuilder(context, problem_.points) {
  const rbcVoxelizeSparseParams params = checkedParams(call.params);
  const rbcVoxelizeSparseOutputs outputs = checkedOutputs(call.outputs);
  const View& coords = operands.out(outputs.coords, "coords");
  const View& num_voxels = operands.out(outputs.num_voxels, "num_voxels");
  const View* points_per_voxel = operands.optionalOut(outputs.points_per_voxel, "points_per_voxel");
  const View* reduced = operands.optionalOut(outputs.voxel_features, "outputs.voxel_features");
  const View* grouped = operands.optionalOut(outputs.grouped, "grouped");
  const View* point_to_voxel = operands.optionalOut(outputs.point_to_voxel, "point_to_voxel");
  const View* outside = operands.optionalOut(outputs.num_points_outside, "num_points_outside");
  addPoints(call.points, params.lengths, params.batch_offsets);

  SparseProblem& p = problem_;
  p.grid = grid(params.grid);
  p.reduce = static_cast<Reduction>(params.reduction);
  p.order = static_cast<VoxelOrder>(params.order);
  p.features = features(call.features);

  requireRank(coords, "coords", 2, 2);
  requireDType(coords, "coords", DType::I32);
  p.capacity = coords.shape[0];
  if (p.capacity < 1) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "coords: shape is %s, expected a capacity of 1 or more",
         shapeText(coords.ndim, coords.shape));
  }
  if (p.points.clouds > INT32_MAX) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "points: got %" PRId64 " clouds, expected at most 2^31 - 1",
         p.points.clouds);
  }
  p.coords = outputOf<2>(coords, "coords", {p.capacity, 4});
  requireShape(num_voxels, "num_voxels", 0, nullptr);
  requireDType(num_voxels, "num_voxels", DType::I64);
  p.num_voxels = {num_voxels.data, {0}, num_voxels.dtype};
  if (points_per_voxel != nullptr) {
    requireDType(*points_per_voxel, "points_per_voxel", DType::I32);
    p.counts = outputOf<1>(*points_per_voxel, "points_per_voxel", {p.capacity});
  }
  if (reduced != nullptr) {
    requireFloat(*reduced, "outputs.voxel_features");
    p.reduced = outputOf<2>(*reduced, "outputs.voxel_features", {p.capacity, p.features.count});
  }
  p.max_points = INT64_MAX;
  if (grouped != nullptr) {
    requireRank(*grouped, "grouped", 3, 3);
    requireFloat(*grouped, "grouped");
    p.max_points = grouped->shape[1];
    if (p.max_points < 1) {
      fail(RBC_STATUS_SHAPE_MISMATCH, "grouped: shape is %s, expected room for 1 point or more",
           shapeText(grouped->ndim, grouped->shape));
    }
    p.grouped = outputOf<3>(*grouped, "grouped", {p.capacity, p.max_points, p.features.count});
  }
  if (point_to_voxel != nullptr) {
    if (point_to_voxel->dtype != DType::I64) {
      requireDType(*point_to_voxel, "point_to_voxel", DType::I32);
    }
    const bool padded = batched() && !p.points.packed();
    const int64_t shape[] = {p.points.clouds, p.points.rows};
    requireShape(*point_to_voxel, "point_to_voxel", padded ? 2 : 1, shape + (padded ? 0 : 1));
    p.point_to_voxel = {point_to_voxel->data,
                        {padded ? point_to_voxel->strides[0] : 0,
                         point_to_voxel->strides[point_to_voxel->ndim - 1]},
                        point_to_voxel->dtype};
  }
  p.dropped = countOutput(outside, "num_points_outside");
  p.voxels_over_capacity = number(outputs.num_voxels_over_capacity, "num_voxels_over_capacity");
  p.points_over_capacity = number(outputs.num_points_over_capacity, "num_points_over_capacity");
  p.points_over_group = number(outputs.num_points_over_group, "num_points_over_group");
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcVoxelizeSparse(rbcContext_t context, const rbcTensor* points,
                              const rbcTensor* features, const rbcVoxelizeSparseOutputs* outputs,
                              const rbcVoxelizeSparseParams* params) {
  return rbc::runCall<rbc::SparseCall>(context, rbc::Arguments{points, features, outputs, params});
}

rbcStatus_t rbcVoxelizeSparseWorkspaceSize(rbcContext_t context, const rbcTensor* points,
                                           const rbcTensor* features,
                                           const rbcVoxelizeSparseOutputs* outputs,
                                           const rbcVoxelizeSparseParams* params, size_t* bytes) {
  return rbc::sizeCall<rbc::SparseCall>(context, rbc::Arguments{points, features, outputs, params},
                                        bytes);
}
