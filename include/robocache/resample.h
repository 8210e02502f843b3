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
#define RBC_METHOD_PREVIOUS 2 /* the last sample at or before the query: zero-order hold */
#define RBC_METHOD_NEXT 3     /* the first sample at or after the query */
#define RBC_METHOD_CUBIC 4    /* Catmull-Rom spline at the samples' own times */
#define RBC_METHOD_PCHIP 5    /* monotone cubic: no overshoot */
#define RBC_METHOD_SLERP 6    /* every 4 channels are a quaternion; components in any order */
#define RBC_METHOD_ANGLE 7    /* the shorter way round; in radians, or in the group's period */

/* rbcChannelGroup.period: the unit and the range of angles */
#define RBC_PERIOD_RADIANS 0          /* [-pi, pi], both rounded to the compute dtype */
#define RBC_PERIOD_DEGREES 1          /* [-180, 180) */
#define RBC_PERIOD_TURNS 2            /* [-0.5, 0.5) */
#define RBC_PERIOD_RADIANS_POSITIVE 3 /* [0, 2 pi), with 2 pi rounded to the dtype of out */
#define RBC_PERIOD_DEGREES_POSITIVE 4 /* [0, 360) */
#define RBC_PERIOD_TURNS_POSITIVE 5   /* [0, 1) */

/*
 * rbcResampleParams.outside: the result of queries before the first or after the last time of a
 * row. For rbcWindows: of elements before the start or after the end of the episode.
 */
#define RBC_OUTSIDE_HOLD 0        /* the edge sample, valid 0 */
#define RBC_OUTSIDE_FILL 1        /* fill_value, valid 0 */
#define RBC_OUTSIDE_EXTRAPOLATE 2 /* linear: continue the outermost line, valid 0; others hold */
#define RBC_OUTSIDE_NEUTRAL 3     /* rbcWindows only: hold before the start, neutral past the end */

/*
 * The maximum number of channel groups in a call, summed over its streams. Adjacent groups with the
 * same method count once, and a stream without groups counts as one.
 */
#define RBC_FUSE_MAX_CHANNEL_GROUPS 256

/* How channels begin .. begin + count - 1 are interpolated. */
typedef struct rbcChannelGroup {
  int64_t begin;     /* the first channel */
  int64_t count;     /* the number of channels; slerp: a multiple of 4 */
  int32_t method;    /* RBC_METHOD_... */
  int32_t period;    /* angle: RBC_PERIOD_...; other methods: 0 */
  uint32_t flags;    /* RBC_FLAG_CAUSAL or 0 */
  int32_t reserved0; /* 0 */
  double max_age;    /* with RBC_FLAG_CAUSAL: in the unit of the times, >= 0; else 0 */
} rbcChannelGroup;

/* How to resample one stream. */
typedef struct rbcResampleParams {
  uint32_t struct_size;
  uint32_t flags;               /* RBC_FLAG_CHECK_TIMES, without groups RBC_FLAG_CAUSAL, or 0 */
  int32_t method;               /* RBC_METHOD_..., used without groups; default linear */
  int32_t outside;              /* RBC_OUTSIDE_HOLD (default), _FILL or _EXTRAPOLATE */
  double fill_value;            /* written to invalid elements; default 0 */
  double max_gap;               /* in the unit of the times, >= 0; default INFINITY: no limit */
  double tolerance;             /* for nearest, previous and next, like max_gap; default INFINITY */
  const rbcTensor* lengths;     /* [B] i32 or i64: valid samples of padded rows; null: all */
  const rbcTensor* sample_mask; /* [B,S], or [S] shared by the batch; [N] packed; bool or u8: 0
                                   where a sample is missing; null: all samples are present */
  const rbcTensor* batch_offsets; /* [B+1] i32 or i64: the rows of packed values; null: padded */
  const rbcTensor* query_lengths; /* [B] i32 or i64: valid queries of each row; null: all */
  const rbcTensor* shift;         /* [D] f32 or f64: out = (v - shift) * scale; null: 0 */
  const rbcTensor* scale;         /* [D] f32 or f64; null: 1 */
  const rbcChannelGroup* groups;  /* in any order, each channel in one group; null: use method */
  int32_t num_groups;             /* the length of groups */
  uint32_t group_size;            /* sizeof(rbcChannelGroup) */
  const rbcTensor* arrivals; /* [B,S], or [S] shared by the batch; [N] packed; the dtype of times:
                                when each sample had arrived; null: all had */
  double lag;                /* for f32, f64 times: what arrived up to q + lag exists for query q */
  int64_t lag_ticks;         /* the same for i64 times */
  double max_age;            /* as in rbcChannelGroup, used without groups; default INFINITY */
} rbcResampleParams;

