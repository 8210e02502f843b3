/*
 * RoboCache: camera frames to batches of images, and random draws for augmentation.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ROBOCACHE_IMAGES_H
#define ROBOCACHE_IMAGES_H

#include <math.h>
#include <string.h>

#include "base.h"
#include "context.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The maximum number of arrays of frames in a call. */
#define RBC_IMAGES_MAX_FRAMES 64

/* rbcImagesParams.rule: whose bits a resize has. A rule never changes. */
#define RBC_IMAGES_RULE_PILLOW 0      /* Pillow before 12.2 */
#define RBC_IMAGES_RULE_PILLOW_12 1   /* Pillow 12.2 and 12.3: another order for narrow images */
#define RBC_IMAGES_RULE_PILLOW_13 2   /* Pillow 13: the order of the passes depends on the size */
#define RBC_IMAGES_RULE_TORCHVISION 3 /* torchvision of uint8 on x86 CPUs */
#define RBC_IMAGES_RULE_OPENCV 4      /* OpenCV 4.12 and 5.0 on x86 CPUs */
#define RBC_IMAGES_RULE_EXACT 5       /* one rounding; no library has these bits */

/* rbcImagesParams.filter, with the rules that have it */
#define RBC_IMAGES_FILTER_BOX 0          /* PILLOW..., EXACT */
#define RBC_IMAGES_FILTER_BILINEAR 1     /* PILLOW..., EXACT, TORCHVISION: antialiased */
#define RBC_IMAGES_FILTER_HAMMING 2      /* PILLOW..., EXACT */
#define RBC_IMAGES_FILTER_BICUBIC 3      /* as BILINEAR */
#define RBC_IMAGES_FILTER_LANCZOS3 4     /* PILLOW..., EXACT */
#define RBC_IMAGES_FILTER_LINEAR 5       /* OPENCV, TORCHVISION: two pixels, not antialiased */
#define RBC_IMAGES_FILTER_LINEAR_EXACT 6 /* OPENCV */
#define RBC_IMAGES_FILTER_AREA 7         /* OPENCV */

/* rbcImagesParams.fit: how an image of another shape fills the output */
#define RBC_IMAGES_FIT_STRETCH 0 /* each axis is scaled on its own */
#define RBC_IMAGES_FIT_PAD 1     /* as large as fits, the rest is pad_value */
#define RBC_IMAGES_FIT_COVER 2   /* as small as covers the output, its centre is kept */

/* rbcImagesParams.pad_anchor: where FIT_PAD places the image */
#define RBC_IMAGES_PAD_CENTER 0 /* an odd pixel more at the end */
#define RBC_IMAGES_PAD_START 1
#define RBC_IMAGES_PAD_END 2

/* rbcImagesParams.layout of out */
#define RBC_IMAGES_LAYOUT_CHW 0
#define RBC_IMAGES_LAYOUT_HWC 1

/* rbcImagesParams.flags */
#define RBC_IMAGES_FLAG_COLOR_FIRST 0x10000u /* colours of the whole frame, before the crop */

/* Some of the frames of a call: an array, such as a segment of a store. */
typedef struct rbcImagesFrames {
  uint32_t struct_size;
  uint32_t flags;          /* 0 */
  const rbcTensor* values; /* [n,H,W,C] u8; any strides; n may be 0 */
} rbcImagesFrames;

static inline rbcImagesFrames rbcImagesFramesInit(void) {
  rbcImagesFrames frames;
  memset(&frames, 0, sizeof frames);
  frames.struct_size = (uint32_t)sizeof frames;
  return frames;
}

