// The baseline of ABI version 1: sizes, offsets and values that programs were compiled with.
// A struct with a struct_size may grow at its end, and no other may.
//
// Once ABI version 1 is released, a line here may be added, but not changed or removed.
#include <algorithm>
#include <cstddef>
#include <type_traits>

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

VALUE(RBC_BACKEND_AUTO, 0);
VALUE(RBC_BACKEND_CPU, 1);
VALUE(RBC_BACKEND_CUDA, 2);
VALUE(RBC_SIMD_AUTO, 0);
VALUE(RBC_SIMD_PORTABLE, 1);
VALUE(RBC_SIMD_AVX2, 2);
VALUE(RBC_SIMD_AVX512, 3);
VALUE(RBC_SIMD_NEON, 4);

VALUE(RBC_MAX_NDIM, 8);
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
VALUE(RBC_BOUNDS_HOLD, 0);
VALUE(RBC_BOUNDS_FILL, 1);
VALUE(RBC_BOUNDS_EXTRAPOLATE, 2);
VALUE(RBC_CHECK_TIMES, 1u);
VALUE(RBC_MAX_CHANNEL_GROUPS, 256);
VALUE(RBC_FUSE_MAX_STREAMS, 64);

VALUE(RBC_VOXEL_OCCUPANCY, 0);
VALUE(RBC_VOXEL_COUNT, 1);
VALUE(RBC_VOXEL_SUM, 2);
VALUE(RBC_VOXEL_MEAN, 3);
VALUE(RBC_VOXEL_MAX, 4);
VALUE(RBC_VOXEL_MIN, 5);
VALUE(RBC_VOXEL_ORDER_LEXICOGRAPHIC, 0);
VALUE(RBC_VOXEL_ORDER_FIRST_POINT, 1);
VALUE(RBC_TSDF_WEIGHT_CONSTANT, 0);
VALUE(RBC_TSDF_WEIGHT_INVERSE_SQUARE, 1);
VALUE(RBC_TSDF_CARVE, 1u);

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

VALUE(RBC_STATISTICS_PER_ROW, 1u);
VALUE(RBC_STATISTICS_MAX_LEVELS, 64);

VALUE(RBC_WINDOWS_MAX_STREAMS, 16);
VALUE(RBC_WINDOWS_MAX_TRANSFORMS, 64);
VALUE(RBC_WINDOW_GATHER, 0);
VALUE(RBC_WINDOW_INTERPOLATE, 1);
VALUE(RBC_PAD_HOLD, 0);
VALUE(RBC_PAD_FILL, 1);
VALUE(RBC_PAD_NEUTRAL, 2);
VALUE(RBC_ACCUMULATE_ALL, 0);
VALUE(RBC_ACCUMULATE_VALID, 1);
VALUE(RBC_ACCUMULATE_WHOLE, 2);
VALUE(RBC_TRANSFORM_COPY, 0);
VALUE(RBC_TRANSFORM_SUBTRACT, 1);
VALUE(RBC_TRANSFORM_SE3_RELATIVE, 2);
VALUE(RBC_TRANSFORM_SE3_WORLD, 3);
VALUE(RBC_TRANSFORM_SE3_STEP, 4);
VALUE(RBC_TRANSFORM_INVERSE, 1u);
VALUE(RBC_WINDOWS_ANCHOR_TIMES, 2u);

// ---- structs ------------------------------------------------------------------------------------

