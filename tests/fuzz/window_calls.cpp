// rbcWindows.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "fuzz/calls.h"
#include "fuzz/fill.h"

namespace fuzz {
namespace {

constexpr int kRotationChannels[] = {4, 4, 3, 9, 6, 6, 6};

int32_t anyRotation(Choices& choices) {
  return static_cast<int32_t>(choices.chance(80) ? choices.below(7) : choices.between(16, 27));
}
int64_t channelsOf(int32_t rotation) { return rotation < 7 ? kRotationChannels[rotation] : 3; }

struct Episodes {
  int64_t count;
  int64_t windows;
  rbcDType time;
  bool anchor_times;
};

// A stream that a transform may refer to: its offsets are known.
struct Made {
  int64_t channels;
  int64_t offsets;
};

int64_t addTransforms(Call& call, Choices& choices, rbcWindowsStream* stream, int64_t channels,
                      int32_t self, const std::vector<Made>& made) {
  std::vector<rbcWindowsTransform> transforms;
  int64_t out_channels = channels;
  for (int64_t begin = 0; begin < channels;) {
    rbcWindowsTransform t = {};
    t.begin = begin;
    t.count = choices.between(1, channels - begin);
    t.kind = static_cast<int32_t>(choices.below(5));
    t.flags = choices.chance(30) ? RBC_WINDOWS_TRANSFORM_FLAG_INVERSE : 0;
    t.reference_stream_index = self;
    t.reference_offset_index = static_cast<int32_t>(choices.below(made.back().offsets));
    t.reference_begin = begin;
    if (t.kind >= RBC_WINDOWS_TRANSFORM_SE3_RELATIVE) {
      t.rotation = t.reference_rotation = anyRotation(choices);
      t.out_rotation = choices.chance(50) ? t.rotation : anyRotation(choices);
      t.count = 3 + channelsOf(t.rotation);
      if (begin + t.count > channels) break;
      out_channels += channelsOf(t.out_rotation) - channelsOf(t.rotation);
    } else if (t.kind == RBC_WINDOWS_TRANSFORM_SUBTRACT && self > 0 && choices.chance(40)) {
      const Made& other = made[0];
      if (other.channels >= t.count && other.offsets > 0) {
        t.reference_stream_index = 0;
        t.reference_offset_index = static_cast<int32_t>(choices.below(other.offsets));
        t.reference_begin = choices.below(other.channels - t.count + 1);
      }
    }
    transforms.push_back(t);
    begin += t.count;
    if (choices.chance(40)) break;
  }
  if (transforms.empty()) return channels;
  const auto n = static_cast<int32_t>(transforms.size());
  stream->transforms =
      call.add("rbcWindowsTransform", transforms.data(), n)->get<rbcWindowsTransform>();
  stream->num_transforms = n;
  return out_channels;
}

rbcWindowsStream anyStream(Call& call, Choices& choices, const Episodes& e, int32_t self,
                           std::vector<Made>* made, rbcWindowsOutputs* outputs) {
  rbcWindowsStream stream = rbcWindowsStreamInit();
  const int64_t rows = anyExtent(choices, 40);
  int64_t channels = choices.chance(4) ? 0 : anyExtent(choices, choices.chance(30) ? 24 : 8);
  const int64_t offsets = choices.chance(4) ? 0 : anyExtent(choices, 8);
  const bool interpolates = choices.chance(35);
  const bool rows_only = !interpolates && choices.chance(8);
  const bool has_times = interpolates || e.anchor_times || choices.chance(60);
  const bool integers = !interpolates && choices.chance(20);
  const auto add = [&](const char* name, rbcDType dtype, const std::vector<int64_t>& shape,
                       Role role) { return call.add(choices, name, dtype, shape, role); };

  rbcDType dtype = integers ? choices.pick(support::kIntegerDTypes) : anyFloat(choices);
  Tensor* t = add("episode_offsets", anyIndex(choices), {e.count + 1}, Role::kInput);
  fillOffsets(call, *t, choices, rows);
  stream.episode_offsets = t->hold();
  if (has_times) {
    t = add("times", e.time, {rows}, Role::kInput);
    fillTimes(call, *t, choices);
    stream.times = t->hold();
  }
  const bool arrives = has_times && choices.chance(20);
  t = add("offsets", interpolates ? e.time : anyIndex(choices), {offsets}, Role::kInput);
  fillIntegers(call, *t, choices, -6, arrives && choices.chance(97) ? 0 : 12);
  stream.offsets = t->hold();
  stream.mode = interpolates ? RBC_WINDOWS_MODE_INTERPOLATE : RBC_WINDOWS_MODE_GATHER;
  const int32_t kOutside[] = {RBC_OUTSIDE_HOLD, RBC_OUTSIDE_FILL, RBC_OUTSIDE_NEUTRAL};
  const bool causal = interpolates && choices.chance(25);
  const int32_t outside = kOutside[choices.below(rows_only || arrives || causal ? 2 : 3)];
  made->push_back({channels, offsets});

  rbcResampleParams params = rbcResampleParamsInit();
  params.outside = outside;
  bool has_params = outside != RBC_OUTSIDE_HOLD || choices.chance(40);
  if (choices.chance(40)) params.fill_value = choices.pick({-1.0, 3.0});
  if (interpolates) {
    params.method = static_cast<int32_t>(choices.below(8));
    if (params.method == RBC_METHOD_SLERP && channels % 4 != 0) params.method = RBC_METHOD_LINEAR;
    if (choices.chance(30)) params.max_gap = choices.pick({1.0, 3.0});
    if (choices.chance(30)) params.tolerance = choices.pick({1.0, 3.0});
    if (causal) {
      params.flags = RBC_FLAG_CAUSAL;
      params.max_age = choices.pick({0.0, 1.0, 5.0, static_cast<double>(INFINITY)});
      params.tolerance = INFINITY;
      if (params.method == RBC_METHOD_NEXT && choices.chance(95)) params.method = 0;
      has_params = true;
    }
  }
  if (arrives) {
    t = add("arrivals", e.time, {rows}, Role::kInput);
    choices.chance(70) ? fillTimes(call, *t, choices) : fillReals(call, *t, choices, -2, 60);
    params.arrivals = t->hold();
    has_params = true;
  }
  if (choices.chance(30)) {
    t = add("sample_mask", anyFlag(choices), {rows}, Role::kInput);
    fillMask(call, *t, choices);
    params.sample_mask = t->hold();
    has_params = true;
  }
  if (has_params) stream.params = call.add("rbcResampleParams", &params)->get<rbcResampleParams>();
  if (has_times && e.time.code != RBC_DTYPE_INT && choices.chance(30)) stream.clock_offset = 0.5;
  if (has_times && e.time.code == RBC_DTYPE_INT && choices.chance(30))
    stream.clock_offset_ticks = 2;

  if (rows_only) {
    if (choices.chance(90)) {
      outputs->out = add("out", support::kI64, {e.windows, offsets}, Role::kOutput)->hold();
    }
  } else {
    t = add("values", dtype, {rows, channels}, Role::kInput);
    integers ? fillBits(call, *t, choices) : fillReals(call, *t, choices);
    stream.values = t->hold();
    int64_t out_channels = channels;
    bool plain = true;
    if (!integers && offsets > 0 && channels > 0 && choices.chance(35)) {
      out_channels = addTransforms(call, choices, &stream, channels, self, *made);
      plain = stream.num_transforms == 0;
    }
    const rbcTensor** const factors[] = {&stream.shift,    &stream.scale,    &stream.bias,
                                         &stream.clip_min, &stream.clip_max, &stream.neutral};
    const char* const names[] = {"shift", "scale", "bias", "clip_min", "clip_max", "neutral"};
    for (int i = 0; i < 6; ++i) {
      if (integers || !choices.chance(15)) continue;
      const std::vector<int64_t> shape = choices.chance(60)
                                             ? std::vector<int64_t>{out_channels}
                                             : std::vector<int64_t>{offsets, out_channels};
      t = add(names[i], anyReal(choices), shape, Role::kInput);
      fillReals(call, *t, choices);
      *factors[i] = t->hold();
      plain = false;
    }
    if (stream.scale != nullptr && choices.chance(40)) {
      stream.flags = RBC_WINDOWS_FLAG_SCALE_DIVIDES;
    }
    if (outside == RBC_OUTSIDE_NEUTRAL && choices.chance(40)) {
      t = add("neutral_channels", anyFlag(choices), {out_channels}, Role::kInput);
      fillMask(call, *t, choices);
      stream.neutral_channels = t->hold();
    }
    if (choices.chance(90)) {
      const rbcDType out = plain && choices.chance(60) ? dtype : anyFloat(choices);
      outputs->out = add("out", out, {e.windows, offsets, out_channels}, Role::kOutput)->hold();
    }
    if (out_channels > 0 && offsets > 0 && choices.chance(8)) {
      rbcAccumulatorParams accumulator = rbcAccumulatorParamsInit();
      accumulator.num_channels = choices.chance(50) ? out_channels : offsets * out_channels;
      call.accumulators.push_back(accumulator);
      // Holds the index until a machine has made it.
      outputs->accumulator = reinterpret_cast<rbcAccumulator_t>(call.accumulators.size());
      outputs->accumulate = static_cast<int32_t>(choices.below(3));
    }
  }
  if (choices.chance(50)) {
    outputs->valid = add("valid", anyFlag(choices), {e.windows, offsets}, Role::kOutput)->hold();
  }
  return stream;
}

}  // namespace

static std::unique_ptr<Call> makeWindows(Choices& choices) {
  auto call = std::make_unique<Call>("rbcWindows");
  Episodes e = {};
  e.count = choices.chance(5) ? 0 : choices.between(1, 5);
  e.windows = e.count == 0 ? 0 : choices.chance(5) ? 0 : anyExtent(choices, 6);
  e.time = choices.pick(support::kTimeDTypes);
  e.anchor_times = choices.chance(25);
  const auto count =
      static_cast<int32_t>(choices.chance(5) ? choices.between(5, 16) : choices.between(1, 4));
  std::vector<Made> made;
  std::vector<rbcWindowsStream> streams;
  std::vector<rbcWindowsOutputs> outputs;
  for (int32_t n = 0; n < count; ++n) {
    outputs.push_back(rbcWindowsOutputsInit());
    streams.push_back(anyStream(*call, choices, e, n, &made, &outputs.back()));
  }
  Tensor* episodes = call->add(choices, "episodes", anyIndex(choices), {e.windows}, Role::kInput);
  fillIntegers(*call, *episodes, choices, 0, e.count - 1);
  Tensor* anchors = call->add(choices, "anchors", e.anchor_times ? e.time : support::kI64,
                              {e.windows}, Role::kInput);
  e.anchor_times&& choices.chance(50) ? fillTimes(*call, *anchors, choices)
                                      : fillIntegers(*call, *anchors, choices, -3, 20);
  rbcWindowsParams params = rbcWindowsParamsInit();
  if (choices.chance(30)) params.flags |= RBC_FLAG_CHECK_TIMES;
  if (e.anchor_times) params.flags |= RBC_WINDOWS_FLAG_ANCHOR_TIMES;
  if (choices.chance(20)) params.anchor_stream_index = static_cast<int32_t>(choices.below(count));
  if (choices.chance(40)) {
    if (e.time.code == RBC_DTYPE_INT) {
      params.lag_ticks = choices.between(-2, 6);
    } else {
      params.lag = choices.uniform(-1, 6);
    }
  }
  Struct* array = call->add("rbcWindowsStream", streams.data(), count);
  Struct* written = call->add("rbcWindowsOutputs", outputs.data(), count);
  Struct* p = call->add("rbcWindowsParams", &params);
  call->checking = p;
  const int32_t num_streams =
      choices.chance(97) ? count : choices.pick({0, -1, 17, INT32_MAX, INT32_MIN});
  const auto arguments = [=](const Handles& handles, auto&& f) {
    // Sets the accumulators of this machine, as far as the array, which may have been cut short,
    // has room for them.
    constexpr size_t kPlace = offsetof(rbcWindowsOutputs, accumulator);
    constexpr size_t kHandle = sizeof(rbcAccumulator_t);
    rbcAccumulator_t saved_handles[RBC_WINDOWS_MAX_STREAMS];
    const auto each = [&](auto&& change) {
      for (int32_t n = 0; n < count; ++n) {
        const size_t at = static_cast<size_t>(n) * sizeof(rbcWindowsOutputs) + kPlace;
        if (at + kHandle > written->size) continue;
        rbcAccumulator_t handle = nullptr;
        std::memcpy(&handle, written->bytes.get() + at, kHandle);
        change(handle, saved_handles[n]);
        std::memcpy(written->bytes.get() + at, &handle, kHandle);
      }
    };
    each([&](auto& handle, auto& before) {
      before = handle;
      const auto index = reinterpret_cast<uintptr_t>(handle);
      if (index > 0) handle = handles.accumulators[index - 1];
    });
    const rbcStatus_t status =
        f(array->get<rbcWindowsStream>(), num_streams, episodes->get(), anchors->get(),
          written->get<rbcWindowsOutputs>(), p->get<rbcWindowsParams>());
    each([](auto& handle, auto& before) { handle = before; });
    return status;
  };
  call->run = [=](rbcContext_t context, const Handles& handles) {
    return arguments(handles, [&](auto... a) { return rbcWindows(context, a...); });
  };
  call->size = [=](rbcContext_t context, const Handles& handles, size_t* bytes) {
    return arguments(handles,
                     [&](auto... a) { return rbcWindowsWorkspaceSize(context, a..., bytes); });
  };
  return call;
}
const Maker kWindows(10, makeWindows);

}  // namespace fuzz