/* How frames become images. */
typedef struct rbcImagesParams {
  uint32_t struct_size;
  uint32_t flags;               /* RBC_IMAGES_FLAG_COLOR_FIRST or 0 */
  int32_t rule;                 /* RBC_IMAGES_RULE_...; default PILLOW */
  int32_t filter;               /* RBC_IMAGES_FILTER_...; default BILINEAR */
  int32_t fit;                  /* RBC_IMAGES_FIT_...; default STRETCH */
  int32_t pad_anchor;           /* RBC_IMAGES_PAD_...; default CENTER */
  int32_t layout;               /* RBC_IMAGES_LAYOUT_...; default CHW */
  int32_t reserved0;            /* 0 */
  double pad_value[4];          /* by channel, integers of 0 to 255; default 0 */
  int64_t crop_height;          /* the height of all boxes, if known; default 0: any */
  int64_t crop_width;           /* the width of all boxes, if known; default 0: any */
  const rbcTensor* boxes;       /* [B,4], or [4] for all; i32 or i64: y, x, height, width */
  const rbcTensor* flips;       /* [B] u8: 0 none, 1 left-right, 2 up-down, 3 both */
  const rbcTensor* colors;      /* [B,4] f32 or f64: brightness, contrast, saturation, hue */
  const rbcTensor* color_order; /* [B,4] u8: the steps in their order; null: 0, 1, 2, 3 */
  const rbcTensor* table;       /* [C,256], any float: the value of each byte; null: the byte */
} rbcImagesParams;

static inline rbcImagesParams rbcImagesParamsInit(void) {
  rbcImagesParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  params.filter = RBC_IMAGES_FILTER_BILINEAR;
  return params;
}

/*
 * Makes B images from camera frames: crop, resize, flip, colours, padding, and a table that
 * normalizes.
 *
 *   frames  [K], K = num_frames of 1 to RBC_IMAGES_MAX_FRAMES, all with the same struct_size; their
 *           values have the same H, W and C; C is 1, 3 or 4; H and W are 1 to 65536
 *   rows    [B] i32 or i64: the frame of each image, counted through all of `frames`; -1: the
 *           whole image is pad_value; null: the frames in their order
 *   out     [B,C,h,w], or [B,h,w,C] with RBC_IMAGES_LAYOUT_HWC; u8 or any float; h and w are up to
 *           65536; any strides, so images may go directly into a window
 *   params  null: defaults
 *
 * Each image is computed in this order: take the frame, crop, resize, flip, colours, pad, table,
 * layout. The crop is real: the resize reads no pixel outside of the box. All is computed in
 * integers, or in f32 with named roundings, so CPU and CUDA agree bit for bit.
 *
 * Resize. Weights are computed in f64, without fma. With scale = in / out, centre =
 * (i + 0.5) * scale and support = radius * max(scale, 1), output pixel i has the weights
 * f((first + j - centre + 0.5) * (1 / max(scale, 1))) of the pixels first + j, where first =
 * max(trunc(centre - support + 0.5), 0), up to min(trunc(centre + support + 0.5), in), divided by
 * their sum. PILLOW multiplies with these weights as integers of 22 bits, and rounds after each
 * pass: first along rows, then along columns. PILLOW_12 begins with the columns if H > 100 W and
 * H > h, PILLOW_13 if H > h and H - h > 2 (W - w). TORCHVISION has weights of 16 bits, and begins
 * with the rows; LINEAR has two pixels. EXACT has the weights of PILLOW and rounds once, ties to
 * even. docs/concepts/images.md describes OPENCV, and names the versions of libraries whose bits
 * were compared. Pillow multiplies RGBA with alpha first; rbcImages does not: channels are
 * independent. Other pairs of rule and filter are UNSUPPORTED.
 *
 * Fit. STRETCH resizes to h x w. PAD resizes to trunc(H / ratio) x trunc(W / ratio), at least 1,
 * with ratio = max(W / w, H / h) in f64, and pads. COVER resizes to h x trunc(h W / H), or to
 * trunc(w H / W) x w if W h <= H w, and keeps the centre; its sides may have 2^20 pixels at most.
 *
 * Colours change as in torchvision's ColorJitter of uint8: each step is in f32 and truncates
 * to u8. NaN leaves a step out. Contrast uses the mean of the image at that step, after crop,
 * resize and flip and before the padding, from an exact sum. torchvision's own mean depends on the
 * number of its threads, so a step of contrast may differ by 1 level from it. Hue is the part of the
 * circle that hues turn by. With C = 1 saturation and hue do nothing. UNSUPPORTED: colours with
 * C = 4. With RBC_IMAGES_FLAG_COLOR_FIRST, colours act on the whole frame before the crop.
 *
 * Table. An image of floats takes its values from `table`, rounded to the dtype of out, also in the
 * padding. Without a table the values are 0 to 255. An out of u8 takes no table.
 *
 * Strides may be 0 or negative; no tensor is copied. All tensors are on the context's device. `out`
 * must not overlap an input. Every element is written.
 *
 * On the CPU these are INVALID_ARGUMENT: a box that is empty or not inside the frame, a box whose
 * size is not crop_height and crop_width, a row out of range, flips above 3, a color_order
 * that is no permutation, a factor that is negative or infinite, a hue that is not -0.5 to 0.5, NaN
 * in `table`. On CUDA boxes and rows are clamped to the frames, only the lowest two bits of flips
 * count, such an order counts as null, such a factor as NaN, and NaN in `table` is written. No
 * memory outside of the tensors is read.
 *
 * CUDA: two launches on the context's stream, three with colors; no allocation once the workspace is
 * large enough, no synchronization, can be captured. CPU: returns when done; large calls use
 * several of the context's threads.
 *
 * Errors: INVALID_ARGUMENT, DEVICE_MISMATCH, DTYPE_MISMATCH, SHAPE_MISMATCH, UNSUPPORTED,
 * WORKSPACE_TOO_SMALL, OUT_OF_MEMORY, CUDA_ERROR. They name the array: "frames[2].values: ...".
 * B = 0, h = 0 and w = 0 succeed.
 */
