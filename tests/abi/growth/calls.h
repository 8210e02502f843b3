/*
 * One call of every operation, with literal arguments and literal results.
 *
 * Plain C that compiles with the headers of any release: those of 0.1, today's and longer ones.
 */
#ifndef ROBOCACHE_GROWTH_CALLS_H
#define ROBOCACHE_GROWTH_CALLS_H

#include "robocache/robocache.h"

/* Each struct in memory of exactly its size, so that a sanitizer sees any step beyond it. */
extern rbcContextParams* context_params;
extern rbcResampleParams* resample_params;
extern rbcResampleParams* stream_params; /* of fuse_streams[1] */
extern rbcFuseStream* fuse_streams;      /* three of them */
extern rbcFuseParams* fuse_params;
extern rbcVoxelizeParams* voxelize_params;
extern rbcVoxelizeSparseParams* sparse_params;
extern rbcSparseVoxels* sparse_voxels;
extern rbcTsdfParams* tsdf_params;
#if !defined(RBC_TEST_HEADERS_0_1) /* what 0.2 brought */
extern rbcStatisticsParams* statistics_params;
extern rbcStatisticsResult* statistics_result;
extern rbcStatisticsAccumulatorParams* accumulator_params;
extern rbcStatisticsUpdateParams* update_params;
extern rbcUnprojectParams* unproject_params;
extern rbcFarthestPointsParams* farthest_params;
extern rbcTakeRowsParams* take_params;
extern rbcWindowStream* window_streams;         /* two of them */
extern rbcResampleParams* window_stream_params; /* of window_streams[1] */
extern rbcWindowsParams* windows_params;
extern rbcLiveStream* live_streams;           /* two of them */
extern rbcResampleParams* live_stream_params; /* of live_streams[1] */
extern rbcLiveParams* live_params;
extern rbcLiveCounters* live_counters;
#endif

extern rbcContext_t context;

typedef struct Operation {
  const char* name;
  rbcStatus_t (*run)(void);
  rbcStatus_t (*workspace)(size_t* bytes);
  int (*right)(void); /* whether run() left the expected results, all of them */
} Operation;

#if defined(RBC_TEST_HEADERS_0_1)
enum { OPERATIONS = 5 };
#else
enum { OPERATIONS = 12 };
#endif
extern const Operation operations[OPERATIONS];

/* Sets the structs up and creates the context. */
void prepare(void);

/* Bytes that the context's allocator has given out and not got back. */
extern size_t bytes_held;

/* Ends the program with the text and the last error, unless the condition holds. */
void require(int condition, const char* text);

#endif
