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

/* The most streams in a call, and the most transforms, over all of its streams. */
#define RBC_WINDOWS_MAX_STREAMS 16
#define RBC_WINDOWS_MAX_TRANSFORMS 64

/* rbcWindowsStream.mode */
#define RBC_WINDOWS_MODE_GATHER 0      /* rows as they are, at offsets in rows */
#define RBC_WINDOWS_MODE_INTERPOLATE 1 /* at offsets in time, by rbcResample's rules */

/* rbcWindowsOutputs.accumulate: which rows of windows an accumulator takes */
#define RBC_WINDOWS_ACCUMULATE_ALL 0   /* all that have a value, held ones too */
#define RBC_WINDOWS_ACCUMULATE_VALID 1 /* the valid ones */
#define RBC_WINDOWS_ACCUMULATE_WHOLE 2 /* those of windows that are valid at every offset */

/* rbcWindowsTransform.kind. With values x, or a position p and a rotation R, of a row, and those of
 * the reference with an r. The row before that of the first offset is the reference. */
#define RBC_WINDOWS_TRANSFORM_COPY 0         /* x; inverse: x */
#define RBC_WINDOWS_TRANSFORM_SUBTRACT 1     /* x - xr; inverse: x + xr */
#define RBC_WINDOWS_TRANSFORM_SE3_RELATIVE 2 /* Rr^T (p - pr), Rr^T R; inverse: Rr p + pr, Rr R */
#define RBC_WINDOWS_TRANSFORM_SE3_WORLD 3    /* p - pr, R Rr^T; inverse: p + pr, R Rr */
#define RBC_WINDOWS_TRANSFORM_SE3_STEP 4 /* as world, from the row before; inverse: their sum */

/* rbcWindowsTransform.flags */
#define RBC_WINDOWS_TRANSFORM_FLAG_INVERSE 1u

/* What becomes of channels begin .. begin + count - 1 of a stream. */
typedef struct rbcWindowsTransform {
  int64_t begin;                /* the first channel of values */
  int64_t count;                /* how many; SE3: 3 of the position and those of `rotation` */
  int32_t kind;                 /* RBC_WINDOWS_TRANSFORM_... */
  uint32_t flags;               /* RBC_WINDOWS_TRANSFORM_FLAG_INVERSE or 0 */
  int32_t reference_stream_index; /* a stream of the call, which may be this one */
  int32_t reference_offset_index; /* one of that stream's offsets */
  int64_t reference_begin;      /* the first channel there */
  int32_t rotation;             /* SE3: RBC_ROTATION_... of values */
  int32_t reference_rotation;   /* SE3: of the reference */
  int32_t out_rotation;         /* SE3: of out */
  int32_t reserved0;            /* 0 */
} rbcWindowsTransform;

/* One stream of the episodes, and its part of the samples. The tensors and params stay the caller's. */
typedef struct rbcWindowsStream {
  uint32_t struct_size;
  int32_t mode;                     /* RBC_WINDOWS_MODE_...; default gather */
  const rbcTensor* values;          /* [n,D]; null: out receives row numbers */
  const rbcTensor* episode_offsets; /* [E+1] i32 or i64: where episodes begin and end in values */
  const rbcTensor* times;           /* [n] f32, f64 or i64, or null */
  const rbcTensor* offsets;         /* [O] from the anchor: i32 or i64 rows; interpolate: as times */
  const rbcResampleParams* params;  /* null: defaults; see below */
  double clock_offset;              /* as in rbcFuseStream */
  int64_t clock_offset_ticks;       /* likewise */
  const rbcWindowsTransform* transforms; /* in any order, no channel in two; others are copied */
  int32_t num_transforms;           /* the length of transforms */
  uint32_t transform_size;          /* sizeof(rbcWindowsTransform) */
  const rbcTensor* shift;           /* [D'] or [O,D'], f32 or f64; null: 0 */
  const rbcTensor* scale;           /* likewise; null: 1 */
  const rbcTensor* bias;            /* likewise; null: 0 */
  const rbcTensor* clip_min;        /* likewise; null: no limit */
  const rbcTensor* clip_max;        /* likewise; null: no limit */
  const rbcTensor* neutral;         /* [D'] or [O,D'], f32 or f64; null: 0 */
  const rbcTensor* neutral_channels; /* [D'] bool or u8: which ones are neutral; null: all */
} rbcWindowsStream;

static inline rbcWindowsStream rbcWindowsStreamInit(void) {
  rbcWindowsStream stream;
  memset(&stream, 0, sizeof stream);
  stream.struct_size = (uint32_t)sizeof stream;
  stream.transform_size = (uint32_t)sizeof(rbcWindowsTransform);
  return stream;
}

/* What is written of a stream. */
typedef struct rbcWindowsOutputs {
  uint32_t struct_size;
  int32_t accumulate;     /* RBC_WINDOWS_ACCUMULATE_..., with an accumulator; default all */
  const rbcOutput* out;   /* [B,O,D']; null: not written */
  const rbcOutput* valid; /* [B,O] bool or u8; null: not written */
  rbcAccumulator_t accumulator; /* of D' or O D' channels; null: none */
} rbcWindowsOutputs;

static inline rbcWindowsOutputs rbcWindowsOutputsInit(void) {
  rbcWindowsOutputs outputs;
  memset(&outputs, 0, sizeof outputs);
  outputs.struct_size = (uint32_t)sizeof outputs;
  return outputs;
}

/* rbcWindowsParams.flags, besides RBC_FLAG_CHECK_TIMES */
#define RBC_WINDOWS_FLAG_ANCHOR_TIMES 0x10000u /* anchors are times, not rows */

