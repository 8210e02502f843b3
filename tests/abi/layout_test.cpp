// The baseline of ABI version 1: sizes, offsets and values that programs were compiled with.
// A struct with a struct_size may grow at its end, and no other may.
//
// Once ABI version 1 is released, a line here may be added, but not changed or removed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "robocache/robocache.h"
#include "support/expect.h"

#if defined(RBC_DLPACK_HEADER)
#include RBC_DLPACK_HEADER
#endif

static_assert(RBC_ABI_VERSION == 1, "a new ABI version needs a new baseline");
static_assert(sizeof(void*) == 8 && sizeof(size_t) == 8, "the baseline is that of 64-bit Linux");

// ---- constants ----------------------------------------------------------------------------------

#define VALUE(name, value) static_assert((name) == (value), #name " has changed")

VALUE(RBC_STATUS_SUCCESS, 0);
VALUE(RBC_STATUS_INVALID_ARGUMENT, 1);
VALUE(RBC_STATUS_UNSUPPORTED, 2);
VALUE(RBC_STATUS_DEVICE_MISMATCH, 3);
VALUE(RBC_STATUS_DTYPE_MISMATCH, 4);
VALUE(RBC_STATUS_SHAPE_MISMATCH, 5);
VALUE(RBC_STATUS_OUT_OF_MEMORY, 6);
VALUE(RBC_STATUS_WORKSPACE_TOO_SMALL, 7);
VALUE(RBC_STATUS_CUDA_ERROR, 8);
VALUE(RBC_STATUS_NOT_AVAILABLE, 9);
VALUE(RBC_STATUS_INTERNAL, 10);
VALUE(RBC_STATUS_CANCELLED, 11);
VALUE(RBC_STATUS_BUFFER_TOO_SMALL, 12);
VALUE(RBC_STATUS_NOT_FOUND, 13);
VALUE(RBC_STATUS_IO_ERROR, 14);
VALUE(RBC_STATUS_DAMAGED, 15);

VALUE(RBC_STRUCT_CONTEXT_PARAMS, 1);
VALUE(RBC_STRUCT_CONTEXT_INFO, 2);
VALUE(RBC_STRUCT_RESAMPLE_PARAMS, 3);
VALUE(RBC_STRUCT_FUSE_STREAM, 4);
VALUE(RBC_STRUCT_FUSE_PARAMS, 5);
VALUE(RBC_STRUCT_LIVE_STREAM, 6);
VALUE(RBC_STRUCT_LIVE_PARAMS, 7);
VALUE(RBC_STRUCT_LIVE_FUSE_PARAMS, 8);
VALUE(RBC_STRUCT_LIVE_COUNTERS, 9);
VALUE(RBC_STRUCT_WINDOWS_STREAM, 10);
VALUE(RBC_STRUCT_WINDOWS_OUTPUTS, 11);
VALUE(RBC_STRUCT_WINDOWS_PARAMS, 12);
VALUE(RBC_STRUCT_STATISTICS_PARAMS, 13);
VALUE(RBC_STRUCT_STATISTICS_OUTPUTS, 14);
VALUE(RBC_STRUCT_ACCUMULATOR_PARAMS, 15);
VALUE(RBC_STRUCT_ACCUMULATOR_UPDATE_PARAMS, 16);
VALUE(RBC_STRUCT_ACCUMULATOR_INFO, 17);
VALUE(RBC_STRUCT_VOXELIZE_PARAMS, 18);
VALUE(RBC_STRUCT_VOXELIZE_SPARSE_PARAMS, 19);
VALUE(RBC_STRUCT_VOXELIZE_SPARSE_OUTPUTS, 20);
VALUE(RBC_STRUCT_VOXELIZE_TSDF_PARAMS, 21);
VALUE(RBC_STRUCT_UNPROJECT_PARAMS, 22);
VALUE(RBC_STRUCT_FARTHEST_POINTS_PARAMS, 23);
VALUE(RBC_STRUCT_TAKE_ROWS_PARAMS, 24);
VALUE(RBC_STRUCT_CONVERT_ROTATIONS_PARAMS, 25);
VALUE(RBC_STRUCT_TENSOR_INFO, 26);
VALUE(RBC_STRUCT_OWNED_TENSOR_PARAMS, 27);

