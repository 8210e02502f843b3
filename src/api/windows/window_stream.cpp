// Reads the description of one stream of rbcWindows into a WindowStream.
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <limits>

#include "fuse/channel_groups.h"
#include "fuse/fuse_builder.h"
#include "fuse/times_check.h"
#include "params.h"
#include "runtime/dtype_checks.h"
#include "status.h"
#include "windows/window_builder.h"

namespace rbc {
namespace {

// The address of a tensor without elements, so that it differs from a tensor that is null. Never
// read.
constexpr uint64_t kNothing = 0;
const void* beginOf(const View& view) {
  return view.data != nullptr ? view.data : static_cast<const void*>(&kNothing);
}

// Fails if a parameter is set that the call has its own field for.
void requireNone(const void* pointer, const char* field, const char* instead) {
  if (pointer == nullptr) return;
  fail(RBC_STATUS_INVALID_ARGUMENT, "params.%s: is set, expected null: %s", field, instead);
}

rbcResampleParams checkedWindowParams(const rbcResampleParams* input) {
  const rbcResampleParams params = checkedParams(input, OwnOutside::kNeutral);
  requireUnshared(params, "rbcWindowsParams");
  requireNone(params.lengths, "lengths", "episode_offsets replaces it");
  requireNone(params.query_lengths, "query_lengths", "every offset is a query");
  requireNone(params.batch_offsets, "batch_offsets", "episode_offsets replaces it");
  requireNone(params.shift, "shift", "the stream's shift replaces it");
  requireNone(params.scale, "scale", "the stream's scale replaces it");
  return params;
}

// Fails if a parameter is set that only interpolation uses.
void requireGatherParams(const rbcResampleParams& params) {
  if ((params.flags & RBC_FLAG_CAUSAL) != 0 || !std::isinf(params.max_age)) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "params.%s: is set, expected none: mode is gather, which does not interpolate",
         std::isinf(params.max_age) ? "flags" : "max_age");
  }
  if (params.method != RBC_METHOD_LINEAR) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "params.method: is %d, expected 0 (linear): mode is gather, which does not interpolate",
         params.method);
  }
  if (params.groups != nullptr || params.num_groups != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "params.groups: is set, expected null: mode is gather, which does not interpolate");
  }
  if (!std::isinf(params.max_gap)) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "params.max_gap: is %g, expected INFINITY: mode is gather, which does not interpolate",
         params.max_gap);
  }
  if (!std::isinf(params.tolerance)) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "params.tolerance: is %g, expected INFINITY: mode is gather, which does not interpolate",
         params.tolerance);
  }
}

}  // namespace

// Reads the values, times and episodes.
void WindowBuilder::readRows(const rbcWindowsStream& stream, WindowStream* s) {
  WindowProblem& p = problem_;
  s->rows = std::numeric_limits<int64_t>::max();  // unknown without values and times
  if (stream.values != nullptr) {
    const View& values = operands.in(stream.values, "values");
    requireRank(values, "values", 2, 2);
    s->rows = values.shape[0];
    s->channels = values.shape[1];
    s->values = beginOf(values);
    std::copy_n(values.strides, 2, s->values_stride);
    s->values_dtype = values.dtype;
    if (s->interpolates && !isFloat(values.dtype)) {
      fail(RBC_STATUS_DTYPE_MISMATCH, "values: dtype is %s, expected a float to interpolate",
           nameOf(values.dtype));
    }
  } else if (s->interpolates) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "values: is null, expected a tensor: interpolation needs values");
  }
  if (stream.times != nullptr) {
    const View& times = operands.in(stream.times, "times");
    if (stream.values != nullptr) {
      requireShape(times, "times", 1, &s->rows);
    } else {
      requireRank(times, "times", 1, 1);
      s->rows = times.shape[0];
    }
    requireTimes(times, "times");
    if (has_times_ && times.dtype != p.time_dtype) {
      fail(RBC_STATUS_DTYPE_MISMATCH, "times: dtype is %s, expected %s as the streams before",
           nameOf(times.dtype), nameOf(p.time_dtype));
    }
    p.time_dtype = times.dtype;
    has_times_ = true;
    s->times = beginOf(times);
    s->times_stride = times.strides[0];
    s->clock_offset =
        timeOffsetOf(stream.clock_offset, stream.clock_offset_ticks, times.dtype, "clock_offset");
  } else {
    if (s->interpolates || p.anchors_are_times) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "times: is null, expected a tensor: %s",
           s->interpolates ? "interpolation needs times" : "the anchors are times");
    }
    if (stream.clock_offset != 0 || stream.clock_offset_ticks != 0) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "clock_offset: is set, but the stream has no times");
    }
  }
  const View& offsets = operands.in(stream.episode_offsets, "episode_offsets");
  requireRank(offsets, "episode_offsets", 1, 1);
  requireIndexes(offsets, "episode_offsets");
  if (offsets.shape[0] < 1) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "episode_offsets: shape is [0], expected [E+1]");
  }
  const int64_t episodes = offsets.shape[0] - 1;
  if (p.num_streams > 0 && episodes != p.episodes) {
    fail(RBC_STATUS_SHAPE_MISMATCH,
         "episode_offsets: number of episodes is %" PRId64 ", expected %" PRId64
         " as in streams[0]",
         episodes, p.episodes);
  }
  p.episodes = episodes;
  if (episodes == 0 && p.windows > 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "episode_offsets: number of episodes is 0, expected 1 or more for %" PRId64 " samples",
         p.windows);
  }
  s->episode_offsets = {offsets.data, offsets.strides[0], offsets.dtype == DType::I64};
}

