// rbcVoxelize, rbcVoxelizeSparse and rbcVoxelizeTsdf.
#include "fuzz/bind.h"
#include "fuzz/calls.h"
#include "fuzz/fill.h"

namespace fuzz {
namespace {

struct Clouds {
  enum Kind { kSingle, kPadded, kPacked };
  Kind kind;
  int64_t batch;
  int64_t count;  // N
  int64_t columns;
  Tensor* points;
  Tensor* lengths = nullptr;
  Tensor* offsets = nullptr;

  Clouds(Call& call, Choices& choices)
      : kind(static_cast<Kind>(choices.below(3))),
        batch(kind == kSingle     ? 1
              : choices.chance(8) ? 0
                                  : choices.between(1, 3)),
        count(anyExtent(choices, 60)),
        columns(choices.between(3, 6)) {
    points = call.add(choices, "points", anyFloat(choices), rows(columns), Role::kInput);
    fillReals(call, *points, choices, -2, 6);
    if (kind == kPacked) {
      offsets = call.add(choices, "batch_offsets", anyIndex(choices), {batch + 1}, Role::kInput);
      fillOffsets(call, *offsets, choices, count);
    } else if (kind == kPadded && choices.chance(50)) {
      lengths = call.add(choices, "lengths", anyIndex(choices), {batch}, Role::kInput);
      fillIntegers(call, *lengths, choices, 0, count);
    }
  }

  // [B,N,last] or [N,last]; without the last extent if it is negative.
  std::vector<int64_t> rows(int64_t last = -1) const {
    std::vector<int64_t> shape = {count};
    if (kind == kPadded) shape.insert(shape.begin(), batch);
    if (last >= 0) shape.push_back(last);
    return shape;
  }
  std::vector<int64_t> perCloud() const {
    return kind == kSingle ? std::vector<int64_t>{} : std::vector<int64_t>{batch};
  }
  template <class Params>
  void fillIn(Params* params) const {
    if (lengths != nullptr) params->lengths = lengths->hold();
    if (offsets != nullptr) params->batch_offsets = offsets->hold();
  }
};

rbcVoxelGrid anyGrid(Choices& choices, int64_t most) {
  rbcVoxelGrid grid;
  for (int i = 0; i < 3; ++i) {
    grid.origin[i] = choices.pick({-2.0, 0.0, -1.5, 1e-3});
    grid.voxel_size[i] = choices.pick({1.0, 0.5, 0.25, 0.1, 3.0});
    grid.shape[i] = choices.between(1, most);
  }
  return grid;
}

struct Features {
  Tensor* tensor = nullptr;
  int64_t columns;

