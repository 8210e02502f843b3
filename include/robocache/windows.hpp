// Training samples cut out of episodes. See robocache.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "resample.hpp"
#include "rotations.hpp"
#include "statistics.hpp"
#include "windows.h"

ROBOCACHE_NAMESPACE_BEGIN

// The elements that an accumulator adds: see RBC_WINDOWS_ACCUMULATE_... in windows.h.
enum class Accumulate : int32_t {
  kAll = RBC_WINDOWS_ACCUMULATE_ALL,
  kValid = RBC_WINDOWS_ACCUMULATE_VALID,
  kWhole = RBC_WINDOWS_ACCUMULATE_WHOLE,
};

// Transforms to poses relative to another pose: see RBC_WINDOWS_TRANSFORM_SE3_... in windows.h.
enum class PoseTransform : int32_t {
  kRelative = RBC_WINDOWS_TRANSFORM_SE3_RELATIVE,
  kWorld = RBC_WINDOWS_TRANSFORM_SE3_WORLD,
  kStep = RBC_WINDOWS_TRANSFORM_SE3_STEP,
};

// The reference of a transform: a stream of the call by index, one of its offsets by index, and its
// first channel.
struct WindowsReference {
  int32_t stream = 0;
  int32_t offset = 0;
  int64_t begin = 0;
};

// Returns a transform that subtracts the reference's channels from the channels begin .. begin +
// count - 1; with `inverse` it adds them.
inline rbcWindowsTransform subtract(int64_t begin, int64_t count, const WindowsReference& reference,
                                    bool inverse = false) noexcept {
  rbcWindowsTransform t = {};
  t.begin = begin;
  t.count = count;
  t.kind = RBC_WINDOWS_TRANSFORM_SUBTRACT;
  t.flags = inverse ? RBC_WINDOWS_TRANSFORM_FLAG_INVERSE : 0;
  t.reference_stream_index = reference.stream;
  t.reference_offset_index = reference.offset;
  t.reference_begin = reference.begin;
  return t;
}

// Returns a transform of a pose to a pose relative to the reference. The `count` channels are 3 of
// a position and then a rotation in the representation `rotation`; the result has 3 channels and
// then a rotation in the representation `out`. The reference's rotation has the representation
// `reference_rotation`, by default `rotation`.
inline rbcWindowsTransform relativePose(PoseTransform kind, int64_t begin, int64_t count,
                                        const WindowsReference& reference, Rotation rotation,
                                        Rotation out, bool inverse = false,
                                        std::optional<Rotation> reference_rotation = {}) noexcept {
  rbcWindowsTransform t = subtract(begin, count, reference, inverse);
  t.kind = static_cast<int32_t>(kind);
  t.rotation = static_cast<int32_t>(rotation);
  t.reference_rotation = static_cast<int32_t>(reference_rotation.value_or(rotation));
  t.out_rotation = static_cast<int32_t>(out);
  return t;
}

// One stream of the episodes, and how its windows are computed: see rbcWindowsStream in windows.h.
// It does not own the memory.
struct WindowsStream {
  // Without values `out` receives row numbers.
  WindowsStream(std::optional<Tensor> rows, const Tensor& ends, const Tensor& at)
      : values(rows), episode_offsets(ends), offsets(at) {}

  std::optional<Tensor> values;  // [n,D]
  Tensor episode_offsets;        // [E+1] i32 or i64
  Tensor offsets;                // [O] i32 or i64 rows; interpolated: the dtype of times
  std::optional<Tensor> times;   // [n] f32, f64 or i64
  bool interpolate = false;      // at offsets in time, by `method` or `groups`
  Outside outside = Outside::kHold;
  Method method = Method::kLinear;
  std::vector<rbcChannelGroup> groups;  // must cover all channels; empty: method
  double fill_value = 0;                // written to invalid elements
  double max_gap = INFINITY;            // in the unit of times
  double tolerance = INFINITY;
  std::optional<Tensor> sample_mask;  // [n] bool or u8: 0 where a row is missing
  std::optional<Tensor> arrivals;     // [n], the dtype of times: when each row had arrived
  bool causal = false;                // interpolated, without groups: it looks back only
  double max_age = INFINITY;          // the same: how old a valid row may be
  double clock_offset = 0;            // for f32, f64 times: added to the time of each row
  int64_t clock_offset_ticks = 0;     // the same for i64 times
  std::vector<rbcWindowsTransform> transforms;
  std::optional<Tensor> shift;  // [D'] or [O,D'], f32 or f64: (x - shift) * scale + bias
  std::optional<Tensor> scale;
  bool scale_divides = false;  // (x - shift) / scale + bias
  std::optional<Tensor> bias;
  std::optional<Tensor> clip_min;
  std::optional<Tensor> clip_max;
  std::optional<Tensor> neutral;           // values past the end, with Outside::kNeutral
  std::optional<Tensor> neutral_channels;  // [D'] bool or u8
  const Accumulator* accumulator = nullptr;
  Accumulate accumulate = Accumulate::kAll;
  std::optional<Tensor> out;    // [B,O,D'], or [B,O] without values; written whole
  std::optional<Tensor> valid;  // [B,O] bool or u8, written
};

