/*
 * RoboCache: fusion at run time, of samples as they arrive.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ROBOCACHE_LIVE_H
#define ROBOCACHE_LIVE_H

#include "fuse.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One sensor: how many samples are kept, and how they are fused. */
typedef struct rbcLiveStream {
  uint32_t struct_size;
  rbcDType dtype;       /* of values, any that rbcFuse reads; default f32 */
  int64_t num_channels; /* required: D, 1 or more */
  int64_t capacity;     /* how many samples are kept, the newest ones; up to 2^24; default 256 */
  int64_t late_bound;   /* how many kept samples may be newer than one that arrives; default 0 */
  double max_ahead;     /* how far a sample may be after the newest one, in the unit of the times,
                         > 0; default INFINITY: no limit */
  const rbcResampleParams* params; /* null: defaults; read and copied by rbcLiveCreate */
  double clock_offset;             /* as in rbcFuseStream */
  int64_t clock_offset_ticks;      /* as in rbcFuseStream */
} rbcLiveStream;

static inline rbcLiveStream rbcLiveStreamInit(void) {
  const rbcDType f32 = {RBC_DTYPE_FLOAT, 32, 1};
  rbcLiveStream stream;
  memset(&stream, 0, sizeof stream);
  stream.struct_size = (uint32_t)sizeof stream;
  stream.dtype = f32;
  stream.capacity = 256;
  stream.max_ahead = (double)INFINITY;
  return stream;
}

