/*
 * A program of a later release, which uses fields that today's headers do not have.
 *
 *   later_fields refused    the library does not know them, and says so
 *   later_fields taken      the library knows them
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

static rbcStatus_t createAnother(void) {
  rbcContext_t another = NULL;
  const rbcStatus_t status = rbcContextCreate(context_params, &another);
  rbcContextDestroy(another);
  return status;
}

static int refused;

/* `offset` is that of `later`, the first byte of which a little-endian 1 sets. */
static void check(uint64_t* later, size_t offset, rbcStatus_t (*call)(void), const char* argument) {
  require(call() == RBC_STATUS_SUCCESS, argument);
  for (int i = 0; i < 4; i += 3) {
    later[i] = 1;
    const rbcStatus_t status = call();
    later[i] = 0;
    if (!refused) {
      require(status == RBC_STATUS_SUCCESS, argument);
      continue;
    }
    char expected[128];
    snprintf(expected, sizeof expected,
             "%s: byte %zu is set, beyond the %zu bytes that this library knows", argument,
             offset + 8 * (size_t)i, offset);
    require(status == RBC_STATUS_INVALID_ARGUMENT, expected);
    require(strncmp(rbcGetLastError(), expected, strlen(expected)) == 0, expected);
  }
}

#define CHECK(type, pointer, call, argument) \
  check((pointer)->later, offsetof(type, later), call, argument)

int main(int argc, char** argv) {
  require(argc == 2, "usage: later_fields refused|taken");
  refused = strcmp(argv[1], "refused") == 0;
  prepare();
  CHECK(rbcContextParams, context_params, createAnother, "params");
  CHECK(rbcResampleParams, resample_params, operations[0].run, "params");
  CHECK(rbcFuseStream, &fuse_streams[0], operations[1].run, "streams[0]");
  CHECK(rbcFuseStream, &fuse_streams[2], operations[1].run, "streams[2]");
  CHECK(rbcResampleParams, stream_params, operations[1].run, "streams[1].params");
  CHECK(rbcFuseParams, fuse_params, operations[1].run, "params");
  CHECK(rbcVoxelizeParams, voxelize_params, operations[2].run, "params");
  CHECK(rbcVoxelizeSparseParams, sparse_params, operations[3].run, "params");
  CHECK(rbcSparseVoxels, sparse_voxels, operations[3].run, "voxels");
  CHECK(rbcTsdfParams, tsdf_params, operations[4].run, "params");
  CHECK(rbcStatisticsParams, statistics_params, operations[5].run, "params");
  CHECK(rbcStatisticsResult, statistics_result, operations[5].run, "result");
  CHECK(rbcStatisticsAccumulatorParams, accumulator_params, operations[6].run, "params");
  CHECK(rbcStatisticsUpdateParams, update_params, operations[6].run, "params");
  CHECK(rbcUnprojectParams, unproject_params, operations[7].run, "params");
  CHECK(rbcFarthestPointsParams, farthest_params, operations[8].run, "params");
  CHECK(rbcTakeRowsParams, take_params, operations[9].run, "params");
  CHECK(rbcWindowStream, &window_streams[0], operations[10].run, "streams[0]");
  CHECK(rbcWindowStream, &window_streams[1], operations[10].run, "streams[1]");
  CHECK(rbcResampleParams, window_stream_params, operations[10].run, "streams[1].params");
  CHECK(rbcWindowsParams, windows_params, operations[10].run, "params");
  CHECK(rbcLiveStream, &live_streams[0], operations[11].run, "streams[0]");
  CHECK(rbcLiveStream, &live_streams[1], operations[11].run, "streams[1]");
  CHECK(rbcResampleParams, live_stream_params, operations[11].run, "streams[1].params");
  CHECK(rbcLiveParams, live_params, operations[11].run, "params");

  /* A library that does not know a field of rbcContextInfo leaves it as it was; one that does
   * writes it: 0. */
  rbcContextInfo info = rbcContextInfoInit();
  info.later[3] = 42;
  require(rbcContextGetInfo(context, &info) == RBC_STATUS_SUCCESS, "rbcContextGetInfo");
  require(info.num_threads == 2 && info.later[3] == (refused ? 42u : 0u), "info");
  require(rbcContextDestroy(context) == RBC_STATUS_SUCCESS, "rbcContextDestroy");
  return EXIT_SUCCESS;
}