RBC_API rbcStatus_t rbcImages(rbcContext_t context, const rbcImagesFrames* frames,
                              int32_t num_frames, const rbcTensor* rows, const rbcOutput* out,
                              const rbcImagesParams* params);

/*
 * Writes the size in bytes of the workspace that the same call of rbcImages needs, for
 * rbcContextReserve. Checks the arguments as that call does; on failure *bytes does not change.
 */
RBC_API rbcStatus_t rbcImagesWorkspaceSize(rbcContext_t context, const rbcImagesFrames* frames,
                                           int32_t num_frames, const rbcTensor* rows,
                                           const rbcOutput* out, const rbcImagesParams* params,
                                           size_t* bytes);

/* rbcImageDrawsParams.crop: the boxes that are drawn */
#define RBC_IMAGES_CROP_NONE 0     /* the whole frame */
#define RBC_IMAGES_CROP_FIXED 1    /* crop_height x crop_width */
#define RBC_IMAGES_CROP_FRACTION 2 /* trunc(fraction H) x trunc(fraction W), at least 1 x 1 */
#define RBC_IMAGES_CROP_AREA 3     /* as torchvision's RandomResizedCrop */

/* The numbers to draw. */
typedef struct rbcImageDrawsParams {
  uint32_t struct_size;
  uint32_t flags;          /* 0 */
  int64_t seed;            /* its 64 bits are the key */
  int64_t epoch;           /* modulo 2^32 */
  int32_t camera;          /* 0 to 2^24 - 1: cameras with the same number draw the same */
  int32_t crop;            /* RBC_IMAGES_CROP_...; default NONE */
  int64_t frame_height;    /* H, needed for boxes: 1 to 65536 */
  int64_t frame_width;     /* W, needed for boxes: 1 to 65536 */
  int64_t crop_height;     /* CROP_FIXED: 1 to H */
  int64_t crop_width;      /* CROP_FIXED: 1 to W */
  double crop_fraction;    /* CROP_FRACTION: more than 0, at most 1; default 1 */
  double area[2];          /* CROP_AREA: the range of the share of the area; default 0.08, 1 */
  double ratio[2];         /* CROP_AREA: the range of width / height; default 0.75, 4 / 3 */
  double flip_probability; /* of a flip left-right: 0 to 1; default 0 */
  double brightness[2];    /* the range of the factor, 0 or more; default NaN: not drawn */
  double contrast[2];      /* the same */
  double saturation[2];    /* the same */
  double hue[2];           /* the range of the turn, -0.5 to 0.5; default NaN: not drawn */
} rbcImageDrawsParams;