VALUE(RBC_BACKEND_AUTO, 0);
VALUE(RBC_BACKEND_CPU, 1);
VALUE(RBC_BACKEND_CUDA, 2);
VALUE(RBC_SIMD_AUTO, 0);
VALUE(RBC_SIMD_PORTABLE, 1);
VALUE(RBC_SIMD_AVX2, 2);
VALUE(RBC_SIMD_AVX512, 3);
VALUE(RBC_SIMD_NEON, 4);

VALUE(RBC_TENSOR_MAX_NDIM, 8);
VALUE(RBC_DEVICE_CPU, 1);
VALUE(RBC_DEVICE_CUDA, 2);
VALUE(RBC_DEVICE_CUDA_HOST, 3);
VALUE(RBC_DEVICE_CUDA_MANAGED, 13);
VALUE(RBC_DTYPE_INT, 0);
VALUE(RBC_DTYPE_UINT, 1);
VALUE(RBC_DTYPE_FLOAT, 2);
VALUE(RBC_DTYPE_BFLOAT, 4);
VALUE(RBC_DTYPE_BOOL, 6);

VALUE(RBC_METHOD_LINEAR, 0);
VALUE(RBC_METHOD_NEAREST, 1);
VALUE(RBC_METHOD_PREVIOUS, 2);
VALUE(RBC_METHOD_NEXT, 3);
VALUE(RBC_METHOD_CUBIC, 4);
VALUE(RBC_METHOD_PCHIP, 5);
VALUE(RBC_METHOD_SLERP, 6);
VALUE(RBC_METHOD_ANGLE, 7);
VALUE(RBC_PERIOD_RADIANS, 0);
VALUE(RBC_PERIOD_DEGREES, 1);
VALUE(RBC_PERIOD_TURNS, 2);
VALUE(RBC_PERIOD_RADIANS_POSITIVE, 3);
VALUE(RBC_PERIOD_DEGREES_POSITIVE, 4);
VALUE(RBC_PERIOD_TURNS_POSITIVE, 5);
VALUE(RBC_OUTSIDE_HOLD, 0);
VALUE(RBC_OUTSIDE_FILL, 1);
VALUE(RBC_OUTSIDE_EXTRAPOLATE, 2);
VALUE(RBC_OUTSIDE_NEUTRAL, 3);
VALUE(RBC_FLAG_CHECK_TIMES, 1u);
VALUE(RBC_FUSE_MAX_CHANNEL_GROUPS, 256);
VALUE(RBC_FUSE_MAX_STREAMS, 64);

VALUE(RBC_REDUCE_OCCUPANCY, 0);
VALUE(RBC_REDUCE_COUNT, 1);
VALUE(RBC_REDUCE_SUM, 2);
VALUE(RBC_REDUCE_MEAN, 3);
VALUE(RBC_REDUCE_MAX, 4);
VALUE(RBC_REDUCE_MIN, 5);
VALUE(RBC_VOXELIZE_SPARSE_ORDER_LEXICOGRAPHIC, 0);
VALUE(RBC_VOXELIZE_SPARSE_ORDER_FIRST_POINT, 1);
VALUE(RBC_VOXELIZE_TSDF_WEIGHTING_CONSTANT, 0);
VALUE(RBC_VOXELIZE_TSDF_WEIGHTING_INVERSE_SQUARE, 1);
VALUE(RBC_VOXELIZE_TSDF_FLAG_CARVE, 65536u);