void WindowBuilder::readOffsets(const rbcWindowsStream& stream, WindowStream* s) {
  const View& offsets = operands.in(stream.offsets, "offsets");
  requireRank(offsets, "offsets", 1, 1);
  if (!s->interpolates) {
    requireIndexes(offsets, "offsets");
  } else if (offsets.dtype != problem_.time_dtype) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "offsets: dtype is %s, expected %s as times",
         nameOf(offsets.dtype), nameOf(problem_.time_dtype));
  }
  s->num_offsets = offsets.shape[0];
  s->offsets = {offsets.data, offsets.strides[0], offsets.dtype == DType::I64};
}

// Reads the parameters of rbcResample. fill_value needs the output: see finishFill().
void WindowBuilder::readParameters(const rbcWindowsStream& stream, WindowStream* s) {
  const rbcResampleParams params = checkedWindowParams(stream.params);
  arguments_[problem_.num_streams].fill_value = params.fill_value;
  s->outside = static_cast<Outside>(params.outside);
  bool looks_back = false;
  if (s->interpolates) {
    MethodSet methods;
    s->first_method = problem_.num_methods;
    s->num_methods = segmentsOf(params, s->channels, problem_.time_dtype,
                                {methods_ + problem_.num_methods, ages_ + problem_.num_methods,
                                 kMaxSegments - problem_.num_methods},
                                &methods);
    problem_.num_methods += s->num_methods;
    requireMethodsFit(params, methods);
    if (methods.hasCausal()) problem_.causal = &causal_;
    looks_back = methods.hasCausal();
    s->max_gap = timeLimitOf(params.max_gap, problem_.time_dtype, "max_gap");
    s->tolerance = timeLimitOf(params.tolerance, problem_.time_dtype, "tolerance");
  } else {
    requireGatherParams(params);
  }
  readArrivals(params.arrivals, *s);
  if ((looks_back || params.arrivals != nullptr) && s->outside == Outside::kNeutral) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "outside: is RBC_OUTSIDE_NEUTRAL, expected RBC_OUTSIDE_HOLD or _FILL with %s",
         looks_back ? "RBC_FLAG_CAUSAL" : "params.arrivals");
  }
  if (params.sample_mask == nullptr) return;
  const View& mask = operands.in(params.sample_mask, "sample_mask");
  requireRank(mask, "sample_mask", 1, 1);
  if (s->values != nullptr || s->times != nullptr) {
    requireShape(mask, "sample_mask", 1, &s->rows);
  }
  requireMask(mask, "sample_mask");
  s->rows = mask.shape[0];
  s->sample_mask = static_cast<const uint8_t*>(beginOf(mask));
  s->sample_mask_stride = mask.strides[0];
}

void WindowBuilder::readArrivals(const rbcTensor* tensor, const WindowStream& s) {
  Arrivals& arrivals = arrivals_[problem_.num_streams] = {};
  if (tensor == nullptr) return;
  if (s.times == nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "params.arrivals: is set, but the stream has no times");
  }
  const View& view = operands.in(tensor, "params.arrivals");
  requireShape(view, "params.arrivals", 1, &s.rows);
  requireDType(view, "params.arrivals", problem_.time_dtype);
  arrivals = {beginOf(view), {0, view.strides[0]}};
  problem_.causal = &causal_;
}

