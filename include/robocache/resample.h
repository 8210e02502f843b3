/*
 * RoboCache: resampling of trajectories at their own timestamps onto query times.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ROBOCACHE_RESAMPLE_H
#define ROBOCACHE_RESAMPLE_H

#include <math.h>
#include <string.h>

#include "base.h"
#include "context.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rbcResampleParams.method */
#define RBC_METHOD_LINEAR 0
#define RBC_METHOD_NEAREST 1  /* a tie goes to the earlier sample */
#define RBC_METHOD_PREVIOUS 2 /* zero-order hold */
#define RBC_METHOD_NEXT 3

/* rbcResampleParams.bounds: queries outside a row's first and last time */
#define RBC_BOUNDS_HOLD 0        /* the edge sample, mask 0 */
#define RBC_BOUNDS_FILL 1        /* fill_value, mask 0 */
#define RBC_BOUNDS_EXTRAPOLATE 2 /* the outermost bracket's line, mask 0; RBC_METHOD_LINEAR alone */

/* rbcResampleParams.flags */
#define RBC_CHECK_TIMES 1u /* verify times, lengths and offsets before anything is written */

typedef struct rbcResampleParams {
  uint32_t struct_size;
  uint32_t flags;                 /* RBC_CHECK_TIMES or 0 (default) */
  int32_t method;                 /* RBC_METHOD_...; default linear */
  int32_t bounds;                 /* RBC_BOUNDS_...; default hold */
  double fill_value;              /* written to invalid elements; default 0 */
  double max_gap;                 /* in the unit of the times, >= 0; default INFINITY: none */
  double tolerance;               /* likewise, for nearest, previous and next */
  const rbcTensor* lengths;       /* [B] i32 or i64: valid samples of padded rows; null: all */
  const rbcTensor* query_lengths; /* [B] i32 or i64: valid queries of each row; null: all */
  const rbcTensor* offsets;       /* [B+1] i32 or i64: the rows of packed values; null: padded */
  uint64_t reserved[4];           /* 0 */
} rbcResampleParams;

static inline rbcResampleParams rbcResampleParamsInit(void) {
  rbcResampleParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  params.max_gap = (double)INFINITY;
  params.tolerance = (double)INFINITY;
  return params;
}

/*
 * Resamples B trajectories of S samples and D channels at T query times each.
 *
 *   values       [B,S,D]; [S,D] without batch; [N,D] packed, with params->offsets
 *                f16, bf16, f32, f64; for nearest, previous and next also bool and integers
 *   times        [B,S], or [S] shared by the batch; [N] packed
 *                f32, f64 or i64 (any tick, such as nanoseconds)
 *   query_times  [B,T], or [T] shared by the batch; the dtype of times; in any order
 *   out          [B,T,D]; [T,D] without batch
 *                any float dtype for float values, else the dtype of values
 *   mask         [B,T]; [T] without batch; bool or u8; or null
 *                1 where a value was interpolated or a sample's time met exactly
 *   params       null: defaults
 *
 * Any strides, 0 and negative too; nothing is copied. All tensors live on the context's device.
 * `out` and `mask` must overlap neither each other nor an input. Both are written whole.
 *
 * Times ascend within a row; equal times are allowed, and the last of them counts. For a query q
 * against a row of n samples the first rule that decides holds. Invalid means: fill_value, mask 0.
 *   1. n = 0, q is NaN, or q lies beyond query_lengths: invalid.
 *   2. q equals a sample's time: that sample (the last such), mask 1.
 *   3. nearest, previous, next with a tolerance: the method's sample t (nearest clamps to the ends,
 *      previous has none before the first, next none after the last) and mask 1 if |q - t| <=
 *      tolerance; else, or if there is none, invalid.
 *   4. q outside [first, last]: hold writes the edge sample, mask 0; fill is invalid; extrapolate
 *      writes the line through the two outermost distinct times, mask 0, and is invalid if there
 *      are no two.
 *   5. the two samples around q lie more than max_gap apart: invalid.
 *   6. else the method's value, mask 1: linear is fma(w, v1 - v0, v0), w = (q - t0) / (t1 - t0).
 * Of several samples with equal times the first is the right neighbour of what comes before them,
 * and the last the left neighbour of what comes after; so it is for extrapolation as well. Hold
 * before the first time writes sample 0.
 *
 * Arithmetic: differences of times in their dtype (i64 exactly), one division a query in that dtype
 * (i64: f64), w rounded to the compute dtype: f64 for f64 values, else f32; results rounded to
 * nearest even. w = 0 gives v0 itself. NaN and infinite values propagate; any NaN written is the
 * positive quiet NaN with all payload bits set (0x7fffffff in f32). CPU and CUDA agree bit for bit.
 * max_gap and tolerance are rounded to the dtype of times (i64: down).
 *
 * Bad times without RBC_CHECK_TIMES, or lengths and offsets out of range on CUDA, give unspecified
 * values but never an access outside the tensors. With it, they are INVALID_ARGUMENT and nothing is
 * written: NaN or decreasing times (row and index are told), lengths outside 0..S, decreasing
 * offsets. On the CPU lengths and offsets are always verified. Times beyond a row's length are
 * never read.
 *
 * CUDA: one launch on the context's stream, no allocation, no synchronization, can be captured.
 * With RBC_CHECK_TIMES it verifies first, which waits for the stream and cannot be captured
 * (UNSUPPORTED). CPU: returns when done; work worth it is spread over the context's threads.
 *
 * Errors: INVALID_ARGUMENT, DEVICE_MISMATCH, DTYPE_MISMATCH, SHAPE_MISMATCH, UNSUPPORTED,
 * OUT_OF_MEMORY (checking on CUDA), CUDA_ERROR. Empty batches, T = 0 and D = 0 succeed.
 */
RBC_API rbcStatus_t rbcResample(rbcContext_t context, const rbcTensor* values,
                                const rbcTensor* times, const rbcTensor* query_times,
                                const rbcTensor* out, const rbcTensor* mask,
                                const rbcResampleParams* params);

/*
 * The workspace in bytes that the same call of rbcResample needs, for rbcContextReserve. Arguments
 * are verified alike.
 */
RBC_API rbcStatus_t rbcResampleWorkspaceSize(rbcContext_t context, const rbcTensor* values,
                                             const rbcTensor* times, const rbcTensor* query_times,
                                             const rbcTensor* out, const rbcTensor* mask,
                                             const rbcResampleParams* params, size_t* bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_RESAMPLE_H */
