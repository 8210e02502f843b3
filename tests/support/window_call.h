// Random calls of rbcWindows, of all that a call may ask for, and what both backends make of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "accumulator.h"
#include "random.h"
#include "robocache/rotations.h"
#include "robocache/windows.h"

namespace support {

// A call whose arrays are the host's; pointers to them are filled in for a context.
struct WindowCall {
  struct Stream {
    rbcWindowStream fields = rbcWindowStreamInit();  // but for the pointers
    rbcResampleParams params = rbcResampleParamsInit();
    std::vector<rbcWindowTransform> transforms;
    std::vector<rbcChannelGroup> groups;
    Array values, episode_offsets, times, offsets, sample_mask;
    Array shift, scale, bias, low, high, neutral, neutral_channels;
    rbcDType out_dtype = kF32;
    Layout out_layout = Layout::kContiguous;
    int64_t num_offsets = 0;
    int64_t out_channels = 0;
    bool has_out = true;
    bool has_valid = true;
    int accumulates = 0;  // 1: by channel, 2: by offset and channel
  };

  std::deque<Stream> streams;
  Array episodes, anchors;
  rbcWindowsParams params = rbcWindowsParamsInit();
  int64_t windows = 0;
  std::string name;
};

using Bits = std::vector<uint64_t>;

// What a call wrote: of each stream out, valid, and the accumulator's bytes.
struct WindowResult {
  rbcStatus_t status = RBC_STATUS_SUCCESS;
  std::string message;
  std::vector<Bits> written;
  std::vector<Bytes> accumulated;
  bool stray = false;
};

// A call's tensors where a context wants them.
class PlacedWindows {
 public:
  PlacedWindows(const Context& context, const WindowCall& call)
      : call_(call), cuda_(infoOf(context).backend == RBC_BACKEND_CUDA), params_(call.params) {
    episodes_ = place(context, call.episodes);
    anchors_ = place(context, call.anchors);
    resample_.resize(call.streams.size());
    for (size_t n = 0; n < call.streams.size(); ++n) {
      const WindowCall::Stream& from = call.streams[n];
      rbcWindowStream s = from.fields;
      s.values = place(context, from.values);
      s.episode_offsets = place(context, from.episode_offsets);
      s.times = place(context, from.times);
      s.offsets = place(context, from.offsets);
      s.shift = place(context, from.shift);
      s.scale = place(context, from.scale);
      s.bias = place(context, from.bias);
      s.low = place(context, from.low);
      s.high = place(context, from.high);
      s.neutral = place(context, from.neutral);
      s.neutral_channels = place(context, from.neutral_channels);
      resample_[n] = from.params;
      resample_[n].sample_mask = place(context, from.sample_mask);
      resample_[n].groups = from.groups.empty() ? nullptr : from.groups.data();
      resample_[n].num_groups = static_cast<int32_t>(from.groups.size());
      s.params = &resample_[n];
      s.transforms = from.transforms.empty() ? nullptr : from.transforms.data();
      s.num_transforms = static_cast<int32_t>(from.transforms.size());
      std::vector<int64_t> shape = {call.windows, from.num_offsets};
      if (from.has_valid) s.valid = placeOut(context, Array(kBool, shape));
      if (from.values.ndim() != 0) shape.push_back(from.out_channels);
      if (from.has_out) s.out = placeOut(context, Array(from.out_dtype, shape, from.out_layout));
      if (from.accumulates != 0) {
        const int64_t channels =
            from.accumulates == 1 ? from.out_channels : from.num_offsets * from.out_channels;
        accumulators_.push_back(makeAccumulator(context, channels, {0.5}, 8));
        s.accumulator = accumulators_.back().get();
      }
      streams_.push_back(s);
    }
  }
  PlacedWindows(const PlacedWindows&) = delete;

  rbcWindowsParams& params() { return params_; }
  std::vector<rbcWindowStream>& streams() { return streams_; }