VALUE(RBC_ROTATION_QUAT_XYZW, 0);
VALUE(RBC_ROTATION_QUAT_WXYZ, 1);
VALUE(RBC_ROTATION_ROTVEC, 2);
VALUE(RBC_ROTATION_MATRIX, 3);
VALUE(RBC_ROTATION_ROT6D_ROWS, 4);
VALUE(RBC_ROTATION_ROT6D_COLUMNS, 5);
VALUE(RBC_ROTATION_ROT6D_INTERLEAVED, 6);
VALUE(RBC_ROTATION_EULER_EXTRINSIC_XYZ, 16);
VALUE(RBC_ROTATION_EULER_EXTRINSIC_XZY, 17);
VALUE(RBC_ROTATION_EULER_EXTRINSIC_YXZ, 18);
VALUE(RBC_ROTATION_EULER_EXTRINSIC_YZX, 19);
VALUE(RBC_ROTATION_EULER_EXTRINSIC_ZXY, 20);
VALUE(RBC_ROTATION_EULER_EXTRINSIC_ZYX, 21);
VALUE(RBC_ROTATION_EULER_EXTRINSIC_XYX, 22);
VALUE(RBC_ROTATION_EULER_EXTRINSIC_XZX, 23);
VALUE(RBC_ROTATION_EULER_EXTRINSIC_YXY, 24);
VALUE(RBC_ROTATION_EULER_EXTRINSIC_YZY, 25);
VALUE(RBC_ROTATION_EULER_EXTRINSIC_ZXZ, 26);
VALUE(RBC_ROTATION_EULER_EXTRINSIC_ZYZ, 27);
VALUE(RBC_ROTATION_EULER_INTRINSIC_XYZ, 32);
VALUE(RBC_ROTATION_EULER_INTRINSIC_XZY, 33);
VALUE(RBC_ROTATION_EULER_INTRINSIC_YXZ, 34);
VALUE(RBC_ROTATION_EULER_INTRINSIC_YZX, 35);
VALUE(RBC_ROTATION_EULER_INTRINSIC_ZXY, 36);
VALUE(RBC_ROTATION_EULER_INTRINSIC_ZYX, 37);
VALUE(RBC_ROTATION_EULER_INTRINSIC_XYX, 38);
VALUE(RBC_ROTATION_EULER_INTRINSIC_XZX, 39);
VALUE(RBC_ROTATION_EULER_INTRINSIC_YXY, 40);
VALUE(RBC_ROTATION_EULER_INTRINSIC_YZY, 41);
VALUE(RBC_ROTATION_EULER_INTRINSIC_ZXZ, 42);
VALUE(RBC_ROTATION_EULER_INTRINSIC_ZYZ, 43);

VALUE(RBC_STATISTICS_FLAG_PER_ROW, 65536u);
VALUE(RBC_STATISTICS_MAX_LEVELS, 64);

VALUE(RBC_WINDOWS_MAX_STREAMS, 16);
VALUE(RBC_WINDOWS_MAX_TRANSFORMS, 64);
VALUE(RBC_WINDOWS_MODE_GATHER, 0);
VALUE(RBC_WINDOWS_MODE_INTERPOLATE, 1);
VALUE(RBC_WINDOWS_ACCUMULATE_ALL, 0);
VALUE(RBC_WINDOWS_ACCUMULATE_VALID, 1);
VALUE(RBC_WINDOWS_ACCUMULATE_WHOLE, 2);
VALUE(RBC_WINDOWS_TRANSFORM_COPY, 0);
VALUE(RBC_WINDOWS_TRANSFORM_SUBTRACT, 1);
VALUE(RBC_WINDOWS_TRANSFORM_SE3_RELATIVE, 2);
VALUE(RBC_WINDOWS_TRANSFORM_SE3_WORLD, 3);
VALUE(RBC_WINDOWS_TRANSFORM_SE3_STEP, 4);
VALUE(RBC_WINDOWS_TRANSFORM_FLAG_INVERSE, 1u);
VALUE(RBC_WINDOWS_FLAG_ANCHOR_TIMES, 65536u);

// ---- structs ------------------------------------------------------------------------------------

