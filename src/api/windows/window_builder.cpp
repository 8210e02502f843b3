
#include "windows/window_builder.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <type_traits>

#include "fuse/channel_groups.h"
#include "fuse/fuse_builder.h"
#include "fuse/times_check.h"
#include "operation.h"
#include "real.h"
#include "rotations/rotation_format.h"
#include "runtime/dtype_checks.h"
#include "scratch_layout.h"
#include "statistics_problem.h"
#include "status.h"
#include "window_pose.h"

namespace rbc {

// ----

namespace {

static_assert(RBC_WINDOWS_TRANSFORM_COPY == static_cast<int>(WindowKind::kCopy) &&
              RBC_WINDOWS_TRANSFORM_SUBTRACT == static_cast<int>(WindowKind::kSubtract) &&
              RBC_WINDOWS_TRANSFORM_SE3_RELATIVE == static_cast<int>(WindowKind::kRelative) &&
              RBC_WINDOWS_TRANSFORM_SE3_WORLD == static_cast<int>(WindowKind::kWorld) &&
              RBC_WINDOWS_TRANSFORM_SE3_STEP == static_cast<int>(WindowKind::kStep));

// The name of a transform's field, for an error.
struct FieldName {
  FieldName(int32_t index, const char* field) {
    std::snprintf(text, sizeof text, "transforms[%d].%s", index, field);
  }
  char text[64];
};

WindowSegment segmentOf(const rbcWindowsTransform& t, int32_t index) {
  if (t.kind < RBC_WINDOWS_TRANSFORM_COPY || t.kind > RBC_WINDOWS_TRANSFORM_SE3_STEP) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "transforms[%d].kind: is %d, expected RBC_WINDOWS_TRANSFORM_COPY, _SUBTRACT, "
         "_SE3_RELATIVE, "
         "_SE3_WORLD or _SE3_STEP",
         index, t.kind);
  }
  if ((t.flags & ~RBC_WINDOWS_TRANSFORM_FLAG_INVERSE) != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "transforms[%d].flags: 0x%" PRIx32
         " has unknown bits, expected RBC_WINDOWS_TRANSFORM_FLAG_INVERSE or 0",
         index, t.flags);
  }
  if (t.reserved0 != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "transforms[%d]: reserved0 is not 0", index);
  }
  WindowSegment s = {};
  s.begin = t.begin;
  s.count = s.out_count = t.count;
  s.kind = static_cast<WindowKind>(t.kind);
  if (s.kind == WindowKind::kCopy) return s;
  s.inverse = (t.flags & RBC_WINDOWS_TRANSFORM_FLAG_INVERSE) != 0;
  s.reference_begin = t.reference_begin;
  s.reference_stream = t.reference_stream_index;
  s.reference_offset = t.reference_offset_index;
  if (!s.isPose()) return s;
  s.rotation = rotationFormatOf(t.rotation, FieldName(index, "rotation").text);
  s.reference_rotation =
      rotationFormatOf(t.reference_rotation, FieldName(index, "reference_rotation").text);
  s.out_rotation = rotationFormatOf(t.out_rotation, FieldName(index, "out_rotation").text);
  const int channels = channelsOf(s.rotation.kind);
  if (t.count != kPositionChannels + channels) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "transforms[%d].count: is %" PRId64 ", expected %d: 3 of the position and %d of %s", index,
         t.count, kPositionChannels + channels, channels, textOf(s.rotation));
  }
  s.out_count = kPositionChannels + channelsOf(s.out_rotation.kind);
  return s;
}

void requireReference(const WindowSegment& segment, int32_t index, const WindowStream* streams,
                      int32_t num_streams) {
  if (segment.kind == WindowKind::kCopy) return;
  if (segment.reference_stream < 0 || segment.reference_stream >= num_streams) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "transforms[%d].reference_stream_index: is %d, expected 0 to %d: a stream of the call",
         index, segment.reference_stream, num_streams - 1);
  }
  const WindowStream& s = streams[segment.reference_stream];
  if (s.values == nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "transforms[%d].reference_stream_index: is %d, which has no values to refer to", index,
         segment.reference_stream);
  }
  if (segment.reference_offset < 0 || segment.reference_offset >= s.num_offsets) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "transforms[%d].reference_offset_index: is %d, expected the index of one of the %" PRId64
         " offsets of streams[%d]",
         index, segment.reference_offset, s.num_offsets, segment.reference_stream);
  }
  const int64_t count = segment.isPose()
                            ? kPositionChannels + channelsOf(segment.reference_rotation.kind)
                            : segment.count;
  if (segment.reference_begin < 0 || segment.reference_begin > s.channels ||
      count > s.channels - segment.reference_begin) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "transforms[%d].reference_begin: is %" PRId64 ", expected %" PRId64
         " channels from there within the %" PRId64 " of streams[%d]",
         index, segment.reference_begin, count, s.channels, segment.reference_stream);
  }
}

}  // namespace

