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
#define RBC_STATISTICS_FLAG_PER_ROW 0x10000u /* for each row of the batch, not for all together */

/* The most levels of quantiles that a call or an accumulator takes. */
#define RBC_STATISTICS_MAX_LEVELS 64

/* Of which samples, and which statistics. */
typedef struct rbcStatisticsParams {
  uint32_t struct_size;
  uint32_t flags;           /* RBC_STATISTICS_FLAG_PER_ROW, or 0 (default) */
  const rbcTensor* lengths;       /* [B] i32 or i64: valid samples of padded rows; null: all */
  const rbcTensor* sample_mask;   /* bool or u8, of values' shape without D: 0 leaves a sample out */
  const rbcTensor* batch_offsets; /* [B+1] i32 or i64: the rows of packed values; null: padded */
  const rbcTensor* levels;        /* [Q] f64 in host memory: of quantiles, 0 .. 1; null: none */
  int32_t ddof;                   /* the variance is divided by n - ddof: 0 (default) or 1 */
  int32_t reserved0;              /* 0 */
} rbcStatisticsParams;

static inline rbcStatisticsParams rbcStatisticsParamsInit(void) {
  rbcStatisticsParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * The tensors that are written; those that are null are not computed. [D] of all samples together,
 * [B,D] with RBC_STATISTICS_FLAG_PER_ROW.
 */
typedef struct rbcStatisticsOutputs {
  uint32_t struct_size;
  uint32_t reserved0;         /* 0 */
  const rbcOutput* count;     /* i64: finite values */
  const rbcOutput* nonfinite; /* i64: NaN and infinities, which the others leave out */
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
 * Exact statistics of each of D channels.
 *
 *   values   [B,S,D]; [S,D] without batch; [N,D] packed, with params->batch_offsets; [B,...,D]
 *            of any rank, such as images [B,H,W,C], whose samples are all between the first axis and the
 *            last ([B,C,H,W] goes in as a permuted view); every dtype of tensor.h
 *   outputs  the tensors to write
 *   params   null: defaults
 *
 * Any strides, 0 and negative too; nothing is copied. All tensors but the levels live on the
 * context's device. Outputs overlap neither each other nor an input, and are written whole.
 *
 * A sample counts if it lies within lengths or batch_offsets and its sample_mask is not 0; lengths
 * are of rows [B,S,D]. Each of its values is taken as f64 (64-bit integers are rounded to it). For the n
 * finite values x of a channel
 *   count      n; nonfinite: how many others there are
 *   min, max   -0 counts as +0
 *   mean       the f64 nearest to sum(x) / n
 *   std        the f64 nearest to sqrt(sum((x - sum(x) / n)^2) / (n - ddof)), NaN if n <= ddof
 *   quantiles  for a level q, with h = q (n - 1), i = floor(h), t = h - i, v ascending from v[0],
 *              and d = v[i+1] - v[i] (0 past the end): v[i+1] - d (1 - t) if t >= 0.5, else
 *              v[i] + d t, each step rounded: the bits of numpy.quantile(method="linear") of the
 *              values as f64
 * mean and std are those of exact arithmetic, rounded once, to even; nothing overflows on the way.
 * n = 0 gives NaN but for the counts. NaN is the positive quiet one with all payload bits set.
 * So CPU and CUDA, and every order of the samples, give the same bits.
 *
 * Lengths and offsets out of range are INVALID_ARGUMENT on the CPU; on CUDA they give unspecified
 * values but never an access outside the tensors.
 *
 * CUDA: some launches on the context's stream; no synchronization; no allocation once the workspace
 * has its size: from then on it can be captured. CPU: returns when done; work worth it is spread
 * over the context's threads.
 *
 * Errors: INVALID_ARGUMENT (a level outside 0 .. 1; per row without a batch), DEVICE_MISMATCH,
 * DTYPE_MISMATCH, SHAPE_MISMATCH, UNSUPPORTED (more than 2^40 samples), WORKSPACE_TOO_SMALL, OUT_OF_MEMORY,
 * CUDA_ERROR. No samples, B = 0 and D = 0 succeed.
 */
RBC_API rbcStatus_t rbcStatistics(rbcContext_t context, const rbcTensor* values,
                                  const rbcStatisticsOutputs* outputs,
                                  const rbcStatisticsParams* params);

/*
 * The workspace in bytes that the same call of rbcStatistics needs, for rbcContextReserve.
 * Checks the arguments as that call does; on failure *bytes does not change.
 */
RBC_API rbcStatus_t rbcStatisticsWorkspaceSize(rbcContext_t context, const rbcTensor* values,
                                               const rbcStatisticsOutputs* outputs,
                                               const rbcStatisticsParams* params, size_t* bytes);

/* ---- data that come in pieces ---------------------------------------------------------------- */

/*
 * The statistics of all samples that it is given, piece by piece, as of one rbcStatistics of them
 * together. Accumulators merge, within a context or, as bytes, across processes, devices and
 * machines.
 *
 * Order, pieces, merges, threads and devices do not matter: the same samples give the same bytes.
 *
 * Quantiles take passes over the same data. The first counts values by the leading bucket_bits bits
 * of sign, exponent and mantissa (integers as floats). After it each value v[i] of rbcStatistics is
 * known to 2^-7 of it (2^-4 for f64 and integers of 32 and 64 bits), at the default of bucket_bits;
 * one that is subnormal, to the largest subnormal. Each pass more resolves 16 bits more of those
 * that the quantiles need, until they are exact: none more for bf16, bool and 8-bit integers, one
 * for f16, f32 and 16-bit integers, two for 32-bit ones, three for f64 and 64-bit integers.
 *
 *   do {
 *     for (each piece) rbcAccumulatorUpdate(accumulator, piece, NULL);
 *     rbcAccumulatorNextPass(accumulator, &more);
 *   } while (more);
 *   rbcAccumulatorGetResult(accumulator, &outputs);
 *
 * Result right after the first pass has approximate quantiles, and all else exact.
 *
 * An accumulator uses the context that it was created with: its device, stream, workspace and threads,
 * which the accumulator keeps alive. Its calls are calls on that context, so that one thread at a time
 * may make them. Its state takes 1648 bytes a channel. Quantiles add 8 bytes a channel and bucket in the first pass, 512 KiB
 * a channel by default, and in those after 512 KiB for each bucket that holds values needed, of
 * which there are one or two a level and channel.
 */
typedef struct rbcAccumulator* rbcAccumulator_t;

/* What an accumulator is for. */
typedef struct rbcAccumulatorParams {
  uint32_t struct_size;
  uint32_t flags;          /* 0 */
  int64_t num_channels;    /* required: D of all values */
  const rbcTensor* levels; /* [Q] f64 in host memory: of quantiles, 0 .. 1; null: none */
  int32_t ddof;            /* 0 (default) or 1, as in rbcStatisticsParams */
  int32_t bucket_bits;     /* 8 to 20; 0 (default): 16 */
  rbcDType dtype;          /* of all values; all 0 (default): that of the first update */
  int32_t reserved0;       /* 0 */
} rbcAccumulatorParams;

static inline rbcAccumulatorParams rbcAccumulatorParamsInit(void) {
  rbcAccumulatorParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * Makes an empty accumulator on the context's device, by the context's allocator. Errors:
 * INVALID_ARGUMENT, DTYPE_MISMATCH, SHAPE_MISMATCH (levels), OUT_OF_MEMORY, CUDA_ERROR. On failure
 * *accumulator is null.
 */
RBC_API rbcStatus_t rbcAccumulatorCreate(rbcContext_t context, const rbcAccumulatorParams* params,
                                         rbcAccumulator_t* accumulator);

/*
 * Destroys an accumulator; null is allowed. On CUDA its memory is freed in the order of the stream
 * that used it last, which must still exist. One that a call is using, of another thread or the one
 * that asks the function of rbcContextSetCancelCallback, is UNSUPPORTED and is not changed.
 */
RBC_API rbcStatus_t rbcAccumulatorDestroy(rbcAccumulator_t accumulator);

/* Of which samples. */
typedef struct rbcAccumulatorUpdateParams {
  uint32_t struct_size;
  uint32_t flags;           /* 0 */
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
 * Adds samples: in the first pass to the statistics, in a later one to what resolves the quantiles.
 *
 *   accumulator  not null
 *   values       as for rbcStatistics, of the accumulator's channels and dtype
 *   params       null: defaults
 *
 * After NextPass has given more = 0 in a pass after the first there is nothing more to add: that is
 * INVALID_ARGUMENT. More than 2^40 samples are UNSUPPORTED. A failed call leaves the state as it was, but for
 * CANCELLED and CUDA_ERROR: these may have added some samples, and the accumulator can only be
 * destroyed then. All else that is done with it is INVALID_ARGUMENT.
 *
 * CUDA: as rbcStatistics, it can be captured. Each replay adds the samples once more, and nothing
 * checks then that they are at most 2^40. After NextPass, or once the accumulator is destroyed, a
 * graph that was captured before must not be replayed: its memory is another's then. Errors: those
 * of rbcStatistics.
 */
RBC_API rbcStatus_t rbcAccumulatorUpdate(rbcAccumulator_t accumulator,
                                         const rbcTensor* values,
                                         const rbcAccumulatorUpdateParams* params);

/*
 * The workspace in bytes that the same call of rbcAccumulatorUpdate needs, for
 * rbcContextReserve. Checks the arguments as that call does; on failure *bytes does not change.
 */
RBC_API rbcStatus_t rbcAccumulatorUpdateWorkspaceSize(rbcAccumulator_t accumulator,
                                                      const rbcTensor* values,
                                                      const rbcAccumulatorUpdateParams* params,
                                                      size_t* bytes);

/*
 * Adds the samples of another accumulator, which does not change. Both are of one context (export
 * and import otherwise), and of the same channels, dtype, levels, ddof, bucket_bits and pass. In a
 * pass after the first, both must stand on the same samples of the passes before (by Export and
 * Import, most likely), and what each has counted in this pass is added up. Does not synchronize,
 * and can be captured, as Update can. Errors: INVALID_ARGUMENT, DTYPE_MISMATCH, CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcAccumulatorMerge(rbcAccumulator_t accumulator,
                                        rbcAccumulator_t other);

/*
 * Ends a pass. more = 1: the quantiles are not exact yet, and Update expects the same samples once
 * more, in any order and pieces. more = 0: they are, or there are none. In a pass after the first
 * it is INVALID_ARGUMENT unless the samples were those of the first pass, by their counts; the pass
 * can go on then. So it is where there are levels but no samples. Synchronizes, and is UNSUPPORTED
 * in a capture. Errors also: OUT_OF_MEMORY, CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcAccumulatorNextPass(rbcAccumulator_t accumulator,
                                           int32_t* more);

/*
 * Writes the state as bytes that Import reads, in any process, on any device and machine: with a
 * version, a checksum, and the least significant byte first. The same samples give the same bytes.
 * *bytes becomes their number, a multiple of 8. A capacity that is too small is BUFFER_TOO_SMALL and
 * writes no more than that number; null data with a capacity of 0 asks only for the number.
 * Synchronizes, and is UNSUPPORTED in a capture. Errors also: INVALID_ARGUMENT, CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcAccumulatorExport(rbcAccumulator_t accumulator,
                                         void* data, size_t capacity, size_t* bytes);

/*
 * Makes an accumulator from exported bytes. Truncated, corrupted and foreign ones are DAMAGED, those
 * of a newer format UNSUPPORTED. On failure *accumulator is null.
 * Synchronizes, and is UNSUPPORTED in a capture. Errors also: OUT_OF_MEMORY, CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcAccumulatorImport(rbcContext_t context, const void* data, size_t bytes,
                                         rbcAccumulator_t* accumulator);

/*
 * Writes the statistics of all samples so far into tensors in host memory, [D] and [Q,D], by the
 * rules of rbcStatistics; those that are null are left out. Quantiles before the last pass are
 * approximate, between min and max; during a later pass they are INVALID_ARGUMENT until it has
 * counted all that the first one did. Without samples the counts are 0 and the rest is NaN.
 * Synchronizes, and is UNSUPPORTED in a capture. Errors also: those of tensors, CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcAccumulatorGetResult(rbcAccumulator_t accumulator,
                                            const rbcStatisticsOutputs* outputs);

/* What an accumulator is. */
typedef struct rbcAccumulatorInfo {
  uint32_t struct_size;
  int32_t current_pass;  /* 1 for the first */
  int64_t num_channels;  /* as created */
  int32_t num_levels;    /* of quantiles */
  int32_t ddof;          /* 0 or 1 */
  int32_t bucket_bits;   /* 8 to 20 */
  rbcDType dtype;        /* of all values; all 0 before it is known */
} rbcAccumulatorInfo;

static inline rbcAccumulatorInfo rbcAccumulatorInfoInit(void) {
  rbcAccumulatorInfo info;
  memset(&info, 0, sizeof info);
  info.struct_size = (uint32_t)sizeof info;
  return info;
}

/*
 * Describes an accumulator; fills the bytes that the caller's struct_size covers. One that a call is
 * using is UNSUPPORTED.
 */
RBC_API rbcStatus_t rbcAccumulatorGetInfo(rbcAccumulator_t accumulator, rbcAccumulatorInfo* info);

/*
 * Copies the levels of the quantiles, as created: `num_levels` numbers of rbcAccumulatorInfo.
 *
 *   accumulator  any
 *   levels       [capacity], in host memory; a capacity less than num_levels is BUFFER_TOO_SMALL,
 *                and nothing is written then
 *
 * An accumulator that a call is using is UNSUPPORTED.
 */
RBC_API rbcStatus_t rbcAccumulatorGetLevels(rbcAccumulator_t accumulator, double* levels,
                                            size_t capacity);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_STATISTICS_H */