#define SIZE(type, bytes) \
  static_assert(sizeof(type) == (bytes), "the size of " #type " has changed")
#define GROWS(type, bytes) \
  SIZE(type, bytes);       \
  static_assert(sizeof(type) % 8 == 0, "the size of " #type " is not a multiple of 8")
#define FIELD(type, field, offset, field_type)                                     \
  static_assert(offsetof(type, field) == (offset), #type "." #field " has moved"); \
  static_assert(std::is_same_v<decltype(type::field), field_type>,                 \
                #type "." #field " has another type")

SIZE(rbcStatus_t, 4);
SIZE(rbcContext_t, 8);
SIZE(rbcOwnedTensor_t, 8);

#include "structs.inc"

// ---- functions ----------------------------------------------------------------------------------

#define FUNCTION(name, ...) \
  static_assert(std::is_same_v<decltype(&name), __VA_ARGS__>, #name " has changed")

FUNCTION(rbcStatusName, const char* (*)(rbcStatus_t));
FUNCTION(rbcGetLastError, const char* (*)());
FUNCTION(rbcGetVersion, rbcStatus_t (*)(int32_t*, int32_t*));
FUNCTION(rbcInitParams, rbcStatus_t (*)(int32_t, void*, size_t));
FUNCTION(rbcContextCreate, rbcStatus_t (*)(const rbcContextParams*, rbcContext_t*));
FUNCTION(rbcContextDestroy, rbcStatus_t (*)(rbcContext_t));
FUNCTION(rbcContextSetCancelCallback, rbcStatus_t (*)(rbcContext_t, int32_t (*)(void*), void*));
FUNCTION(rbcContextSetCudaStream, rbcStatus_t (*)(rbcContext_t, void*));
FUNCTION(rbcContextGetCudaStream, rbcStatus_t (*)(rbcContext_t, void**));
FUNCTION(rbcContextSynchronize, rbcStatus_t (*)(rbcContext_t));
FUNCTION(rbcContextReserve, rbcStatus_t (*)(rbcContext_t, size_t));
FUNCTION(rbcContextWarmUp, rbcStatus_t (*)(rbcContext_t));
FUNCTION(rbcContextGetInfo, rbcStatus_t (*)(rbcContext_t, rbcContextInfo*));
FUNCTION(rbcTensorGetInfo, rbcStatus_t (*)(const rbcTensor*, rbcTensorInfo*));
FUNCTION(rbcOwnedTensorCreate, rbcStatus_t (*)(rbcContext_t, rbcDType, int32_t, const int64_t*,
                                               const rbcOwnedTensorParams*, rbcOwnedTensor_t*));
FUNCTION(rbcOwnedTensorDestroy, rbcStatus_t (*)(rbcOwnedTensor_t));
FUNCTION(rbcOwnedTensorGetView, rbcStatus_t (*)(rbcOwnedTensor_t, int32_t, rbcTensor*));
FUNCTION(rbcTensorCopy, rbcStatus_t (*)(rbcContext*, const rbcTensor*, const rbcTensor*));
FUNCTION(rbcOwnedTensorImportDLPack, rbcStatus_t (*)(DLManagedTensor*, rbcOwnedTensor_t*));
FUNCTION(rbcOwnedTensorImportDLPackVersioned,
         rbcStatus_t (*)(DLManagedTensorVersioned*, rbcOwnedTensor_t*));
FUNCTION(rbcOwnedTensorExportDLPack, rbcStatus_t (*)(rbcOwnedTensor_t, DLManagedTensor**));
FUNCTION(rbcOwnedTensorExportDLPackVersioned,
         rbcStatus_t (*)(rbcOwnedTensor_t, DLManagedTensorVersioned**));
FUNCTION(rbcResample,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*, const rbcTensor*,
                         const rbcTensor*, const rbcTensor*, const rbcResampleParams*));
FUNCTION(rbcResampleWorkspaceSize,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*, const rbcTensor*,
                         const rbcTensor*, const rbcTensor*, const rbcResampleParams*, size_t*));
FUNCTION(rbcFuse, rbcStatus_t (*)(rbcContext_t, const rbcFuseStream*, int32_t, const rbcTensor*,
                                  const rbcTensor*, const rbcTensor*, const rbcFuseParams*));
FUNCTION(rbcFuseWorkspaceSize,
         rbcStatus_t (*)(rbcContext_t, const rbcFuseStream*, int32_t, const rbcTensor*,
                         const rbcTensor*, const rbcTensor*, const rbcFuseParams*, size_t*));
FUNCTION(rbcVoxelize,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*, const rbcTensor*,
                         const rbcTensor*, const rbcVoxelizeParams*));
FUNCTION(rbcVoxelizeWorkspaceSize,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*, const rbcTensor*,
                         const rbcTensor*, const rbcVoxelizeParams*, size_t*));
FUNCTION(rbcVoxelizeSparse,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*,
                         const rbcVoxelizeSparseOutputs*, const rbcVoxelizeSparseParams*));
FUNCTION(rbcVoxelizeSparseWorkspaceSize,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*,
                         const rbcVoxelizeSparseOutputs*, const rbcVoxelizeSparseParams*, size_t*));
