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

/* rbcResampleParams.method, rbcChannelGroup.method */
#define RBC_METHOD_LINEAR 0   /* a straight line between two samples */
#define RBC_METHOD_NEAREST 1  /* the nearest sample; a tie goes to the earlier one */
#define RBC_METHOD_PREVIOUS 2 /* the last sample up to the query: zero-order hold */
#define RBC_METHOD_NEXT 3     /* the first sample from the query on */
#define RBC_METHOD_CUBIC 4    /* Catmull-Rom spline at the samples' own times */
#define RBC_METHOD_PCHIP 5    /* monotone cubic: no overshoot */
#define RBC_METHOD_SLERP 6    /* each 4 channels are a quaternion, in any order of components */
#define RBC_METHOD_ANGLE 7    /* by the shorter way round; radians, or the group's period */

/* rbcChannelGroup.period: the unit and the range of angles */
#define RBC_PERIOD_RADIANS 0          /* [-pi, pi], both rounded to the compute dtype */
#define RBC_PERIOD_DEGREES 1          /* [-180, 180) */
#define RBC_PERIOD_TURNS 2            /* [-0.5, 0.5) */
#define RBC_PERIOD_RADIANS_POSITIVE 3 /* [0, 2 pi), with 2 pi rounded to the dtype of out */
#define RBC_PERIOD_DEGREES_POSITIVE 4 /* [0, 360) */
#define RBC_PERIOD_TURNS_POSITIVE 5   /* [0, 1) */

/*
 * rbcResampleParams.outside: queries outside a row's first and last time; for rbcWindows, elements
 * before the episode begins and past its end.
 */
#define RBC_OUTSIDE_HOLD 0        /* the edge sample, valid 0 */
#define RBC_OUTSIDE_FILL 1        /* fill_value, valid 0 */
#define RBC_OUTSIDE_EXTRAPOLATE 2 /* linear: continue the outermost line, valid 0; others hold */
#define RBC_OUTSIDE_NEUTRAL 3     /* rbcWindows only: hold before the begin, `neutral` past the end */

/*
 * The most groups of channels in a call, over all of its streams. Neighbours with the same method
 * count once, and a stream without groups counts as one.
 */
#define RBC_FUSE_MAX_CHANNEL_GROUPS 256

/* Channels begin .. begin + count - 1 and how they are interpolated. */
typedef struct rbcChannelGroup {
  int64_t begin;  /* the first channel */
  int64_t count;  /* how many channels; slerp: a multiple of 4 */
  int32_t method; /* RBC_METHOD_... */
  int32_t period; /* angle: RBC_PERIOD_...; other methods: 0 */
} rbcChannelGroup;

/* How to resample one stream. */
typedef struct rbcResampleParams {
  uint32_t struct_size;
  uint32_t flags;               /* RBC_FLAG_CHECK_TIMES or 0 (default) */
  int32_t method;               /* RBC_METHOD_... without groups; default linear */
  int32_t outside;              /* RBC_OUTSIDE_HOLD (default), _FILL or _EXTRAPOLATE */
  double fill_value;            /* written to invalid elements; default 0 */
  double max_gap;               /* in the unit of the times, >= 0; default INFINITY: no limit */
  double tolerance;             /* for nearest, previous and next, like max_gap; default INFINITY */
  const rbcTensor* lengths;     /* [B] i32 or i64: valid samples of padded rows; null: all */
  const rbcTensor* sample_mask; /* [B,S], or [S] shared by the batch; [N] packed; bool or u8: 0
                                   where a sample is missing; null: none is */
  const rbcTensor* batch_offsets; /* [B+1] i32 or i64: the rows of packed values; null: padded */
  const rbcTensor* query_lengths; /* [B] i32 or i64: valid queries of each row; null: all */
  const rbcTensor* shift;         /* [D] f32 or f64: out = (v - shift) * scale; null: 0 */
  const rbcTensor* scale;         /* [D] f32 or f64; null: 1 */
  const rbcChannelGroup* groups;  /* in any order; each channel is in one group; null: use method */
  int32_t num_groups;             /* the length of groups */
  uint32_t group_size;            /* sizeof(rbcChannelGroup) */
} rbcResampleParams;