int32_t windowSegmentsOf(const WindowTransforms& transforms, int64_t channels,
                         WindowSegment* segments) {
  WindowSegment stream[kMaxWindowTransforms];
  int32_t order[kMaxWindowTransforms] = {};
  for (int32_t i = 0; i < transforms.count; ++i) {
    stream[i] = segmentOf(transforms.list[i], i);
    const WindowSegment& s = stream[i];
    if (s.count < 1) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "transforms[%d].count: is %" PRId64 ", expected 1 or more",
           i, s.count);
    }
    if (s.begin < 0 || s.begin > channels || s.count > channels - s.begin) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "transforms[%d]: begins at channel %" PRId64 " and has %" PRId64
           " channels, expected them within the %" PRId64 " channels of values",
           i, s.begin, s.count, channels);
    }
    order[i] = i;
  }
  std::sort(order, order + transforms.count,
            [&](int32_t a, int32_t b) { return stream[a].begin < stream[b].begin; });
  int32_t count = 0;
  int64_t begin = 0;
  int64_t out_begin = 0;
  const auto add = [&](const WindowSegment& segment) {
    segments[count] = segment;
    segments[count].out_begin = out_begin;
    begin += segment.count;
    if (__builtin_add_overflow(out_begin, segment.out_count, &out_begin)) {
      fail(RBC_STATUS_SHAPE_MISMATCH, "values: %" PRId64 " channels become more than 2^63 - 1",
           channels);
    }
    ++count;
  };
  const auto copyUpTo = [&](int64_t end) {
    if (end == begin) return;
    WindowSegment copied = {};
    copied.begin = begin;
    copied.count = copied.out_count = end - begin;
    add(copied);
  };
  for (int32_t i = 0; i < transforms.count; ++i) {
    const WindowSegment& segment = stream[order[i]];
    if (segment.begin < begin) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "transforms[%d]: shares channel %" PRId64 " with transforms[%d]", order[i],
           segment.begin, order[i - 1]);
    }
    copyUpTo(segment.begin);
    add(segment);
  }
  copyUpTo(channels);
  return count;
}

int64_t outChannelsOf(const WindowSegment* segments, int32_t count) {
  return count > 0 ? segments[count - 1].out_begin + segments[count - 1].out_count : 0;
}

bool copiesAll(const WindowSegment* segments, int32_t count) {
  return std::all_of(segments, segments + count,
                     [](const WindowSegment& s) { return s.kind == WindowKind::kCopy; });
}

void requireReferences(const WindowTransforms& transforms, const WindowStream* streams,
                       int32_t num_streams) {
  for (int32_t i = 0; i < transforms.count; ++i) {
    requireReference(segmentOf(transforms.list[i], i), i, streams, num_streams);
  }
}

// ----