  rbcStatus_t call(const Context& context) const {
    return rbcWindows(context.get(), streams_.data(), static_cast<int32_t>(streams_.size()),
                      episodes_, anchors_, &params_);
  }
  size_t workspaceSize(const Context& context) const {
    size_t bytes = 0;
    require(rbcWindowsWorkspaceSize(context.get(), streams_.data(),
                                    static_cast<int32_t>(streams_.size()), episodes_, anchors_,
                                    &params_, &bytes));
    return bytes;
  }
  WindowResult fetch(const Context& context) {
    WindowResult result;
    for (size_t i = 0; i < outs_.size(); ++i) {
      result.stray |= !placed_outs_[i].fetch(context, outs_[i]) || !outs_[i].gapsArePoison();
      result.written.push_back(outs_[i].elements());
    }
    for (const Accumulator& accumulator : accumulators_) {
      result.accumulated.push_back(exported(accumulator));
    }
    return result;
  }

 private:
  const rbcTensor* place(const Context& context, const Array& array) {
    if (array.ndim() == 0) return nullptr;
    return placed_.emplace_back(context, array, cuda_).get();
  }
  const rbcOutput* placeOut(const Context& context, Array array) {
    outs_.push_back(std::move(array));
    return placed_outs_.emplace_back(context, outs_.back(), cuda_).get();
  }

  const WindowCall& call_;
  bool cuda_;
  std::deque<Placed> placed_;
  std::deque<Array> outs_;
  std::deque<Placed> placed_outs_;
  std::deque<Accumulator> accumulators_;
  std::vector<rbcResampleParams> resample_;
  std::vector<rbcWindowStream> streams_;
  const rbcTensor* episodes_ = nullptr;
  const rbcTensor* anchors_ = nullptr;
  rbcWindowsParams params_;
};

inline WindowResult resultOf(const Context& context, const WindowCall& call) {
  PlacedWindows placed(context, call);
  const rbcStatus_t status = placed.call(context);
  const std::string message = status == RBC_STATUS_SUCCESS ? "" : rbcGetLastError();
  require(rbcContextSynchronize(context.get()));
  WindowResult result = placed.fetch(context);
  result.status = status;
  result.message = message;
  return result;
}

// ---- random ones ----------------------------------------------------------------------------------

class RandomWindows {
 public:
  explicit RandomWindows(uint64_t seed) : random_(seed) {}

  // `plain`: gathered rows of narrow floats, copied or subtracted from.
  WindowCall make(bool plain, bool accumulates = false) {
    plain_ = plain;
    accumulates_ = accumulates;
    call_.windows = random_.chance(0.05) ? 0 : 1 + random_.below(40);
    episodes_ = 1 + random_.below(6);
    timed_ = random_.chance(plain ? 0.3 : 0.7);
    time_dtype_ = random_.pick(kTimeDTypes);
    const int64_t count = 1 + random_.below(random_.chance(0.1) ? 9 : 3);
    call_.params.anchor_stream = static_cast<int32_t>(random_.below(count));
    const bool by_times = timed_ && random_.chance(0.3);
    if (by_times) call_.params.flags |= RBC_WINDOWS_ANCHOR_TIMES;
    for (int64_t n = 0; n < count; ++n) {
      addStream(by_times, by_times || n == call_.params.anchor_stream);
    }
    for (int64_t n = 0; n < count; ++n) addTransforms(static_cast<size_t>(n));
    for (int64_t n = 0; n < count; ++n) addOutput(&call_.streams[static_cast<size_t>(n)]);
    call_.episodes = integers(call_.windows, [&] { return random_.below(episodes_); });
    call_.anchors = by_times ? times(call_.windows, [&] { return random_.uniform(-1, 12); })
                             : integers64(call_.windows, [&] { return random_.below(50) - 10; });
    return std::move(call_);
  }

 private:
  using Stream = WindowCall::Stream;

  Layout layout(bool vectors) {
    if (vectors && random_.chance(0.7)) {
      return random_.chance(0.8) ? Layout::kContiguous : Layout::kColumns;
    }
    return random_.pick(kLayouts);
  }
  Layout outLayout(bool vectors) {
    const Layout found = layout(vectors);
    return found == Layout::kBroadcast ? Layout::kStrided : found;
  }

