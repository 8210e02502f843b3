/*
 * RoboCache: training samples cut out of episodes.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ROBOCACHE_WINDOWS_H
#define ROBOCACHE_WINDOWS_H

#include "resample.h"
#include "rotations.h"
#include "statistics.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The maximum number of streams in a call, and of transforms, summed over its streams. */
#define RBC_WINDOWS_MAX_STREAMS 16
#define RBC_WINDOWS_MAX_TRANSFORMS 64

/* rbcWindowsStream.mode */
#define RBC_WINDOWS_MODE_GATHER 0      /* rows without interpolation, at offsets in rows */
#define RBC_WINDOWS_MODE_INTERPOLATE 1 /* at offsets in time, by rbcResample's rules */

/* rbcWindowsOutputs.accumulate: the rows of windows that an accumulator adds */
#define RBC_WINDOWS_ACCUMULATE_ALL 0   /* all rows that have a value, held ones too */
#define RBC_WINDOWS_ACCUMULATE_VALID 1 /* the valid rows */
#define RBC_WINDOWS_ACCUMULATE_WHOLE 2 /* the rows of windows that are valid at every offset */

/*
 * rbcWindowsTransform.kind. A row has values x, or a position p and a rotation R; the reference has
 * xr, pr and Rr. A step is relative to the row at the previous offset; at the first offset it is
 * relative to the reference.
 */
#define RBC_WINDOWS_TRANSFORM_COPY 0         /* x; inverse: x */
#define RBC_WINDOWS_TRANSFORM_SUBTRACT 1     /* x - xr; inverse: x + xr */
#define RBC_WINDOWS_TRANSFORM_SE3_RELATIVE 2 /* Rr^T (p - pr), Rr^T R; inverse: Rr p + pr, Rr R */
#define RBC_WINDOWS_TRANSFORM_SE3_WORLD 3    /* p - pr, R Rr^T; inverse: p + pr, R Rr */
#define RBC_WINDOWS_TRANSFORM_SE3_STEP 4 /* as world, from the previous row; inverse: their sum */

/* rbcWindowsTransform.flags */
#define RBC_WINDOWS_TRANSFORM_FLAG_INVERSE 1u

/* How channels begin .. begin + count - 1 of a stream are transformed. */
typedef struct rbcWindowsTransform {
  int64_t begin;                  /* the first channel of values */
  int64_t count;                  /* how many channels; SE3: 3 and those that `rotation` has */
  int32_t kind;                   /* RBC_WINDOWS_TRANSFORM_... */
  uint32_t flags;                 /* RBC_WINDOWS_TRANSFORM_FLAG_INVERSE or 0 */
  int32_t reference_stream_index; /* a stream of the call, which may be this one */
  int32_t reference_offset_index; /* one of that stream's offsets */
  int64_t reference_begin;        /* the first channel of the reference */
  int32_t rotation;               /* SE3: RBC_ROTATION_... of values */
  int32_t reference_rotation;     /* SE3: RBC_ROTATION_... of the reference */
  int32_t out_rotation;           /* SE3: RBC_ROTATION_... of out */
  int32_t reserved0;              /* 0 */
} rbcWindowsTransform;

/* rbcWindowsStream.flags */
#define RBC_WINDOWS_FLAG_SCALE_DIVIDES 0x20000u /* step 2 divides by scale */

/*
 * One stream of the episodes, and how its windows are computed. The caller keeps the ownership of
 * the tensors and params. D' is the number of channels after the transforms.
 */
typedef struct rbcWindowsStream {
  uint32_t struct_size;
  int32_t mode;                          /* RBC_WINDOWS_MODE_...; default gather */
  const rbcTensor* values;               /* [n,D]; null: out receives row numbers */
  const rbcTensor* episode_offsets;      /* [E+1] i32 or i64: the episodes' bounds in values */
  const rbcTensor* times;                /* [n] f32, f64 or i64, or null */
  const rbcTensor* offsets;              /* [O] from the anchor: i32 or i64 rows; else like times */
  const rbcResampleParams* params;       /* null: defaults; see below */
  double clock_offset;                   /* as in rbcFuseStream */
  int64_t clock_offset_ticks;            /* as in rbcFuseStream */
  const rbcWindowsTransform* transforms; /* in any order, no channel twice; others are copied */
  int32_t num_transforms;                /* the length of transforms */
  uint32_t transform_size;               /* sizeof(rbcWindowsTransform) */
  const rbcTensor* shift;                /* [D'] or [O,D'], f32 or f64; null: 0 */
  const rbcTensor* scale;                /* [D'] or [O,D'], f32 or f64; null: 1 */
  const rbcTensor* bias;                 /* [D'] or [O,D'], f32 or f64; null: 0 */
  const rbcTensor* clip_min;             /* [D'] or [O,D'], f32 or f64; null: no limit */
  const rbcTensor* clip_max;             /* [D'] or [O,D'], f32 or f64; null: no limit */
  const rbcTensor* neutral;              /* [D'] or [O,D'], f32 or f64; null: 0 */
  const rbcTensor* neutral_channels; /* [D'] bool or u8: 1 where a channel is neutral; null: all */
  uint32_t flags;                    /* RBC_WINDOWS_FLAG_SCALE_DIVIDES or 0 */
  int32_t reserved0;                 /* 0 */
} rbcWindowsStream;

