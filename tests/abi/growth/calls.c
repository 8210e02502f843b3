#include "calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(RBC_TEST_HEADERS_0_1)
_Static_assert(sizeof(rbcContextParams) == 56 && sizeof(rbcContextInfo) == 432, "not 0.1");
_Static_assert(sizeof(rbcResampleParams) == 128 && sizeof(rbcFuseStream) == 64, "not 0.1");
_Static_assert(sizeof(rbcFuseParams) == 48 && sizeof(rbcVoxelizeParams) == 144, "not 0.1");
_Static_assert(sizeof(rbcVoxelizeSparseParams) == 136 && sizeof(rbcSparseVoxels) == 104, "not 0.1");
_Static_assert(sizeof(rbcTsdfParams) == 152, "not 0.1");
#endif

/* A descriptor of a compact array, whose extents come last. */
#define TENSOR(name, array, code, bits, ndim, ...) \
  static int64_t name##_shape[] = {__VA_ARGS__};   \
  static const rbcTensor name = {                  \
      array, {RBC_DEVICE_CPU, 0}, ndim, {RBC_DTYPE_##code, bits, 1}, name##_shape, NULL, 0}

#define SAME(array, ...) \
  (sizeof(array) == sizeof(__VA_ARGS__) && memcmp(array, __VA_ARGS__, sizeof(array)) == 0)

rbcContextParams* context_params;
rbcResampleParams* resample_params;
rbcResampleParams* stream_params;
rbcFuseStream* fuse_streams;
rbcFuseParams* fuse_params;
rbcVoxelizeParams* voxelize_params;
rbcVoxelizeSparseParams* sparse_params;
rbcSparseVoxels* sparse_voxels;
rbcTsdfParams* tsdf_params;
#if !defined(RBC_TEST_HEADERS_0_1)
rbcStatisticsParams* statistics_params;
rbcStatisticsResult* statistics_result;
rbcStatisticsAccumulatorParams* accumulator_params;
rbcStatisticsUpdateParams* update_params;
rbcUnprojectParams* unproject_params;
rbcFarthestPointsParams* farthest_params;
rbcTakeRowsParams* take_params;
rbcWindowStream* window_streams;
rbcResampleParams* window_stream_params;
rbcWindowsParams* windows_params;
rbcLiveStream* live_streams;
rbcResampleParams* live_stream_params;
rbcLiveParams* live_params;
rbcLiveCounters* live_counters;
#endif
rbcContext_t context;
size_t bytes_held;

void require(int condition, const char* text) {
  if (condition) return;
  fprintf(stderr, "failed: %s (last error: %s)\n", text, rbcGetLastError());
  exit(EXIT_FAILURE);
}

/* ---- resample: a group of two methods, limits, normalization --------------------------------- */

static float values[3][2] = {{0, 10}, {2, 20}, {6, 30}};
static double times[3] = {0, 1, 3};
static double queries[3] = {0.5, 2, 5};
static float mean[2] = {1, 0};
static float inv_std[2] = {2, 1};
static float resampled[3][2];
static uint8_t resampled_mask[3];
static const rbcChannelGroup groups[2] = {{1, 1, RBC_METHOD_PREVIOUS, 0},
                                          {0, 1, RBC_METHOD_LINEAR, 0}};
TENSOR(values_tensor, values, FLOAT, 32, 2, 3, 2);
TENSOR(times_tensor, times, FLOAT, 64, 1, 3);
TENSOR(queries_tensor, queries, FLOAT, 64, 1, 3);
TENSOR(mean_tensor, mean, FLOAT, 32, 1, 2);
TENSOR(inv_std_tensor, inv_std, FLOAT, 32, 1, 2);
TENSOR(resampled_tensor, resampled, FLOAT, 32, 2, 3, 2);
TENSOR(resampled_mask_tensor, resampled_mask, UINT, 8, 1, 3);

static void prepareResample(void) {
  *resample_params = rbcResampleParamsInit();
  resample_params->flags = RBC_CHECK_TIMES;
  resample_params->bounds = RBC_BOUNDS_FILL;
  resample_params->fill_value = -1;
  resample_params->max_gap = 2;
  resample_params->tolerance = 1.5;
  resample_params->mean = &mean_tensor;
  resample_params->inv_std = &inv_std_tensor;
  resample_params->groups = groups;
  resample_params->num_groups = 2;
}

static rbcStatus_t resample(void) {
  memset(resampled, 0x5a, sizeof resampled);
  return rbcResample(context, &values_tensor, &times_tensor, &queries_tensor, &resampled_tensor,
                     &resampled_mask_tensor, resample_params);
}

static rbcStatus_t resampleWorkspace(size_t* bytes) {
  return rbcResampleWorkspaceSize(context, &values_tensor, &times_tensor, &queries_tensor,
                                  &resampled_tensor, &resampled_mask_tensor, resample_params,
                                  bytes);
}

static int resampleIsRight(void) {
  return SAME(resampled, ((float[3][2]){{0, 10}, {6, 20}, {-1, -1}})) &&
         SAME(resampled_mask, ((uint8_t[3]){1, 1, 0}));
}

/* ---- fuse: streams that differ in values, in method and in clock ----------------------------- */

static float rising[2] = {0, 4};
static double stepping[2] = {10, 20};
static float late[2] = {100, 200};
static double stream_times[2] = {0, 2};
static double fuse_queries[3] = {1, 1.5, 1};
static int64_t query_lengths[1] = {2};
static float fused[1][3][3];
static uint8_t fused_mask[1][3][3];
TENSOR(rising_tensor, rising, FLOAT, 32, 3, 1, 2, 1);
TENSOR(stepping_tensor, stepping, FLOAT, 64, 3, 1, 2, 1);
TENSOR(late_tensor, late, FLOAT, 32, 3, 1, 2, 1);
TENSOR(stream_times_tensor, stream_times, FLOAT, 64, 1, 2);
TENSOR(fuse_queries_tensor, fuse_queries, FLOAT, 64, 1, 3);
TENSOR(query_lengths_tensor, query_lengths, INT, 64, 1, 1);
TENSOR(fused_tensor, fused, FLOAT, 32, 3, 1, 3, 3);
TENSOR(fused_mask_tensor, fused_mask, UINT, 8, 3, 1, 3, 3);

static void prepareFuse(void) {
  const rbcTensor* stream_values[3] = {&rising_tensor, &stepping_tensor, &late_tensor};
  for (int n = 0; n < 3; ++n) {
    fuse_streams[n] = rbcFuseStreamInit();
    fuse_streams[n].values = stream_values[n];
    fuse_streams[n].times = &stream_times_tensor;
  }
  *stream_params = rbcResampleParamsInit();
  stream_params->method = RBC_METHOD_NEAREST;
  fuse_streams[1].params = stream_params;
  fuse_streams[2].clock_offset = 1;
  *fuse_params = rbcFuseParamsInit();
  fuse_params->query_lengths = &query_lengths_tensor;
}

static rbcStatus_t fuse(void) {
  memset(fused, 0x5a, sizeof fused);
  return rbcFuse(context, fuse_streams, 3, &fuse_queries_tensor, &fused_tensor, &fused_mask_tensor,
                 fuse_params);
}

static rbcStatus_t fuseWorkspace(size_t* bytes) {
  return rbcFuseWorkspaceSize(context, fuse_streams, 3, &fuse_queries_tensor, &fused_tensor,
                              &fused_mask_tensor, fuse_params, bytes);
}

static int fuseIsRight(void) {
  return SAME(fused, ((float[1][3][3]){{{2, 10, 100}, {3, 20, 125}, {0, 0, 0}}})) &&
         SAME(fused_mask, ((uint8_t[1][3][3]){{{1, 1, 1}, {1, 1, 1}, {0, 0, 0}}}));
}

/* ---- voxels ---------------------------------------------------------------------------------- */

static const rbcVoxelGrid grid = {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}};
static float points[4][3] = {
    {1.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.25f}, {9, 9, 9}};
static int64_t offsets[2] = {0, 4};
static int32_t counted[1][2][2][2];
static int64_t outside[1];
TENSOR(points_tensor, points, FLOAT, 32, 2, 4, 3);
TENSOR(offsets_tensor, offsets, INT, 64, 1, 2);
TENSOR(counted_tensor, counted, INT, 32, 4, 1, 2, 2, 2);
TENSOR(outside_tensor, outside, INT, 64, 1, 1);

static void prepareVoxelize(void) {
  *voxelize_params = rbcVoxelizeParamsInit();
  voxelize_params->mode = RBC_VOXEL_COUNT;
  voxelize_params->empty_value = -7;
  voxelize_params->grid = grid;
  voxelize_params->offsets = &offsets_tensor;
}

static rbcStatus_t voxelize(void) {
  memset(counted, 0x5a, sizeof counted);
  return rbcVoxelize(context, &points_tensor, NULL, &counted_tensor, &outside_tensor,
                     voxelize_params);
}

static rbcStatus_t voxelizeWorkspace(size_t* bytes) {
  return rbcVoxelizeWorkspaceSize(context, &points_tensor, NULL, &counted_tensor, &outside_tensor,
                                  voxelize_params, bytes);
}

static int voxelizeIsRight(void) {
  return SAME(counted, ((int32_t[1][2][2][2]){{{{2, -7}, {-7, -7}}, {{1, -7}, {-7, -7}}}})) &&
         outside[0] == 1;
}

static int32_t coords[3][4];
static int64_t num_voxels;
static int32_t counts[3];
static float reduced[3][3];
static float grouped[3][2][3];
static int64_t point_to_voxel[4];
static int64_t dropped[1];
static int64_t overflow[3];
TENSOR(coords_tensor, coords, INT, 32, 2, 3, 4);
TENSOR(num_voxels_tensor, &num_voxels, INT, 64, 0, 0);
TENSOR(counts_tensor, counts, INT, 32, 1, 3);
TENSOR(reduced_tensor, reduced, FLOAT, 32, 2, 3, 3);
TENSOR(grouped_tensor, grouped, FLOAT, 32, 3, 3, 2, 3);
TENSOR(point_to_voxel_tensor, point_to_voxel, INT, 64, 1, 4);
TENSOR(dropped_tensor, dropped, INT, 64, 1, 1);
TENSOR(overflow_tensor, overflow, INT, 64, 1, 3);

static void prepareSparse(void) {
  *sparse_params = rbcVoxelizeSparseParamsInit();
  sparse_params->reduce = RBC_VOXEL_MAX;
  sparse_params->order = RBC_VOXEL_ORDER_FIRST_POINT;
  sparse_params->grid = grid;
  sparse_params->offsets = &offsets_tensor;
  *sparse_voxels = rbcSparseVoxelsInit();
  sparse_voxels->coords = &coords_tensor;
  sparse_voxels->num_voxels = &num_voxels_tensor;
  sparse_voxels->counts = &counts_tensor;
  sparse_voxels->features = &reduced_tensor;
  sparse_voxels->grouped = &grouped_tensor;
  sparse_voxels->point_to_voxel = &point_to_voxel_tensor;
  sparse_voxels->dropped = &dropped_tensor;
  sparse_voxels->overflow = &overflow_tensor;
}

static rbcStatus_t voxelizeSparse(void) {
  memset(coords, 0x5a, sizeof coords);
  memset(overflow, 0x5a, sizeof overflow);
  return rbcVoxelizeSparse(context, &points_tensor, NULL, sparse_voxels, sparse_params);
}

static rbcStatus_t voxelizeSparseWorkspace(size_t* bytes) {
  return rbcVoxelizeSparseWorkspaceSize(context, &points_tensor, NULL, sparse_voxels, sparse_params,
                                        bytes);
}

static int voxelizeSparseIsRight(void) {
  return SAME(coords, ((int32_t[3][4]){{0, 1, 0, 0}, {0, 0, 0, 0}, {-1, -1, -1, -1}})) &&
         num_voxels == 2 && SAME(counts, ((int32_t[3]){1, 2, 0})) &&
         SAME(reduced, ((float[3][3]){{1.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}, {0, 0, 0}})) &&
         SAME(grouped, ((float[3][2][3]){{{1.5f, 0.5f, 0.5f}, {0, 0, 0}},
                                         {{0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.25f}},
                                         {{0, 0, 0}, {0, 0, 0}}})) &&
         SAME(point_to_voxel, ((int64_t[4]){0, 1, 1, -1})) && dropped[0] == 1 &&
         SAME(overflow, ((int64_t[3]){0, 0, 0}));
}

/* ---- tsdf: one ray along x, the free space carved -------------------------------------------- */

static float seen[1][3] = {{2.25f, 0.5f, 0.5f}};
static float sensor[3] = {-0.5f, 0.5f, 0.5f};
static float distance[4][1][1];
static float weight[4][1][1];
static int64_t unseen;
TENSOR(seen_tensor, seen, FLOAT, 32, 2, 1, 3);
TENSOR(sensor_tensor, sensor, FLOAT, 32, 1, 3);
TENSOR(distance_tensor, distance, FLOAT, 32, 3, 4, 1, 1);
TENSOR(weight_tensor, weight, FLOAT, 32, 3, 4, 1, 1);
TENSOR(unseen_tensor, &unseen, INT, 64, 0, 0);

static void prepareTsdf(void) {
  *tsdf_params = rbcTsdfParamsInit();
  tsdf_params->flags = RBC_TSDF_CARVE;
  tsdf_params->truncation = 1;
  tsdf_params->max_weight = 0.5;
  tsdf_params->grid = (rbcVoxelGrid){{0, 0, 0}, {1, 1, 1}, {4, 1, 1}};
}

static rbcStatus_t tsdf(void) {
  memset(weight, 0, sizeof weight);
  memset(distance, 0, sizeof distance);
  unseen = 99;
  return rbcVoxelizeTsdf(context, &seen_tensor, &sensor_tensor, &distance_tensor, &weight_tensor,
                         &unseen_tensor, tsdf_params);
}

static rbcStatus_t tsdfWorkspace(size_t* bytes) {
  return rbcVoxelizeTsdfWorkspaceSize(context, &seen_tensor, &sensor_tensor, &distance_tensor,
                                      &weight_tensor, &unseen_tensor, tsdf_params, bytes);
}

static int tsdfIsRight(void) {
  return SAME(distance, ((float[4]){1, 0.75f, -0.25f, -1})) &&
         SAME(weight, ((float[4]){0.5f, 0.5f, 0.5f, 0.5f})) && unseen == 0;
}

#if !defined(RBC_TEST_HEADERS_0_1)

/* ---- statistics: a masked sample, a level; at once, and by an accumulator ------------------- */

static float readings[4] = {1, 2, 99, 6};
static uint8_t reading_mask[4] = {1, 1, 0, 1};
static double level[1] = {0.5};
static double mean_reading[1];
static double median_reading[1];
TENSOR(readings_tensor, readings, FLOAT, 32, 2, 4, 1);
TENSOR(reading_mask_tensor, reading_mask, UINT, 8, 1, 4);
TENSOR(level_tensor, level, FLOAT, 64, 1, 1);
TENSOR(mean_reading_tensor, mean_reading, FLOAT, 64, 1, 1);
TENSOR(median_reading_tensor, median_reading, FLOAT, 64, 2, 1, 1);

static void prepareStatistics(void) {
  *statistics_params = rbcStatisticsParamsInit();
  statistics_params->mask = &reading_mask_tensor;
  statistics_params->levels = &level_tensor;
  *statistics_result = rbcStatisticsResultInit();
  statistics_result->mean = &mean_reading_tensor;
  statistics_result->quantiles = &median_reading_tensor;
  *accumulator_params = rbcStatisticsAccumulatorParamsInit();
  accumulator_params->channels = 1;
  accumulator_params->levels = &level_tensor;
  *update_params = rbcStatisticsUpdateParamsInit();
  update_params->mask = &reading_mask_tensor;
}

static rbcStatus_t statistics(void) {
  mean_reading[0] = median_reading[0] = -1;
  return rbcStatistics(context, &readings_tensor, statistics_params, statistics_result);
}

static rbcStatus_t statisticsWorkspace(size_t* bytes) {
  return rbcStatisticsWorkspaceSize(context, &readings_tensor, statistics_params, statistics_result,
                                    bytes);
}

static int statisticsAreRight(void) { return mean_reading[0] == 3 && median_reading[0] == 2; }

/* What fails first ends it; memory is given back in any case. */
static rbcStatus_t accumulate(size_t* workspace) {
  rbcStatisticsAccumulator_t accumulator = NULL;
  rbcStatisticsAccumulator_t again = NULL;
  rbcStatus_t status = rbcStatisticsAccumulatorCreate(context, accumulator_params, &accumulator);
  int32_t more = 1;
  static unsigned char bytes[4096];
  size_t size = 0;
  mean_reading[0] = median_reading[0] = -1;
  if (status == RBC_STATUS_SUCCESS && workspace != NULL) {
    status = rbcStatisticsAccumulatorUpdateWorkspaceSize(context, accumulator, &readings_tensor,
                                                         update_params, workspace);
    more = 0;
  }
  while (status == RBC_STATUS_SUCCESS && more == 1) {
    status = rbcStatisticsAccumulatorUpdate(context, accumulator, &readings_tensor, update_params);
    if (status == RBC_STATUS_SUCCESS) {
      status = rbcStatisticsAccumulatorNextPass(context, accumulator, &more);
    }
  }
  if (status == RBC_STATUS_SUCCESS && workspace == NULL) {
    rbcStatisticsAccumulatorInfo info = rbcStatisticsAccumulatorInfoInit();
    status = rbcStatisticsAccumulatorGetInfo(accumulator, &info);
    require(info.channels == 1 && info.levels[0] == 0.5, "rbcStatisticsAccumulatorGetInfo");
    if (status == RBC_STATUS_SUCCESS) {
      status = rbcStatisticsAccumulatorExport(context, accumulator, bytes, sizeof bytes, &size);
    }
    if (status == RBC_STATUS_SUCCESS) {
      status = rbcStatisticsAccumulatorImport(context, bytes, size, &again);
    }
    if (status == RBC_STATUS_SUCCESS) {
      status = rbcStatisticsAccumulatorResult(context, again, statistics_result);
    }
  }
  rbcStatisticsAccumulatorDestroy(again);
  rbcStatisticsAccumulatorDestroy(accumulator);
  return status;
}

static rbcStatus_t accumulator(void) { return accumulate(NULL); }
static rbcStatus_t accumulatorWorkspace(size_t* bytes) { return accumulate(bytes); }

/* ---- clouds: two pixels, one without depth; the farther of two points; rows of three -------- */

static float depth[2] = {0, 2};
static float camera[4] = {1, 2, 0, 0};
static float cloud[3];
static int64_t cloud_count[1];
static float corners[9] = {0, 0, 0, 1, 0, 0, 0, 3, 0};
static int64_t farthest[3];
static uint8_t letters[3] = {'a', 'b', 'c'};
static int64_t places[3] = {2, -1, 0};
static uint8_t taken[3];
TENSOR(depth_tensor, depth, FLOAT, 32, 2, 1, 2);
TENSOR(camera_tensor, camera, FLOAT, 32, 1, 4);
TENSOR(cloud_tensor, cloud, FLOAT, 32, 2, 1, 3);
TENSOR(cloud_count_tensor, cloud_count, INT, 64, 0, 1);
TENSOR(corners_tensor, corners, FLOAT, 32, 2, 3, 3);
TENSOR(farthest_tensor, farthest, INT, 64, 1, 3);
TENSOR(letters_tensor, letters, UINT, 8, 2, 3, 1);
TENSOR(places_tensor, places, INT, 64, 1, 3);
TENSOR(taken_tensor, taken, UINT, 8, 2, 3, 1);

static void prepareClouds(void) {
  *unproject_params = rbcUnprojectParamsInit();
  unproject_params->depth_scale = 0.5;
  *farthest_params = rbcFarthestPointsParamsInit();
  farthest_params->start = 1;
  *take_params = rbcTakeRowsParamsInit();
  take_params->fill_value = 'z';
}

static rbcStatus_t unproject(void) {
  memset(cloud, 0xCD, sizeof cloud);
  cloud_count[0] = -1;
  return rbcUnproject(context, &depth_tensor, &camera_tensor, NULL, NULL, &cloud_tensor,
                      &cloud_count_tensor, NULL, NULL, unproject_params);
}

static rbcStatus_t unprojectWorkspace(size_t* bytes) {
  return rbcUnprojectWorkspaceSize(context, &depth_tensor, &camera_tensor, NULL, NULL,
                                   &cloud_tensor, &cloud_count_tensor, NULL, NULL, unproject_params,
                                   bytes);
}

static int unprojectIsRight(void) {
  return SAME(cloud, ((float[3]){4, 0, 4})) && cloud_count[0] == 1;
}

static rbcStatus_t farthestPoints(void) {
  memset(farthest, 0xCD, sizeof farthest);
  return rbcFarthestPoints(context, &corners_tensor, &farthest_tensor, NULL, farthest_params);
}

static rbcStatus_t farthestPointsWorkspace(size_t* bytes) {
  return rbcFarthestPointsWorkspaceSize(context, &corners_tensor, &farthest_tensor, NULL,
                                        farthest_params, bytes);
}

static int farthestPointsAreRight(void) { return SAME(farthest, ((int64_t[3]){1, 2, 0})); }

static rbcStatus_t takeRows(void) {
  memset(taken, 0xCD, sizeof taken);
  return rbcTakeRows(context, &letters_tensor, &places_tensor, &taken_tensor, take_params);
}

static rbcStatus_t takeRowsWorkspace(size_t* bytes) {
  return rbcTakeRowsWorkspaceSize(context, &letters_tensor, &places_tensor, &taken_tensor,
                                  take_params, bytes);
}

static int rowsAreRight(void) { return SAME(taken, ((uint8_t[3]){'c', 'z', 'a'})); }

/* ---- windows: steps relative to now, and what is between the samples of another stream -------- */

static float steps[4] = {1, 2, 4, 8};
static double step_times[4] = {0, 1, 0, 1};
static int64_t step_ends[3] = {0, 2, 4};
static int32_t step_offsets[2] = {0, 1};
static double half_a_second[1] = {0.5};
static int32_t window_episodes[2] = {0, 1};
static int64_t window_anchors[2] = {0, 1};
static float relative_steps[2][2][1];
static float between_steps[2][1][1];
static uint8_t step_is_valid[2][2];
static const rbcWindowTransform minus_now[1] = {
    {0, 1, RBC_TRANSFORM_SUBTRACT, 0, 0, 0, 0, 0, 0, 0, 0}};
TENSOR(steps_tensor, steps, FLOAT, 32, 2, 4, 1);
TENSOR(step_times_tensor, step_times, FLOAT, 64, 1, 4);
TENSOR(step_ends_tensor, step_ends, INT, 64, 1, 3);
TENSOR(step_offsets_tensor, step_offsets, INT, 32, 1, 2);
TENSOR(half_a_second_tensor, half_a_second, FLOAT, 64, 1, 1);
TENSOR(window_episodes_tensor, window_episodes, INT, 32, 1, 2);
TENSOR(window_anchors_tensor, window_anchors, INT, 64, 1, 2);
TENSOR(relative_steps_tensor, relative_steps, FLOAT, 32, 3, 2, 2, 1);
TENSOR(between_steps_tensor, between_steps, FLOAT, 32, 3, 2, 1, 1);
TENSOR(step_is_valid_tensor, step_is_valid, UINT, 8, 2, 2, 2);

static void prepareWindows(void) {
  *window_stream_params = rbcResampleParamsInit();
  window_stream_params->fill_value = -1;
  for (int i = 0; i < 2; ++i) {
    window_streams[i] = rbcWindowStreamInit();
    window_streams[i].values = &steps_tensor;
    window_streams[i].episode_offsets = &step_ends_tensor;
    window_streams[i].times = &step_times_tensor;
  }
  window_streams[0].offsets = &step_offsets_tensor;
  window_streams[0].transforms = minus_now;
  window_streams[0].num_transforms = 1;
  window_streams[0].out = &relative_steps_tensor;
  window_streams[0].valid = &step_is_valid_tensor;
  window_streams[1].offsets = &half_a_second_tensor;
  window_streams[1].mode = RBC_WINDOW_INTERPOLATE;
  window_streams[1].pad = RBC_PAD_FILL;
  window_streams[1].params = window_stream_params;
  window_streams[1].out = &between_steps_tensor;
  *windows_params = rbcWindowsParamsInit();
  windows_params->flags = RBC_CHECK_TIMES;
}

static rbcStatus_t windows(void) {
  memset(relative_steps, 0x5a, sizeof relative_steps);
  memset(between_steps, 0x5a, sizeof between_steps);
  memset(step_is_valid, 0x5a, sizeof step_is_valid);
  return rbcWindows(context, window_streams, 2, &window_episodes_tensor, &window_anchors_tensor,
                    windows_params);
}

static rbcStatus_t windowsWorkspace(size_t* bytes) {
  return rbcWindowsWorkspaceSize(context, window_streams, 2, &window_episodes_tensor,
                                 &window_anchors_tensor, windows_params, bytes);
}

static int windowsAreRight(void) {
  return SAME(relative_steps, ((float[4]){0, 1, 0, 0})) &&
         SAME(between_steps, ((float[2]){1.5f, -1})) &&
         SAME(step_is_valid, ((uint8_t[4]){1, 1, 1, 0}));
}

/* ---- live: two sensors, made, pushed to, fused and counted in one go --------------------------- */

static float live_rows[3][1] = {{10}, {20}, {40}};
static double live_times[3] = {0, 1, 2};
static double live_queries[2] = {0.5, 1.5};
static float live_fused[2][2];
static double live_ages[2];
TENSOR(live_rows_tensor, live_rows, FLOAT, 32, 2, 3, 1);
TENSOR(live_times_tensor, live_times, FLOAT, 64, 1, 3);
TENSOR(live_queries_tensor, live_queries, FLOAT, 64, 1, 2);
TENSOR(live_fused_tensor, live_fused, FLOAT, 32, 2, 2, 2);
TENSOR(live_ages_tensor, live_ages, FLOAT, 64, 1, 2);

static void prepareLive(void) {
  for (int n = 0; n < 2; ++n) {
    live_streams[n] = rbcLiveStreamInit();
    live_streams[n].channels = 1;
    live_streams[n].capacity = 2 + n;
  }
  *live_stream_params = rbcResampleParamsInit();
  live_stream_params->method = RBC_METHOD_PREVIOUS;
  live_streams[1].params = live_stream_params;
  live_streams[1].clock_offset = 0.25;
  *live_params = rbcLiveParamsInit();
  *live_counters = rbcLiveCountersInit();
}

static rbcStatus_t live(void) {
  rbcLive_t made = NULL;
  rbcStatus_t status = rbcLiveCreate(context, live_streams, 2, live_params, &made);
  for (int32_t n = 0; n < 2 && status == RBC_STATUS_SUCCESS; ++n) {
    status = rbcLivePush(context, made, n, &live_times_tensor, &live_rows_tensor);
  }
  memset(live_fused, 0x5a, sizeof live_fused);
  if (status == RBC_STATUS_SUCCESS) {
    status = rbcLiveFuse(context, made, &live_queries_tensor, &live_fused_tensor, NULL,
                         &live_ages_tensor);
  }
  if (status == RBC_STATUS_SUCCESS) status = rbcLiveGetCounters(made, 0, live_counters);
  if (status == RBC_STATUS_SUCCESS) status = rbcLiveReset(made, 0);
  rbcLiveDestroy(made);
  return status;
}

/* It works on a context of its own. */
static rbcStatus_t liveWorkspace(size_t* bytes) {
  *bytes = 0;
  return RBC_STATUS_SUCCESS;
}

static int liveIsRight(void) { /* the first has lost its sample at 0 */
  return SAME(live_fused, ((float[4]){20, 10, 30, 20})) &&
         SAME(live_ages, ((double[2]){0.5, 0.25})) && live_counters->pushed == 3 &&
         live_counters->overwritten == 1;
}

#endif

/* ---- all of them ----------------------------------------------------------------------------- */

const Operation operations[OPERATIONS] = {
    {"resample", resample, resampleWorkspace, resampleIsRight},
    {"fuse", fuse, fuseWorkspace, fuseIsRight},
    {"voxelize", voxelize, voxelizeWorkspace, voxelizeIsRight},
    {"voxelize sparse", voxelizeSparse, voxelizeSparseWorkspace, voxelizeSparseIsRight},
    {"tsdf", tsdf, tsdfWorkspace, tsdfIsRight},
#if !defined(RBC_TEST_HEADERS_0_1)
    {"statistics", statistics, statisticsWorkspace, statisticsAreRight},
    {"accumulator", accumulator, accumulatorWorkspace, statisticsAreRight},
    {"unproject", unproject, unprojectWorkspace, unprojectIsRight},
    {"farthest points", farthestPoints, farthestPointsWorkspace, farthestPointsAreRight},
    {"take rows", takeRows, takeRowsWorkspace, rowsAreRight},
    {"windows", windows, windowsWorkspace, windowsAreRight},
    {"live", live, liveWorkspace, liveIsRight},
#endif
};

static void* allocate(void* held, size_t bytes, size_t alignment, void* stream) {
  (void)stream;
  *(size_t*)held += bytes;
  return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void release(void* held, void* pointer, size_t bytes, void* stream) {
  (void)stream;
  *(size_t*)held -= bytes;
  free(pointer);
}

static void* room(size_t bytes) {
  void* pointer = malloc(bytes);
  require(pointer != NULL, "memory");
  return pointer;
}

void prepare(void) {
  context_params = room(sizeof *context_params);
  resample_params = room(sizeof *resample_params);
  stream_params = room(sizeof *stream_params);
  fuse_streams = room(3 * sizeof *fuse_streams);
  fuse_params = room(sizeof *fuse_params);
  voxelize_params = room(sizeof *voxelize_params);
  sparse_params = room(sizeof *sparse_params);
  sparse_voxels = room(sizeof *sparse_voxels);
  tsdf_params = room(sizeof *tsdf_params);
  prepareResample();
  prepareFuse();
  prepareVoxelize();
  prepareSparse();
  prepareTsdf();
#if !defined(RBC_TEST_HEADERS_0_1)
  statistics_params = room(sizeof *statistics_params);
  statistics_result = room(sizeof *statistics_result);
  accumulator_params = room(sizeof *accumulator_params);
  update_params = room(sizeof *update_params);
  unproject_params = room(sizeof *unproject_params);
  farthest_params = room(sizeof *farthest_params);
  take_params = room(sizeof *take_params);
  prepareStatistics();
  prepareClouds();
  window_streams = room(2 * sizeof *window_streams);
  window_stream_params = room(sizeof *window_stream_params);
  windows_params = room(sizeof *windows_params);
  prepareWindows();
  live_streams = room(2 * sizeof *live_streams);
  live_stream_params = room(sizeof *live_stream_params);
  live_params = room(sizeof *live_params);
  live_counters = room(sizeof *live_counters);
  prepareLive();
#endif
  *context_params = rbcContextParamsInit();
  context_params->backend = RBC_BACKEND_CPU;
  context_params->num_threads = 2;
  context_params->simd = RBC_SIMD_PORTABLE;
  context_params->allocator = (rbcAllocator){allocate, release, &bytes_held};
  require(rbcContextCreate(context_params, &context) == RBC_STATUS_SUCCESS, "rbcContextCreate");
}
