// rbcInitParams: the initializers of the headers, for callers that cannot compile them.

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "guard.h"
#include "params.h"
#include "robocache/robocache.h"
#include "status.h"

namespace rbc {
namespace {

void writeDefaults(void* params, size_t size, const void* defaults, size_t own_size) {
  std::memset(params, 0, size);
  std::memcpy(params, defaults, std::min(size, own_size));
  const auto struct_size = static_cast<uint32_t>(size);
  std::memcpy(params, &struct_size, sizeof struct_size);
}

void initParams(int32_t struct_id, void* params, size_t size) {
  if (params == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "params: is null");
  if (!isSize(size)) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "struct_size: is %zu, expected a multiple of 8 from 8 to 65536", size);
  }
  const auto write = [&](const auto& defaults) {
    writeDefaults(params, size, &defaults, sizeof defaults);
  };
  switch (struct_id) {
    case RBC_STRUCT_CONTEXT_PARAMS: return write(rbcContextParamsInit());
    case RBC_STRUCT_CONTEXT_INFO: return write(rbcContextInfoInit());
    case RBC_STRUCT_RESAMPLE_PARAMS: return write(rbcResampleParamsInit());
    case RBC_STRUCT_FUSE_STREAM: return write(rbcFuseStreamInit());
    case RBC_STRUCT_FUSE_PARAMS: return write(rbcFuseParamsInit());
    case RBC_STRUCT_LIVE_STREAM: return write(rbcLiveStreamInit());
    case RBC_STRUCT_LIVE_PARAMS: return write(rbcLiveParamsInit());
    case RBC_STRUCT_LIVE_FUSE_PARAMS: return write(rbcLiveFuseParamsInit());
    case RBC_STRUCT_LIVE_COUNTERS: return write(rbcLiveCountersInit());
    case RBC_STRUCT_WINDOWS_STREAM: return write(rbcWindowsStreamInit());
    case RBC_STRUCT_WINDOWS_OUTPUTS: return write(rbcWindowsOutputsInit());
    case RBC_STRUCT_WINDOWS_PARAMS: return write(rbcWindowsParamsInit());
    case RBC_STRUCT_STATISTICS_PARAMS: return write(rbcStatisticsParamsInit());
    case RBC_STRUCT_STATISTICS_OUTPUTS: return write(rbcStatisticsOutputsInit());
    case RBC_STRUCT_ACCUMULATOR_PARAMS: return write(rbcAccumulatorParamsInit());
    case RBC_STRUCT_ACCUMULATOR_UPDATE_PARAMS: return write(rbcAccumulatorUpdateParamsInit());
    case RBC_STRUCT_ACCUMULATOR_INFO: return write(rbcAccumulatorInfoInit());
    case RBC_STRUCT_VOXELIZE_PARAMS: return write(rbcVoxelizeParamsInit());
    case RBC_STRUCT_VOXELIZE_SPARSE_PARAMS: return write(rbcVoxelizeSparseParamsInit());
    case RBC_STRUCT_VOXELIZE_SPARSE_OUTPUTS: return write(rbcVoxelizeSparseOutputsInit());
    case RBC_STRUCT_VOXELIZE_TSDF_PARAMS: return write(rbcVoxelizeTsdfParamsInit());
    case RBC_STRUCT_UNPROJECT_PARAMS: return write(rbcUnprojectParamsInit());
    case RBC_STRUCT_FARTHEST_POINTS_PARAMS: return write(rbcFarthestPointsParamsInit());
    case RBC_STRUCT_TAKE_ROWS_PARAMS: return write(rbcTakeRowsParamsInit());
    case RBC_STRUCT_CONVERT_ROTATIONS_PARAMS: return write(rbcConvertRotationsParamsInit());
    case RBC_STRUCT_TENSOR_INFO: return write(rbcTensorInfoInit());
    case RBC_STRUCT_OWNED_TENSOR_PARAMS: return write(rbcOwnedTensorParamsInit());
    default:
      fail(RBC_STATUS_INVALID_ARGUMENT, "struct_id: is %" PRId32 ", expected one of RBC_STRUCT_...",
           struct_id);
  }
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcInitParams(int32_t struct_id, void* params, size_t struct_size) {
  return rbc::guard([&] { rbc::initParams(struct_id, params, struct_size); });
}
