// Random calls of rbcWindows, number by number.
#include "support/random_windows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "robocache/rotations.h"

namespace support {
namespace {

void put(std::byte* to, rbcDType dtype, long double x) {
  const uint64_t bits = encode(dtype, x);
  std::memcpy(to, &bits, static_cast<size_t>(sizeOf(dtype)));
}

bool hasAngles(int32_t rotation) {
  return rotation >= RBC_ROTATION_EULER_EXTRINSIC_XYZ || rotation == RBC_ROTATION_ROTVEC;
}

int64_t channelsOf(int32_t rotation) {
  if (hasAngles(rotation)) return 3;
  if (rotation <= RBC_ROTATION_QUAT_WXYZ) return 4;
  return rotation == RBC_ROTATION_MATRIX ? 9 : 6;
}

}  // namespace

WindowCall RandomWindows::make(Variety variety, bool accumulates) {
  plain_ = variety == Variety::kRows;
  narrow_ = variety == Variety::kNarrow || plain_;
  accumulates_ = accumulates;
  call_.windows = random_.chance(0.05) ? 0 : 1 + random_.below(40);
  episodes_ = 1 + random_.below(6);
  causal_ = variety == Variety::kCausal;
  timed_ = causal_ || random_.chance(plain_ ? 0.3 : 0.7);
  time_dtype_ = random_.pick(kTimeDTypes);
  const int64_t count = 1 + random_.below(random_.chance(0.1) ? 9 : 3);
  call_.params.anchor_stream_index = static_cast<int32_t>(random_.below(count));
  const bool by_times = timed_ && random_.chance(0.3);
  if (by_times) call_.params.flags |= RBC_WINDOWS_FLAG_ANCHOR_TIMES;
  if (causal_) {
    const int64_t lag = random_.below(4);  // in quarters of a second
    if (same(time_dtype_, kI64)) {
      call_.params.lag_ticks = 250 * lag;
    } else {
      call_.params.lag = 0.25 * static_cast<double>(lag);
    }
  }
  for (int64_t n = 0; n < count; ++n) {
    addStream(by_times, by_times || n == call_.params.anchor_stream_index);
  }
  for (int64_t n = 0; n < count; ++n) addTransforms(static_cast<size_t>(n));
  for (const Stream& s : call_.streams) setPoses(s);
  for (int64_t n = 0; n < count; ++n) addOutput(&call_.streams[static_cast<size_t>(n)]);
  call_.episodes = integers(call_.windows, [&] { return random_.below(episodes_); });
  call_.anchors = by_times ? times(call_.windows, [&] { return random_.uniform(-1, 12); })
                           : integers64(call_.windows, [&] { return row(random_.below(50) - 10); });
  return std::move(call_);
}

Layout RandomWindows::layout(bool vectors) {
  if (vectors && random_.chance(0.9)) {
    return random_.chance(0.8) ? Layout::kContiguous : Layout::kColumns;
  }
  return random_.pick(kLayouts);
}
Layout RandomWindows::outLayout(bool vectors) {
  const Layout found = layout(vectors);
  return found == Layout::kBroadcast ? Layout::kStrided : found;
}

// Sometimes as far away as a row can be.
int64_t RandomWindows::row(int64_t near) {
  if (!random_.chance(0.01)) return near;
  return random_.chance(0.5) ? INT64_MAX - random_.below(2) : INT64_MIN + random_.below(2);
}

template <class Number>
Array RandomWindows::filled(rbcDType dtype, int64_t count, Number&& number) {
  Array array(dtype, {count}, random_.chance(0.6) ? Layout::kContiguous : layout(false),
              call_.flush);
  array.each([&](std::byte* p) { put(p, dtype, number()); });
  array.memory().forbidWrites();
  return array;
}
template <class Number>
Array RandomWindows::integers(int64_t count, Number&& number) {
  return filled(random_.chance(0.5) ? kI32 : kI64, count, number);
}
template <class Number>
Array RandomWindows::integers64(int64_t count, Number&& number) {
  return filled(kI64, count, number);
}
template <class Number>
Array RandomWindows::times(int64_t count, Number&& seconds) {
  const double unit = same(time_dtype_, kI64) ? 1000 : 1;
  return filled(time_dtype_, count, [&] {
    const double time = seconds() * unit;
    return same(time_dtype_, kI64) ? std::floor(time) : time;
  });
}

double RandomWindows::number() {
  constexpr double kSpecials[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0, 1e-41, 1e30};
  return random_.chance(0.03) ? random_.pick(kSpecials) : random_.uniform(-2, 2);
}

void RandomWindows::addStream(bool by_times, bool leads) {
  Stream& s = call_.streams.emplace_back();
  const bool has_times = timed_ && (leads || random_.chance(0.7));
  const bool interpolates =
      !plain_ && has_times && timed_ && random_.chance(0.6) && (by_times || anchorsHaveTimes());
  const bool has_values = narrow_ || interpolates || random_.chance(0.93);
  const bool is_long = causal_ && random_.chance(0.15);  // enough for minima of arrivals
  int64_t rows = 0;
  std::vector<int64_t> begins = {0};
  for (int64_t e = 0; e < episodes_; ++e) {
    rows += random_.chance(0.1)   ? 0
            : is_long             ? 200 + random_.below(2000)
            : random_.chance(0.1) ? 1
                                  : random_.below(random_.chance(0.2) ? 400 : 40);
    begins.push_back(rows);
  }
  rows += random_.below(3);  // in no episode
  size_t next = 0;
  s.episode_offsets = integers(episodes_ + 1, [&] { return begins[next++]; });
  rbcDType dtype = random_.pick(kFloatDTypes);
  if (narrow_) {
    constexpr rbcDType kNarrow[] = {kF32, kF32, kBF16, kF16};
    dtype = random_.pick(kNarrow);
  } else if (!interpolates && random_.chance(0.3)) {
    dtype = random_.pick(kIntegerDTypes);
  }
  constexpr int64_t kChannels[] = {1, 2, 3, 4, 7, 8, 12, 14, 16, 20, 32, 52, 64, 130, 300};
  int64_t channels = random_.pick(kChannels);
  if (random_.chance(0.02)) channels = 0;
  if (has_values) {
    s.values = Array(dtype, {rows, channels}, layout(narrow_), call_.flush);
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
  constexpr int32_t kOutside[] = {RBC_OUTSIDE_HOLD, RBC_OUTSIDE_FILL, RBC_OUTSIDE_NEUTRAL};
  s.params.outside = kOutside[random_.below(has_values ? 3 : 2)];
  s.params.fill_value = random_.chance(0.5) ? 0 : 1;
  if (random_.chance(narrow_ && interpolates ? 0.05 : 0.3)) {
    s.sample_mask = Array(random_.chance(0.5) ? kBool : kU8, {rows}, layout(false));
    s.sample_mask.each([&](std::byte* p) { *p = std::byte{random_.chance(0.8)}; });
  }
  if (interpolates) {
    s.fields.mode = RBC_WINDOWS_MODE_INTERPOLATE;
    s.offsets = times(s.num_offsets, [&] { return random_.uniform(-2, 3); });
    addMethods(&s, channels);
  } else {
    const bool near = random_.chance(0.8);
    int64_t o = random_.below(5) - 2;
    s.offsets = integers(s.num_offsets, [&] {
      return near                   ? o++
             : random_.chance(0.05) ? (random_.chance(0.5) ? INT32_MAX : INT32_MIN)
                                    : random_.below(60) - 30;
    });
  }
  s.out_channels = channels;
  if (causal_ && has_times && random_.chance(0.8)) lookBack(&s, rows);
}

void RandomWindows::lookBack(Stream* s, int64_t rows) {
  const double unit = same(time_dtype_, kI64) ? 1000 : 1;
  if (s->params.outside == RBC_OUTSIDE_NEUTRAL) s->params.outside = RBC_OUTSIDE_HOLD;
  const bool interpolates = s->fields.mode == RBC_WINDOWS_MODE_INTERPOLATE;
  if (interpolates && random_.chance(0.7)) {
    const double max_age = random_.chance(0.2) ? INFINITY : random_.uniform(0.1, 2) * unit;
    s->params.tolerance = INFINITY;
    if (s->groups.empty()) {
      if (s->params.method == RBC_METHOD_NEXT) s->params.method = RBC_METHOD_PREVIOUS;
      s->params.flags = RBC_FLAG_CAUSAL;
      s->params.max_age = max_age;
    }
    for (rbcChannelGroup& group : s->groups) {
      if (group.method == RBC_METHOD_NEXT) continue;
      group.flags = RBC_FLAG_CAUSAL;
      group.max_age = max_age;
    }
    if (random_.chance(0.3)) return;
  }
  int64_t row = 0;
  s->arrivals = times(rows, [&] {
    const uint64_t bits = s->times.get({row++});
    const double at = same(time_dtype_, kI64)
                          ? static_cast<double>(static_cast<int64_t>(bits)) / unit
                          : static_cast<double>(decodeFloat(time_dtype_, bits));
    const double offset =
        s->fields.clock_offset + static_cast<double>(s->fields.clock_offset_ticks) / 1000;
    return at + offset + random_.uniform(-0.1, random_.chance(0.2) ? 3 : 0.3);
  });
  if (interpolates) {
    s->offsets = times(s->num_offsets, [&] { return random_.uniform(-3, 0); });
  } else {
    s->offsets = integers(s->num_offsets, [&] { return -random_.below(8); });
  }
}

bool RandomWindows::anchorsHaveTimes() const {
  const auto leader = static_cast<size_t>(call_.params.anchor_stream_index);
  return leader >= call_.streams.size() || call_.streams[leader].times.ndim() != 0 ||
         leader + 1 == call_.streams.size();
}

void RandomWindows::addMethods(Stream* s, int64_t channels) {
  const auto method = [&](bool quaternions) {
    constexpr int32_t kSimple[] = {RBC_METHOD_LINEAR, RBC_METHOD_NEAREST, RBC_METHOD_ANGLE,
                                   RBC_METHOD_SLERP};
    int32_t found = narrow_ ? random_.pick(kSimple) : static_cast<int32_t>(random_.below(8));
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
      const bool angles = m == RBC_METHOD_ANGLE;
      const auto period = static_cast<int32_t>(angles ? random_.below(6) : 0);
      s->groups.push_back({begin, count, m, period, 0, 0, 0});
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

int32_t RandomWindows::rotation() {
  const int32_t few = static_cast<int32_t>(random_.below(7));  // all formats except Euler angles
  if (random_.chance(0.6)) return few;
  const auto order = static_cast<int32_t>(random_.below(12));
  return order + (random_.chance(0.5) ? RBC_ROTATION_EULER_EXTRINSIC_XYZ
                                      : RBC_ROTATION_EULER_INTRINSIC_XYZ);
}
// Most rows get rotations where a transform expects them.
void RandomWindows::setPoses(const Stream& s) {
  for (const rbcWindowsTransform& t : s.transforms) {
    if (t.kind < RBC_WINDOWS_TRANSFORM_SE3_RELATIVE) continue;
    setRotations(s.values, t.begin + 3, t.rotation);
    setRotations(call_.streams[static_cast<size_t>(t.reference_stream_index)].values,
                 t.reference_begin + 3, t.reference_rotation);
  }
}
void RandomWindows::setRotations(const Array& values, int64_t begin, int32_t rotation) {
  static const Context cpu = cpuContext(1);
  if (!isFloat(values.dtype())) return;
  const int64_t rows = values.extent(0);
  const Array quaternions(kF64, {rows, 4});
  quaternions.each([&](std::byte* p) { put(p, kF64, random_.uniform(-1, 1)); });
  const Array rotations(kF64, {rows, channelsOf(rotation)});
  const rbcTensor in = quaternions.tensor();
  const rbcTensor out = rotations.tensor();
  rbcConvertRotationsParams params = rbcConvertRotationsParamsInit();
  params.target = rotation;
  require(rbcConvertRotations(cpu.get(), &in, &out, &params));
  for (int64_t row = 0; row < rows; ++row) {
    if (random_.chance(0.04)) continue;
    const double zero = random_.chance(0.02) ? 0 : 1;
    const double length = hasAngles(rotation) || random_.chance(0.7) ? 1 : random_.uniform(0.5, 2);
    for (int64_t k = 0; k < channelsOf(rotation); ++k) {
      const long double x = decodeFloat(kF64, rotations.get({row, k}));
      put(values.at({row, begin + k}), values.dtype(), zero * length * x);
    }
  }
}

void RandomWindows::addTransforms(size_t n) {
  Stream& s = call_.streams[n];
  if (s.values.ndim() == 0 || random_.chance(plain_ ? 0.4 : 0.3)) return;
  const int64_t channels = s.values.extent(1);
  const bool poses = !plain_ && (!narrow_ || random_.chance(0.6));
  for (int64_t begin = 0; begin < channels && s.transforms.size() < 5;) {
    rbcWindowsTransform t = {};
    t.begin = begin;
    t.count = 1 + random_.below(channels - begin);
    t.kind = static_cast<int32_t>(random_.below(poses ? 5 : 2));
    if (narrow_ && poses && t.kind == RBC_WINDOWS_TRANSFORM_SUBTRACT)
      t.kind = RBC_WINDOWS_TRANSFORM_SE3_RELATIVE;
    t.reference_stream_index =
        static_cast<int32_t>(random_.below(static_cast<int64_t>(call_.streams.size())));
    if (t.kind >= RBC_WINDOWS_TRANSFORM_SE3_RELATIVE) {
      t.rotation = rotation();
      t.reference_rotation = random_.chance(0.5) ? t.rotation : rotation();
      t.out_rotation = narrow_ ? static_cast<int32_t>(random_.below(7)) : rotation();
      t.count = 3 + channelsOf(t.rotation);
      if (t.count > channels - begin) t.kind = RBC_WINDOWS_TRANSFORM_COPY;
    }
    if (t.kind == RBC_WINDOWS_TRANSFORM_COPY) {
      t = {};
      t.begin = begin;
      t.count = 1 + random_.below(channels - begin);
    } else {
      if (random_.chance(0.3)) t.flags = RBC_WINDOWS_TRANSFORM_FLAG_INVERSE;
      const Stream& r = call_.streams[static_cast<size_t>(t.reference_stream_index)];
      const int64_t needed =
          t.kind == RBC_WINDOWS_TRANSFORM_SUBTRACT ? t.count : 3 + channelsOf(t.reference_rotation);
      if (r.values.ndim() == 0 || r.num_offsets == 0 || r.values.extent(1) < needed) {
        begin += t.count;
        continue;
      }
      t.reference_offset_index = static_cast<int32_t>(random_.below(r.num_offsets));
      t.reference_begin = random_.below(r.values.extent(1) - needed + 1);
      if (t.kind != RBC_WINDOWS_TRANSFORM_SUBTRACT) {
        s.out_channels += channelsOf(t.out_rotation) - channelsOf(t.rotation);
      }
    }
    s.transforms.push_back(t);
    begin += t.count + (random_.chance(0.3) ? 1 : 0);
  }
}

Array RandomWindows::factor(const Stream& s, double low, double high) {
  std::vector<int64_t> shape = {s.out_channels};
  if (random_.chance(narrow_ ? 0.05 : 0.3)) shape.insert(shape.begin(), s.num_offsets);
  const rbcDType dtype = random_.chance(0.7) ? kF32 : kF64;
  Array array(dtype, shape, layout(narrow_));
  array.each([&](std::byte* p) { put(p, dtype, random_.uniform(low, high)); });
  return array;
}

void RandomWindows::addOutput(Stream* s) {
  s->has_valid = random_.chance(0.8);
  s->has_out = narrow_ || random_.chance(0.95);
  if (s->values.ndim() == 0) {
    s->out_dtype = kI64;
    return;
  }
  const rbcDType dtype = s->values.dtype();
  const bool copies = std::all_of(s->transforms.begin(), s->transforms.end(),
                                  [](const rbcWindowsTransform& t) { return t.kind == 0; });
  const bool as_it_is = !isFloat(dtype) && copies && random_.chance(0.5);
  if (random_.chance(0.6) && !as_it_is) {
    if (random_.chance(0.8)) s->shift = factor(*s, -1, 1);
    if (random_.chance(0.8)) s->scale = factor(*s, -2, 2);
    if (random_.chance(0.3)) s->fields.flags = RBC_WINDOWS_FLAG_SCALE_DIVIDES;
    if (random_.chance(0.4)) s->bias = factor(*s, -1, 1);
  }
  if (random_.chance(0.3) && !as_it_is) {
    if (random_.chance(0.8)) s->low = factor(*s, -1, 0);
    if (random_.chance(0.8)) s->high = factor(*s, 0, 1);
  }
  if (s->params.outside == RBC_OUTSIDE_NEUTRAL) {
    if (as_it_is) s->params.outside = RBC_OUTSIDE_HOLD;
    if (!as_it_is && random_.chance(0.7)) s->neutral = factor(*s, -3, 3);
    if (!as_it_is && random_.chance(0.5)) {
      s->neutral_channels = Array(kBool, {s->out_channels}, layout(false));
      s->neutral_channels.each([&](std::byte* p) { *p = std::byte{random_.chance(0.5)}; });
    }
  }
  if (as_it_is) {
    s->out_dtype = dtype;
  } else if (narrow_) {
    constexpr rbcDType kNarrow[] = {kF32, kF32, kBF16, kF16};
    s->out_dtype = random_.pick(kNarrow);
  } else {
    s->out_dtype = random_.pick(kFloatDTypes);
  }
  s->out_layout = outLayout(narrow_);
  if (accumulates_ && s->out_channels > 0 && s->num_offsets > 0 && random_.chance(0.8)) {
    s->accumulates = static_cast<int>(1 + random_.below(2));
    s->accumulate = static_cast<int32_t>(random_.below(3));
  }
}

}  // namespace support