FUNCTION(rbcVoxelizeTsdf,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*, const rbcTensor*,
                         const rbcTensor*, const rbcTensor*, const rbcVoxelizeTsdfParams*));
FUNCTION(rbcVoxelizeTsdfWorkspaceSize,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*, const rbcTensor*,
                         const rbcTensor*, const rbcTensor*, const rbcVoxelizeTsdfParams*,
                         size_t*));
FUNCTION(rbcConvertRotations, rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*,
                                              const rbcConvertRotationsParams*));
FUNCTION(rbcConvertRotationsWorkspaceSize,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*,
                         const rbcConvertRotationsParams*, size_t*));
FUNCTION(rbcStatistics, rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcStatisticsOutputs*,
                                        const rbcStatisticsParams*));
FUNCTION(rbcStatisticsWorkspaceSize,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcStatisticsOutputs*,
                         const rbcStatisticsParams*, size_t*));
FUNCTION(rbcAccumulatorCreate,
         rbcStatus_t (*)(rbcContext_t, const rbcAccumulatorParams*, rbcAccumulator_t*));
FUNCTION(rbcAccumulatorDestroy, rbcStatus_t (*)(rbcAccumulator_t));
FUNCTION(rbcAccumulatorUpdate,
         rbcStatus_t (*)(rbcAccumulator_t, const rbcTensor*, const rbcAccumulatorUpdateParams*));
FUNCTION(rbcAccumulatorUpdateWorkspaceSize,
         rbcStatus_t (*)(rbcAccumulator_t, const rbcTensor*, const rbcAccumulatorUpdateParams*,
                         size_t*));
FUNCTION(rbcAccumulatorMerge, rbcStatus_t (*)(rbcAccumulator_t, rbcAccumulator_t));
FUNCTION(rbcAccumulatorNextPass, rbcStatus_t (*)(rbcAccumulator_t, int32_t*));
FUNCTION(rbcAccumulatorExport, rbcStatus_t (*)(rbcAccumulator_t, void*, size_t, size_t*));
FUNCTION(rbcAccumulatorImport,
         rbcStatus_t (*)(rbcContext_t, const void*, size_t, rbcAccumulator_t*));
FUNCTION(rbcAccumulatorGetResult, rbcStatus_t (*)(rbcAccumulator_t, const rbcStatisticsOutputs*));
FUNCTION(rbcAccumulatorGetInfo, rbcStatus_t (*)(rbcAccumulator_t, rbcAccumulatorInfo*));
FUNCTION(rbcAccumulatorGetLevels, rbcStatus_t (*)(rbcAccumulator_t, double*, size_t));
FUNCTION(rbcLiveCreate, rbcStatus_t (*)(rbcContext_t, const rbcLiveStream*, int32_t,
                                        const rbcLiveParams*, rbcLive_t*));
FUNCTION(rbcLiveDestroy, rbcStatus_t (*)(rbcLive_t));
FUNCTION(rbcLivePush, rbcStatus_t (*)(rbcLive_t, int32_t, const rbcTensor*, const rbcTensor*));
FUNCTION(rbcLiveFuse,
         rbcStatus_t (*)(rbcLive_t, const rbcTensor*, const rbcTensor*, const rbcTensor*,
                         const rbcTensor*, const rbcLiveFuseParams*));
FUNCTION(rbcLiveReset, rbcStatus_t (*)(rbcLive_t, int32_t));
FUNCTION(rbcLiveGetCounters, rbcStatus_t (*)(rbcLive_t, int32_t, rbcLiveCounters*));
FUNCTION(rbcWindows,
         rbcStatus_t (*)(rbcContext_t, const rbcWindowsStream*, int32_t, const rbcTensor*,
                         const rbcTensor*, const rbcWindowsOutputs*, const rbcWindowsParams*));
FUNCTION(rbcWindowsWorkspaceSize,
         rbcStatus_t (*)(rbcContext_t, const rbcWindowsStream*, int32_t, const rbcTensor*,
                         const rbcTensor*, const rbcWindowsOutputs*, const rbcWindowsParams*,
                         size_t*));
FUNCTION(rbcUnproject,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*, const rbcTensor*,
                         const rbcTensor*, const rbcTensor*, const rbcTensor*, const rbcTensor*,
                         const rbcTensor*, const rbcUnprojectParams*));
