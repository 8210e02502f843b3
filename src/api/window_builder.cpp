#include "window_builder.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <limits>

#include "channel_groups.h"
#include "element_bits.h"
#include "fuse_builder.h"
#include "real.h"
#include "time_limits.h"

namespace rbc {
namespace {

static_assert(RBC_WINDOWS_MAX_STREAMS == kMaxWindowStreams);
static_assert(RBC_WINDOWS_MAX_TRANSFORMS == kMaxWindowTransforms);
static_assert(RBC_PAD_HOLD == static_cast<int>(WindowPad::kHold) &&
              RBC_PAD_FILL == static_cast<int>(WindowPad::kFill) &&
              RBC_PAD_NEUTRAL == static_cast<int>(WindowPad::kNeutral));
static_assert(RBC_ACCUMULATE_ALL == static_cast<int>(WindowRule::kAll) &&
              RBC_ACCUMULATE_VALID == static_cast<int>(WindowRule::kValid) &&
              RBC_ACCUMULATE_WHOLE == static_cast<int>(WindowRule::kWhole));

// Where a tensor without elements begins, so that it is told from one that is not given. Never read.
constexpr uint64_t kNothing = 0;
const void* beginOf(const View& view) {
  return view.data != nullptr ? view.data : static_cast<const void*>(&kNothing);
}

void requireIntegers(const View& view, const char* argument) {
  if (view.dtype != DType::I32 && view.dtype != DType::I64) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "%s: dtype is %s, expected int32 or int64", argument,
         nameOf(view.dtype));
  }
}

// Of a stream's parameters those that the call has fields of its own for.
void requireNone(const void* given, const char* field, const char* instead) {
  if (given == nullptr) return;
  fail(RBC_STATUS_INVALID_ARGUMENT, "params.%s: is given, expected null: %s", field, instead);
}

rbcResampleParams checkedWindowParams(const rbcResampleParams* given) {
  const rbcResampleParams params = checkedParams(given);
  if (params.flags != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "params.flags: are not 0, expected them in rbcWindowsParams");
  }
  if (params.bounds != RBC_BOUNDS_HOLD) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "params.bounds: is %d, expected %d: the stream's pad decides",
         params.bounds, RBC_BOUNDS_HOLD);
  }
  requireNone(params.lengths, "lengths", "episode_offsets stand for them");
  requireNone(params.query_lengths, "query_lengths", "all offsets count");
  requireNone(params.offsets, "offsets", "episode_offsets stand for them");
  requireNone(params.mean, "mean", "the stream's shift stands for it");
  requireNone(params.inv_std, "inv_std", "the stream's scale stands for it");
  return params;
}

// What only interpolation has a use for.
void requireGatherParams(const rbcResampleParams& params) {
  if (params.method != RBC_METHOD_LINEAR) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "params.method: is %d, but mode is gather, which takes rows as they are", params.method);
  }
  if (params.groups != nullptr || params.num_groups != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "params.groups: are given, but mode is gather, which takes rows as they are");
  }
  if (!std::isinf(params.max_gap)) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "params.max_gap: is %g, but mode is gather, which knows no gaps", params.max_gap);
  }
  if (!std::isinf(params.tolerance)) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "params.tolerance: is %g, but mode is gather, which takes rows as they are",
         params.tolerance);
  }
}

void requireBoolean(const View& view, const char* argument) {
  if (view.dtype != DType::Bool && view.dtype != DType::U8) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "%s: dtype is %s, expected bool or uint8", argument,
         nameOf(view.dtype));
  }
}

// `as_it_is`: values are neither transformed nor normalized.
void requireOutDtype(const WindowStream& s, DType dtype, bool as_it_is, const char* argument) {
  if (s.values == nullptr) {
    if (dtype == DType::I64) return;
    fail(RBC_STATUS_DTYPE_MISMATCH, "%s: dtype is %s, expected int64 for numbers of rows", argument,
         nameOf(dtype));
  }
  if (isFloat(dtype) || (as_it_is && dtype == s.values_dtype)) return;
  if (as_it_is && !isFloat(s.values_dtype)) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "%s: dtype is %s, expected %s or a float", argument,
         nameOf(dtype), nameOf(s.values_dtype));
  }
  fail(RBC_STATUS_DTYPE_MISMATCH, "%s: dtype is %s, expected a float", argument, nameOf(dtype));
}

}  // namespace

