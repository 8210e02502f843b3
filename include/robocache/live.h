/*
 * RoboCache: fusion at run time, of samples that arrive.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ROBOCACHE_LIVE_H
#define ROBOCACHE_LIVE_H

#include "fuse.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One sensor: what is kept of it, and how it is fused. */
typedef struct rbcLiveStream {
  uint32_t struct_size;
  rbcDType dtype;   /* of values, as rbcFuse takes them; default f32 */
  int64_t channels; /* required: D, 1 or more */
  int64_t capacity; /* required: the newest samples that are kept, 2 to 2^24; cubic and pchip: 4 */
  int64_t late_bound; /* a sample is late if so many newer ones are there at most; default 0 */
  double max_age;     /* in the unit of the times, >= 0; default INFINITY: no limit */
  const rbcResampleParams* params; /* null: defaults; read and copied by rbcLiveCreate */
  double clock_offset;             /* as in rbcFuseStream */
  int64_t clock_offset_ticks;      /* likewise */
  uint64_t reserved[4];            /* 0 */
} rbcLiveStream;

static inline rbcLiveStream rbcLiveStreamInit(void) {
  const rbcDType f32 = {RBC_DTYPE_FLOAT, 32, 1};
  rbcLiveStream stream;
  memset(&stream, 0, sizeof stream);
  stream.struct_size = (uint32_t)sizeof stream;
  stream.dtype = f32;
  stream.max_age = (double)INFINITY;
  return stream;
}

/* What all streams share. */
typedef struct rbcLiveParams {
  uint32_t struct_size;
  uint32_t flags;       /* 0 */
  rbcDType time_dtype;  /* of all times: f32, f64 or i64; default f64 */
  int32_t reserved0;    /* 0 */
  uint64_t reserved[4]; /* 0 */
} rbcLiveParams;

static inline rbcLiveParams rbcLiveParamsInit(void) {
  const rbcDType f64 = {RBC_DTYPE_FLOAT, 64, 1};
  rbcLiveParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  params.time_dtype = f64;
  return params;
}

/*
 * Sensors that are fused while they are recorded: a ring of the newest samples of each. One thread a
 * sensor pushes, one thread fuses, and none of them waits for another.
 *
 *   rbcLiveCreate(context, streams, 2, NULL, &live);
 *   rbcLivePush(context, live, 0, &times, &values);                 (the thread of sensor 0)
 *   rbcLiveFuse(context, live, &query_times, &out, &mask, &ages);   (the control thread, at its tick)
 *
 * What rbcLiveFuse writes are the bits of rbcFuse for the samples that it finds in the rings, so
 * that a policy sees at run time what it has seen in training.
 */
typedef struct rbcLive* rbcLive_t;

/*
 * Makes the rings, in host memory, and everything else that calls will need, for num_streams of 1 to
 * RBC_FUSE_MAX_STREAMS streams, all with the same struct_size. Their params are as in rbcFuseStream,
 * without lengths, offsets and sample_mask; mean and inv_std are in host memory. Holds a reference to
 * the context, whose stream gets the copy of what is fused on CUDA. Null params: defaults.
 *
 * Errors: those of rbcFuse for the streams, which they name; INVALID_ARGUMENT also for a capacity
 * that is too small for the method or for late_bound, OUT_OF_MEMORY. On failure *live is null.
 */
RBC_API rbcStatus_t rbcLiveCreate(rbcContext_t context, const rbcLiveStream* streams,
                                  int32_t num_streams, const rbcLiveParams* params,
                                  rbcLive_t* live);

/*
 * Destroys it; null is allowed. No other call may be under way or follow: one that is seen to be
 * under way gets this one UNSUPPORTED, and nothing is destroyed.
 */
RBC_API rbcStatus_t rbcLiveDestroy(rbcLive_t live);

/*
 * Adds samples of a stream, in the order in which they arrive.
 *
 *   context  that it was made with, which other threads may be using meanwhile
 *   live     the rings
 *   stream   the index of the stream
 *   times    [n] in host memory, of the time dtype
 *   values   [n,D] in host memory, of the stream's dtype
 *
 * Samples are kept in the order of their times, and those with equal times in that of their arrival.
 * One that is older than others has to be older than late_bound of the kept ones at most: else it is
 * dropped, as is one whose time is NaN. All are counted. The oldest make room for new ones. After a
 * clock has gone back, samples are dropped until it is where it was, but for late_bound.
 *
 * Wait-free: no lock, no allocation, no system call, whatever other threads do. One thread at a time
 * may push to a stream; a second one gets UNSUPPORTED, and nothing is added. Different streams know
 * nothing of each other. Errors: INVALID_ARGUMENT, DEVICE_MISMATCH, DTYPE_MISMATCH, SHAPE_MISMATCH,
 * with nothing added.
 */
RBC_API rbcStatus_t rbcLivePush(rbcContext_t context, rbcLive_t live, int32_t stream,
                                const rbcTensor* times, const rbcTensor* values);

/*
 * Fuses what the rings hold: rbcFuse of those samples, without batch.
 *
 *   context      that it was made with
 *   live         the rings
 *   query_times  [T] in host memory, of the time dtype: the tick, or it and those before
 *   out          [T,D_0 + ... + D_N-1]; f16, bf16, f32 or f64; on the context's device
 *   mask         [T,N] bool or u8, on the context's device; or null
 *   ages         [N] in host memory, or null: the newest query time less that of the newest sample,
 *                its clock_offset added; f64, for times of i64 i64. Without samples, or where all
 *                queries are NaN, NaN or INT64_MAX
 *
 * A stream whose age is more than its max_age has no samples for this call. What a ring gives is a
 * run of its newest samples, which were all there at one time; what is pushed during the call may or
 * may not be among them.
 *
 * On the CPU: no lock, no allocation, no system call, and it never waits for a producer. On CUDA the
 * CPU fuses, and one copy each of out and mask, which are contiguous, goes to the context's stream;
 * memory is allocated where T is larger than before. One thread at a time may fuse; a second one gets
 * UNSUPPORTED. Errors: those of rbcFuse.
 */
RBC_API rbcStatus_t rbcLiveFuse(rbcContext_t context, rbcLive_t live, const rbcTensor* query_times,
                                const rbcOutput* out, const rbcOutput* mask,
                                const rbcOutput* ages);

/* What has become of a stream's samples since it was made. */
typedef struct rbcLiveCounters {
  uint32_t struct_size;
  uint32_t reserved0;  /* 0 */
  int64_t pushed;      /* samples that were kept, late ones too */
  int64_t overwritten; /* of these, those that newer ones have taken the place of */
  int64_t late;        /* of the kept ones, those that came after newer ones */
  int64_t dropped;     /* samples that came too late, or whose time is NaN */
  int64_t retried;     /* looks of rbcLiveFuse at the ring that had to be taken again */
  int64_t early;       /* queries of rbcLiveFuse that were before all samples that were there */
  uint64_t reserved[3];
} rbcLiveCounters;

static inline rbcLiveCounters rbcLiveCountersInit(void) {
  rbcLiveCounters counters;
  memset(&counters, 0, sizeof counters);
  counters.struct_size = (uint32_t)sizeof counters;
  return counters;
}

/* Fills the bytes that the caller's struct_size covers. From any thread. */
RBC_API rbcStatus_t rbcLiveGetCounters(rbcLive_t live, int32_t stream, rbcLiveCounters* counters);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_LIVE_H */