#define SIZE(type, bytes) \
  static_assert(sizeof(type) == (bytes), "the size of " #type " has changed")
#define GROWS(type, bytes) \
  SIZE(type, bytes);       \
  static_assert(alignof(type) == 8, #type " begins with struct_size and has 8-byte fields")
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
FUNCTION(rbcContextCreate, rbcStatus_t (*)(const rbcContextParams*, rbcContext_t*));
FUNCTION(rbcContextDestroy, rbcStatus_t (*)(rbcContext_t));
FUNCTION(rbcContextSetInterrupt, rbcStatus_t (*)(rbcContext_t, int32_t (*)(void*), void*));
FUNCTION(rbcContextSetStream, rbcStatus_t (*)(rbcContext_t, void*));
FUNCTION(rbcContextGetStream, rbcStatus_t (*)(rbcContext_t, void**));
FUNCTION(rbcContextSynchronize, rbcStatus_t (*)(rbcContext_t));
FUNCTION(rbcContextReserve, rbcStatus_t (*)(rbcContext_t, size_t));
FUNCTION(rbcContextWarmUp, rbcStatus_t (*)(rbcContext_t));
FUNCTION(rbcContextGetInfo, rbcStatus_t (*)(rbcContext_t, rbcContextInfo*));
FUNCTION(rbcTensorNormalize, rbcStatus_t (*)(const rbcTensor*, rbcTensorInfo*));
FUNCTION(rbcTensorCreate,
         rbcStatus_t (*)(rbcContext*, rbcDType, int32_t, const int64_t*, rbcOwnedTensor_t*));
FUNCTION(rbcTensorDestroy, rbcStatus_t (*)(rbcOwnedTensor_t));
FUNCTION(rbcTensorGetView, rbcStatus_t (*)(rbcOwnedTensor_t, int32_t, rbcTensor*));
FUNCTION(rbcTensorCopy, rbcStatus_t (*)(rbcContext*, const rbcTensor*, const rbcTensor*));
FUNCTION(rbcTensorImportDLPack, rbcStatus_t (*)(DLManagedTensor*, rbcOwnedTensor_t*));
FUNCTION(rbcTensorImportDLPackVersioned,
         rbcStatus_t (*)(DLManagedTensorVersioned*, rbcOwnedTensor_t*));
FUNCTION(rbcTensorExportDLPack, rbcStatus_t (*)(rbcOwnedTensor_t, DLManagedTensor**));
FUNCTION(rbcTensorExportDLPackVersioned,
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
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*, const rbcSparseVoxels*,
                         const rbcVoxelizeSparseParams*));
FUNCTION(rbcVoxelizeSparseWorkspaceSize,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*, const rbcSparseVoxels*,
                         const rbcVoxelizeSparseParams*, size_t*));
FUNCTION(rbcVoxelizeTsdf,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*, const rbcTensor*,
                         const rbcTensor*, const rbcTensor*, const rbcTsdfParams*));
FUNCTION(rbcVoxelizeTsdfWorkspaceSize,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*, const rbcTensor*,
                         const rbcTensor*, const rbcTensor*, const rbcTsdfParams*, size_t*));
FUNCTION(rbcConvertRotations,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*, int32_t, int32_t));
FUNCTION(rbcConvertRotationsWorkspaceSize,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcTensor*, int32_t, int32_t,
                         size_t*));
FUNCTION(rbcStatistics, rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcStatisticsParams*,
                                        const rbcStatisticsResult*));
FUNCTION(rbcStatisticsWorkspaceSize,
         rbcStatus_t (*)(rbcContext_t, const rbcTensor*, const rbcStatisticsParams*,
                         const rbcStatisticsResult*, size_t*));
FUNCTION(rbcStatisticsAccumulatorCreate,
         rbcStatus_t (*)(rbcContext_t, const rbcStatisticsAccumulatorParams*,
                         rbcStatisticsAccumulator_t*));
FUNCTION(rbcStatisticsAccumulatorDestroy, rbcStatus_t (*)(rbcStatisticsAccumulator_t));
FUNCTION(rbcStatisticsAccumulatorUpdate,
         rbcStatus_t (*)(rbcContext_t, rbcStatisticsAccumulator_t, const rbcTensor*,
                         const rbcStatisticsUpdateParams*));
FUNCTION(rbcStatisticsAccumulatorUpdateWorkspaceSize,
         rbcStatus_t (*)(rbcContext_t, rbcStatisticsAccumulator_t, const rbcTensor*,
                         const rbcStatisticsUpdateParams*, size_t*));
FUNCTION(rbcStatisticsAccumulatorMerge,
         rbcStatus_t (*)(rbcContext_t, rbcStatisticsAccumulator_t, rbcStatisticsAccumulator_t));
FUNCTION(rbcStatisticsAccumulatorNextPass,
         rbcStatus_t (*)(rbcContext_t, rbcStatisticsAccumulator_t, int32_t*));