WindowBuilder::WindowBuilder(const rbcContext& context, const WindowArguments& call)
    : CallBase(context),
      context_(context),
      params_(readParams(call.params, rbcWindowsParamsInit(), "params")),
      episodes_(operands.in(call.episodes, "episodes", Operands::Reach::kInTheEnd)),
      anchors_(operands.in(call.anchors, "anchors", Operands::Reach::kInTheEnd)) {
  readShared(call);
  WindowProblem& p = problem_;
  const uint32_t stride = structSize(call.streams);
  for (int32_t n = 0; n < call.num_streams; ++n) {
    operands.setStream(n);
    const char* separator = ": ";
    try {
      const rbcWindowStream stream = readElement(call.streams, stride, n, rbcWindowStreamInit());
      separator = ".";  // from here on messages begin with a field
      addStream(stream);
    } catch (const Error&) {
      prefixLastError("streams[%d]%s", n, separator);
      throw;
    }
  }
  finishAnchors();
  for (int32_t n = 0; n < p.num_streams; ++n) {
    operands.setStream(n);
    try {
      finishStream(n);
    } catch (const Error&) {
      prefixLastError("streams[%d].", n);
      throw;
    }
  }
  operands.setStream(-1);
  p.streams = streams_;
  p.segments = segments_;
  p.methods = methods_;
}

void WindowBuilder::readShared(const WindowArguments& call) {
  WindowProblem& p = problem_;
  if (call.num_streams < 1 || call.num_streams > kMaxWindowStreams) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "num_streams: is %d, expected 1 to %d", call.num_streams,
         kMaxWindowStreams);
  }
  if (call.streams == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "streams: is null");
  if (params_.anchor_stream < 0 || params_.anchor_stream >= call.num_streams) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "anchor_stream: is %d, expected 0 to %d",
         params_.anchor_stream, call.num_streams - 1);
  }
  p.anchor_stream = params_.anchor_stream;
  p.anchors_are_times = (params_.flags & RBC_WINDOWS_ANCHOR_TIMES) != 0;
  requireRank(episodes_, "episodes", 1, 1);
  requireIntegers(episodes_, "episodes");
  p.windows = episodes_.shape[0];
  requireShape(anchors_, "anchors", 1, &p.windows);
  p.episode_of = {episodes_.data, episodes_.strides[0], episodes_.dtype == DType::I64};
  p.anchors = anchors_.data;
  p.anchors_stride = anchors_.strides[0];
  p.time_dtype = DType::F32;
}

void WindowBuilder::addStream(const rbcWindowStream& given) {
  WindowStream& s = streams_[problem_.num_streams];
  s = {};
  given_[problem_.num_streams] = {{}, given.accumulator, 0, false};
  if (given.mode != RBC_WINDOW_GATHER && given.mode != RBC_WINDOW_INTERPOLATE) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "mode: is %d, expected RBC_WINDOW_GATHER or _INTERPOLATE",
         given.mode);
  }
  if (given.pad < RBC_PAD_HOLD || given.pad > RBC_PAD_NEUTRAL) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "pad: is %d, expected RBC_PAD_HOLD, _FILL or _NEUTRAL",
         given.pad);
  }
  if (given.accumulate < RBC_ACCUMULATE_ALL || given.accumulate > RBC_ACCUMULATE_WHOLE) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "accumulate: is %d, expected RBC_ACCUMULATE_ALL, _VALID or _WHOLE", given.accumulate);
  }
  s.interpolates = given.mode == RBC_WINDOW_INTERPOLATE;
  s.pad = static_cast<WindowPad>(given.pad);
  s.rule = static_cast<WindowRule>(given.accumulate);
  readRows(given, &s);
  readOffsets(given, &s);
  readParameters(given, &s);
  readTransforms(given, &s);
  readGrids(given, &s);
  readOutputs(given, &s);
  ++problem_.num_streams;
}