static inline rbcImageDrawsParams rbcImageDrawsParamsInit(void) {
  rbcImageDrawsParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  params.crop_fraction = 1;
  params.area[0] = 0.08;
  params.area[1] = 1;
  params.ratio[0] = 0.75;
  params.ratio[1] = 4.0 / 3.0;
  for (int i = 0; i < 2; ++i) {
    params.brightness[i] = (double)NAN;
    params.contrast[i] = (double)NAN;
    params.saturation[i] = (double)NAN;
    params.hue[i] = (double)NAN;
  }
  return params;
}

/*
 * Draws random boxes, flips and colours for rbcImages. A draw depends only on the seed, the epoch,
 * the number of the sample and the camera, not on the batch: more ranks or another batch size
 * change nothing.
 *
 *   samples      [B] i32 or i64: the number of each sample, such as its row in the data set; a
 *                sample that occurs again in an epoch adds 2^40 for each time before
 *   boxes        [B,4] i32 or i64: y, x, height, width; or null
 *   flips        [B] u8: 1 left-right, else 0; or null
 *   colors       [B,4] f32 or f64: brightness, contrast, saturation, hue; f64 has the values of
 *                f32; or null
 *   color_order  [B,4] u8: a permutation of 0 to 3; or null
 *   params       null: defaults
 *
 * Numbers are drawn by Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * 2011) with key = seed and counter = (sample low, sample high, epoch, camera << 8 | purpose). The
 * purposes: 0 box, 1 flip and order, 2 colours, 3 to 12 the tries of CROP_AREA. A word x gives
 * u = (x >> 8) 2^-24, and the integer (x n) >> 32 below n.
 *
 *   box      words 0 and 1: y below H - h + 1, x below W - w + 1. CROP_AREA: words 0 to 3 of each
 *            try: area and log(ratio), lo + u (hi - lo) in f64, then y and x; sides are rint(sqrt(
 *            H W area ratio)) and rint(sqrt(H W area / ratio)); after 10 tries the centre
 *   flip     word 0: u < flip_probability
 *   order    0, 1, 2, 3 with element i = 3, 2, 1 swapped with the one below i + 1 of words 1, 2, 3
 *   colours  words 0 to 3: lo + u (hi - lo) in f64, rounded to f32
 *
 * Outputs must not overlap each other or samples. Strides may be 0 or negative. CPU and CUDA agree
 * bit for bit.
 *
 * CUDA: one launch on the context's stream, no allocation, no synchronization, can be captured.
 * CPU: returns when done.
 *
 * Errors: INVALID_ARGUMENT, DEVICE_MISMATCH, DTYPE_MISMATCH, SHAPE_MISMATCH, UNSUPPORTED,
 * CUDA_ERROR. B = 0 succeeds, and so do calls without outputs.
 */
RBC_API rbcStatus_t rbcImageDraws(rbcContext_t context, const rbcTensor* samples,
                                  const rbcOutput* boxes, const rbcOutput* flips,
                                  const rbcOutput* colors, const rbcOutput* color_order,
                                  const rbcImageDrawsParams* params);

/*
 * Writes the size in bytes of the workspace that the same call of rbcImageDraws needs, for
 * rbcContextReserve. So far it is 0. Checks the arguments as that call does; on failure *bytes does
 * not change.
 */
RBC_API rbcStatus_t rbcImageDrawsWorkspaceSize(rbcContext_t context, const rbcTensor* samples,
                                               const rbcOutput* boxes, const rbcOutput* flips,
                                               const rbcOutput* colors,
                                               const rbcOutput* color_order,
                                               const rbcImageDrawsParams* params, size_t* bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_IMAGES_H */
