/*
 * RoboCache: exact statistics of recordings, of data in memory and of data that come in pieces.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ROBOCACHE_STATISTICS_H
#define ROBOCACHE_STATISTICS_H

#include <string.h>

#include "base.h"
#include "context.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rbcStatisticsParams.flags */
#define RBC_STATISTICS_FLAG_PER_ROW 0x10000u /* separately for each row of the batch */

/* The maximum number of quantile levels of a call or an accumulator. */
#define RBC_STATISTICS_MAX_LEVELS 64

/* The samples that count, and the options of the statistics. */
typedef struct rbcStatisticsParams {
  uint32_t struct_size;
  uint32_t flags;                 /* RBC_STATISTICS_FLAG_PER_ROW, or 0 (default) */
  const rbcTensor* lengths;       /* [B] i32 or i64: valid samples of padded rows; null: all */
  const rbcTensor* sample_mask;   /* bool or u8, the shape of values without D: 0 skips a sample */
  const rbcTensor* batch_offsets; /* [B+1] i32 or i64: the rows of packed values; null: padded */
  const rbcTensor* levels;        /* [Q] f64 in host memory: of quantiles, 0 .. 1; null: none */
  int32_t ddof;                   /* the variance is divided by n - ddof; 0 (default) or 1 */
  int32_t reserved0;              /* 0 */
} rbcStatisticsParams;