FUNCTION(rbcStatisticsAccumulatorExport,
         rbcStatus_t (*)(rbcContext_t, rbcStatisticsAccumulator_t, void*, size_t, size_t*));
FUNCTION(rbcStatisticsAccumulatorImport,
         rbcStatus_t (*)(rbcContext_t, const void*, size_t, rbcStatisticsAccumulator_t*));
FUNCTION(rbcStatisticsAccumulatorResult,
         rbcStatus_t (*)(rbcContext_t, rbcStatisticsAccumulator_t, const rbcStatisticsResult*));
FUNCTION(rbcStatisticsAccumulatorGetInfo,
         rbcStatus_t (*)(rbcStatisticsAccumulator_t, rbcStatisticsAccumulatorInfo*));
FUNCTION(rbcLiveCreate, rbcStatus_t (*)(rbcContext_t, const rbcLiveStream*, int32_t,
                                        const rbcLiveParams*, rbcLive_t*));
FUNCTION(rbcLiveDestroy, rbcStatus_t (*)(rbcLive_t));
FUNCTION(rbcLivePush,
         rbcStatus_t (*)(rbcContext_t, rbcLive_t, int32_t, const rbcTensor*, const rbcTensor*));
FUNCTION(rbcLiveFuse, rbcStatus_t (*)(rbcContext_t, rbcLive_t, const rbcTensor*, const rbcTensor*,
                                      const rbcTensor*, const rbcTensor*));
FUNCTION(rbcLiveReset, rbcStatus_t (*)(rbcLive_t, int32_t));
FUNCTION(rbcLiveGetCounters, rbcStatus_t (*)(rbcLive_t, int32_t, rbcLiveCounters*));
FUNCTION(rbcWindows, rbcStatus_t (*)(rbcContext_t, const rbcWindowStream*, int32_t,
                                     const rbcTensor*, const rbcTensor*, const rbcWindowsParams*));
FUNCTION(rbcWindowsWorkspaceSize,
         rbcStatus_t (*)(rbcContext_t, const rbcWindowStream*, int32_t, const rbcTensor*,
                         const rbcTensor*, const rbcWindowsParams*, size_t*));
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