// Values, times and episodes.
void WindowBuilder::readRows(const rbcWindowStream& given, WindowStream* s) {
  WindowProblem& p = problem_;
  s->rows = std::numeric_limits<int64_t>::max();  // without values and times nobody knows
  if (given.values != nullptr) {
    const View& values = operands.in(given.values, "values");
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
    fail(RBC_STATUS_INVALID_ARGUMENT, "values: is null, expected some to interpolate");
  }
  if (given.times != nullptr) {
    const View& times = operands.in(given.times, "times");
    const int64_t rows = given.values != nullptr ? s->rows : times.shape[0];
    if (times.ndim != 1 || given.values != nullptr) requireShape(times, "times", 1, &rows);
    s->rows = rows;
    if (times.dtype != DType::F32 && times.dtype != DType::F64 && times.dtype != DType::I64) {
      fail(RBC_STATUS_DTYPE_MISMATCH, "times: dtype is %s, expected float32, float64 or int64",
           nameOf(times.dtype));
    }
    if (has_times_ && times.dtype != p.time_dtype) {
      fail(RBC_STATUS_DTYPE_MISMATCH, "times: dtype is %s, expected %s as the streams before",
           nameOf(times.dtype), nameOf(p.time_dtype));
    }
    p.time_dtype = times.dtype;
    has_times_ = true;
    s->times = beginOf(times);
    s->times_stride = times.strides[0];
    s->clock_offset = clockOffsetOf(given.clock_offset, given.clock_offset_ticks, times.dtype);
  } else {
    if (s->interpolates || p.anchors_are_times) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "times: is null, expected some %s",
           s->interpolates ? "to interpolate" : "for anchors that are times");
    }
    if (given.clock_offset != 0 || given.clock_offset_ticks != 0) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "clock_offset: is set, but the stream has no times");
    }
  }
  const View& offsets = operands.in(given.episode_offsets, "episode_offsets");
  requireRank(offsets, "episode_offsets", 1, 1);
  requireIntegers(offsets, "episode_offsets");
  if (offsets.shape[0] < 1) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "episode_offsets: shape is [0], expected [E+1]");
  }
  const int64_t episodes = offsets.shape[0] - 1;
  if (p.num_streams > 0 && episodes != p.episodes) {
    fail(RBC_STATUS_SHAPE_MISMATCH,
         "episode_offsets: are of %" PRId64 " episodes, expected %" PRId64 " as streams[0]",
         episodes, p.episodes);
  }
  p.episodes = episodes;
  if (episodes == 0 && p.windows > 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "episode_offsets: are of no episodes, expected some for %" PRId64 " samples", p.windows);
  }
  s->episode_offsets = {offsets.data, offsets.strides[0], offsets.dtype == DType::I64};
}

void WindowBuilder::readOffsets(const rbcWindowStream& given, WindowStream* s) {
  const View& offsets = operands.in(given.offsets, "offsets");
  requireRank(offsets, "offsets", 1, 1);
  if (!s->interpolates) {
    requireIntegers(offsets, "offsets");
  } else if (offsets.dtype != problem_.time_dtype) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "offsets: dtype is %s, expected %s as times",
         nameOf(offsets.dtype), nameOf(problem_.time_dtype));
  }
  s->num_offsets = offsets.shape[0];
  s->offsets = {offsets.data, offsets.strides[0], offsets.dtype == DType::I64};
}

// Those of rbcResample, but for fill_value.
void WindowBuilder::readParameters(const rbcWindowStream& given, WindowStream* s) {
  const rbcResampleParams params = checkedWindowParams(given.params);
  given_[problem_.num_streams].fill_value = params.fill_value;
  if (s->interpolates) {
    MethodSet methods;
    s->first_method = problem_.num_methods;
    s->num_methods = segmentsOf(params, s->channels, methods_ + problem_.num_methods,
                                kMaxSegments - problem_.num_methods, &methods);
    problem_.num_methods += s->num_methods;
    requireMethodsFit(params, methods);
    s->max_gap = timeLimitOf(params.max_gap, problem_.time_dtype, "max_gap");
    s->tolerance = timeLimitOf(params.tolerance, problem_.time_dtype, "tolerance");
  } else {
    requireGatherParams(params);
  }
  if (params.sample_mask == nullptr) return;
  const View& mask = operands.in(params.sample_mask, "sample_mask");
  requireRank(mask, "sample_mask", 1, 1);
  if (s->values != nullptr || s->times != nullptr) {
    requireShape(mask, "sample_mask", 1, &s->rows);
  }
  requireBoolean(mask, "sample_mask");
  s->rows = mask.shape[0];
  s->sample_mask = static_cast<const uint8_t*>(beginOf(mask));
  s->sample_mask_stride = mask.strides[0];
}