static inline rbcResampleParams rbcResampleParamsInit(void) {
  rbcResampleParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  params.max_gap = (double)INFINITY;
  params.tolerance = (double)INFINITY;
  params.group_size = (uint32_t)sizeof(rbcChannelGroup);
  return params;
}

/*
 * Resamples B trajectories of S samples and D channels at T query times each.
 *
 *   values       [B,S,D]; [S,D] without batch; [N,D] packed, with params->batch_offsets;
 *                f16, bf16, f32, f64; for nearest, previous and next also bool and integers
 *   times        [B,S], or [S] shared by the batch; [N] packed;
 *                f32, f64 or i64 (any tick, such as nanoseconds)
 *   query_times  [B,T], or [T] shared by the batch; the dtype of times; in any order
 *   out          [B,T,D]; [T,D] without batch;
 *                any float dtype; for bool and integers also the dtype of values
 *   valid        [B,T]; [T] without batch; bool or u8; or null;
 *                1 where a value was interpolated or a sample's time met exactly, in every group
 *   params       null: defaults
 *
 * Any strides, 0 and negative too; nothing is copied. All tensors live on the context's device.
 * `out` and `valid` must overlap neither each other nor an input. Both are written whole.
 *
 * Times ascend within a row; equal times are allowed, and the last of them counts. For a query q
 * against a row of n samples the first rule that applies decides, for each group of channels by
 * its own method. Invalid means: fill_value, valid 0. `valid` is 1 where it is for all groups.
 *   1. n = 0, q is NaN, or q lies beyond query_lengths: invalid.
 *   2. q equals a sample's time: that sample (the last such), valid 1.
 *   3. nearest, previous, next with a tolerance: the method's sample t (nearest clamps to the ends,
 *      previous has none before the first, next none after the last) and valid 1 if |q - t| <=
 *      tolerance; else, or if there is none, invalid. Other methods ignore the tolerance.
 *   4. q outside [first, last]: hold writes the edge sample, valid 0; fill is invalid; extrapolate
 *      writes the line through the two outermost distinct times, valid 0; with fewer times it is
 *      invalid. Methods other than linear hold instead.
 *   5. the two samples around q lie more than max_gap apart: invalid.
 *   6. else the method's value, valid 1.
 * Of several samples with equal times the first is the right neighbour of what comes before them,
 * and the last the left neighbour of what comes after; so it is for extrapolation as well. Hold
 * before the first time writes sample 0.
 *
 * A sample whose sample_mask is 0 is missing: for every rule and every method as if it were not
 * there. Those before and after it are neighbours then, a row begins and ends with samples that are
 * there, n counts only these, and values of missing ones are never used. Their times must still
 * ascend with the others: RBC_FLAG_CHECK_TIMES looks at them too.
 *
 * Methods, for the samples v1 at t1 and v2 at t2 around q, v0 before and v3 after these, and
 * w = (q - t1) / (t2 - t1):
 *   linear   fma(w, d, v1) with d = v2 - v1. Where that is NaN and no sample is, from the other side:
 *            fma(w - 1, d, v2); where that is NaN too and v1 = v2, v1: as numpy.interp has infinite
 *            samples. Finite samples whose difference overflows: fma(w, v2, (1 - w) v1).
 *   cubic    the Hermite cubic whose slope at a sample is that of the parabola through it and its
 *            two neighbours: the non-uniform Catmull-Rom spline (Catmull and Rom, 1974; Barry and
 *            Goldman, "A recursive evaluation algorithm for a class of Catmull-Rom splines", 1988).
 *   pchip    the Hermite cubic with the slopes of Fritsch and Butland, "A method for constructing
 *            local monotone piecewise cubic interpolants" (1984), as SciPy's PchipInterpolator.
 *   slerp    the rotation at constant speed along the shorter arc, whatever the signs of the
 *            quaternions (Shoemake, "Animating rotation with quaternion curves", 1985). They are
 *            normalized first; samples that are written as they are (rules 2, 3, 4) are not. The
 *            result continues the sign of v1. A quaternion of zeros, or with a NaN or an infinity,
 *            is no rotation: where a sample that counts is one (v1, and v2 unless w = 0; with rules
 *            2 and 4 the one that would be written), these four channels are invalid.
 *   angle    v1 plus w times the difference wrapped to [-P/2, P/2], wrapped to the range of the
 *            period: r = fma(w, wrap(v2 - v1), v1), less whole turns P. P is 2 pi, 360 or 1, and the
 *            range [-P/2, P/2) or [0, P); without groups, and with period 0, [-pi, pi]. With any
 *            other period no result lies outside of the range, in the dtype of out either: what
 *            would round to its end becomes the largest number below (before shift and scale,
 *            where they are given, in the compute dtype). A difference of half a turn
 *            goes in its own direction. Samples that are written as they are keep their value,
 *            inside of the range or not; one inside does not round to the end either. In degrees and
 *            turns all steps but fma and rounding are exact.
 * At an end of the row, and beside a pair of equal times, where v0 or v3 has no place, cubic takes
 * the parabola through the three samples that exist, and pchip takes SciPy's one-sided slope. With
 * two samples both give a line.
 *
 * Then, unless the element is invalid, (v - shift) * scale: a subtraction and a multiplication.
 *
 * Arithmetic: differences of times in their dtype (i64 exactly), one division a query in that dtype
 * (i64: f64), w rounded to the compute dtype: f64 for values of f64 and of 32 and 64-bit integers,
 * else f32; results rounded to nearest even. w = 0 gives v1 itself. NaN propagates, but for slerp;
 * cubic gives NaN or an infinity where any of its four samples is infinite, pchip NaN where v1 or v2
 * is, but of two samples in all what linear gives. Any NaN written is the positive quiet NaN with
 * all payload bits set (0x7fffffff in f32). CPU and CUDA agree bit for bit, in slerp and angle as
 * well: polynomials take the place of transcendental functions, with an error of a few units in the
 * last place of 1.
 * max_gap and tolerance are rounded to the dtype of times (i64: down); above 0 and below one tick of
 * i64 they are INVALID_ARGUMENT: seconds, most likely, where ticks are meant.
 *
 * Without RBC_FLAG_CHECK_TIMES, bad times, and on CUDA bad lengths and offsets, give unspecified values
 * but never an access outside the tensors. With it, the call fails with INVALID_ARGUMENT and writes
 * nothing if times are NaN or decrease (the message has the row and the index), lengths are outside
 * 0..S, or offsets decrease. On the CPU lengths and offsets are always verified. Times beyond a
 * row's length are never read.
 *
 * CUDA: one launch on the context's stream, no allocation, no synchronization, can be captured.
 * With RBC_FLAG_CHECK_TIMES it verifies first, which waits for the stream and cannot be captured
 * (UNSUPPORTED). CPU: returns when done; work worth it is spread over the context's threads.
 *
 * Errors: INVALID_ARGUMENT, DEVICE_MISMATCH, DTYPE_MISMATCH, SHAPE_MISMATCH, UNSUPPORTED,
 * OUT_OF_MEMORY (checking on CUDA), CUDA_ERROR. Empty batches, T = 0 and D = 0 succeed.
 */
RBC_API rbcStatus_t rbcResample(rbcContext_t context, const rbcTensor* values,
                                const rbcTensor* times, const rbcTensor* query_times,
                                const rbcOutput* out, const rbcOutput* valid,
                                const rbcResampleParams* params);

/*
 * The workspace in bytes that the same call of rbcResample needs, for rbcContextReserve. Checks
 * the arguments as that call does; on failure *bytes does not change.
 */
RBC_API rbcStatus_t rbcResampleWorkspaceSize(rbcContext_t context, const rbcTensor* values,
                                             const rbcTensor* times, const rbcTensor* query_times,
                                             const rbcOutput* out, const rbcOutput* valid,
                                             const rbcResampleParams* params, size_t* bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_RESAMPLE_H */
