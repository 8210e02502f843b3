/*
 * RoboCache: fusion of streams with different rates onto one clock.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ROBOCACHE_FUSE_H
#define ROBOCACHE_FUSE_H

#include "resample.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The maximum number of streams in a call of rbcFuse. */
#define RBC_FUSE_MAX_STREAMS 64

/* One sensor, as for rbcResample. The caller keeps the ownership of the tensors and params. */
typedef struct rbcFuseStream {
  uint32_t struct_size;
  uint32_t reserved0;              /* 0 */
  const rbcTensor* values;         /* [B,S,D], [S,D] or packed [N,D], as for rbcResample */
  const rbcTensor* times;          /* [B,S], [S] or [N]; the same dtype in every stream */
  const rbcResampleParams* params; /* null: defaults; query_lengths, lag, lag_ticks and
                                      RBC_FLAG_CHECK_TIMES must be unset */
  double clock_offset;             /* for f32, f64 times: added to the time of each sample */
  int64_t clock_offset_ticks;      /* the same for i64 times */
} rbcFuseStream;

static inline rbcFuseStream rbcFuseStreamInit(void) {
  rbcFuseStream stream;
  memset(&stream, 0, sizeof stream);
  stream.struct_size = (uint32_t)sizeof stream;
  return stream;
}

/* The parameters that all streams of a call share. */
typedef struct rbcFuseParams {
  uint32_t struct_size;
  uint32_t flags;                 /* RBC_FLAG_CHECK_TIMES or 0 (default) */
  const rbcTensor* query_lengths; /* [B] i32 or i64: valid queries of each row; null: all */
  double lag;                     /* for f32, f64 times, as in rbcResampleParams; default 0 */
  int64_t lag_ticks;              /* the same for i64 times */
} rbcFuseParams;

static inline rbcFuseParams rbcFuseParamsInit(void) {
  rbcFuseParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * Resamples N streams, each with its own rate, at the same T query times, and writes them side by
 * side: the channels of the first stream first. Each stream's channels are what rbcResample writes.
 *
 *   streams      [N], N = num_streams of 1 to RBC_FUSE_MAX_STREAMS, all with the same struct_size;
 *                any dtypes that rbcResample can write as a float
 *   query_times  [B,T], or [T] shared by the batch; the dtype of every stream's times
 *   out          [B,T,D_0 + ... + D_N-1]; [T,...] without batch; f16, bf16, f32 or f64
 *   valid        [B,T,N]; [T,N] without batch; bool or u8; or null; as in rbcResample, per stream
 *   params       null: defaults
 *
 * Either every stream has a batch (values of rank 3, or packed) of the same B, or no stream has
 * one. A stream that is absent from a row of the batch has length 0 there. All streams together may
 * have at most RBC_FUSE_MAX_CHANNEL_GROUPS channel groups.
 *
 * With a clock offset, a query is looked up at q - clock_offset: one subtraction, rounded in the
 * dtype of times; i64 saturates. Arrivals are on the clock of the queries, without an offset: they
 * are compared with q + lag.
 *
 * CUDA: one launch for any N (with arrivals or RBC_FLAG_CAUSAL for each 32 streams, after those of
 * rbcResample), no intermediate tensors, no allocation without arrivals, no copy, can be captured.
 * Everything else - strides, rules, arithmetic, checking, synchronization, errors - is as for
 * rbcResample. Errors name the stream: "streams[2].values: ...".
 */
RBC_API rbcStatus_t rbcFuse(rbcContext_t context, const rbcFuseStream* streams, int32_t num_streams,
                            const rbcTensor* query_times, const rbcOutput* out,
                            const rbcOutput* valid, const rbcFuseParams* params);

/*
 * Writes the size in bytes of the workspace that the same call of rbcFuse needs, for
 * rbcContextReserve. Checks the arguments as that call does; on failure *bytes does not change.
 */
RBC_API rbcStatus_t rbcFuseWorkspaceSize(rbcContext_t context, const rbcFuseStream* streams,
                                         int32_t num_streams, const rbcTensor* query_times,
                                         const rbcOutput* out, const rbcOutput* valid,
                                         const rbcFuseParams* params, size_t* bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_FUSE_H */