void WindowBuilder::readTransforms(const rbcWindowStream& given, WindowStream* s) {
  WindowProblem& p = problem_;
  if (given.num_transforms < 0 || given.num_transforms > kMaxWindowTransforms - num_transforms_) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "num_transforms: is %d, expected 0 to %d: %d in all streams",
         given.num_transforms, kMaxWindowTransforms - num_transforms_, kMaxWindowTransforms);
  }
  if ((given.transforms == nullptr) != (given.num_transforms == 0)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "transforms: %s, but num_transforms is %d",
         given.transforms == nullptr ? "is null" : "is given", given.num_transforms);
  }
  if (s->values == nullptr && given.num_transforms > 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "transforms: are given, but values are null");
  }
  rbcWindowTransform* const copies = transforms_ + num_transforms_;
  std::copy_n(given.transforms, given.num_transforms, copies);
  num_transforms_ += given.num_transforms;
  given_[p.num_streams].transforms = {copies, given.num_transforms};
  s->first_segment = p.num_segments;
  s->num_segments =
      windowSegmentsOf(given_[p.num_streams].transforms, s->channels, segments_ + p.num_segments);
  p.num_segments += s->num_segments;
  s->out_channels = outChannelsOf(segments_ + s->first_segment, s->num_segments);
}

RealGrid WindowBuilder::readGrid(const rbcTensor* tensor, const char* name, const WindowStream& s) {
  if (tensor == nullptr) return {};
  if (s.values == nullptr)
    fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is given, but values are null", name);
  const View& view = operands.in(tensor, name);
  requireRank(view, name, 1, 2);
  const int64_t shape[] = {s.num_offsets, s.out_channels};
  requireShape(view, name, view.ndim, shape + 2 - view.ndim);
  if (view.dtype != DType::F32 && view.dtype != DType::F64) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "%s: dtype is %s, expected float32 or float64", name,
         nameOf(view.dtype));
  }
  return {beginOf(view),
          {view.ndim == 2 ? view.strides[0] : 0, view.strides[view.ndim - 1]},
          view.dtype == DType::F64};
}

void WindowBuilder::readGrids(const rbcWindowStream& given, WindowStream* s) {
  s->shift = readGrid(given.shift, "shift", *s);
  s->scale = readGrid(given.scale, "scale", *s);
  s->bias = readGrid(given.bias, "bias", *s);
  s->low = readGrid(given.low, "low", *s);
  s->high = readGrid(given.high, "high", *s);
  if (s->pad != WindowPad::kNeutral) {
    for (const rbcTensor* tensor : {given.neutral, given.neutral_channels}) {
      if (tensor == nullptr) continue;
      fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is given, but pad is %d, expected RBC_PAD_NEUTRAL",
           tensor == given.neutral ? "neutral" : "neutral_channels", given.pad);
    }
    return;
  }
  if (s->values == nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "pad: is RBC_PAD_NEUTRAL, but values are null, expected RBC_PAD_HOLD or _FILL");
  }
  s->neutral = readGrid(given.neutral, "neutral", *s);
  if (given.neutral_channels == nullptr) return;
  const View& channels = operands.in(given.neutral_channels, "neutral_channels");
  requireShape(channels, "neutral_channels", 1, &s->out_channels);
  requireBoolean(channels, "neutral_channels");
  s->neutral_channels = static_cast<const uint8_t*>(beginOf(channels));
  s->neutral_channels_stride = channels.strides[0];
}

