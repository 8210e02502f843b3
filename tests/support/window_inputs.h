// The arrays of a case of rbcWindows, from its seed.
#pragma once

#include <optional>

#include "inputs.h"
#include "rotation_reference.h"
#include "voxel_run.h"
#include "window_case.h"

namespace support {

// Those that a case has not are of rank 0.
struct WindowStreamInputs {
  Array values;
  Array times;
  Array episode_offsets;
  Array offsets;
  Array sample_mask;
  Array shift;
  Array scale;
  Array bias;
  Array low;
  Array high;
  Array neutral;
  Array neutral_channels;
  int64_t out_channels = 0;

  int64_t begin(int64_t episode) const { return StreamInputs::indexAt(episode_offsets, episode); }
  int64_t count(int64_t episode) const { return begin(episode + 1) - begin(episode); }
};

struct WindowInputs {
  WindowCase c;
  Array episodes;
  Array anchors;
  std::vector<WindowStreamInputs> streams;

  std::vector<OutputSpec> outputs() const {
    std::vector<OutputSpec> specs;
    for (size_t n = 0; n < streams.size(); ++n) {
      const WindowStreamCase& s = c.streams[n];
      std::vector<int64_t> shape = {c.windows, s.offsets};
      if (s.has_valid) {
        specs.push_back({"valid" + std::to_string(n), s.valid, shape, s.valid_layout});
      }
      if (s.has_values) shape.push_back(streams[n].out_channels);
      if (s.has_out) specs.push_back({"out" + std::to_string(n), s.out, shape, s.out_layout});
    }
    return specs;
  }
};

namespace detail {

// A time in seconds since the recording began, in a dtype.
inline uint64_t windowTime(rbcDType dtype, double seconds) {
  if (same(dtype, kI64)) return static_cast<uint64_t>(std::llround(seconds * 1e9));
  return encodeFloat(dtype, seconds);
}

inline void fillTimes(const WindowCase& c, const WindowStreamCase& s, Random& random,
                      WindowStreamInputs* in) {
  in->times = Array(c.times, {in->begin(c.episodes)}, s.times_layout, c.flush);
  for (int64_t e = 0; e < c.episodes; ++e) {
    double t = 2.0 * static_cast<double>(e) + random.uniform(0, 3 * kPeriod);
    for (int64_t i = 0; i < in->count(e); ++i) {
      in->times.set({in->begin(e) + i}, windowTime(c.times, t));
      const double step = s.times_repeat && random.chance(0.4) ? 0 : random.uniform(0.3, 1.7);
      t += step * kPeriod / s.rate;
    }
  }
  in->times.memory().forbidWrites();
}

inline void setRotation(const WindowStreamCase& s, Array& values, int64_t row, Random& random) {
  std::vector<double> numbers;
  if (random.chance(s.no_rotations)) {
    numbers.assign(static_cast<size_t>(channelsOf(s.pose)), 0);  // no rotation, but of angles
  } else {
    double q[4];
    for (double& x : q) x = random.uniform(-1, 1);
    const QuadMatrix r = ofQuaternion(q[0], q[1], q[2], q[3]);
    for (const Quad x : writeReference(s.pose.format, r)) {
      numbers.push_back(static_cast<double>(x));
    }
    const double length = random.chance(0.3) ? random.uniform(0.5, 2) : 1;  // of what has one
    const bool angles = s.pose.format.kind == rbc::RotationKind::Euler ||
                        s.pose.format.kind == rbc::RotationKind::Rotvec;
    for (double& x : numbers) x *= angles ? 1 : length;
  }
  for (size_t k = 0; k < numbers.size(); ++k) {
    values.set({row, s.pose_begin + 3 + static_cast<int64_t>(k)},
               encodeFloat(s.values, numbers[k]));
  }
}

inline void fillValues(const WindowCase& c, const WindowStreamCase& s, Random& random,
                       WindowStreamInputs* in) {
  in->values = Array(s.values, {in->begin(c.episodes), s.channels}, s.values_layout, c.flush);
  StreamCase plain;
  plain.values = s.values;
  plain.method = s.method;
  const std::vector<uint64_t> table = valueTable(plain, s.specials, random);
  in->values.each([&](std::byte* p) {
    const uint64_t bits = table[static_cast<size_t>(random.below(4096))];
    std::memcpy(p, &bits, static_cast<size_t>(sizeOf(s.values)));
  });
  for (int64_t row = 0; row < in->values.extent(0) && s.pose_begin >= 0; ++row) {
    setRotation(s, in->values, row, random);
  }
  in->values.memory().forbidWrites();
}

inline Array windowGrid(const WindowCase& c, const WindowStreamCase& s, int64_t channels, Grid grid,
                        Random& random, double low, double high) {
  if (grid == Grid::kNone) return {};
  std::vector<int64_t> shape = {channels};
  if (grid == Grid::kSteps) shape.insert(shape.begin(), s.offsets);
  Array array(s.grid_dtype, shape, s.grid_layout, c.flush);
  array.each([&](std::byte* p) {
    const double x = random.chance(0.1) ? 0 : random.uniform(low, high);
    const uint64_t bits = encodeFloat(s.grid_dtype, x);
    std::memcpy(p, &bits, static_cast<size_t>(sizeOf(s.grid_dtype)));
  });
  array.memory().forbidWrites();
  return array;
}

inline void fillOffsets(const WindowCase& c, const WindowStreamCase& s, Random& random,
                        WindowStreamInputs* in) {
  const bool times = s.interpolates();
  in->offsets = Array(times ? c.times : s.offsets_dtype, {s.offsets}, s.offsets_layout, c.flush);
  for (int64_t o = 0; o < s.offsets; ++o) {
    int64_t row = o - 2;
    if (random.chance(0.2)) row = random.below(30) - 15;
    if (random.chance(0.03)) row = random.chance(0.5) ? INT32_MAX : INT32_MIN;
    double seconds = static_cast<double>(row) * kPeriod;
    if (random.chance(0.7)) seconds += random.uniform(-1, 1) * kPeriod;
    uint64_t bits = static_cast<uint64_t>(row);
    if (times) bits = windowTime(c.times, seconds);
    if (random.chance(0.03) && (times ? same(c.times, kI64) : same(s.offsets_dtype, kI64))) {
      bits = static_cast<uint64_t>(random.chance(0.5) ? INT64_MAX : INT64_MIN);
    }
    in->offsets.set({o}, bits);
  }
  in->offsets.memory().forbidWrites();
}

}  // namespace detail

inline WindowInputs inputsOf(const WindowCase& c) {
  Random random(c.seed + 4711);
  WindowInputs in;
  in.c = c;
  std::vector<double> lengths;
  for (int64_t e = 0; e < c.episodes; ++e) {
    lengths.push_back(random.chance(0.15) ? 0 : random.chance(0.2) ? 1 : random.uniform(2, 25));
  }
  for (const WindowStreamCase& s : c.streams) {
    WindowStreamInputs stream;
    stream.out_channels = outChannelsOf(s);
    std::vector<uint64_t> ends = {static_cast<uint64_t>(random.below(3))};
    for (const double length : lengths) {
      const double rows = length == 0 ? 0 : std::max(length * s.rate, 1.0);
      ends.push_back(ends.back() + static_cast<uint64_t>(rows));
    }
    stream.episode_offsets = arrayOf(s.index_dtype, {c.episodes + 1}, ends);
    stream.episode_offsets.memory().forbidWrites();
    if (s.has_values) detail::fillValues(c, s, random, &stream);
    if (s.has_times) detail::fillTimes(c, s, random, &stream);
    detail::fillOffsets(c, s, random, &stream);
    if (s.missing != 0) {
      stream.sample_mask = Array(kBool, {stream.begin(c.episodes)}, s.times_layout, c.flush);
      stream.sample_mask.each([&](std::byte* p) {
        *p = static_cast<std::byte>(random.chance(s.missing) ? 0 : 1);
      });
      stream.sample_mask.memory().forbidWrites();
    }
    const auto grid = [&](Grid kind, double low, double high) {
      return detail::windowGrid(c, s, stream.out_channels, kind, random, low, high);
    };
    stream.shift = grid(s.shift, -1, 1);
    stream.scale = grid(s.scale, -2, 2);
    stream.bias = grid(s.bias, -1, 1);
    stream.low = grid(s.low, -1.5, -0.2);
    stream.high = grid(s.high, 0.2, 1.5);
    stream.neutral = grid(s.neutral, -1, 1);
    if (s.neutral_channels) {
      stream.neutral_channels = Array(kBool, {stream.out_channels});
      stream.neutral_channels.each(
          [&](std::byte* p) { *p = static_cast<std::byte>(random.chance(0.6) ? 1 : 0); });
    }
    in.streams.push_back(std::move(stream));
  }

  std::vector<uint64_t> episodes;
  in.anchors = Array(c.anchor_times ? c.times : kI64, {c.windows}, c.anchors_layout, c.flush);
  const auto anchor_stream = static_cast<size_t>(c.anchor_stream);
  for (int64_t b = 0; b < c.windows; ++b) {
    const int64_t e = random.below(std::max<int64_t>(c.episodes, 1));
    episodes.push_back(static_cast<uint64_t>(e));
    const int64_t count = in.streams[anchor_stream].count(e);
    int64_t row = random.below(count + 1);
    if (random.chance(0.2)) row = random.below(count + 11) - 5;
    if (random.chance(0.03)) row = random.chance(0.5) ? INT64_MAX : INT64_MIN;
    uint64_t bits = static_cast<uint64_t>(row);
    if (c.anchor_times) {
      const double span = 1.2 * kPeriod * lengths[static_cast<size_t>(e)];
      bits = detail::windowTime(c.times,
                                2.0 * static_cast<double>(e) + random.uniform(-0.02, span + 0.02));
      const Array& times = in.streams[anchor_stream].times;
      if (count > 0 && random.chance(0.4)) {
        bits = times.get({in.streams[anchor_stream].begin(e) + random.below(count)});
      }
      if (random.chance(0.04) && isFloat(c.times)) bits = formatOf(c.times).nan();
    }
    in.anchors.set({b}, bits);
  }
  in.anchors.memory().forbidWrites();
  in.episodes = arrayOf(c.episodes_dtype, {c.windows}, episodes);
  in.episodes.memory().forbidWrites();
  return in;
}

// The tensors of a call, for any context of the device.
class PlacedWindows {
 public:
  PlacedWindows(const Context& context, const WindowInputs& in)
      : PlacedWindows(context, in, infoOf(context).backend == RBC_BACKEND_CUDA) {}
  PlacedWindows(const PlacedWindows&) = delete;