FUNCTION(rbcUnprojectWorkspaceSize,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*, const rbcTensor*,
                         const rbcTensor*, const rbcTensor*, const rbcTensor*, const rbcTensor*,
                         const rbcTensor*, const rbcUnprojectParams*, size_t*));
FUNCTION(rbcFarthestPoints, rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*,
                                            const rbcTensor*, const rbcFarthestPointsParams*));
FUNCTION(rbcFarthestPointsWorkspaceSize,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*, const rbcTensor*,
                         const rbcFarthestPointsParams*, size_t*));
FUNCTION(rbcTakeRows, rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*,
                                      const rbcTensor*, const rbcTakeRowsParams*));
FUNCTION(rbcTakeRowsWorkspaceSize,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*, const rbcTensor*,
                         const rbcTakeRowsParams*, size_t*));

namespace {

// Checks that a field has its default, which is not 0, and then sets it to 0.
template <class Struct, class Field>
auto has(Field Struct::*field, Field value) {
  return [=](Struct& made) {
    CHECK(made.*field == value);
    made.*field = Field{};
  };
}
template <class Struct>
auto hasAll(double (Struct::*field)[3], double value) {
  return [=](Struct& made) {
    for (double& element : made.*field) {
      CHECK(element == value);
      element = 0;
    }
  };
}
auto hasBits(int bits) {
  return [=](rbcDType& dtype) {
    CHECK(dtype.bits == bits);
    dtype = {};
  };
}

// Checks an initialized struct: the size, the given defaults, and zeros elsewhere.
template <class Struct, class... Others>
void checkInitializer(Struct made, Others... others) {
  has(&Struct::struct_size, static_cast<uint32_t>(sizeof made))(made);
  (others(made), ...);
  const auto* bytes = reinterpret_cast<const unsigned char*>(&made);
  CHECK(std::all_of(bytes, bytes + sizeof made, [](unsigned char b) { return b == 0; }));
}

}  // namespace

TEST_CASE("layout: the initializers set the defaults, and other fields to zero") {
  constexpr double kInfinity = INFINITY;
  checkInitializer(rbcContextParamsInit());
  checkInitializer(rbcContextInfoInit());
  checkInitializer(rbcResampleParamsInit(), has(&rbcResampleParams::max_gap, kInfinity),
                   has(&rbcResampleParams::tolerance, kInfinity),
                   has(&rbcResampleParams::group_size, uint32_t{sizeof(rbcChannelGroup)}));
  checkInitializer(rbcFuseStreamInit());
  checkInitializer(rbcFuseParamsInit());
  checkInitializer(rbcVoxelizeParamsInit());
  checkInitializer(rbcVoxelizeSparseParamsInit(),
                   has(&rbcVoxelizeSparseParams::reduction, int32_t{RBC_REDUCE_MEAN}));
  checkInitializer(rbcVoxelizeSparseOutputsInit());
  checkInitializer(rbcVoxelizeTsdfParamsInit(), has(&rbcVoxelizeTsdfParams::max_weight, kInfinity));
  using Unproject = rbcUnprojectParams;
  checkInitializer(rbcUnprojectParamsInit(), has(&Unproject::color_divisor, 1.0),
                   has(&Unproject::pixel_stride, 1), has(&Unproject::max_depth, kInfinity),
                   hasAll(&Unproject::crop_min, -kInfinity),
                   hasAll(&Unproject::crop_max, kInfinity));
  checkInitializer(rbcFarthestPointsParamsInit());
  checkInitializer(rbcTakeRowsParamsInit());
  checkInitializer(rbcConvertRotationsParamsInit());
  checkInitializer(rbcStatisticsParamsInit());
  checkInitializer(rbcStatisticsOutputsInit());
  checkInitializer(rbcAccumulatorParamsInit());
  checkInitializer(rbcAccumulatorUpdateParamsInit());
  checkInitializer(rbcAccumulatorInfoInit());
  checkInitializer(rbcTensorInfoInit());
  checkInitializer(rbcOwnedTensorParamsInit());
  checkInitializer(rbcLiveStreamInit(), has(&rbcLiveStream::capacity, int64_t{256}),
                   has(&rbcLiveStream::max_age, kInfinity),
                   has(&rbcLiveStream::max_ahead, kInfinity),
                   [](rbcLiveStream& made) { hasBits(32)(made.dtype); });
  checkInitializer(rbcLiveParamsInit(), [](rbcLiveParams& made) { hasBits(64)(made.time_dtype); });
  checkInitializer(rbcLiveFuseParamsInit());
  checkInitializer(rbcLiveCountersInit());
  checkInitializer(rbcWindowsStreamInit(),
                   has(&rbcWindowsStream::transform_size, uint32_t{sizeof(rbcWindowsTransform)}));
  checkInitializer(rbcWindowsOutputsInit());
  checkInitializer(rbcWindowsParamsInit());
}