/* The parameters that all streams share. */
typedef struct rbcLiveParams {
  uint32_t struct_size;
  uint32_t flags;      /* 0 */
  rbcDType time_dtype; /* of all times: f32, f64 or i64; default f64 */
  int32_t reserved0;   /* 0 */
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
 * Sensors that are fused while they are recorded. Each sensor has a ring buffer of its newest
 * samples. One thread per sensor pushes, one thread fuses, and no thread waits for another.
 *
 *   rbcLiveCreate(context, streams, 2, NULL, &live);
 *   rbcLivePush(live, 0, &values, &times, &arrivals);      (the thread of sensor 0)
 *   rbcLiveFuse(live, &query_times, &out, &valid, &ages, &params); (the control thread, at its tick)
 *
 * rbcLiveFuse writes the same bits as rbcFuse for the samples in the rings: those that have arrived.
 * Training sees the same rows, also of a history and also if a call is late, if both have the same
 * arrivals and lag: see rbcResampleParams. What the rings drop must then be missing in training.
 */
typedef struct rbcLive* rbcLive_t;

/*
 * Makes the rings in host memory, and allocates everything else that later calls need. The caller
 * destroys them with rbcLiveDestroy. On failure *live is null.
 *
 * num_streams is 1 to RBC_FUSE_MAX_STREAMS; all streams have the same struct_size. Their params are
 * as in rbcFuseStream, without lengths, batch_offsets and sample_mask; shift and scale are in host
 * memory. Null params mean the defaults. The rings hold a reference to the context; on CUDA, fused
 * data is copied on its stream.
 *
 * The minimum capacity is 1 for previous, next and nearest, 4 for cubic and pchip, and 2 for the
 * others, and at least late_bound + 1.
 *
 * Errors: those of rbcFuse for the streams, with the name of the stream; INVALID_ARGUMENT also for
 * a capacity that is too small; OUT_OF_MEMORY.
 */
RBC_API rbcStatus_t rbcLiveCreate(rbcContext_t context, const rbcLiveStream* streams,
                                  int32_t num_streams, const rbcLiveParams* params,
                                  rbcLive_t* live);

/*
 * Destroys the rings; null is allowed. No other call may be in progress or follow. If a call in
 * progress is seen, this one fails with UNSUPPORTED and destroys nothing.
 */
RBC_API rbcStatus_t rbcLiveDestroy(rbcLive_t live);

/*
 * Adds samples of a stream, in the order in which they arrive.
 *
 *   live          the rings
 *   stream_index  the index of the stream
 *   values        [n,D] in host memory; the stream's dtype
 *   times         [n] in host memory; the time dtype
 *   arrivals      [n] in host memory; the time dtype: when each sample arrived, on the clock of the
 *                 queries. rbcLiveFuse uses a sample for query q if its arrival is not after
 *                 q + lag; null: for every query
 *
 * A ring keeps the samples with the newest times, as many as its capacity: a new sample replaces
 * the oldest. Samples with equal times are kept in the order in which they arrive, and the first of
 * them is replaced first. The result for a sample depends only on the samples pushed before it, so
 * a replay in the same order keeps the same samples. The first rule that applies decides:
 *   1. A time that is NaN or infinite is refused, and counted in `invalid`; i64 times that are
 *      INT64_MIN, which is NumPy's NaT, or INT64_MAX are refused too.
 *   2. A sample that is more than max_ahead after the newest one is refused, and counted in
 *      `ahead`.
 *   3. If more than late_bound of the kept samples are newer, the sample is too late: it is
 *      refused, and counted in `dropped`.
 *   4. Otherwise it is kept. If some samples are newer, it is put in order, and also counted in
 *      `late`.
 *
 * Without max_ahead, one wrong stamp in the far future makes all later samples too late until their
 * times pass that stamp, or until rbcLiveReset. With max_ahead, three successive samples that agree
 * outvote the newest one. They agree if each is at most max_ahead after the one before it, and each
 * is more than max_ahead away from the newest sample. If they are after the newest sample, the
 * third is kept, and the first two are counted in `ahead`: a sensor that was silent for an hour
 * loses two samples. If they are before it, the ring forgets the samples that it keeps, counts them
 * in `forgotten`, and keeps the third: a clock that was set back, or a wrong first stamp, costs two
 * samples.
 *
 * max_ahead must be longer than the longest regular interval between two samples. It has no default
 * limit, since neither the rate of a sensor nor the unit of its times is known here.
 *
 * Wait-free: no lock, no allocation, no system call, and other threads cannot delay it. The time
 * per sample does not depend on the capacity, except that after late samples the ring is copied, at
 * most once in capacity - late_bound samples. One thread at a time may push to a stream; a second
 * one gets UNSUPPORTED. Different streams share no data.
 *
 * Errors: INVALID_ARGUMENT, DEVICE_MISMATCH, DTYPE_MISMATCH, SHAPE_MISMATCH, UNSUPPORTED. A failed
 * call adds no samples.
 */
RBC_API rbcStatus_t rbcLivePush(rbcLive_t live, int32_t stream_index, const rbcTensor* values,
                                const rbcTensor* times, const rbcTensor* arrivals);

/* The parameters of rbcLiveFuse. */
typedef struct rbcLiveFuseParams {
  uint32_t struct_size;
  uint32_t flags;    /* 0 */
  double lag;        /* for f32, f64 times, as in rbcResampleParams; default 0 */
  int64_t lag_ticks; /* the same for i64 times */
} rbcLiveFuseParams;

static inline rbcLiveFuseParams rbcLiveFuseParamsInit(void) {
  rbcLiveFuseParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * Fuses the samples in the rings, as rbcFuse does without a batch.
 *
 *   live         the rings
 *   query_times  [T] in host memory; the time dtype: the tick, or the tick and earlier ones
 *   out          [T,D_0 + ... + D_N-1]; f16, bf16, f32 or f64; on the context's device
 *   valid        [T,N] bool or u8, on the context's device; or null
 *   ages         [N], or null: the age of each stream at the newest query; f64, or i64 for i64
 *                times; in host memory
 *   params       null: defaults
 *
 * The age of a stream is the newest query time minus the time of the newest sample at or before
 * that query, with clock_offset added to the sample's time. If all samples are after the query, the
 * first one counts, and the age is negative. Samples that had not arrived for the query do not
 * count. So a query in the past gets the age at that time, and a wrong stamp in the far future does
 * not hide that a sensor has stopped. The age of a query at infinity or -infinity is that infinity.
 * The age is NaN, or INT64_MAX for i64 times, if there are no samples or if all queries are NaN; a
 * difference of i64 times is kept within INT64_MIN and INT64_MAX - 1.
 *
 * The samples of a ring that a call uses are a run of the newest ones that were all there at one
 * time. Samples that are pushed during the call may or may not be among them: with arrivals, a call
 * for q at q + lag or later has the same result in either case.
 *
 * On the CPU: no lock, no allocation, no system call, and it never waits for a producer. On CUDA
 * the CPU fuses, and the call copies out and valid on the context's stream and waits for it. Both
 * must then be contiguous (INVALID_ARGUMENT), no other thread may use the context during the call,
 * and memory is allocated if T is larger than before. One thread at a time may fuse; a second one
 * gets UNSUPPORTED. Errors: those of rbcFuse and rbcTensorCopy.
 */
RBC_API rbcStatus_t rbcLiveFuse(rbcLive_t live, const rbcTensor* query_times, const rbcOutput* out,
                                const rbcOutput* valid, const rbcOutput* ages,
                                const rbcLiveFuseParams* params);

/*
 * Forgets the samples of a stream, for example after a driver has restarted or its clock was set
 * back. Samples of any time are accepted afterwards. The counters are not reset.
 *
 * Wait-free, for the thread that pushes to the stream: if another thread is pushing, the call fails
 * with UNSUPPORTED and forgets nothing. rbcLiveFuse in another thread never sees samples from
 * before a reset together with samples from after it. Errors: INVALID_ARGUMENT, UNSUPPORTED.
 */
RBC_API rbcStatus_t rbcLiveReset(rbcLive_t live, int32_t stream_index);

/*
 * Counts of a stream's samples since rbcLiveCreate. Each sample passed to rbcLivePush is counted in
 * one of `kept`, `dropped`, `ahead` and `invalid`. While no thread pushes, `kept` is the sum of
 * `overwritten`, `forgotten` and the number of samples in the ring.
 */
typedef struct rbcLiveCounters {
  uint32_t struct_size;
  uint32_t reserved0;           /* 0 */
  int64_t kept;                 /* samples that were kept, including late ones */
  int64_t overwritten;          /* kept samples that a newer sample has replaced */
  int64_t late;                 /* kept samples that arrived after newer ones */
  int64_t dropped;              /* samples that arrived too late */
  int64_t ahead;                /* samples that were refused because of max_ahead */
  int64_t invalid;              /* samples whose time was NaN or infinite */
  int64_t forgotten;            /* kept samples that rbcLiveReset or a clock set back removed */
  int64_t queries_before_first; /* queries of rbcLiveFuse before all samples of the ring */
  int64_t snapshot_retries;     /* snapshots of the ring that rbcLiveFuse had to repeat */
} rbcLiveCounters;

static inline rbcLiveCounters rbcLiveCountersInit(void) {
  rbcLiveCounters counters;
  memset(&counters, 0, sizeof counters);
  counters.struct_size = (uint32_t)sizeof counters;
  return counters;
}

/*
 * Fills the first struct_size bytes of *counters, which the caller has initialized. Any thread may
 * call it, and it never waits for a thread that pushes. Counters that are read before and after
 * rbcLiveFuse bound what that call has seen: all samples counted before it, and no sample that was
 * not counted after it. Errors: INVALID_ARGUMENT.
 */
RBC_API rbcStatus_t rbcLiveGetCounters(rbcLive_t live, int32_t stream_index,
                                       rbcLiveCounters* counters);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_LIVE_H */
