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
  rbcDType dtype;     /* of values, as rbcFuse takes them; default f32 */
  int64_t num_channels; /* required: D, 1 or more */
  int64_t capacity;     /* how many samples are kept, the newest ones; up to 2^24; default 256 */
  int64_t late_bound; /* how many kept samples may be newer than one that comes; default 0 */
  double max_age;     /* in the unit of the times, >= 0; default INFINITY: no limit */
  double max_ahead;   /* how far after the newest sample one may be, in the unit of the times, > 0;
                         default INFINITY: no limit */
  const rbcResampleParams* params; /* null: defaults; read and copied by rbcLiveCreate */
  double clock_offset;             /* as in rbcFuseStream */
  int64_t clock_offset_ticks;      /* likewise */
} rbcLiveStream;

static inline rbcLiveStream rbcLiveStreamInit(void) {
  const rbcDType f32 = {RBC_DTYPE_FLOAT, 32, 1};
  rbcLiveStream stream;
  memset(&stream, 0, sizeof stream);
  stream.struct_size = (uint32_t)sizeof stream;
  stream.dtype = f32;
  stream.capacity = 256;
  stream.max_age = (double)INFINITY;
  stream.max_ahead = (double)INFINITY;
  return stream;
}

/* What all streams share. */
typedef struct rbcLiveParams {
  uint32_t struct_size;
  uint32_t flags;       /* 0 */
  rbcDType time_dtype;  /* of all times: f32, f64 or i64; default f64 */
  int32_t reserved0;    /* 0 */
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
 *   rbcLivePush(live, 0, &values, &times);                 (the thread of sensor 0)
 *   rbcLiveFuse(live, &query_times, &out, &valid, &ages, NULL);   (the control thread, at its tick)
 *
 * What rbcLiveFuse writes are the bits of rbcFuse for the samples that it finds in the rings, so
 * that a policy sees at run time what it has seen in training.
 */
typedef struct rbcLive* rbcLive_t;

/*
 * Makes the rings, in host memory, and everything else that calls will need, for num_streams of 1 to
 * RBC_FUSE_MAX_STREAMS streams, all with the same struct_size. Their params are as in rbcFuseStream,
 * without lengths, batch_offsets and sample_mask; shift and scale are in host memory. Holds a reference to
 * the context, whose stream gets the copy of what is fused on CUDA. Null params: defaults.
 *
 * The least capacity is 1 for previous, next and nearest, 4 for cubic and pchip, 2 for the others, and
 * late_bound + 1.
 *
 * Errors: those of rbcFuse for the streams, which they name; INVALID_ARGUMENT also for a capacity
 * that is too small, OUT_OF_MEMORY. On failure *live is null.
 */
RBC_API rbcStatus_t rbcLiveCreate(rbcContext_t context, const rbcLiveStream* streams,
                                  int32_t num_streams, const rbcLiveParams* params,
                                  rbcLive_t* live);

/*
 * Destroys it; null is allowed. No other call may be under way or follow: if another one is seen, this
 * one fails with UNSUPPORTED and destroys nothing.
 */
RBC_API rbcStatus_t rbcLiveDestroy(rbcLive_t live);

/*
 * Adds samples of a stream, in the order in which they arrive.
 *
 *   live          the rings
 *   stream_index  of the stream
 *   values        [n,D] in host memory, of the stream's dtype
 *   times         [n] in host memory, of the time dtype
 *
 * A ring keeps the newest samples by their times, as many as its capacity: a new one takes the place
 * of the oldest. Samples with equal times are kept in the order in which they arrive, and the first of
 * them goes first. What happens to a sample depends only on the samples that were pushed before it, so
 * that a replay in the same order keeps the same samples. The first rule that applies decides:
 *   1. A time that is NaN or infinite is refused, and counted in `invalid`; for times of i64 these are
 *      INT64_MIN, which is NumPy's NaT, and INT64_MAX.
 *   2. A sample that is more than max_ahead after the newest one is refused, and counted in `ahead`.
 *   3. If more than late_bound of the kept samples are newer, the sample is too late: it is refused,
 *      and counted in `dropped`.
 *   4. Else it is kept. If some are newer, it is put in order, and counted in `late` too.
 *
 * Without max_ahead, one wild stamp in the far future makes the samples after it too late until their
 * times have caught up with it, or until rbcLiveReset. With max_ahead, three successive samples that
 * agree with each other outvote the newest one. They agree if each is after the one before it, by
 * max_ahead at most; and each must be more than max_ahead away from the newest sample. If they are
 * after it, the third is kept, and the first two are counted in `ahead`: a sensor that was silent for
 * an hour loses two samples. If they are before it, the ring forgets what it keeps, which is counted
 * in `forgotten`, and keeps the third: a clock that was set back, or a first stamp that was wild, costs
 * two samples. max_ahead must be longer than the longest regular interval between two samples. By
 * default there is no limit, since neither the rate of a sensor nor the unit of its times is known here.
 *
 * Wait-free: no lock, no allocation, no system call, and other threads cannot delay it. The time that a
 * sample takes does not depend on the capacity; but after late samples the ring is copied, at most once
 * in capacity - late_bound samples. One thread at a time may push to a stream; a second one gets
 * UNSUPPORTED, and nothing is added. Different streams share nothing. Errors: INVALID_ARGUMENT,
 * DEVICE_MISMATCH, DTYPE_MISMATCH, SHAPE_MISMATCH, with nothing added.
 */
RBC_API rbcStatus_t rbcLivePush(rbcLive_t live, int32_t stream_index, const rbcTensor* values, const rbcTensor* times);

/* How to fuse. */
typedef struct rbcLiveFuseParams {
  uint32_t struct_size;
  uint32_t flags; /* 0 */
} rbcLiveFuseParams;

static inline rbcLiveFuseParams rbcLiveFuseParamsInit(void) {
  rbcLiveFuseParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * Fuses what the rings hold: rbcFuse of those samples, without batch.
 *
 *   live         the rings
 *   query_times  [T] in host memory, of the time dtype: the tick, or it and those before
 *   out          [T,D_0 + ... + D_N-1]; f16, bf16, f32 or f64; on the context's device
 *   valid        [T,N] bool or u8, on the context's device; or null
 *   ages         [N], or null: the age of each stream at the newest query; f64, for times of i64 i64;
 *                in host memory
 *   params       null: defaults
 *
 * The age of a stream is the newest query time minus the time of the newest sample up to that query
 * (its clock_offset added). If all samples are after the query, the first of them counts, and the age
 * is negative. So a query in the past has the age that it had then, and a stamp in the far future
 * does not hide that a sensor has stopped. A query at infinity or -infinity has this age. It is NaN,
 * for times of i64 INT64_MAX, if there are no samples or if all queries are NaN; a difference of i64
 * is kept within INT64_MIN and INT64_MAX - 1.
 *
 * A stream whose age is more than max_age or less than -max_age has no samples for this call. What a
 * ring gives is a run of its newest samples, which were all there at one time; what is pushed during
 * the call may or may not be among them.
 *
 * On the CPU: no lock, no allocation, no system call, and it never waits for a producer. On CUDA the
 * CPU fuses, and the call copies out and valid on the context's stream and waits for it: they must be
 * contiguous (INVALID_ARGUMENT), no other thread may use the context during the call, and memory is
 * allocated where T is larger than before. One thread at a time may fuse; a second one gets
 * UNSUPPORTED. Errors: those of rbcFuse and rbcTensorCopy.
 */
RBC_API rbcStatus_t rbcLiveFuse(rbcLive_t live, const rbcTensor* query_times, const rbcOutput* out,
                                const rbcOutput* valid, const rbcOutput* ages,
                                const rbcLiveFuseParams* params);

/*
 * Forgets the samples of a stream: after a driver has restarted, or its clock was set back. Samples of
 * any time are accepted then. The counters go on.
 *
 * Wait-free, for the thread that pushes to the stream: if another one is pushing, the call fails with
 * UNSUPPORTED and forgets nothing. rbcLiveFuse in another thread never sees samples from before a reset
 * together with samples from after it. Errors: INVALID_ARGUMENT.
 */
RBC_API rbcStatus_t rbcLiveReset(rbcLive_t live, int32_t stream_index);

/*
 * Counts of a stream's samples since rbcLiveCreate. Each sample that was given to rbcLivePush is counted
 * in one of `kept`, `dropped`, `ahead` and `invalid`. While no thread pushes, `kept` is the sum of
 * `overwritten`, `forgotten` and the samples that the ring holds.
 */
typedef struct rbcLiveCounters {
  uint32_t struct_size;
  uint32_t reserved0;  /* 0 */
  int64_t kept;        /* samples that were kept, late ones too */
  int64_t overwritten; /* of these, those whose place a newer sample has taken */
  int64_t late;        /* of the kept ones, those that came after newer ones */
  int64_t dropped;     /* samples that came too late */
  int64_t ahead;       /* samples that were refused because of max_ahead */
  int64_t invalid;     /* samples whose time was NaN or infinite */
  int64_t forgotten;   /* of the kept ones, those that rbcLiveReset or a clock set back took away */
  int64_t queries_before_first; /* queries of rbcLiveFuse before all samples that were there */
  int64_t snapshot_retries;     /* snapshots of the ring that rbcLiveFuse had to take again */
} rbcLiveCounters;

static inline rbcLiveCounters rbcLiveCountersInit(void) {
  rbcLiveCounters counters;
  memset(&counters, 0, sizeof counters);
  counters.struct_size = (uint32_t)sizeof counters;
  return counters;
}

/*
 * Fills the bytes that the caller's struct_size covers. From any thread, and it never waits for one
 * that pushes. Whoever reads them before and after rbcLiveFuse knows what it may have seen: all samples
 * that were counted before, and none that was not counted after.
 */
RBC_API rbcStatus_t rbcLiveGetCounters(rbcLive_t live, int32_t stream_index,
                                       rbcLiveCounters* counters);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_LIVE_H */