  template <class Number>
  Array filled(rbcDType dtype, int64_t count, Number&& number) {
    Array array(dtype, {count}, random_.chance(0.6) ? Layout::kContiguous : layout(false));
    array.each([&](std::byte* p) { put(p, dtype, number()); });
    return array;
  }
  template <class Number>
  Array integers(int64_t count, Number&& number) {
    return filled(random_.chance(0.5) ? kI32 : kI64, count, number);
  }
  template <class Number>
  Array integers64(int64_t count, Number&& number) {
    return filled(kI64, count, number);
  }
  template <class Number>
  Array times(int64_t count, Number&& seconds) {
    const double unit = same(time_dtype_, kI64) ? 1000 : 1;
    return filled(time_dtype_, count, [&] {
      const double time = seconds() * unit;
      return same(time_dtype_, kI64) ? std::floor(time) : time;
    });
  }
  static void put(std::byte* to, rbcDType dtype, long double x) {
    const uint64_t bits = encode(dtype, x);
    std::memcpy(to, &bits, static_cast<size_t>(sizeOf(dtype)));
  }

  double number() {
    constexpr double kSpecials[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0, 1e-41, 1e30};
    return random_.chance(0.03) ? random_.pick(kSpecials) : random_.uniform(-2, 2);
  }

  void addStream(bool by_times, bool leads) {
    Stream& s = call_.streams.emplace_back();
    const bool has_times = timed_ && (leads || random_.chance(0.7));
    const bool interpolates =
        !plain_ && has_times && timed_ && random_.chance(0.6) && (by_times || anchorsHaveTimes());
    const bool has_values = plain_ || interpolates || random_.chance(0.93);
    int64_t rows = 0;
    std::vector<int64_t> begins = {0};
    for (int64_t e = 0; e < episodes_; ++e) {
      rows += random_.chance(0.1)   ? 0
              : random_.chance(0.1) ? 1
                                    : random_.below(random_.chance(0.2) ? 400 : 40);
      begins.push_back(rows);
    }
    rows += random_.below(3);  // of no episode
    size_t next = 0;
    s.episode_offsets = integers(episodes_ + 1, [&] { return begins[next++]; });
    rbcDType dtype = random_.pick(kFloatDTypes);
    if (plain_) {
      constexpr rbcDType kNarrow[] = {kF32, kBF16, kF16};
      dtype = random_.pick(kNarrow);
    } else if (!interpolates && random_.chance(0.3)) {
      dtype = random_.pick(kIntegerDTypes);
    }
    constexpr int64_t kChannels[] = {1, 2, 3, 4, 7, 8, 12, 14, 16, 20, 32, 52, 64, 130, 300};
    int64_t channels = random_.pick(kChannels);
    if (random_.chance(0.02)) channels = 0;
    if (has_values) {
      s.values = Array(dtype, {rows, channels}, layout(plain_));
      s.values.each([&](std::byte* p) {
        if (isFloat(dtype)) {
          put(p, dtype, number());
        } else {
          const uint64_t bits = same(dtype, kBool)
                                    ? random_.bits() & 1
                                    : (random_.chance(0.8) ? random_.bits() & 127 : random_.bits());
          std::memcpy(p, &bits, static_cast<size_t>(sizeOf(dtype)));
        }
      });
    }
    if (has_times) {
      size_t episode = 0;
      int64_t row = 0;
      double now = 0;
      s.times = times(rows, [&] {
        while (episode + 1 < begins.size() && row >= begins[episode + 1]) ++episode;
        if (row == begins[episode]) now = random_.uniform(-0.2, 0.2);
        ++row;
        now += random_.chance(0.1) ? 0 : random_.uniform(0.05, 0.4);
        return now;
      });
      if (random_.chance(0.3)) {
        s.fields.clock_offset = same(time_dtype_, kI64) ? 0 : 0.125;
        s.fields.clock_offset_ticks = same(time_dtype_, kI64) ? 125 : 0;
      }
    }
    s.num_offsets = random_.chance(0.02) ? 0 : 1 + random_.below(random_.chance(0.1) ? 90 : 20);
    s.fields.pad = static_cast<int32_t>(random_.below(has_values ? 3 : 2));
    s.params.fill_value = random_.chance(0.5) ? 0 : 1;
    if (random_.chance(0.3)) {
      s.sample_mask = Array(random_.chance(0.5) ? kBool : kU8, {rows}, layout(false));
      s.sample_mask.each([&](std::byte* p) { *p = std::byte{random_.chance(0.8)}; });
    }
    if (interpolates) {
      s.fields.mode = RBC_WINDOW_INTERPOLATE;
      s.offsets = times(s.num_offsets, [&] { return random_.uniform(-2, 3); });
      addMethods(&s, channels);
    } else {
      const bool near = random_.chance(0.8);
      int64_t o = random_.below(5) - 2;
      s.offsets = integers(s.num_offsets, [&] {
        return near                   ? o++
               : random_.chance(0.05) ? INT32_MAX - random_.below(9)
                                      : random_.below(60) - 30;
      });
    }
    s.out_channels = channels;
  }