/* What all streams of a call share. */
typedef struct rbcWindowsParams {
  uint32_t struct_size;
  uint32_t flags;        /* RBC_FLAG_CHECK_TIMES, RBC_WINDOWS_FLAG_ANCHOR_TIMES; default 0 */
  int32_t anchor_stream_index; /* the stream whose rows the anchors are; default 0 */
  int32_t reserved0;     /* 0 */
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
 *   streams      [N], N = num_streams of 1 to RBC_WINDOWS_MAX_STREAMS, all with the same struct_size
 *   episodes     [B] i32 or i64: which episode a sample is of
 *   anchors      [B] i64: rows of streams[anchor_stream_index], counted from the episode's begin; with
 *                RBC_WINDOWS_FLAG_ANCHOR_TIMES times, of the dtype of the streams' times
 *   outputs      [num_streams], all with the same struct_size: what is written of each stream
 *   params       null: defaults
 *
 * The episodes of a stream lie one after the other in its values: episode e has the rows
 * episode_offsets[e] .. episode_offsets[e+1] - 1. Streams have their own rates, so their own
 * episode_offsets, but the same E. Their times, where they have any, are of one dtype and ascend
 * within an episode; equal times are allowed.
 *
 * Any strides, 0 and negative too; nothing is copied. All tensors live on the context's device.
 * Outputs overlap neither each other nor an input, and are written whole.
 *
 * Where a window stands. An anchor row has the time of its row (plus the stream's clock offset); one
 * outside its episode, which is legal, that of the episode's nearest row. In the other streams the
 * anchor is the last row not after that time (-1 where there is none), or, in a stream without
 * times, or where the anchor's stream has none, the same row. Anchors that are times need times in
 * every stream; interpolation needs them in its own and, unless anchors are times, in theirs.
 *
 * Fetch. Gather: the row anchor + offset. It is valid if it lies in the episode. Outside, `outside`
 * decides: hold takes the nearest row of the episode, fill makes the element invalid; so does a
 * sample_mask of 0, of a held row too. Interpolate: rbcResample's rules, of this episode's rows, at
 * the anchor's time + offset (one addition in the dtype of times; i64 saturates), which is looked up
 * at that - clock_offset; `outside` and `valid` are those of this stream. Where it would write
 * fill_value the channel is invalid; other groups of channels may be valid. An element of an empty
 * episode, or of an anchor without a time that it needs (NaN is none), is invalid. Sums of rows
 * saturate.
 *
 * Then, for each element (a row of a window):
 *   1. transforms, with references. A reference is the row of a stream of this call at one of its
 *      offsets, before any transform, fetched with hold whatever that stream's `outside` is; where it is
 *      invalid, or a rotation of it is none, the element's channels of that transform are invalid,
 *      and valid is 0. That it is held does not change valid. A rotation of the element that is
 *      none does the same. The row that a step begins at is a reference too, of `rotation`. After an
 *      invalid step the sum of steps stays invalid.
 *   2. (x - shift) * scale + bias, each operation rounded, no fma; what is null is left out
 *   3. x < clip_min gives clip_min, x > clip_max gives clip_max; NaN stays
 *   4. outside neutral, past the end: `neutral` in the neutral channels. Before the begin it holds. Of an
 *      interpolated stream that is where an element is not valid, and later than the last sample.
 *   5. invalid channels get fill_value, not normalized
 *   6. rounded to the dtype of out
 *
 * Transforms keep the order of the channels; D' differs from D where a rotation is written in another
 * representation. They and normalization compute in f64 for values of f64 and of 32 and 64-bit
 * integers, and where a reference is such; else in f32. Poses are computed in f64 as
 * rbcConvertRotations does, without a rounding between, and are then rounded to that. rotation and
 * out_rotation may be any representation; equal ones convert all the same, to the form that
 * rbcConvertRotations writes.
 *
 * values   f16, bf16, f32, f64; gather also bool and integers
 * out      any float dtype; where all is copied, not normalized, and `neutral` is null, also the
 *          dtype of values; without values [B,O] i64: the row itself, from 0 of all episodes, clamped
 *          or fill_value, as `outside` says
 * params   of gather: fill_value and sample_mask [n]; of interpolate also method, groups, max_gap,
 *          tolerance. All else in them is refused: `outside` and this call's fields stand for it.
 *
 * accumulator: takes the elements after the transforms, not normalized, as samples: of D' channels,
 * those of every offset together; of O D' channels, each offset by itself (channel o D' + d). Where
 * both are the same, O is 1. Its dtype is the one that is computed in, unless it was created with
 * another, to which values are rounded then. Elements with an invalid channel are left out; with outside
 * neutral those past the end are held. It belongs to the context, and no two streams have the same.
 * A call that is CANCELLED or a CUDA_ERROR may have added some of the elements: the accumulators of
 * all its streams can only be destroyed then, as rbcAccumulatorUpdate says.
 *
 * Episodes out of range, and episode_offsets of theirs that decrease or pass the end, are
 * INVALID_ARGUMENT on the CPU. RBC_FLAG_CHECK_TIMES verifies them on every backend, all episode_offsets,
 * and the order of times within the episodes. Else they give unspecified values but never an access
 * outside the tensors. NaN in shift, scale, bias, clip_min or clip_max is INVALID_ARGUMENT on the CPU; a scale
 * of 0 is legal.
 *
 * CUDA: one launch on the context's stream whatever N is (accumulators take more), no allocation once
 * the workspace has its size, no synchronization, can be captured. With RBC_FLAG_CHECK_TIMES it verifies
 * first, which waits for the stream and cannot be captured (UNSUPPORTED). CPU: returns when done;
 * work worth it is spread over the context's threads. CPU and CUDA agree bit for bit.
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
 * The workspace in bytes that the same call of rbcWindows needs, for rbcContextReserve. Checks
 * the arguments as that call does; on failure *bytes does not change.
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
