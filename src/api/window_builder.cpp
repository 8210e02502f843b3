#include "window_builder.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <limits>

#include "channel_groups.h"
#include "dtype_checks.h"
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
  requireIndexes(episodes_, "episodes");
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
  s.angle_dtype = DType::F64;
  if (given_[n].has_out) {
    if (copies(s) && !s.normalizes() && !s.clips()) s.angle_dtype = s.out.dtype;
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