static inline rbcStatisticsParams rbcStatisticsParamsInit(void) {
  rbcStatisticsParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * The tensors that rbcStatistics writes; a null tensor is not computed. [D] of all samples
 * together, [B,D] with RBC_STATISTICS_FLAG_PER_ROW.
 */
typedef struct rbcStatisticsOutputs {
  uint32_t struct_size;
  uint32_t reserved0;         /* 0 */
  const rbcOutput* count;     /* i64: finite values */
  const rbcOutput* nonfinite; /* i64: NaN and infinities, which the other statistics skip */
  const rbcOutput* min;       /* f64 */
  const rbcOutput* max;       /* f64 */
  const rbcOutput* mean;      /* f64 */
  const rbcOutput* std;       /* f64 */
  const rbcOutput* quantiles; /* f64, [Q,D] or [B,Q,D] */
} rbcStatisticsOutputs;

static inline rbcStatisticsOutputs rbcStatisticsOutputsInit(void) {
  rbcStatisticsOutputs outputs;
  memset(&outputs, 0, sizeof outputs);
  outputs.struct_size = (uint32_t)sizeof outputs;
  return outputs;
}

/*
 * Computes exact statistics of each of D channels.
 *
 *   values   [B,S,D]; [S,D] without batch; [N,D] packed, with params->batch_offsets; [B,...,D]
 *            of any rank, such as images [B,H,W,C]: all elements between the first axis and the
 *            last are samples (pass [B,C,H,W] as a permuted view); every dtype of tensor.h
 *   outputs  the tensors to write
 *   params   null: defaults
 *
 * Strides may be 0 or negative; no tensor is copied. All tensors except the levels are on the
 * context's device. Outputs must not overlap each other or an input. Every element is written.
 *
 * A sample counts if it is within lengths or batch_offsets and its sample_mask is not 0; lengths
 * apply to rows [B,S,D]. Each of its values is converted to f64 (64-bit integers are rounded). For
 * the n finite values x of a channel
 *   count      n
 *   nonfinite  the number of other values
 *   min,max    -0 counts as +0
 *   mean       the f64 nearest to sum(x) / n
 *   std        the f64 nearest to sqrt(sum((x - sum(x) / n)^2) / (n - ddof)), NaN if n <= ddof
 *   quantiles  for a level q, with h = q (n - 1), i = floor(h), t = h - i, v ascending from v[0],
 *              and d = v[i+1] - v[i] (0 past the end): v[i+1] - d (1 - t) if t >= 0.5, else
 *              v[i] + d t, each step rounded: the bits of numpy.quantile(method="linear") of the
 *              values as f64
 * mean and std equal the results of exact arithmetic, rounded once to nearest even; no intermediate
 * result overflows. If n = 0, all statistics except the counts are NaN. NaN is the positive quiet
 * NaN with all payload bits set. So CPU and CUDA, and every order of the samples, give the same
 * bits.
 *
 * Lengths and offsets out of range are INVALID_ARGUMENT on the CPU; on CUDA they give unspecified
 * values but never an access outside the tensors.
 *
 * CUDA: several launches on the context's stream, no synchronization, and no allocation once the
 * workspace is large enough; from then on it can be captured. CPU: returns when done; large calls
 * use several of the context's threads.
 *
 * Errors: INVALID_ARGUMENT (a level outside 0 .. 1; per row without a batch), DEVICE_MISMATCH,
 * DTYPE_MISMATCH, SHAPE_MISMATCH, UNSUPPORTED (more than 2^40 samples), WORKSPACE_TOO_SMALL,
 * OUT_OF_MEMORY, CUDA_ERROR. No samples, B = 0 and D = 0 succeed.
 */
RBC_API rbcStatus_t rbcStatistics(rbcContext_t context, const rbcTensor* values,
                                  const rbcStatisticsOutputs* outputs,
                                  const rbcStatisticsParams* params);

/*
 * Writes the size in bytes of the workspace that the same call of rbcStatistics needs, for
 * rbcContextReserve. Checks the arguments as that call does; on failure *bytes does not change.
 */
RBC_API rbcStatus_t rbcStatisticsWorkspaceSize(rbcContext_t context, const rbcTensor* values,
                                               const rbcStatisticsOutputs* outputs,
                                               const rbcStatisticsParams* params, size_t* bytes);

/* ---- data that come in pieces ---------------------------------------------------------------- */

/*
 * An accumulator computes statistics of samples that arrive piece by piece, equal to those of one
 * rbcStatistics of all of them together. Accumulators can be merged: within a context directly, and
 * across processes, devices and machines as exported bytes.
 *
 * The order of samples, pieces, merges, threads and devices has no effect: the same samples give
 * the same bytes.
 *
 * Quantiles take several passes over the same data. The first pass counts values by the leading
 * bucket_bits bits of sign, exponent and mantissa (integers as floats). After it, at the default of
 * bucket_bits, each value v[i] of rbcStatistics is known to 2^-7 of itself (2^-4 for f64 and
 * integers of 32 and 64 bits); a subnormal value is known to the largest subnormal. Each further
 * pass resolves 16 more bits of the values that the quantiles need, until they are exact. That
 * takes no further pass for bf16, bool and 8-bit integers, one for f16, f32 and 16-bit integers,
 * two for 32-bit integers, and three for f64 and 64-bit integers.
 *
 *   do {
 *     for (each piece) rbcAccumulatorUpdate(accumulator, piece, NULL);
 *     rbcAccumulatorNextPass(accumulator, &more);
 *   } while (more);
 *   rbcAccumulatorGetResult(accumulator, &outputs);
 *
 * Right after the first pass, quantiles are approximate and all other results are exact.
 *
 * An accumulator uses the device, stream, workspace and threads of the context that it was created
 * with, and keeps them alive. Its calls are calls on that context: one thread at a time may make
 * them. Its state takes 1648 bytes per channel. Quantiles add 8 bytes per channel and bucket in the
 * first pass, by default 512 KiB per channel. Later passes use 512 KiB for each bucket that holds
 * values that are needed: one or two buckets per level and channel.
 */
typedef struct rbcAccumulator* rbcAccumulator_t;

/* The channels, dtype and options of an accumulator. */
typedef struct rbcAccumulatorParams {
  uint32_t struct_size;
  uint32_t flags;          /* 0 */
  int64_t num_channels;    /* required: D, the number of channels of all values */
  const rbcTensor* levels; /* [Q] f64 in host memory: of quantiles, 0 .. 1; null: none */
  int32_t ddof;            /* 0 (default) or 1, as in rbcStatisticsParams */
  int32_t bucket_bits;     /* 8 to 20; default 0, which means 16 */
  rbcDType dtype;          /* of all values; default all 0: the dtype of the first update */
  int32_t reserved0;       /* 0 */
} rbcAccumulatorParams;

static inline rbcAccumulatorParams rbcAccumulatorParamsInit(void) {
  rbcAccumulatorParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * Makes an empty accumulator on the context's device with the context's allocator. The caller
 * destroys it with rbcAccumulatorDestroy. On failure *accumulator is null.
 *
 * Errors: INVALID_ARGUMENT, DTYPE_MISMATCH, SHAPE_MISMATCH (levels), OUT_OF_MEMORY, CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcAccumulatorCreate(rbcContext_t context, const rbcAccumulatorParams* params,
                                         rbcAccumulator_t* accumulator);

/*
 * Destroys an accumulator; null is allowed. On CUDA its memory is freed in the order of the stream
 * that used it last, which must still exist. Errors: UNSUPPORTED (a call of another thread, or the
 * call that runs the callback of rbcContextSetCancelCallback, is using the accumulator, which is
 * then not changed).
 */
RBC_API rbcStatus_t rbcAccumulatorDestroy(rbcAccumulator_t accumulator);

/* The samples that an update adds. */
typedef struct rbcAccumulatorUpdateParams {
  uint32_t struct_size;
  uint32_t flags;                 /* 0 */
  const rbcTensor* lengths;       /* as in rbcStatisticsParams */
  const rbcTensor* sample_mask;   /* as in rbcStatisticsParams */
  const rbcTensor* batch_offsets; /* as in rbcStatisticsParams */
} rbcAccumulatorUpdateParams;

static inline rbcAccumulatorUpdateParams rbcAccumulatorUpdateParamsInit(void) {
  rbcAccumulatorUpdateParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * Adds samples. The first pass adds them to the statistics; a later pass adds them to the counts
 * that resolve the quantiles.
 *
 *   accumulator  not null
 *   values       as for rbcStatistics, with the accumulator's channels and dtype
 *   params       null: defaults
 *
 * Once rbcAccumulatorNextPass has written more = 0 in a pass after the first, no more samples can
 * be added: INVALID_ARGUMENT. More than 2^40 samples are UNSUPPORTED. A failed call does not change
 * the state, except for CANCELLED and CUDA_ERROR, which may have added some of the samples. After
 * these the accumulator can only be destroyed, and any other use of it is INVALID_ARGUMENT.
 *
 * CUDA: as for rbcStatistics; it can be captured. Each replay adds the samples again, and does not
 * check that they are at most 2^40. After rbcAccumulatorNextPass, or once the accumulator is
 * destroyed, a graph captured before must not be replayed: its memory may have another use.
 *
 * Errors: those of rbcStatistics.
 */
RBC_API rbcStatus_t rbcAccumulatorUpdate(rbcAccumulator_t accumulator, const rbcTensor* values,
                                         const rbcAccumulatorUpdateParams* params);

/*
 * Writes the size in bytes of the workspace that the same call of rbcAccumulatorUpdate needs, for
 * rbcContextReserve. Checks the arguments as that call does; on failure *bytes does not change.
 */
RBC_API rbcStatus_t rbcAccumulatorUpdateWorkspaceSize(rbcAccumulator_t accumulator,
                                                      const rbcTensor* values,
                                                      const rbcAccumulatorUpdateParams* params,
                                                      size_t* bytes);

/*
 * Adds the samples of `other`, which does not change. Both accumulators have the same context (use
 * export and import across contexts) and the same channels, dtype, levels, ddof, bucket_bits and
 * pass. In a pass after the first, both must have been built from the same samples in the earlier
 * passes, for example by export and import; the counts of the current pass are added. Does not
 * synchronize, and can be captured, as rbcAccumulatorUpdate can.
 *
 * Errors: INVALID_ARGUMENT, DTYPE_MISMATCH, CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcAccumulatorMerge(rbcAccumulator_t accumulator, rbcAccumulator_t other);

/*
 * Ends a pass. *more is 1 if the quantiles are not exact yet: rbcAccumulatorUpdate then expects the
 * same samples again, in any order and pieces. *more is 0 if they are exact or there are no
 * quantiles. Synchronizes.
 *
 * Errors: INVALID_ARGUMENT (in a pass after the first, the counts of its samples differ from those
 * of the first pass, or there are levels but no samples; the pass can continue), UNSUPPORTED (the
 * stream is being captured), OUT_OF_MEMORY, CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcAccumulatorNextPass(rbcAccumulator_t accumulator, int32_t* more);

/*
 * Writes the state as bytes that rbcAccumulatorImport reads in any process, on any device and
 * machine. The bytes have a version and a checksum, with the least significant byte first. The same
 * samples give the same bytes.
 *
 * *bytes becomes their number, a multiple of 8. If the capacity is less than that, the call fails
 * with BUFFER_TOO_SMALL and writes only *bytes. To get only the number, pass null data with a
 * capacity of 0. Synchronizes.
 *
 * Errors: BUFFER_TOO_SMALL, INVALID_ARGUMENT, UNSUPPORTED (the stream is being captured),
 * CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcAccumulatorExport(rbcAccumulator_t accumulator, void* data, size_t capacity,
                                         size_t* bytes);

/*
 * Makes an accumulator from exported bytes. The caller destroys it with rbcAccumulatorDestroy. On
 * failure *accumulator is null. Synchronizes.
 *
 * Errors: DAMAGED (truncated or corrupted bytes, or bytes that are not an export), UNSUPPORTED (a
 * newer format, or the stream is being captured), INVALID_ARGUMENT, OUT_OF_MEMORY, CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcAccumulatorImport(rbcContext_t context, const void* data, size_t bytes,
                                         rbcAccumulator_t* accumulator);

/*
 * Writes the statistics of all samples so far into tensors in host memory, [D] and [Q,D], by the
 * rules of rbcStatistics. A null tensor is not computed. Until the last pass has ended, quantiles
 * are approximate, between min and max; during a later pass they are INVALID_ARGUMENT until it has
 * counted all samples of the first pass. Without samples the counts are 0 and the other statistics
 * are NaN. Synchronizes.
 *
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (the stream is being captured), DEVICE_MISMATCH,
 * DTYPE_MISMATCH, SHAPE_MISMATCH, CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcAccumulatorGetResult(rbcAccumulator_t accumulator,
                                            const rbcStatisticsOutputs* outputs);

/* The properties of an accumulator, written by rbcAccumulatorGetInfo. */
typedef struct rbcAccumulatorInfo {
  uint32_t struct_size;
  int32_t current_pass; /* 1 in the first pass */
  int64_t num_channels; /* as created */
  int32_t num_levels;   /* of quantiles */
  int32_t ddof;         /* 0 or 1 */
  int32_t bucket_bits;  /* 8 to 20 */
  rbcDType dtype;       /* of all values; all 0 before it is known */
} rbcAccumulatorInfo;

static inline rbcAccumulatorInfo rbcAccumulatorInfoInit(void) {
  rbcAccumulatorInfo info;
  memset(&info, 0, sizeof info);
  info.struct_size = (uint32_t)sizeof info;
  return info;
}

/*
 * Fills the first struct_size bytes of *info, which the caller has initialized. Errors:
 * INVALID_ARGUMENT, UNSUPPORTED (a call is using the accumulator).
 */
RBC_API rbcStatus_t rbcAccumulatorGetInfo(rbcAccumulator_t accumulator, rbcAccumulatorInfo* info);

/*
 * Copies the levels of the quantiles, as created.
 *
 *   accumulator  not null
 *   levels       [capacity], in host memory; num_levels (rbcAccumulatorInfo) of them are written
 *
 * Errors: INVALID_ARGUMENT, BUFFER_TOO_SMALL (the capacity is less than num_levels; the levels are
 * not written), UNSUPPORTED (a call is using the accumulator).
 */
RBC_API rbcStatus_t rbcAccumulatorGetLevels(rbcAccumulator_t accumulator, double* levels,
                                            size_t capacity);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_STATISTICS_H */
