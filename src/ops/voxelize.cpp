// rbcVoxelize: the arguments of a call as a VoxelizeProblem.

#include "robocache/voxelize.h"

#include <cinttypes>

#include "cloud_call.h"
#include "element_bits.h"
#include "float_environment.h"
#include "params.h"

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
  if (params.flags != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "flags: 0x%" PRIx32 " has unknown bits, expected 0",
         params.flags);
  }
  if (params.mode < RBC_VOXEL_OCCUPANCY || params.mode > RBC_VOXEL_MIN) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "mode: is %d, expected RBC_VOXEL_OCCUPANCY to _MIN",
         params.mode);
  }
  if (params.reserved0 != 0) fail(RBC_STATUS_INVALID_ARGUMENT, "params: reserved is not 0");
  requireReserved(params.reserved);
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

VoxelizeProblem problemOf(const rbcContext& context, const Arguments& call) {
  const rbcVoxelizeParams params = checkedParams(call.params);
  CloudCall cloud(context);
  const View out = cloud.addOutput(call.out, "out");
  View dropped = {};
  if (call.dropped != nullptr) dropped = cloud.addOutput(call.dropped, "dropped");
  cloud.addPoints(call.points, params.lengths, params.offsets);

  VoxelizeProblem p = {};
  p.points = cloud.points();
  p.grid = cloud.grid(params.grid);
  p.mode = static_cast<VoxelMode>(params.mode);
  requireOutDtype(out, p.mode);
  const int64_t* shape = p.grid.shape;
  if (reducesFeatures(p.mode)) {
    p.features = cloud.features(call.features);
    const int64_t full[] = {p.points.clouds, shape[0], shape[1], shape[2], p.features.count};
    p.out = cloud.batchOutput(out, "out", full);
  } else {
    if (call.features != nullptr) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "features: are for sum, mean, max and min, expected null");
    }
    p.features.count = 1;
    const int64_t full[] = {p.points.clouds, shape[0], shape[1], shape[2]};
    const Output<4> plain = cloud.batchOutput(out, "out", full);
    p.out = {plain.data,
             {plain.stride[0], plain.stride[1], plain.stride[2], plain.stride[3], 1},
             plain.dtype};
  }
  p.empty_bits = elementBits(params.empty_value, out.dtype, "empty_value");
  if (call.dropped != nullptr) p.dropped = cloud.dropped(dropped, "dropped");
  return p;
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcVoxelize(rbcContext_t context, const rbcTensor* points, const rbcTensor* features,
                        const rbcTensor* out, const rbcTensor* dropped,
                        const rbcVoxelizeParams* params) {
  return rbc::guard([&] {
    const rbc::DefaultFloats floats;
    const rbc::ContextUse use(context);
    rbcContext& c = *use;
    rbc::VoxelizeProblem p = rbc::problemOf(c, {points, features, out, dropped, params});
    if (p.points.clouds == 0) return;
    const rbc::Scratch scratch =
        rbc::workspaceFor(c, &p.points, c.backend->voxelizeBytes(*c.state, p));
    c.backend->voxelize(*c.state, p, scratch);
  });
}

rbcStatus_t rbcVoxelizeWorkspaceSize(rbcContext_t context, const rbcTensor* points,
                                     const rbcTensor* features, const rbcTensor* out,
                                     const rbcTensor* dropped, const rbcVoxelizeParams* params,
                                     size_t* bytes) {
  return rbc::guard([&] {
    const rbc::DefaultFloats floats;
    if (bytes == nullptr) rbc::fail(RBC_STATUS_INVALID_ARGUMENT, "bytes: is null");
    const rbc::ContextUse use(context);
    rbcContext& c = *use;
    const rbc::VoxelizeProblem p = rbc::problemOf(c, {points, features, out, dropped, params});
    *bytes = p.points.clouds == 0
                 ? 0
                 : rbc::workspaceBytes(c, p.points, c.backend->voxelizeBytes(*c.state, p));
  });
}