static inline rbcWindowsStream rbcWindowsStreamInit(void) {
  rbcWindowsStream stream;
  memset(&stream, 0, sizeof stream);
  stream.struct_size = (uint32_t)sizeof stream;
  stream.transform_size = (uint32_t)sizeof(rbcWindowsTransform);
  return stream;
}

/* The outputs of one stream. */
typedef struct rbcWindowsOutputs {
  uint32_t struct_size;
  int32_t accumulate;           /* RBC_WINDOWS_ACCUMULATE_..., with an accumulator; default all */
  const rbcOutput* out;         /* [B,O,D']; null: not written */
  const rbcOutput* valid;       /* [B,O] bool or u8; null: not written */
  rbcAccumulator_t accumulator; /* with D' or O D' channels; null: none */
} rbcWindowsOutputs;

static inline rbcWindowsOutputs rbcWindowsOutputsInit(void) {
  rbcWindowsOutputs outputs;
  memset(&outputs, 0, sizeof outputs);
  outputs.struct_size = (uint32_t)sizeof outputs;
  return outputs;
}

/* rbcWindowsParams.flags, in addition to RBC_FLAG_CHECK_TIMES */
#define RBC_WINDOWS_FLAG_ANCHOR_TIMES 0x10000u /* anchors are times, not rows */

/* The parameters that all streams of a call share. */
typedef struct rbcWindowsParams {
  uint32_t struct_size;
  uint32_t flags;              /* RBC_FLAG_CHECK_TIMES, RBC_WINDOWS_FLAG_ANCHOR_TIMES; default 0 */
  int32_t anchor_stream_index; /* the stream whose rows are the anchors; default 0 */
  int32_t reserved0;           /* 0 */
  double lag;                  /* for f32, f64 times, as in rbcResampleParams; default 0 */
  int64_t lag_ticks;           /* the same for i64 times */
} rbcWindowsParams;