  rbcStatus_t call(const Context& context) const {
    return rbcWindows(context.get(), streams_.data(), static_cast<int32_t>(streams_.size()),
                      episodes_.get(), anchors_.get(), &params_);
  }
  size_t workspaceSize(const Context& context) const {
    size_t bytes = 0;
    require(rbcWindowsWorkspaceSize(context.get(), streams_.data(),
                                    static_cast<int32_t>(streams_.size()), episodes_.get(),
                                    anchors_.get(), &params_, &bytes));
    return bytes;
  }
  VoxelOutput fetch(const Context& context, bool* stray_writes) {
    return outputs_.fetch(context, stray_writes);
  }
  // For what a test changes.
  std::vector<rbcWindowStream>& streams() { return streams_; }
  rbcWindowsParams& params() { return params_; }

 private:
  PlacedWindows(const Context& context, const WindowInputs& in, bool cuda)
      : episodes_(context, in.episodes, cuda),
        anchors_(context, in.anchors, cuda),
        outputs_(context, in.outputs(), in.c.flush, cuda) {
    params_.anchor_stream = in.c.anchor_stream;
    if (in.c.anchor_times) params_.flags |= RBC_WINDOWS_ANCHOR_TIMES;
    if (in.c.check_times) params_.flags |= RBC_CHECK_TIMES;
    const size_t count = in.streams.size();
    transforms_.reserve(count);
    resample_.reserve(count);
    arrays_.reserve(count * 12);
    for (size_t n = 0; n < count; ++n) {
      const WindowStreamCase& s = in.c.streams[n];
      const WindowStreamInputs& arrays = in.streams[n];
      const auto place = [&](const Array& array) -> const rbcTensor* {
        if (array.ndim() == 0) return nullptr;
        arrays_.emplace_back(context, array, cuda);
        return arrays_.back().get();
      };
      StreamCase plain;
      plain.method = s.interpolates() ? s.method : RBC_METHOD_LINEAR;
      plain.max_gap = s.max_gap;
      plain.tolerance = s.tolerance;
      plain.fill_value = s.fill_value;
      groups_.push_back(s.groups);
      transforms_.push_back(s.transforms);
      resample_.push_back(paramsOf(plain, in.c.times));
      rbcResampleParams& params = resample_.back();
      params.groups = groups_[n].empty() ? nullptr : groups_[n].data();
      params.num_groups = static_cast<int32_t>(groups_[n].size());
      params.sample_mask = place(arrays.sample_mask);
      rbcWindowStream stream = rbcWindowStreamInit();
      stream.values = place(arrays.values);
      stream.episode_offsets = place(arrays.episode_offsets);
      stream.times = place(arrays.times);
      stream.offsets = place(arrays.offsets);
      stream.mode = s.mode;
      stream.pad = s.pad;
      stream.params = &params;
      if (same(in.c.times, kI64)) {
        stream.clock_offset_ticks = std::llround(s.clock_offset * 1e9);
      } else {
        stream.clock_offset = s.clock_offset;
      }
      stream.transforms = transforms_[n].empty() ? nullptr : transforms_[n].data();
      stream.num_transforms = static_cast<int32_t>(transforms_[n].size());
      stream.shift = place(arrays.shift);
      stream.scale = place(arrays.scale);
      stream.bias = place(arrays.bias);
      stream.low = place(arrays.low);
      stream.high = place(arrays.high);
      stream.neutral = place(arrays.neutral);
      stream.neutral_channels = place(arrays.neutral_channels);
      stream.out = outputs_.get("out" + std::to_string(n));
      stream.valid = outputs_.get("valid" + std::to_string(n));
      streams_.push_back(stream);
    }
  }

  Placed episodes_;
  Placed anchors_;
  PlacedOutputs outputs_;
  std::vector<Placed> arrays_;
  std::vector<std::vector<rbcChannelGroup>> groups_;
  std::vector<std::vector<rbcWindowTransform>> transforms_;
  std::vector<rbcResampleParams> resample_;
  std::vector<rbcWindowStream> streams_;
  rbcWindowsParams params_ = rbcWindowsParamsInit();
};

inline PlacedWindows placedOf(const Context& context, const WindowInputs& in) {
  return PlacedWindows(context, in);
}

}  // namespace support