void WindowBuilder::readTransforms(const rbcWindowsStream& stream, WindowStream* s) {
  WindowProblem& p = problem_;
  if (stream.num_transforms < 0 || stream.num_transforms > kMaxWindowTransforms - num_transforms_) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "num_transforms: is %d, expected 0 to %d: %d in all streams",
         stream.num_transforms, kMaxWindowTransforms - num_transforms_, kMaxWindowTransforms);
  }
  if ((stream.transforms == nullptr) != (stream.num_transforms == 0)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "transforms: %s, but num_transforms is %d",
         stream.transforms == nullptr ? "is null" : "is set", stream.num_transforms);
  }
  if (s->values == nullptr && stream.num_transforms > 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "transforms: is set, expected null because values is null");
  }
  rbcWindowsTransform* const copies = transforms_ + num_transforms_;
  readElements(stream.transforms, stream.num_transforms, stream.transform_size, "transforms",
               "transform_size", copies);
  num_transforms_ += stream.num_transforms;
  arguments_[p.num_streams].transforms = {copies, stream.num_transforms};
  s->first_segment = p.num_segments;
  s->num_segments = windowSegmentsOf(arguments_[p.num_streams].transforms, s->channels,
                                     segments_ + p.num_segments);
  p.num_segments += s->num_segments;
  s->out_channels = outChannelsOf(segments_ + s->first_segment, s->num_segments);
}

RealGrid WindowBuilder::readGrid(const rbcTensor* tensor, const char* name, const WindowStream& s) {
  if (tensor == nullptr) return {};
  if (s.values == nullptr)
    fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is set, expected null because values is null", name);
  const View& view = operands.in(tensor, name);
  requireRank(view, name, 1, 2);
  const int64_t shape[] = {s.num_offsets, s.out_channels};
  requireShape(view, name, view.ndim, shape + 2 - view.ndim);
  requireF32OrF64(view, name);
  return {beginOf(view),
          {view.ndim == 2 ? view.strides[0] : 0, view.strides[view.ndim - 1]},
          view.dtype == DType::F64};
}

void WindowBuilder::readGrids(const rbcWindowsStream& stream, WindowStream* s) {
  s->shift = readGrid(stream.shift, "shift", *s);
  s->scale = readGrid(stream.scale, "scale", *s);
  s->bias = readGrid(stream.bias, "bias", *s);
  s->divides = stream.scale != nullptr && (stream.flags & RBC_WINDOWS_FLAG_SCALE_DIVIDES) != 0;
  s->low = readGrid(stream.clip_min, "clip_min", *s);
  s->high = readGrid(stream.clip_max, "clip_max", *s);
  if (s->outside != Outside::kNeutral) {
    for (const rbcTensor* tensor : {stream.neutral, stream.neutral_channels}) {
      if (tensor == nullptr) continue;
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "%s: is set, but outside is %d, expected RBC_OUTSIDE_NEUTRAL",
           tensor == stream.neutral ? "neutral" : "neutral_channels", static_cast<int>(s->outside));
    }
    return;
  }
  if (s->values == nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "outside: is RBC_OUTSIDE_NEUTRAL, but values is null, expected RBC_OUTSIDE_HOLD or _FILL");
  }
  s->neutral = readGrid(stream.neutral, "neutral", *s);
  if (stream.neutral_channels == nullptr) return;
  const View& channels = operands.in(stream.neutral_channels, "neutral_channels");
  requireShape(channels, "neutral_channels", 1, &s->out_channels);
  requireMask(channels, "neutral_channels");
  s->neutral_channels = static_cast<const uint8_t*>(beginOf(channels));
  s->neutral_channels_stride = channels.strides[0];
}

void WindowBuilder::readOutputs(const rbcWindowsOutputs& outputs, int32_t n) {
  WindowStream* const s = &streams_[n];
  if (outputs.accumulate < RBC_WINDOWS_ACCUMULATE_ALL ||
      outputs.accumulate > RBC_WINDOWS_ACCUMULATE_WHOLE) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "accumulate: is %d, expected RBC_WINDOWS_ACCUMULATE_ALL, _VALID or _WHOLE",
         outputs.accumulate);
  }
  s->rule = static_cast<WindowRule>(outputs.accumulate);
  arguments_[n].accumulator = outputs.accumulator;
  const View* out = operands.optionalOut(outputs.out, "out");
  const View* valid = operands.optionalOut(outputs.valid, "valid");
  const int64_t shape[] = {problem_.windows, s->num_offsets, s->out_channels};
  if (out != nullptr) {
    requireShape(*out, "out", s->values != nullptr ? 3 : 2, shape);
    s->out = {
        out->count > 0 ? out->data : nullptr, {out->strides[0], out->strides[1], 0}, out->dtype};
    if (s->values != nullptr) s->out.stride[2] = out->strides[2];
  }
  arguments_[n].has_out = out != nullptr;
  if (valid != nullptr) {
    requireShape(*valid, "valid", 2, shape);
    requireMask(*valid, "valid");
    s->valid = reinterpret_cast<uint8_t*>(valid->data);
    std::copy_n(valid->strides, 2, s->valid_stride);
  }
}

}  // namespace rbc