  bool anchorsHaveTimes() const {
    const auto leader = static_cast<size_t>(call_.params.anchor_stream);
    return leader >= call_.streams.size() || call_.streams[leader].times.ndim() != 0 ||
           leader + 1 == call_.streams.size();
  }

  void addMethods(Stream* s, int64_t channels) {
    const auto method = [&](bool quaternions) {
      int32_t found = static_cast<int32_t>(random_.below(8));
      return found == RBC_METHOD_SLERP && !quaternions ? RBC_METHOD_LINEAR : found;
    };
    bool steps = false;
    bool all_steps = true;
    const auto note = [&](int32_t m) {
      const bool step = m == RBC_METHOD_NEAREST || m == RBC_METHOD_PREVIOUS || m == RBC_METHOD_NEXT;
      steps |= step;
      all_steps &= step;
    };
    if (channels > 0 && random_.chance(0.5)) {
      for (int64_t begin = 0; begin < channels;) {
        const int64_t left = channels - begin;
        const int32_t m = method(left >= 4);
        const int64_t count =
            m == RBC_METHOD_SLERP ? 4 * (1 + random_.below(left / 4)) : 1 + random_.below(left);
        s->groups.push_back({begin, count, m, 0});
        note(m);
        begin += count;
      }
    } else {
      s->params.method = method(channels % 4 == 0);
      note(s->params.method);
    }
    const double unit = same(time_dtype_, kI64) ? 1000 : 1;
    if (all_steps && steps && random_.chance(0.4)) {
      s->params.tolerance = 0.25 * unit;
    } else if (random_.chance(0.2)) {
      s->params.max_gap = 0.5 * unit;
    }
  }

  int32_t rotation() {
    constexpr int32_t kKinds[] = {RBC_ROTATION_QUAT_XYZW,
                                  RBC_ROTATION_QUAT_WXYZ,
                                  RBC_ROTATION_ROTVEC,
                                  RBC_ROTATION_MATRIX,
                                  RBC_ROTATION_ROT6D_ROWS,
                                  RBC_ROTATION_ROT6D_COLUMNS,
                                  RBC_ROTATION_ROT6D_INTERLEAVED,
                                  RBC_ROTATION_EULER_EXTRINSIC_XYZ,
                                  RBC_ROTATION_EULER_INTRINSIC_ZYX,
                                  RBC_ROTATION_EULER_INTRINSIC_ZYZ};
    return random_.pick(kKinds);
  }
  static int64_t channelsOf(int32_t rotation) {
    if (rotation >= 16 || rotation == RBC_ROTATION_ROTVEC) return 3;
    if (rotation <= RBC_ROTATION_QUAT_WXYZ) return 4;
    return rotation == RBC_ROTATION_MATRIX ? 9 : 6;
  }