  Features(Call& call, Choices& choices, const Clouds& clouds) : columns(clouds.columns) {
    if (!choices.chance(50)) return;
    columns = choices.below(6);
    tensor = call.add(choices, "features", anyFloat(choices), clouds.rows(columns), Role::kInput);
    fillReals(call, *tensor, choices, -100, 100);
  }
};

Tensor* anyCount(Call& call, Choices& choices, const Clouds& clouds, const char* name) {
  if (!choices.chance(50)) return nullptr;
  return call.add(choices, name, support::kI64, clouds.perCloud(), Role::kOutput);
}

}  // namespace

static std::unique_ptr<Call> makeVoxelize(Choices& choices) {
  auto call = std::make_unique<Call>("rbcVoxelize");
  const Clouds clouds(*call, choices);
  rbcVoxelizeParams params = rbcVoxelizeParamsInit();
  params.reduction = static_cast<int32_t>(choices.below(6));
  params.grid = anyGrid(choices, choices.chance(10) ? 24 : 7);
  if (choices.chance(30)) params.fill_value = choices.pick({1.0, 0.0, 5.0});
  clouds.fillIn(&params);
  const bool reduces = params.reduction >= RBC_REDUCE_SUM;
  const Features features(*call, choices, clouds);
  std::vector<int64_t> shape = clouds.perCloud();
  shape.insert(shape.end(), params.grid.shape, params.grid.shape + 3);
  rbcDType dtype = anyFloat(choices);
  if (!reduces && choices.chance(60)) {
    dtype = params.reduction == RBC_REDUCE_COUNT
                ? anyIndex(choices)
                : choices.pick({support::kBool, support::kU8, support::kI32});
  }
  if (reduces) shape.push_back(features.columns);
  Tensor* out = call->add(choices, "out", dtype, shape, Role::kOutput);
  Tensor* dropped = anyCount(*call, choices, clouds, "num_points_outside");
  Struct* p = call->add("rbcVoxelizeParams", &params);
  const Tensor* feature_tensor = reduces || choices.chance(5) ? features.tensor : nullptr;
  Operation<rbcVoxelize, rbcVoxelizeWorkspaceSize>::bind(call.get(), clouds.points, feature_tensor,
                                                         out, dropped, p);
  return call;
}
const Maker kVoxelize(2, makeVoxelize);

static std::unique_ptr<Call> makeVoxelizeSparse(Choices& choices) {
  auto call = std::make_unique<Call>("rbcVoxelizeSparse");
  const Clouds clouds(*call, choices);
  const Features features(*call, choices, clouds);
  rbcVoxelizeSparseParams params = rbcVoxelizeSparseParamsInit();
  params.reduction = static_cast<int32_t>(choices.between(RBC_REDUCE_SUM, RBC_REDUCE_MIN));
  params.order = static_cast<int32_t>(choices.below(2));
  params.grid = anyGrid(choices, choices.pick<int64_t>({4, 16, 1 << 12, 1 << 20, INT32_MAX}));
  clouds.fillIn(&params);

  rbcVoxelizeSparseOutputs voxels = rbcVoxelizeSparseOutputsInit();
  const int64_t capacity = anyExtent(choices, 40);
  const auto output = [&](const char* name, rbcDType dtype, std::vector<int64_t> shape) {
    return call->add(choices, name, dtype, shape, Role::kOutput)->hold();
  };
  voxels.coords = output("coords", support::kI32, {capacity, 4});
  voxels.num_voxels = output("num_voxels", support::kI64, {});
  if (choices.chance(50))
    voxels.points_per_voxel = output("points_per_voxel", support::kI32, {capacity});
  if (choices.chance(50)) {
    voxels.voxel_features = output("features", anyFloat(choices), {capacity, features.columns});
  }
  if (choices.chance(40)) {
    voxels.grouped =
        output("grouped", anyFloat(choices), {capacity, choices.between(1, 4), features.columns});
  }
  if (choices.chance(50)) {
    voxels.point_to_voxel = output("point_to_voxel", anyIndex(choices), clouds.rows());
  }
  if (choices.chance(50))
    voxels.num_points_outside = output("num_points_outside", support::kI64, clouds.perCloud());
  if (choices.chance(50)) {
    voxels.num_voxels_over_capacity = output("num_voxels_over_capacity", support::kI64, {});
  }
  if (choices.chance(50)) {
    voxels.num_points_over_capacity = output("num_points_over_capacity", support::kI64, {});
  }
  if (choices.chance(50)) {
    voxels.num_points_over_group = output("num_points_over_group", support::kI64, {});
  }
  Struct* v = call->add("rbcVoxelizeSparseOutputs", &voxels);
  Struct* p = call->add("rbcVoxelizeSparseParams", &params);
  Operation<rbcVoxelizeSparse, rbcVoxelizeSparseWorkspaceSize>::bind(call.get(), clouds.points,
                                                                     features.tensor, v, p);
  return call;
}
const Maker kVoxelizeSparse(3, makeVoxelizeSparse);

static std::unique_ptr<Call> makeVoxelizeTsdf(Choices& choices) {
  auto call = std::make_unique<Call>("rbcVoxelizeTsdf");
  const Clouds clouds(*call, choices);
  rbcVoxelizeTsdfParams params = rbcVoxelizeTsdfParamsInit();
  params.flags = choices.chance(40) ? RBC_VOXELIZE_TSDF_FLAG_CARVE : 0;
  params.weighting = static_cast<int32_t>(choices.below(2));
  params.truncation = choices.pick({0.5, 1.0, 3.0, 1e-3, 1e6});
  if (choices.chance(30)) params.max_weight = choices.pick({1.0, 10.0, 0.1});
  params.grid = anyGrid(choices, choices.chance(10) ? 30 : 8);
  clouds.fillIn(&params);
  const std::vector<int64_t> shape(params.grid.shape, params.grid.shape + 3);
  std::vector<int64_t> each = {3};
  if (clouds.kind != Clouds::kSingle && choices.chance(60)) each.insert(each.begin(), clouds.batch);
  Tensor* sensors = call->add(choices, "sensors", anyReal(choices), each, Role::kInput);
  fillReals(*call, *sensors, choices, -3, 8);
  Tensor* tsdf = call->add(choices, "tsdf", support::kF32, shape, Role::kBoth);
  Tensor* weight = call->add(choices, "weight", support::kF32, shape, Role::kBoth);
  if (choices.chance(50)) {
    fillReals(*call, *tsdf, choices, -params.truncation, params.truncation);
    fillReals(*call, *weight, choices, 0, 4);
  }
  Tensor* dropped = anyCount(*call, choices, clouds, "num_points_unused");
  Struct* p = call->add("rbcVoxelizeTsdfParams", &params);
  Operation<rbcVoxelizeTsdf, rbcVoxelizeTsdfWorkspaceSize>::bind(call.get(), clouds.points, sensors,
                                                                 tsdf, weight, dropped, p);
  return call;
}
const Maker kVoxelizeTsdf(4, makeVoxelizeTsdf);

}  // namespace fuzz