namespace {

constexpr int64_t kBlockBytes = 4 << 20;

// Returns the number of windows that are computed at a time, at least one.
int64_t windowsOfBlock(const WindowProblem& p, const WindowAccumulation& a) {
  const WindowStream& s = p.streams[a.stream];
  int64_t bytes = 0;
  if (__builtin_mul_overflow(s.num_offsets, s.out_channels * sizeOf(a.dtype) + 1, &bytes)) {
    fail(RBC_STATUS_OUT_OF_MEMORY, "outputs[%d].accumulator: the size of a window exceeds 64 bits",
         a.stream);
  }
  return std::clamp<int64_t>(kBlockBytes / std::max<int64_t>(bytes, 1), 1, p.windows);
}

bool empty(const WindowProblem& p, const WindowAccumulation& a) {
  return p.windows == 0 || p.streams[a.stream].num_offsets == 0 ||
         p.streams[a.stream].out_channels == 0;
}

// Some windows of one stream: not normalized, and written to scratch memory only.
class Block {
 public:
  Block(const rbcContext& context, const WindowProblem& p, const WindowAccumulation& a, void* data)
      : all_(p), accumulation_(a), windows_(windowsOfBlock(p, a)), problem_(p) {
    std::copy_n(p.streams, p.num_streams, streams_);
    problem_.streams = streams_;
    for (int32_t n = 0; n < p.num_streams; ++n) {
      streams_[n].out.data = nullptr;
      streams_[n].valid = nullptr;
    }
    WindowStream& s = streams_[a.stream];
    s.shift = s.scale = s.bias = s.low = s.high = s.neutral = {};
    s.angle_dtype = DType::F64;
    if (s.outside == Outside::kNeutral) s.outside = Outside::kHold;
    const int64_t row = s.num_offsets * s.out_channels;
    ScratchLayout layout(data);
    s.out = {layout.take<std::byte>(windows_ * row * sizeOf(a.dtype)),
             {row, s.out_channels, 1},
             a.dtype};
    s.counted = layout.take<uint8_t>(windows_ * s.num_offsets);
    s.fill_bits = 0;

    Samples& samples = samples_.samples;
    samples.data = s.out.data;
    samples.dtype = a.dtype;
    samples.channels = a.per_step ? row : s.out_channels;
    samples.channel_stride = 1;
    samples.mask = s.counted;
    samples.batch = 1;
    samples.axes = 1;
    if (a.per_step) {
      samples.mask_channels = s.out_channels;
      samples.mask_channel_stride = 1;
      samples.axis[0] = {0, row, s.num_offsets};
    } else {
      samples.axis[0] = {0, s.out_channels, 1};
    }
    samples_.state = a.state;
    setWindows(0, windows_);

    const auto bytes = [&](const auto& problem) {
      return operationFor<std::decay_t<decltype(problem)>>(*context.backend)
          .workspaceBytes(*context.state, problem);
    };
    scratch_.bytes = std::max(bytes(problem_), bytes(samples_));
    scratch_.data = layout.take<std::byte>(static_cast<int64_t>(scratch_.bytes));
    used_ = layout.used();
  }

  size_t used() const { return used_; }

  void run(rbcContext& context) {
    BackendState& state = *context.state;
    for (int64_t first = 0; first < all_.windows; first += windows_) {
      if (first > 0 && state.interrupt.stopped()) state.interrupt.requireRunning();
      setWindows(first, std::min(windows_, all_.windows - first));
      operationFor<WindowProblem>(*context.backend).run(state, problem_, scratch_);
      const LaunchChoice of_windows = state.last_launch;
      operationFor<AccumulateProblem>(*context.backend).run(state, samples_, scratch_);
      state.last_launch = of_windows;
    }
  }

 private:
  void setWindows(int64_t first, int64_t count) {
    const auto advanced = [first](const void* data, int64_t stride, int size) {
      return static_cast<const std::byte*>(data) + first * stride * size;
    };
    problem_.windows = count;
    problem_.episode_of.data =
        advanced(all_.episode_of.data, all_.episode_of.stride, all_.episode_of.is_64 ? 8 : 4);
    problem_.anchors = advanced(all_.anchors, all_.anchors_stride,
                                sizeOf(all_.anchors_are_times ? all_.time_dtype : DType::I64));
    Samples& samples = samples_.samples;
    samples.rows =
        accumulation_.per_step ? count : count * all_.streams[accumulation_.stream].num_offsets;
    samples.axis[0].extent = samples.rows;
  }

  const WindowProblem& all_;
  const WindowAccumulation& accumulation_;
  const int64_t windows_;
  WindowProblem problem_;
  WindowStream streams_[kMaxWindowStreams];
  AccumulateProblem samples_ = {};
  Scratch scratch_ = {};
  size_t used_ = 0;
};

}  // namespace

size_t accumulateBytes(const rbcContext& context, const WindowProblem& problem,
                       const WindowAccumulation& accumulation) {
  if (empty(problem, accumulation)) return 0;
  return Block(context, problem, accumulation, nullptr).used();
}

void accumulateWindows(rbcContext& context, const WindowProblem& problem,
                       const WindowAccumulation& accumulation, Scratch scratch) {
  // From here on only the work itself can fail: it is interrupted, or the device fails.
  rbcAccumulator& accumulator = *accumulation.accumulator;
  accumulator.settled.kind.has_dtype = true;
  accumulator.settled.kind.dtype = accumulation.dtype;
  accumulator.most_samples += accumulation.samples;
  if (!empty(problem, accumulation)) {
    Block(context, problem, accumulation, scratch.data).run(context);
  }
}