  void addTransforms(size_t n) {
    Stream& s = call_.streams[n];
    if (s.values.ndim() == 0 || random_.chance(plain_ ? 0.4 : 0.3)) return;
    const int64_t channels = s.values.extent(1);
    for (int64_t begin = 0; begin < channels && s.transforms.size() < 5;) {
      rbcWindowTransform t = {};
      t.begin = begin;
      t.count = 1 + random_.below(channels - begin);
      t.kind = static_cast<int32_t>(random_.below(plain_ ? 2 : 5));
      t.reference_stream =
          static_cast<int32_t>(random_.below(static_cast<int64_t>(call_.streams.size())));
      if (t.kind >= RBC_TRANSFORM_SE3_RELATIVE) {
        t.rotation = rotation();
        t.reference_rotation = random_.chance(0.5) ? t.rotation : rotation();
        t.out_rotation = rotation();
        t.count = 3 + channelsOf(t.rotation);
        if (t.count > channels - begin) t.kind = RBC_TRANSFORM_COPY;
      }
      if (t.kind == RBC_TRANSFORM_COPY) {
        t = {};
        t.begin = begin;
        t.count = 1 + random_.below(channels - begin);
      } else {
        if (random_.chance(0.3)) t.flags = RBC_TRANSFORM_INVERSE;
        const Stream& r = call_.streams[static_cast<size_t>(t.reference_stream)];
        const int64_t needed =
            t.kind == RBC_TRANSFORM_SUBTRACT ? t.count : 3 + channelsOf(t.reference_rotation);
        if (r.values.ndim() == 0 || r.num_offsets == 0 || r.values.extent(1) < needed) {
          begin += t.count;
          continue;
        }
        t.reference_offset = static_cast<int32_t>(random_.below(r.num_offsets));
        t.reference_begin = random_.below(r.values.extent(1) - needed + 1);
        if (t.kind != RBC_TRANSFORM_SUBTRACT) {
          s.out_channels += channelsOf(t.out_rotation) - channelsOf(t.rotation);
        }
      }
      s.transforms.push_back(t);
      begin += t.count + (random_.chance(0.3) ? 1 : 0);
    }
  }

  Array factor(const Stream& s, double low, double high) {
    std::vector<int64_t> shape = {s.out_channels};
    if (random_.chance(plain_ ? 0.1 : 0.3)) shape.insert(shape.begin(), s.num_offsets);
    const rbcDType dtype = random_.chance(0.7) ? kF32 : kF64;
    Array array(dtype, shape, layout(plain_));
    array.each([&](std::byte* p) { put(p, dtype, random_.uniform(low, high)); });
    return array;
  }

  void addOutput(Stream* s) {
    s->has_valid = random_.chance(0.8);
    s->has_out = random_.chance(0.95);
    if (s->values.ndim() == 0) {
      s->out_dtype = kI64;
      return;
    }
    const rbcDType dtype = s->values.dtype();
    const bool copies = std::all_of(s->transforms.begin(), s->transforms.end(),
                                    [](const rbcWindowTransform& t) { return t.kind == 0; });
    const bool as_it_is = !isFloat(dtype) && copies && random_.chance(0.5);
    if (random_.chance(0.6) && !as_it_is) {
      if (random_.chance(0.8)) s->shift = factor(*s, -1, 1);
      if (random_.chance(0.8)) s->scale = factor(*s, -2, 2);
      if (random_.chance(0.4)) s->bias = factor(*s, -1, 1);
    }
    if (random_.chance(0.3) && !as_it_is) {
      if (random_.chance(0.8)) s->low = factor(*s, -1, 0);
      if (random_.chance(0.8)) s->high = factor(*s, 0, 1);
    }
    if (s->fields.pad == RBC_PAD_NEUTRAL) {
      if (as_it_is) s->fields.pad = RBC_PAD_HOLD;
      if (!as_it_is && random_.chance(0.7)) s->neutral = factor(*s, -3, 3);
      if (!as_it_is && random_.chance(0.5)) {
        s->neutral_channels = Array(kBool, {s->out_channels}, layout(false));
        s->neutral_channels.each([&](std::byte* p) { *p = std::byte{random_.chance(0.5)}; });
      }
    }
    if (as_it_is) {
      s->out_dtype = dtype;
    } else if (plain_) {
      constexpr rbcDType kNarrow[] = {kF32, kBF16, kF16};
      s->out_dtype = random_.pick(kNarrow);
    } else {
      s->out_dtype = random_.pick(kFloatDTypes);
    }
    s->out_layout = outLayout(plain_);
    if (accumulates_ && s->out_channels > 0 && s->num_offsets > 0 && random_.chance(0.8)) {
      s->accumulates = static_cast<int>(1 + random_.below(2));
      s->fields.accumulate = static_cast<int32_t>(random_.below(3));
    }
  }

  Random random_;
  WindowCall call_;
  bool plain_ = false;
  bool accumulates_ = false;
  bool timed_ = false;
  rbcDType time_dtype_ = kF32;
  int64_t episodes_ = 1;
};

}  // namespace support
