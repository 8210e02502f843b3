#include "fuse/sample_builder.h"

#include <cinttypes>

#include "read_once.h"
#include "robocache/statistics.h"
#include "runtime/dtype_checks.h"
#include "status.h"

namespace rbc {

static_assert(kMaxLevels == RBC_STATISTICS_MAX_LEVELS);

void SampleBuilder::addSamples(const Arguments& arguments, bool per_row) {
  const bool packed = arguments.batch_offsets != nullptr;
  const View& values = operands.in(arguments.values, "values");
  if (values.ndim < 2 || (packed && values.ndim > 2)) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "values: shape is %s, expected %s",
         shapeText(values.ndim, values.shape),
         packed ? "[N,D] with batch_offsets" : "[S,D] or [B,...,D]");
  }
  Samples& s = samples_;
  s.data = values.data;
  s.dtype = values.dtype;
  s.channels = values.shape[values.ndim - 1];
  s.channel_stride = values.strides[values.ndim - 1];
  batched_ = packed || values.ndim > 2;
  s.batch = values.ndim > 2 ? values.shape[0] : 1;
  s.rows = 1;
  for (int i = values.ndim > 2 ? 1 : 0; i < values.ndim - 1; ++i) s.rows *= values.shape[i];
  if (packed) {
    if (arguments.lengths != nullptr) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "lengths: expected null with batch_offsets; lengths are for padded values");
    }
    const View& ends = operands.in(arguments.batch_offsets, "batch_offsets");
    requireRank(ends, "batch_offsets", 1, 1);
    if (ends.shape[0] < 1) {
      fail(RBC_STATUS_SHAPE_MISMATCH, "batch_offsets: shape is [0], expected [B+1]");
    }
    s.batch = ends.shape[0] - 1;
    s.offsets = indexArrayOf(ends, "batch_offsets", s.batch + 1);
  }
  if (arguments.lengths != nullptr) {
    if (values.ndim > 3) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "lengths: are for values [B,S,D], which have shape %s",
           shapeText(values.ndim, values.shape));
    }
    s.lengths = indexArrayOf(operands.in(arguments.lengths, "lengths"), "lengths", s.batch);
  }
  const View* mask = nullptr;
  if (arguments.sample_mask != nullptr) {
    mask = &operands.in(arguments.sample_mask, "sample_mask");
    requireShape(*mask, "sample_mask", values.ndim - 1, values.shape);
    requireMask(*mask, "sample_mask");
    s.mask = reinterpret_cast<const uint8_t*>(mask->data);
  }
  // A channel may be repeated by a stride of 0, so the limit of samples does not depend on it.
  int64_t total = 0;
  if (__builtin_mul_overflow(packed ? 1 : s.batch, s.rows, &total) || total > kMaxSamples) {
    fail(RBC_STATUS_UNSUPPORTED, "values: shape is %s, expected at most 2^40 samples",
         shapeText(values.ndim, values.shape));
  }
  addAxes(values, mask, per_row);
}

void SampleBuilder::addAxes(const View& values, const View* mask, bool per_row) {
  Samples& s = samples_;
  const bool padded_batch = values.ndim > 2;
  // Rows of equal length are one more axis of the samples.
  const bool as_one = padded_batch && !per_row && s.lengths.data == nullptr;
  if (padded_batch && !as_one) {
    s.batch_stride = values.strides[0];
    s.batch_mask_stride = mask != nullptr ? mask->strides[0] : 0;
  }
  for (int i = padded_batch && !as_one ? 1 : 0; i < values.ndim - 1; ++i) {
    addAxis(values.shape[i], values.strides[i], mask != nullptr ? mask->strides[i] : 0);
  }
  if (as_one) {
    s.rows *= s.batch;
    s.batch = 1;
  }
  if (s.axes == 0 || s.rows == 0) {
    s.axes = 1;
    s.axis[0] = {s.rows, 0, 0};
  }
}

void SampleBuilder::addAxis(int64_t extent, int64_t stride, int64_t mask_stride) {
  Samples& s = samples_;
  if (extent == 1) return;
  SampleAxis* last = s.axes > 0 ? s.axis + s.axes - 1 : nullptr;
  int64_t step = 0;
  int64_t mask_step = 0;
  const bool fits = !__builtin_mul_overflow(stride, extent, &step) &&
                    !__builtin_mul_overflow(mask_stride, extent, &mask_step);
  if (last != nullptr && fits && last->stride == step && last->mask_stride == mask_step) {
    *last = {last->extent * extent, stride, mask_stride};
  } else {
    s.axis[s.axes++] = {extent, stride, mask_stride};
  }
}

void requireHost(const View& view, const char* argument) {
  switch (view.device.type) {
    case RBC_DEVICE_CPU:
    case RBC_DEVICE_CUDA_HOST:
    case RBC_DEVICE_CUDA_MANAGED: return;
    default:
      fail(RBC_STATUS_DEVICE_MISMATCH, "%s: lives on device (type %d, id %d), expected host memory",
           argument, view.device.type, view.device.id);
  }
}

int32_t readLevels(const rbcTensor* tensor, double (&levels)[kMaxLevels]) {
  if (tensor == nullptr) return 0;
  const View view = normalize(tensor, "levels");
  requireHost(view, "levels");
  requireDType(view, "levels", DType::F64);
  requireRank(view, "levels", 1, 1);
  if (view.shape[0] > kMaxLevels) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "levels: got %" PRId64 ", expected at most %d", view.shape[0],
         kMaxLevels);
  }
  for (int64_t i = 0; i < view.shape[0]; ++i) {
    const auto* const at = reinterpret_cast<const double*>(view.data) + i * view.strides[0];
    const auto level = readOnce<double>(at);
    if (!(level >= 0 && level <= 1)) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "levels: number %" PRId64 " is %g, expected 0 to 1", i,
           level);
    }
    levels[i] = level + 0.0;
  }
  return static_cast<int32_t>(view.shape[0]);
}

int32_t checkedDdof(int32_t ddof) {
  if (ddof != 0 && ddof != 1) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "ddof: is %d, expected 0 or 1", ddof);
  }
  return ddof;
}

}  // namespace rbc