// The options of windows.
struct WindowsOptions {
  bool check_times = false;   // verify episodes and times first; on CUDA this waits for the stream
  bool anchor_times = false;  // anchors are times, not rows
  int32_t anchor_stream_index = 0;  // the stream whose rows are the anchors
  double lag = 0;         // for f32, f64 times: what arrived up to a time + lag exists for it
  int64_t lag_ticks = 0;  // the same for i64 times
};

namespace detail {

// Returns finish(call, arguments of rbcWindows...).
template <class Finish>
auto windows(const Finish& finish, const Context& context,
             const std::vector<WindowsStream>& streams, const Tensor& episodes,
             const Tensor& anchors, const WindowsOptions& options) {
  Call call;
  rbcResampleParams params[RBC_WINDOWS_MAX_STREAMS];
  rbcWindowsStream raw[RBC_WINDOWS_MAX_STREAMS];
  rbcWindowsOutputs outputs[RBC_WINDOWS_MAX_STREAMS];
  // If there are more, the library refuses their number before it reads any of them.
  const size_t used = std::min<size_t>(streams.size(), RBC_WINDOWS_MAX_STREAMS);
  for (size_t n = 0; n < used; ++n) {
    const WindowsStream& stream = streams[n];
    call.enterStream(static_cast<int>(n));
    params[n] = rbcResampleParamsInit();
    params[n].method = static_cast<int32_t>(stream.method);
    params[n].outside = static_cast<int32_t>(stream.outside);
    params[n].fill_value = stream.fill_value;
    params[n].max_gap = stream.max_gap;
    params[n].tolerance = stream.tolerance;
    params[n].sample_mask = call.in(stream.sample_mask, "sample_mask");
    params[n].arrivals = call.in(stream.arrivals, "arrivals");
    if (stream.causal) params[n].flags |= RBC_FLAG_CAUSAL;
    params[n].max_age = stream.max_age;
    params[n].groups = stream.groups.empty() ? nullptr : stream.groups.data();
    params[n].num_groups = count(stream.groups);
    rbcWindowsStream& s = raw[n] = rbcWindowsStreamInit();
    s.values = call.in(stream.values, "values");
    s.episode_offsets = call.in(stream.episode_offsets, "episode_offsets");
    s.times = call.in(stream.times, "times");
    s.offsets = call.in(stream.offsets, "offsets");
    s.mode = stream.interpolate ? RBC_WINDOWS_MODE_INTERPOLATE : RBC_WINDOWS_MODE_GATHER;
    s.params = &params[n];
    s.clock_offset = stream.clock_offset;
    s.clock_offset_ticks = stream.clock_offset_ticks;
    s.transforms = stream.transforms.empty() ? nullptr : stream.transforms.data();
    s.num_transforms = count(stream.transforms);
    s.shift = call.in(stream.shift, "shift");
    s.scale = call.in(stream.scale, "scale");
    if (stream.scale_divides) s.flags |= RBC_WINDOWS_FLAG_SCALE_DIVIDES;
    s.bias = call.in(stream.bias, "bias");
    s.clip_min = call.in(stream.clip_min, "clip_min");
    s.clip_max = call.in(stream.clip_max, "clip_max");
    s.neutral = call.in(stream.neutral, "neutral");
    s.neutral_channels = call.in(stream.neutral_channels, "neutral_channels");
    outputs[n] = rbcWindowsOutputsInit();
    outputs[n].out = call.out(stream.out, "out");
    outputs[n].valid = call.out(stream.valid, "valid");
    outputs[n].accumulator = stream.accumulator != nullptr ? stream.accumulator->get() : nullptr;
    outputs[n].accumulate = static_cast<int32_t>(stream.accumulate);
  }
  call.leaveStreams();
  rbcWindowsParams all = rbcWindowsParamsInit();
  all.flags = (options.check_times ? RBC_FLAG_CHECK_TIMES : 0) |
              (options.anchor_times ? RBC_WINDOWS_FLAG_ANCHOR_TIMES : 0);
  all.anchor_stream_index = options.anchor_stream_index;
  all.lag = options.lag;
  all.lag_ticks = options.lag_ticks;
  return finish(call, context.get(), raw, count(streams), call.in(episodes, "episodes"),
                call.in(anchors, "anchors"), outputs, &all);
}

}  // namespace detail

// Cuts training samples out of episodes, all streams in one launch.
//
//   streams   [N], 1 to RBC_WINDOWS_MAX_STREAMS
//   episodes  [B] i32 or i64: the episode of each sample
//   anchors   [B] i64 rows of an episode, or times
//
// See rbcWindows for dtypes, rules and errors. Asynchronous on CUDA, as resample.
template <class Errors = DefaultErrors>
Returned<Errors, void> windows(const Context& context, const std::vector<WindowsStream>& streams,
                               const Tensor& episodes, const Tensor& anchors,
                               const WindowsOptions& options = {}) {
  return detail::windows(detail::run<Errors>(rbcWindows), context, streams, episodes, anchors,
                         options);
}

// Returns the workspace size in bytes of this call of windows, for Context::reserve.
template <class Errors = DefaultErrors>
Returned<Errors, size_t> windowsWorkspaceSize(const Context& context,
                                              const std::vector<WindowsStream>& streams,
                                              const Tensor& episodes, const Tensor& anchors,
                                              const WindowsOptions& options = {}) {
  return detail::windows(detail::measure<Errors>(rbcWindowsWorkspaceSize), context, streams,
                         episodes, anchors, options);
}

ROBOCACHE_NAMESPACE_END