void WindowBuilder::readOutputs(const rbcWindowStream& given, WindowStream* s) {
  const View* out = operands.optionalOut(given.out, "out");
  const View* valid = operands.optionalOut(given.valid, "valid");
  const int64_t shape[] = {problem_.windows, s->num_offsets, s->out_channels};
  if (out != nullptr) {
    requireShape(*out, "out", s->values != nullptr ? 3 : 2, shape);
    s->out = {
        out->count > 0 ? out->data : nullptr, {out->strides[0], out->strides[1], 0}, out->dtype};
    if (s->values != nullptr) s->out.stride[2] = out->strides[2];
  }
  given_[problem_.num_streams].has_out = out != nullptr;
  if (valid != nullptr) {
    requireShape(*valid, "valid", 2, shape);
    requireBoolean(*valid, "valid");
    s->valid = reinterpret_cast<uint8_t*>(valid->data);
    std::copy_n(valid->strides, 2, s->valid_stride);
  }
}

void WindowBuilder::finishAnchors() {
  const WindowProblem& p = problem_;
  const DType expected = p.anchors_are_times ? p.time_dtype : DType::I64;
  if (anchors_.dtype != expected) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "anchors: dtype is %s, expected %s%s", nameOf(anchors_.dtype),
         nameOf(expected), p.anchors_are_times ? " as times" : "");
  }
}

// What the streams have to know of each other, and what follows from that.
void WindowBuilder::finishStream(int32_t n) {
  const WindowProblem& p = problem_;
  WindowStream& s = streams_[n];
  if (s.interpolates && !p.anchors_are_times && streams_[p.anchor_stream].times == nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "mode: is interpolate, but the anchors are rows of streams[%d], which has no times",
         p.anchor_stream);
  }
  requireReferences(given_[n].transforms, streams_, p.num_streams);
  s.in_double = s.values != nullptr && computesInDouble(s.values_dtype);
  for (int32_t i = s.first_segment; i < s.first_segment + s.num_segments; ++i) {
    if (segments_[i].kind == WindowKind::kCopy) continue;
    s.in_double |= computesInDouble(streams_[segments_[i].reference_stream].values_dtype);
  }
  if (given_[n].has_out) {
    const bool as_it_is = copies(s) && !s.normalizes() && !s.clips() && s.neutral.data == nullptr;
    requireOutDtype(s, s.out.dtype, as_it_is, "out");
    s.fill_bits = elementBits(given_[n].fill_value, s.out.dtype, "fill_value");
  }
  addAccumulation(n);
}

bool WindowBuilder::copies(const WindowStream& s) const {
  return copiesAll(segments_ + s.first_segment, s.num_segments);
}

void WindowBuilder::addAccumulation(int32_t n) {
  const WindowStream& s = streams_[n];
  if (given_[n].accumulator == nullptr) return;
  rbcStatisticsAccumulator& accumulator = requireAccumulator(context_, given_[n].accumulator);
  if (s.values == nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "accumulator: is given, but values are null");
  }
  for (int32_t i = 0; i < num_accumulations_; ++i) {
    if (accumulations_[i].accumulator != &accumulator) continue;
    fail(RBC_STATUS_INVALID_ARGUMENT, "accumulator: is that of streams[%d], expected another",
         accumulations_[i].stream);
  }
  const AccumulatorKind& kind = accumulator.settled.kind;
  if (kind.resolved) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "accumulator: its passes are over, and it takes no more samples");
  }
  int64_t all = 0;
  const bool fits = !__builtin_mul_overflow(s.num_offsets, s.out_channels, &all);
  const bool per_channel = kind.channels == s.out_channels;
  if (!per_channel && !(fits && kind.channels == all)) {
    fail(RBC_STATUS_SHAPE_MISMATCH,
         "accumulator: channels are %" PRId64 ", expected %" PRId64 ", or those of each of %" PRId64
         " offsets",
         kind.channels, s.out_channels, s.num_offsets);
  }
  if (kind.has_dtype) requireOutDtype(s, kind.dtype, copies(s), "accumulator");
  const DType dtype = kind.has_dtype ? kind.dtype : s.in_double ? DType::F64 : DType::F32;
  int64_t samples = problem_.windows;
  if (per_channel && __builtin_mul_overflow(samples, s.num_offsets, &samples)) {
    samples = std::numeric_limits<int64_t>::max();
  }
  requireRoom(accumulator, samples, "accumulator");
  accumulations_[num_accumulations_++] = {n,     &accumulator, stateOf(accumulator, dtype),
                                          dtype, !per_channel, samples};
}

}  // namespace rbc