namespace {

static_assert(RBC_WINDOWS_MAX_STREAMS == kMaxWindowStreams);
static_assert(RBC_WINDOWS_MAX_TRANSFORMS == kMaxWindowTransforms);
static_assert(RBC_OUTSIDE_HOLD == static_cast<int>(Outside::kHold) &&
              RBC_OUTSIDE_FILL == static_cast<int>(Outside::kFill) &&
              RBC_OUTSIDE_EXTRAPOLATE == static_cast<int>(Outside::kExtrapolate) &&
              RBC_OUTSIDE_NEUTRAL == static_cast<int>(Outside::kNeutral));
static_assert(RBC_WINDOWS_ACCUMULATE_ALL == static_cast<int>(WindowRule::kAll) &&
              RBC_WINDOWS_ACCUMULATE_VALID == static_cast<int>(WindowRule::kValid) &&
              RBC_WINDOWS_ACCUMULATE_WHOLE == static_cast<int>(WindowRule::kWhole));

// `unchanged`: values are neither transformed nor normalized.
void requireOutDtype(const WindowStream& s, DType dtype, bool unchanged, const char* argument) {
  if (s.values == nullptr) {
    if (dtype == DType::I64) return;
    fail(RBC_STATUS_DTYPE_MISMATCH, "%s: dtype is %s, expected int64 for numbers of rows", argument,
         nameOf(dtype));
  }
  if (isFloat(dtype) || (unchanged && dtype == s.values_dtype)) return;
  if (unchanged && !isFloat(s.values_dtype)) {
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
    inElement("streams", n, [&](const char** separator) {
      const rbcWindowsStream stream =
          readElement(call.streams, stride, n, rbcWindowsStreamInit(), "streams");
      *separator = ".";  // from here on messages begin with a field
      addStream(stream);
    });
  }
  const uint32_t outputs_stride = structSize(call.outputs);
  for (int32_t n = 0; n < call.num_streams; ++n) {
    inElement("outputs", n, [&](const char** separator) {
      const rbcWindowsOutputs outputs =
          readElement(call.outputs, outputs_stride, n, rbcWindowsOutputsInit(), "outputs");
      *separator = ".";
      readOutputs(outputs, n);
    });
  }
  finishAnchors();
  for (int32_t n = 0; n < p.num_streams; ++n) {
    inElement("streams", n, [&](const char** separator) {
      *separator = ".";
      finishStream(n);
    });
    inElement("outputs", n, [&](const char** separator) {
      *separator = ".";
      finishOutput(n);
    });
    inElement("streams", n, [&](const char** separator) {
      *separator = ".";
      finishFill(n);
    });
    inElement("outputs", n, [&](const char** separator) {
      *separator = ".";
      addAccumulation(n);
    });
  }
  operands.setStream(-1);
  p.streams = streams_;
  p.segments = segments_;
  p.methods = methods_;
  causal_.lag = timeOffsetOf(params_.lag, params_.lag_ticks, p.time_dtype, "params.lag");
  causal_.arrivals = arrivals_;
  causal_.ages = ages_;
  causal_.episodes = p.episodes;
}

// Calls `body`. An error of it gets the array's element and the separator as a prefix; `body` may
// set the separator through its argument.
template <class Body>
void WindowBuilder::inElement(const char* array, int32_t n, Body&& body) {
  operands.setStream(n, array);
  const char* separator = ": ";
  try {
    body(&separator);
  } catch (const Error&) {
    prefixLastError("%s[%d]%s", array, n, separator);
    throw;
  }
}

void WindowBuilder::readShared(const WindowArguments& call) {
  WindowProblem& p = problem_;
  if (call.num_streams < 1 || call.num_streams > kMaxWindowStreams) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "num_streams: is %d, expected 1 to %d", call.num_streams,
         kMaxWindowStreams);
  }
  if (call.streams == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "streams: is null");
  if (call.outputs == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "outputs: is null");
  if (params_.anchor_stream_index < 0 || params_.anchor_stream_index >= call.num_streams) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "anchor_stream_index: is %d, expected 0 to %d",
         params_.anchor_stream_index, call.num_streams - 1);
  }
  p.anchor_stream = params_.anchor_stream_index;
  p.anchors_are_times = (params_.flags & RBC_WINDOWS_FLAG_ANCHOR_TIMES) != 0;
  requireRank(episodes_, "episodes", 1, 1);
  requireIndexes(episodes_, "episodes");
  p.windows = episodes_.shape[0];
  requireShape(anchors_, "anchors", 1, &p.windows);
  p.episode_of = {episodes_.data, episodes_.strides[0], episodes_.dtype == DType::I64};
  p.anchors = anchors_.data;
  p.anchors_stride = anchors_.strides[0];
  p.time_dtype = DType::F32;
}