TEST_CASE("layout: the initializers set the defaults, and all else to zero") {
  rbcContextParams context = rbcContextParamsInit();
  CHECK(context.struct_size == sizeof context);
  context.struct_size = 0;
  rbcContextInfo info = rbcContextInfoInit();
  CHECK(info.struct_size == sizeof info);
  info.struct_size = 0;
  rbcResampleParams resample = rbcResampleParamsInit();
  CHECK(resample.struct_size == sizeof resample);
  CHECK(resample.max_gap == INFINITY);
  CHECK(resample.tolerance == INFINITY);
  resample.struct_size = 0;
  resample.max_gap = resample.tolerance = 0;
  rbcFuseStream stream = rbcFuseStreamInit();
  CHECK(stream.struct_size == sizeof stream);
  stream.struct_size = 0;
  rbcFuseParams fuse = rbcFuseParamsInit();
  CHECK(fuse.struct_size == sizeof fuse);
  fuse.struct_size = 0;
  rbcVoxelizeParams voxelize = rbcVoxelizeParamsInit();
  CHECK(voxelize.struct_size == sizeof voxelize);
  voxelize.struct_size = 0;
  rbcVoxelizeSparseParams sparse = rbcVoxelizeSparseParamsInit();
  CHECK(sparse.struct_size == sizeof sparse);
  CHECK(sparse.reduce == RBC_VOXEL_MEAN);
  sparse.struct_size = 0;
  sparse.reduce = 0;
  rbcSparseVoxels voxels = rbcSparseVoxelsInit();
  CHECK(voxels.struct_size == sizeof voxels);
  voxels.struct_size = 0;
  rbcTsdfParams tsdf = rbcTsdfParamsInit();
  CHECK(tsdf.struct_size == sizeof tsdf);
  CHECK(tsdf.max_weight == INFINITY);
  tsdf.struct_size = 0;
  tsdf.max_weight = 0;
  rbcUnprojectParams unproject = rbcUnprojectParamsInit();
  CHECK(unproject.struct_size == sizeof unproject);
  CHECK(unproject.color_scale == 1);
  CHECK(unproject.step == 1);
  for (double* low : {&unproject.min_x, &unproject.min_y, &unproject.min_z}) {
    CHECK(*low == -INFINITY);
    *low = 0;
  }
  for (double* high :
       {&unproject.max_depth, &unproject.max_x, &unproject.max_y, &unproject.max_z}) {
    CHECK(*high == INFINITY);
    *high = 0;
  }
  unproject.struct_size = 0;
  unproject.color_scale = 0;
  unproject.step = 0;
  rbcFarthestPointsParams farthest = rbcFarthestPointsParamsInit();
  CHECK(farthest.struct_size == sizeof farthest);
  farthest.struct_size = 0;
  rbcTakeRowsParams take = rbcTakeRowsParamsInit();
  CHECK(take.struct_size == sizeof take);
  take.struct_size = 0;
  rbcStatisticsParams statistics = rbcStatisticsParamsInit();
  CHECK(statistics.struct_size == sizeof statistics);
  statistics.struct_size = 0;
  rbcStatisticsResult result = rbcStatisticsResultInit();
  CHECK(result.struct_size == sizeof result);
  result.struct_size = 0;
  rbcStatisticsAccumulatorParams accumulator = rbcStatisticsAccumulatorParamsInit();
  CHECK(accumulator.struct_size == sizeof accumulator);
  accumulator.struct_size = 0;
  rbcStatisticsUpdateParams update = rbcStatisticsUpdateParamsInit();
  CHECK(update.struct_size == sizeof update);
  update.struct_size = 0;
  rbcStatisticsAccumulatorInfo accumulator_info = rbcStatisticsAccumulatorInfoInit();
  CHECK(accumulator_info.struct_size == sizeof accumulator_info);
  accumulator_info.struct_size = 0;
  rbcLiveStream live = rbcLiveStreamInit();
  CHECK(live.struct_size == sizeof live);
  CHECK(live.max_age == INFINITY);
  CHECK(live.max_ahead == 0);
  CHECK(live.dtype.bits == 32);
  live.struct_size = 0;
  live.max_age = 0;
  live.dtype = {};
  rbcLiveParams live_params = rbcLiveParamsInit();
  CHECK(live_params.struct_size == sizeof live_params);
  CHECK(live_params.time_dtype.bits == 64);
  live_params.struct_size = 0;
  live_params.time_dtype = {};
  rbcLiveCounters counters = rbcLiveCountersInit();
  CHECK(counters.struct_size == sizeof counters);
  counters.struct_size = 0;
  rbcWindowStream window = rbcWindowStreamInit();
  CHECK(window.struct_size == sizeof window);
  window.struct_size = 0;
  rbcWindowsParams windows = rbcWindowsParamsInit();
  CHECK(windows.struct_size == sizeof windows);
  windows.struct_size = 0;
  const auto zero = [](const auto& object) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&object);
    return std::all_of(bytes, bytes + sizeof object, [](unsigned char b) { return b == 0; });
  };
  CHECK(zero(context));
  CHECK(zero(info));
  CHECK(zero(resample));
  CHECK(zero(stream));
  CHECK(zero(fuse));
  CHECK(zero(voxelize));
  CHECK(zero(sparse));
  CHECK(zero(voxels));
  CHECK(zero(tsdf));
  CHECK(zero(unproject));
  CHECK(zero(farthest));
  CHECK(zero(take));
  CHECK(zero(statistics));
  CHECK(zero(result));
  CHECK(zero(accumulator));
  CHECK(zero(update));
  CHECK(zero(accumulator_info));
  CHECK(zero(live));
  CHECK(zero(live_params));
  CHECK(zero(counters));
  CHECK(zero(window));
  CHECK(zero(windows));
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
  rbcTensorInfo info;
  CHECK_SUCCEEDS(rbcTensorNormalize(reinterpret_cast<const rbcTensor*>(&tensor), &info));
  CHECK(info.data == values + 1);
  CHECK(info.strides[0] == 3);
  CHECK(info.num_elements == 4);
}

#else
TEST_CASE("layout: a DLTensor can be passed by a cast") { SKIP_BECAUSE("no dlpack.h"); }
#endif