TEST_CASE("layout: rbcInitParams writes what the inline initializers write") {
  const auto check = [](int32_t id, const auto& defaults) {
    using Struct = std::decay_t<decltype(defaults)>;
    constexpr size_t kSize = sizeof(Struct);
    const auto* expected = reinterpret_cast<const unsigned char*>(&defaults);
    for (const size_t size : {kSize, std::max(kSize - 8, size_t{8}), size_t{8}, kSize + 16}) {
      std::vector<unsigned char> bytes(size + 8, 0xab);
      CHECK_SUCCEEDS(rbcInitParams(id, bytes.data(), size));
      uint32_t struct_size = 0;
      std::memcpy(&struct_size, bytes.data(), sizeof struct_size);
      CHECK(struct_size == size);
      for (size_t i = sizeof struct_size; i < size; ++i) {
        CHECK(bytes[i] == (i < kSize ? expected[i] : 0));
      }
      for (size_t i = size; i < size + 8; ++i) CHECK(bytes[i] == 0xab);
    }
  };
  check(RBC_STRUCT_CONTEXT_PARAMS, rbcContextParamsInit());
  check(RBC_STRUCT_CONTEXT_INFO, rbcContextInfoInit());
  check(RBC_STRUCT_RESAMPLE_PARAMS, rbcResampleParamsInit());
  check(RBC_STRUCT_FUSE_STREAM, rbcFuseStreamInit());
  check(RBC_STRUCT_FUSE_PARAMS, rbcFuseParamsInit());
  check(RBC_STRUCT_LIVE_STREAM, rbcLiveStreamInit());
  check(RBC_STRUCT_LIVE_PARAMS, rbcLiveParamsInit());
  check(RBC_STRUCT_LIVE_FUSE_PARAMS, rbcLiveFuseParamsInit());
  check(RBC_STRUCT_LIVE_COUNTERS, rbcLiveCountersInit());
  check(RBC_STRUCT_TENSOR_INFO, rbcTensorInfoInit());
  check(RBC_STRUCT_OWNED_TENSOR_PARAMS, rbcOwnedTensorParamsInit());
  check(RBC_STRUCT_WINDOWS_STREAM, rbcWindowsStreamInit());
  check(RBC_STRUCT_WINDOWS_OUTPUTS, rbcWindowsOutputsInit());
  check(RBC_STRUCT_WINDOWS_PARAMS, rbcWindowsParamsInit());
  check(RBC_STRUCT_STATISTICS_PARAMS, rbcStatisticsParamsInit());
  check(RBC_STRUCT_STATISTICS_OUTPUTS, rbcStatisticsOutputsInit());
  check(RBC_STRUCT_ACCUMULATOR_PARAMS, rbcAccumulatorParamsInit());
  check(RBC_STRUCT_ACCUMULATOR_UPDATE_PARAMS, rbcAccumulatorUpdateParamsInit());
  check(RBC_STRUCT_ACCUMULATOR_INFO, rbcAccumulatorInfoInit());
  check(RBC_STRUCT_VOXELIZE_PARAMS, rbcVoxelizeParamsInit());
  check(RBC_STRUCT_VOXELIZE_SPARSE_PARAMS, rbcVoxelizeSparseParamsInit());
  check(RBC_STRUCT_VOXELIZE_SPARSE_OUTPUTS, rbcVoxelizeSparseOutputsInit());
  check(RBC_STRUCT_VOXELIZE_TSDF_PARAMS, rbcVoxelizeTsdfParamsInit());
  check(RBC_STRUCT_UNPROJECT_PARAMS, rbcUnprojectParamsInit());
  check(RBC_STRUCT_FARTHEST_POINTS_PARAMS, rbcFarthestPointsParamsInit());
  check(RBC_STRUCT_TAKE_ROWS_PARAMS, rbcTakeRowsParamsInit());
  check(RBC_STRUCT_CONVERT_ROTATIONS_PARAMS, rbcConvertRotationsParamsInit());

  uint64_t words[2] = {7, 7};
  for (const int32_t id : {0, -1, 28, INT32_MAX}) {
    CHECK_FAILS(rbcInitParams(id, words, sizeof words), RBC_STATUS_INVALID_ARGUMENT,
                "struct_id: is ");
  }
  for (const size_t size : {size_t{0}, size_t{4}, size_t{12}, size_t{65544}, SIZE_MAX}) {
    CHECK_FAILS(rbcInitParams(RBC_STRUCT_FUSE_PARAMS, words, size), RBC_STATUS_INVALID_ARGUMENT,
                "struct_size: is ");
  }
  CHECK_FAILS(rbcInitParams(RBC_STRUCT_FUSE_PARAMS, nullptr, 16), RBC_STATUS_INVALID_ARGUMENT,
              "params: is null");
  CHECK(words[0] == 7);
  CHECK(words[1] == 7);
}