static inline rbcWindowsParams rbcWindowsParamsInit(void) {
  rbcWindowsParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * Cuts B training samples out of E episodes: from each of N streams the rows at O offsets around an
 * anchor, such as the last two states and the next fifty actions.
 *
 *   streams      [N], N = num_streams of 1 to RBC_WINDOWS_MAX_STREAMS, all with the same
 *                struct_size
 *   episodes     [B] i32 or i64: the episode of each sample
 *   anchors      [B] i64: rows of streams[anchor_stream_index], counted from the episode's start;
 *                with RBC_WINDOWS_FLAG_ANCHOR_TIMES times, of the dtype of the streams' times
 *   outputs      [num_streams], all with the same struct_size: the outputs of each stream
 *   params       null: defaults
 *
 * The episodes of a stream are stored one after the other in its values: episode e has the rows
 * episode_offsets[e] .. episode_offsets[e+1] - 1. Streams may have different rates, and so
 * different episode_offsets, but they have the same E. If streams have times, all times have the
 * same dtype. Times ascend within an episode; equal times are allowed.
 *
 * Strides may be 0 or negative; no tensor is copied. All tensors are on the context's device.
 * Outputs must not overlap each other or an input. Every element is written.
 *
 * Anchors. An anchor row has the time of its row plus the stream's clock offset. An anchor outside
 * its episode is allowed and has the time of the episode's nearest row. In the other streams the
 * anchor is the last row at or before that time, or -1 without such a row. If that stream or the
 * anchor's stream has no times, the anchor is the same row. Anchors that are times need times in
 * every stream. Interpolation needs times in its own stream and, unless anchors are times, in the
 * anchor's stream.
 *
 * Rows. Gather takes the row anchor + offset. It is valid if it is in the episode. Outside the
 * episode, `outside` decides: hold takes the nearest row of the episode, fill makes the element
 * invalid. A sample_mask of 0 also makes the element invalid, for a held row too. Interpolate
 * applies the rules of rbcResample to the rows of the episode, at the anchor's time + offset: one
 * addition in the dtype of times; i64 saturates. The stream's clock_offset is then subtracted.
 * `outside` and `valid` belong to this stream. If rbcResample would write fill_value, the channel
 * is invalid; other groups of channels may be valid. An element is invalid if its episode
 * is empty, or if the anchor lacks a time that the element needs (NaN is not a time). Sums of rows
 * saturate.
 *
 * Arrivals. The rows of a stream whose params have `arrivals` exist for a time as for rbcResample:
 * the samples that a robot has when it computes the window at that time + lag. A gathered stream
 * sees those of the anchor's time, also for the earlier rows of a window: its anchor is the last
 * row at or before that time that exists and is not masked, also in the anchors' own stream, and a
 * row that does not exist is invalid. An interpolated element sees those of its own time. On the
 * CPU offsets above 0 are INVALID_ARGUMENT; actions are streams without arrivals. Arrivals need
 * times in their own stream and, unless anchors are times, in the anchor's stream. Neither arrivals
 * nor RBC_FLAG_CAUSAL can be combined with outside neutral.
 *
 * Each element, which is a row of a window, is then computed in these steps:
 *   1. Transforms, with references. A reference is the row of a stream of this call at one of its
 *      offsets, before any transform, fetched with hold for any `outside` of that stream. If the
 *      reference is invalid, or its rotation or the element's rotation is not a rotation, the
 *      channels of the transform are invalid, and valid is 0. A held reference does not change
 *      valid. The row before a step is also a reference, in `rotation`. After an invalid step the
 *      sum of steps stays invalid.
 *   2. (x - shift) * scale + bias, each operation rounded, no fma; null tensors are skipped. With
 *      RBC_WINDOWS_FLAG_SCALE_DIVIDES it is (x - shift) / scale + bias, as projects compute it that
 *      divide by a standard deviation; a factor 1 / scale gives other last bits.
 *   3. x < clip_min gives clip_min, x > clip_max gives clip_max; NaN is kept.
 *   4. With outside neutral, past the end: `neutral` in the neutral channels. Before the start it
 *      holds. In an interpolated stream, past the end means not valid and later than the last
 *      sample.
 *   5. Invalid channels get fill_value, not normalized.
 *   6. The result is rounded to the dtype of out.
 *
 * Transforms keep the order of the channels. D' differs from D if a rotation is written in another
 * representation. Transforms and normalization compute in f64 if the values or a reference are f64
 * or 32 or 64-bit integers, else in f32. Poses are computed in f64 as rbcConvertRotations does,
 * without intermediate rounding, and are then rounded to that type. rotation and out_rotation may
 * be any representation; if they are equal, rotations are still converted to the form that
 * rbcConvertRotations writes.
 *
 * values   f16, bf16, f32, f64; gather also bool and integers
 * out      any float dtype; if all channels are copied, not normalized, and `neutral` is null, also
 *          the dtype of values; without values [B,O] i64: the row, counted from 0 over episodes,
 *          clamped or fill_value according to `outside`
 * params   of gather: fill_value, sample_mask [n] and arrivals [n]; of interpolate also method,
 *          groups, max_gap, tolerance, max_age and RBC_FLAG_CAUSAL. Other fields are refused:
 *          `outside` and the fields of this call replace them.
 *
 * accumulator: adds the elements after the transforms, not normalized, as samples. With D'
 * channels, the elements of all offsets are added together; with O D' channels, each offset is
 * separate (channel o D' + d). If both numbers are equal, O is 1. Its dtype is the compute dtype,
 * unless it was created with another one; values are then rounded to it. Elements with an invalid
 * channel are skipped. With outside neutral, elements past the end are held. The
 * accumulator belongs to the context, and each stream needs a different one. A call that fails with
 * CANCELLED or CUDA_ERROR may have added some of the elements: the accumulators of all its streams
 * can then only be destroyed, as rbcAccumulatorUpdate says.
 *
 * On the CPU, an episode out of range is INVALID_ARGUMENT, and so are episode_offsets of a used
 * episode that decrease or pass the end. RBC_FLAG_CHECK_TIMES checks the episodes, all
 * episode_offsets and the order of times within the episodes, on every backend. Unchecked bad data
 * gives unspecified values but never an access outside the tensors. NaN in shift, scale, bias,
 * clip_min or clip_max is INVALID_ARGUMENT on the CPU; a scale of 0 is allowed, and a division by
 * it gives an infinity or NaN, as IEEE 754 says.
 *
 * CUDA: one launch on the context's stream for any N (accumulators and arrivals need more), no
 * allocation once the workspace is large enough, no synchronization, can be captured, but not with
 * RBC_FLAG_CHECK_TIMES (UNSUPPORTED), which verifies first and waits for the stream. CPU: returns
 * when done; large calls use several of the context's threads. CPU and CUDA agree bit for bit.
 *
 * Errors: INVALID_ARGUMENT, DEVICE_MISMATCH, DTYPE_MISMATCH, SHAPE_MISMATCH, UNSUPPORTED,
 * WORKSPACE_TOO_SMALL, OUT_OF_MEMORY, CUDA_ERROR. They name the stream: "streams[2].offsets: ...".
 * B = 0, O = 0 and D = 0 succeed. A failed call writes nothing.
 */
RBC_API rbcStatus_t rbcWindows(rbcContext_t context, const rbcWindowsStream* streams,
                               int32_t num_streams, const rbcTensor* episodes,
                               const rbcTensor* anchors, const rbcWindowsOutputs* outputs,
                               const rbcWindowsParams* params);

/*
 * Writes the size in bytes of the workspace that the same call of rbcWindows needs, for
 * rbcContextReserve. Checks the arguments as that call does; on failure *bytes does not change.
 */
RBC_API rbcStatus_t rbcWindowsWorkspaceSize(rbcContext_t context, const rbcWindowsStream* streams,
                                            int32_t num_streams, const rbcTensor* episodes,
                                            const rbcTensor* anchors,
                                            const rbcWindowsOutputs* outputs,
                                            const rbcWindowsParams* params, size_t* bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_WINDOWS_H */