void WindowBuilder::addStream(const rbcWindowsStream& stream) {
  WindowStream& s = streams_[problem_.num_streams];
  s = {};
  arguments_[problem_.num_streams] = {};
  if (stream.mode != RBC_WINDOWS_MODE_GATHER && stream.mode != RBC_WINDOWS_MODE_INTERPOLATE) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "mode: is %d, expected RBC_WINDOWS_MODE_GATHER or _INTERPOLATE", stream.mode);
  }
  s.interpolates = stream.mode == RBC_WINDOWS_MODE_INTERPOLATE;
  readRows(stream, &s);
  readOffsets(stream, &s);
  readParameters(stream, &s);
  readTransforms(stream, &s);
  readGrids(stream, &s);
  ++problem_.num_streams;
}

void WindowBuilder::finishAnchors() {
  const WindowProblem& p = problem_;
  const DType expected = p.anchors_are_times ? p.time_dtype : DType::I64;
  if (anchors_.dtype != expected) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "anchors: dtype is %s, expected %s%s", nameOf(anchors_.dtype),
         nameOf(expected), p.anchors_are_times ? " as times" : "");
  }
}

// Checks a stream against the others, and sets the fields that depend on them.
void WindowBuilder::finishStream(int32_t n) {
  const WindowProblem& p = problem_;
  WindowStream& s = streams_[n];
  if (s.interpolates && !p.anchors_are_times && streams_[p.anchor_stream].times == nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "mode: is interpolate, but the anchors are rows of streams[%d], which has no times",
         p.anchor_stream);
  }
  if (arrivals_[n].data != nullptr && !p.anchors_are_times &&
      streams_[p.anchor_stream].times == nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "params.arrivals: is set, but the anchors are rows of streams[%d], which has no times",
         p.anchor_stream);
  }
  requireReferences(arguments_[n].transforms, streams_, p.num_streams);
  s.in_double = s.values != nullptr && computesInDouble(s.values_dtype);
  for (int32_t i = s.first_segment; i < s.first_segment + s.num_segments; ++i) {
    if (segments_[i].kind == WindowKind::kCopy) continue;
    s.in_double |= computesInDouble(streams_[segments_[i].reference_stream].values_dtype);
  }
  s.angle_dtype = DType::F64;
}

void WindowBuilder::finishOutput(int32_t n) {
  WindowStream& s = streams_[n];
  if (!arguments_[n].has_out) return;
  const bool plain = copies(s) && !s.normalizes() && !s.clips();
  if (plain) s.angle_dtype = s.out.dtype;
  requireOutDtype(s, s.out.dtype, plain && s.neutral.data == nullptr, "out");
}

// Converts the fill value to the dtype of the output; fails if it cannot be written.
void WindowBuilder::finishFill(int32_t n) {
  WindowStream& s = streams_[n];
  if (arguments_[n].has_out)
    s.fill_bits = elementBits(arguments_[n].fill_value, s.out.dtype, "fill_value");
}

bool WindowBuilder::copies(const WindowStream& s) const {
  return copiesAll(segments_ + s.first_segment, s.num_segments);
}

void WindowBuilder::addAccumulation(int32_t n) {
  const WindowStream& s = streams_[n];
  if (arguments_[n].accumulator == nullptr) return;
  rbcAccumulator& accumulator = requireAccumulator(context_, arguments_[n].accumulator);
  if (s.values == nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "accumulator: is set, expected null because values is null");
  }
  for (int32_t i = 0; i < num_accumulations_; ++i) {
    if (accumulations_[i].accumulator != &accumulator) continue;
    fail(RBC_STATUS_INVALID_ARGUMENT, "accumulator: is that of outputs[%d], expected another",
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
         "accumulator: has %" PRId64 " channels, expected %" PRId64 ", or %" PRId64 " * %" PRId64
         " to count each offset separately",
         kind.channels, s.out_channels, s.num_offsets, s.out_channels);
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
