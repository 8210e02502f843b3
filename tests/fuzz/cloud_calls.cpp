// rbcUnproject, rbcFarthestPoints, rbcTakeRows and rbcConvertRotations.
#include <initializer_list>

#include "fuzz/bind.h"
#include "fuzz/calls.h"
#include "fuzz/fill.h"

namespace fuzz {
namespace {

std::vector<int64_t> join(std::vector<int64_t> shape, std::initializer_list<int64_t> more) {
  shape.insert(shape.end(), more);
  return shape;
}

// Batch axes: none or one.
std::vector<int64_t> anyBatch(Choices& choices) {
  if (choices.chance(40)) return {};
  return {choices.chance(8) ? 0 : choices.between(1, 3)};
}

int channelsOf(int32_t representation) {
  switch (representation) {
    case RBC_ROTATION_QUAT_XYZW:
    case RBC_ROTATION_QUAT_WXYZ: return 4;
    case RBC_ROTATION_MATRIX: return 9;
    case RBC_ROTATION_ROT6D_ROWS:
    case RBC_ROTATION_ROT6D_COLUMNS:
    case RBC_ROTATION_ROT6D_INTERLEAVED: return 6;
    default: return 3;
  }
}

int32_t anyRotation(Choices& choices) {
  if (choices.chance(60)) return static_cast<int32_t>(choices.below(7));
  return static_cast<int32_t>(choices.chance(50) ? choices.between(16, 27)
                                                 : choices.between(32, 43));
}

}  // namespace

static std::unique_ptr<Call> makeUnproject(Choices& choices) {
  auto call = std::make_unique<Call>("rbcUnproject");
  const std::vector<int64_t> batch = anyBatch(choices);
  const int64_t height = anyExtent(choices, 12);
  const int64_t width = anyExtent(choices, 12);
  const rbcDType dtype = choices.pick({support::kU16, support::kF16, support::kF32});
  Tensor* depth = call->add(choices, "depth", dtype, join(batch, {height, width}), Role::kInput);
  dtype.code == RBC_DTYPE_UINT ? fillIntegers(*call, *depth, choices, 0, 4000)
                               : fillReals(*call, *depth, choices, -0.5, 6);
  const auto shared = [&] { return choices.chance(50) ? std::vector<int64_t>{} : batch; };
  Tensor* intrinsics =
      call->add(choices, "intrinsics", anyReal(choices), join(shared(), {4}), Role::kInput);
  fillReals(*call, *intrinsics, choices, 0.5, 600);
  Tensor* pose = nullptr;
  if (choices.chance(50)) {
    pose = call->add(choices, "pose", anyReal(choices), join(shared(), {4, 4}), Role::kInput);
    fillReals(*call, *pose, choices, -1, 1);
  }
  Tensor* colors = nullptr;
  int64_t channels = 0;
  if (choices.chance(40)) {
    channels = choices.below(5);
    const rbcDType color = choices.chance(50) ? support::kU8 : anyFloat(choices);
    colors =
        call->add(choices, "colors", color, join(batch, {height, width, channels}), Role::kInput);
    color.code == RBC_DTYPE_UINT ? fillBits(*call, *colors, choices)
                                 : fillReals(*call, *colors, choices, 0, 1);
  }
  const int64_t kept = anyExtent(choices, 60);
  Tensor* points = call->add(choices, "points", anyFloat(choices),
                             join(batch, {kept, 3 + channels}), Role::kOutput);
  Tensor* counts = call->add(choices, "num_points", support::kI64, batch, Role::kOutput);
  Tensor* overflow = choices.chance(50) ? call->add(choices, "num_points_over_capacity",
                                                    support::kI64, batch, Role::kOutput)
                                        : nullptr;
  Tensor* pixels = choices.chance(50) ? call->add(choices, "pixels", anyIndex(choices),
                                                  join(batch, {kept}), Role::kOutput)
                                      : nullptr;
  rbcUnprojectParams params = rbcUnprojectParamsInit();
  if (choices.chance(30)) params.depth_scale = choices.pick({1000.0, 1.0, 5000.0, 0.001});
  if (choices.chance(30)) params.min_depth = choices.uniform(0, 2);
  if (choices.chance(30)) params.max_depth = choices.uniform(2, 6);
  if (choices.chance(30)) params.crop_min[0] = choices.uniform(-1, 0);
  if (choices.chance(30)) params.crop_max[2] = choices.uniform(1, 6);
  if (choices.chance(30)) params.pixel_offset = 0.5;
  if (choices.chance(30)) params.color_divisor = 255;
  if (choices.chance(30)) params.pixel_stride = static_cast<int32_t>(choices.between(1, 5));
  Struct* p = call->add("rbcUnprojectParams", &params);
  Operation<rbcUnproject, rbcUnprojectWorkspaceSize>::bind(
      call.get(), depth, intrinsics, pose, colors, points, counts, overflow, pixels, p);
  return call;
}
const Maker kUnproject(5, makeUnproject);

static std::unique_ptr<Call> makeFarthestPoints(Choices& choices) {
  auto call = std::make_unique<Call>("rbcFarthestPoints");
  const bool packed = choices.chance(30);
  const std::vector<int64_t> batch =
      packed ? std::vector<int64_t>{choices.below(4)} : anyBatch(choices);
  const int64_t count = anyExtent(choices, 60);
  const int64_t taken = choices.between(1, choices.chance(20) ? 80 : 12);
  Tensor* points = call->add(
      choices, "points", anyFloat(choices),
      join(packed ? std::vector<int64_t>{} : batch, {count, choices.between(3, 5)}), Role::kInput);
  fillReals(*call, *points, choices);
  Tensor* indices =
      call->add(choices, "indices", anyIndex(choices), join(batch, {taken}), Role::kOutput);
  Tensor* distances = choices.chance(50) ? call->add(choices, "distances", anyFloat(choices),
                                                     join(batch, {taken}), Role::kOutput)
                                         : nullptr;
  rbcFarthestPointsParams params = rbcFarthestPointsParamsInit();
  if (packed) {
    Tensor* t =
        call->add(choices, "batch_offsets", anyIndex(choices), {batch[0] + 1}, Role::kInput);
    fillOffsets(*call, *t, choices, count);
    params.batch_offsets = t->hold();
  } else if (!batch.empty() && choices.chance(40)) {
    Tensor* t = call->add(choices, "lengths", anyIndex(choices), batch, Role::kInput);
    fillIntegers(*call, *t, choices, 0, count);
    params.lengths = t->hold();
  }
  if (!batch.empty() && choices.chance(30)) {
    Tensor* t = call->add(choices, "start_indices", anyIndex(choices), batch, Role::kInput);
    fillIntegers(*call, *t, choices, 0, choices.chance(50) ? 0 : count);
    params.start_indices = t->hold();
  } else if (choices.chance(30)) {
    params.start_index = choices.below(count + 1);
  }
  Struct* p = call->add("rbcFarthestPointsParams", &params);
  Operation<rbcFarthestPoints, rbcFarthestPointsWorkspaceSize>::bind(call.get(), points, indices,
                                                                     distances, p);
  return call;
}
const Maker kFarthestPoints(7, makeFarthestPoints);

static std::unique_ptr<Call> makeTakeRows(Choices& choices) {
  auto call = std::make_unique<Call>("rbcTakeRows");
  const std::vector<int64_t> batch = anyBatch(choices);
  const int64_t count = anyExtent(choices, 40);
  const int64_t taken = anyExtent(choices, 20);
  const int64_t channels = anyExtent(choices, 9);
  const bool integers = choices.chance(50);
  const rbcDType dtype = integers ? choices.pick(support::kIntegerDTypes) : anyFloat(choices);
  const bool shared = batch.empty() || choices.chance(10);
  Tensor* values =
      call->add(choices, "values", dtype,
                join(shared ? std::vector<int64_t>{} : batch, {count, channels}), Role::kInput);
  integers ? fillBits(*call, *values, choices) : fillReals(*call, *values, choices);
  Tensor* indices =
      call->add(choices, "indices", anyIndex(choices), join(batch, {taken}), Role::kInput);
  fillIntegers(*call, *indices, choices, -1, count - 1);
  Tensor* out = call->add(choices, "out", dtype, join(batch, {taken, channels}), Role::kOutput);
  rbcTakeRowsParams params = rbcTakeRowsParamsInit();
  if (choices.chance(50)) params.fill_value = choices.pick({1.0, 0.0, 0.5, -1.0, 100.0, 1e300});
  Struct* p = call->add("rbcTakeRowsParams", &params);
  Operation<rbcTakeRows, rbcTakeRowsWorkspaceSize>::bind(call.get(), values, indices, out, p);
  return call;
}
const Maker kTakeRows(6, makeTakeRows);

static std::unique_ptr<Call> makeConvertRotations(Choices& choices) {
  auto call = std::make_unique<Call>("rbcConvertRotations");
  std::vector<int64_t> rows;
  for (int64_t n = choices.below(choices.chance(20) ? 8 : 3); n > 0; --n) {
    rows.push_back(rows.empty() ? anyExtent(choices, 12) : choices.between(1, 3));
  }
  int32_t source = anyRotation(choices);
  int32_t target = anyRotation(choices);
  Tensor* rotations = call->add(choices, "rotations", anyFloat(choices),
                                join(rows, {channelsOf(source)}), Role::kInput);
  fillReals(*call, *rotations, choices, -1.5, 1.5);
  Tensor* out =
      call->add(choices, "out", anyFloat(choices), join(rows, {channelsOf(target)}), Role::kOutput);
  if (choices.chance(4)) source = choices.pick({-1, 7, 15, 28, 31, 44, INT32_MAX, INT32_MIN});
  if (choices.chance(4)) target = choices.pick({-1, 7, 15, 28, 31, 44, INT32_MAX, INT32_MIN});
  rbcConvertRotationsParams params = rbcConvertRotationsParamsInit();
  params.source = source;
  params.target = target;
  Struct* p = call->add("rbcConvertRotationsParams", &params);
  Operation<rbcConvertRotations, rbcConvertRotationsWorkspaceSize>::bind(call.get(), rotations, out,
                                                                         p);
  return call;
}
const Maker kConvertRotations(9, makeConvertRotations);

}  // namespace fuzz