// ---- DLPack -------------------------------------------------------------------------------------

#if defined(RBC_DLPACK_HEADER)

#define SAME_FIELD(ours, our_field, theirs, their_field)                    \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field), \
                #ours "." #our_field " has moved");                         \
  static_assert(sizeof(ours::our_field) == sizeof(theirs::their_field),     \
                #ours "." #our_field " has another size")

static_assert(sizeof(rbcTensor) == sizeof(DLTensor) && alignof(rbcTensor) == alignof(DLTensor));
SAME_FIELD(rbcTensor, data, DLTensor, data);
SAME_FIELD(rbcTensor, device, DLTensor, device);
SAME_FIELD(rbcTensor, ndim, DLTensor, ndim);
SAME_FIELD(rbcTensor, dtype, DLTensor, dtype);
SAME_FIELD(rbcTensor, shape, DLTensor, shape);
SAME_FIELD(rbcTensor, strides, DLTensor, strides);
SAME_FIELD(rbcTensor, byte_offset, DLTensor, byte_offset);
static_assert(sizeof(rbcDevice) == sizeof(DLDevice));
SAME_FIELD(rbcDevice, type, DLDevice, device_type);
SAME_FIELD(rbcDevice, id, DLDevice, device_id);
static_assert(sizeof(rbcDType) == sizeof(DLDataType));
SAME_FIELD(rbcDType, code, DLDataType, code);
SAME_FIELD(rbcDType, bits, DLDataType, bits);
SAME_FIELD(rbcDType, lanes, DLDataType, lanes);

static_assert(int{RBC_DEVICE_CPU} == kDLCPU && int{RBC_DEVICE_CUDA} == kDLCUDA);
static_assert(int{RBC_DEVICE_CUDA_HOST} == kDLCUDAHost &&
              int{RBC_DEVICE_CUDA_MANAGED} == kDLCUDAManaged);
static_assert(int{RBC_DTYPE_INT} == kDLInt && int{RBC_DTYPE_UINT} == kDLUInt &&
              int{RBC_DTYPE_FLOAT} == kDLFloat);
static_assert(int{RBC_DTYPE_BFLOAT} == kDLBfloat && int{RBC_DTYPE_BOOL} == kDLBool);

TEST_CASE("layout: a DLTensor can be passed by a cast") {
  float values[] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {2, 2};
  int64_t strides[] = {3, 1};
  const DLTensor tensor = {values, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 4};
  rbcTensorInfo info = rbcTensorInfoInit();
  CHECK_SUCCEEDS(rbcTensorGetInfo(reinterpret_cast<const rbcTensor*>(&tensor), &info));
  CHECK(info.data == values + 1);
  CHECK(info.strides[0] == 3);
  CHECK(info.num_elements == 4);
}

#else
TEST_CASE("layout: a DLTensor can be passed by a cast") { SKIP_BECAUSE("no dlpack.h"); }
#endif