static inline rbcResampleParams rbcResampleParamsInit(void) {
  rbcResampleParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  params.max_gap = (double)INFINITY;
  params.tolerance = (double)INFINITY;
  params.group_size = (uint32_t)sizeof(rbcChannelGroup);
  params.max_age = (double)INFINITY;
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
 *                1 if the value is interpolated or at a sample's exact time, in every group
 *   params       null: defaults
 *
 * Strides may be 0 or negative; no tensor is copied. All tensors are on the context's device. `out`
 * and `valid` must not overlap each other or an input. Every element of both is written.
 *
 * Times ascend within a row. Equal times are allowed, and the last of them counts. For a query q in
 * a row of n samples, the first rule that applies decides, for each group of channels by its own
 * method. An invalid element gets fill_value and valid 0. `valid` is 1 if it is 1 for all groups.
 *   1. n = 0, q is NaN, or the index of q is not below the row's query length: invalid.
 *   2. q equals the time of a sample: that sample (the last one with this time), valid 1.
 *   3. nearest, previous, next with a tolerance: the method's sample t (nearest clamps to the ends,
 *      previous has none before the first, next none after the last) and valid 1 if |q - t| <=
 *      tolerance; else, or without such a sample, invalid. Other methods ignore the tolerance.
 *   4. q outside [first, last]: hold writes the edge sample, valid 0; fill is invalid; extrapolate
 *      writes the line through the two outermost distinct times, valid 0, and is invalid if there
 *      are fewer than two. Methods other than linear hold instead of extrapolating.
 *   5. the two samples around q are more than max_gap apart: invalid.
 *   6. else the method's value, valid 1.
 * Among samples with equal times, the first is the right neighbour of earlier queries and the last
 * is the left neighbour of later queries, also for extrapolation. Hold before the first time writes
 * sample 0.
 *
 * A sample whose sample_mask is 0 is missing. Every rule and method works as if it did not exist:
 * the samples before and after it are neighbours, a row starts and ends with a present sample, n
 * counts the present samples, and the values of missing samples are never used. The times of
 * missing samples must still ascend with the others; RBC_FLAG_CHECK_TIMES checks them too.
 *
 * With `arrivals`, a sample exists for query q if it is not missing and its arrival is not after
 * q + lag, one addition in the dtype of times (i64 saturates). All rules then apply to the samples
 * that exist for this query, as if the others were missing. A sample whose arrival is NaN exists
 * for no query. This is what a robot sees that computes the row of q at the time q + lag: a row
 * does not change when later samples arrive, however late it is computed. Arrivals may be in any
 * order.
 *
 * A group of channels with RBC_FLAG_CAUSAL looks back from q to v_k at t_k, the last sample at or
 * before q that exists (of equal times, the last), and v_k+1 at t_k+1 is the next sample after it
 * that exists. Rules 3 to 6 are then these:
 *   3. without v_k: invalid.
 *   4. v_k+1 is used only if it exists and t_k+1 - t_k <= max_gap: nearest chooses between both,
 *      the other methods are as below, and cubic and pchip also use the samples around both. Else
 *      v_k is held; previous always holds it.
 *   5. valid is 1 if q - t_k <= max_age, else 0, and with fill the element is then invalid. Hold
 *      and extrapolate leave the value of rule 4.
 * max_age is a group's own, or without groups the field of params. next is UNSUPPORTED, and a
 * tolerance is INVALID_ARGUMENT. A quaternion that is not a rotation is invalid as below.
 *
 * Methods, for the samples v1 at t1 and v2 at t2 around q, v0 before and v3 after these, and
 * w = (q - t1) / (t2 - t1):
 *   linear   fma(w, d, v1) with d = v2 - v1. If that is NaN and neither sample is, it is computed
 *            from the other side, fma(w - 1, d, v2); if that is NaN too and v1 = v2, it is v1. So
 *            infinite samples give the results of numpy.interp. If d of finite samples overflows:
 *            fma(w, v2, (1 - w) v1).
 *   cubic    the Hermite cubic whose slope at a sample is the slope of the parabola through it and
 *            its two neighbours: the non-uniform Catmull-Rom spline (Catmull and Rom, 1974; Barry
 *            and Goldman, "A recursive evaluation algorithm for a class of Catmull-Rom splines",
 *            1988).
 *   pchip    the Hermite cubic with the slopes of Fritsch and Butland, "A method for constructing
 *            local monotone piecewise cubic interpolants" (1984), as SciPy's PchipInterpolator.
 *   slerp    the rotation at constant speed along the shorter arc, for any signs of the quaternions
 *            (Shoemake, "Animating rotation with quaternion curves", 1985). Quaternions are
 *            normalized first, except samples that are written unchanged (rules 2, 3, 4). The
 *            result continues the sign of v1. A quaternion of zeros, or with a NaN or an infinity,
 *            is not a rotation. These four channels are invalid if v1, or v2 with w not 0, is not a
 *            rotation, and under rules 2 and 4 if the sample to be written is not one.
 *   angle    r = fma(w, d, v1), where d is v2 - v1 wrapped to [-P/2, P/2]; whole turns P are then
 *            subtracted to bring r into the range of the period. P is 2 pi, 360 or 1, and the range
 *            is [-P/2, P/2) or [0, P); without groups, and with period 0, it is [-pi, pi]. With any
 *            other period no result is outside the range, also after rounding to the dtype of out:
 *            a result that would round to the end of the range becomes the largest number below it
 *            (with shift or scale: in the compute dtype, before they are applied). If the
 *            difference is half a turn, its sign gives the direction. Samples that are written
 *            unchanged keep their value, also outside the range; a sample inside the range does not
 *            round to its end either. In degrees and turns all steps except fma and rounding are
 *            exact.
 * At an end of the row, and next to a pair of equal times, v0 or v3 does not exist. There cubic
 * uses the parabola through the three samples that exist, and pchip uses SciPy's one-sided slope.
 * With two samples both give a line.
 *
 * Every element that is not invalid then becomes (v - shift) * scale: a subtraction and a
 * multiplication.
 *
 * Arithmetic: differences of times are in their dtype (i64 exactly), with one division per query in
 * that dtype (i64: f64). w is rounded to the compute dtype, which is f64 for values of f64 and of
 * 32 and 64-bit integers, else f32. Results are rounded to nearest even. w = 0 gives v1 itself. NaN
 * propagates, except in slerp. cubic gives NaN or an infinity if any of its four samples is
 * infinite. pchip gives NaN if v1 or v2 is infinite, but in a row of two samples the result of
 * linear. Any NaN written is the positive quiet NaN with all payload bits set (0x7fffffff in f32).
 * CPU and CUDA agree bit for bit, also in slerp and angle: they use polynomials instead of
 * transcendental functions, with an error of a few units in the last place of 1.
 *
 * max_gap, tolerance and max_age are rounded to the dtype of times (i64: down). With i64 times, a
 * value above 0 and below 1 tick is INVALID_ARGUMENT: it is most likely in seconds where ticks are
 * expected.
 *
 * Without RBC_FLAG_CHECK_TIMES, bad times, and on CUDA bad lengths and offsets, give unspecified
 * values but never an access outside the tensors. With it, the call fails with INVALID_ARGUMENT and
 * writes nothing if times are NaN or decrease (the message has the row and the index), lengths are
 * outside 0..S, or offsets decrease. On the CPU lengths and offsets are always verified. Times past
 * a row's length are never read.
 *
 * CUDA: one launch on the context's stream, no allocation, no synchronization, can be captured.
 * RBC_FLAG_CHECK_TIMES waits for the stream first; it is UNSUPPORTED in a capture. On the CPU large
 * calls use several threads. More than 256 arrivals need workspace, a number for each 64. On CUDA
 * they need a launch for each power of 64 up to their number, and a capture a reserved workspace.
 *
 * Errors: INVALID_ARGUMENT, DEVICE_MISMATCH, DTYPE_MISMATCH, SHAPE_MISMATCH, UNSUPPORTED,
 * OUT_OF_MEMORY, WORKSPACE_TOO_SMALL, CUDA_ERROR. Empty batches, T = 0 and D = 0 succeed.
 */
RBC_API rbcStatus_t rbcResample(rbcContext_t context, const rbcTensor* values,
                                const rbcTensor* times, const rbcTensor* query_times,
                                const rbcOutput* out, const rbcOutput* valid,
                                const rbcResampleParams* params);

/*
 * Writes the size in bytes of the workspace that the same call of rbcResample needs, for
 * rbcContextReserve. Checks the arguments as that call does; on failure *bytes does not change.
 */
RBC_API rbcStatus_t rbcResampleWorkspaceSize(rbcContext_t context, const rbcTensor* values,
                                             const rbcTensor* times, const rbcTensor* query_times,
                                             const rbcOutput* out, const rbcOutput* valid,
                                             const rbcResampleParams* params, size_t* bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_RESAMPLE_H */
