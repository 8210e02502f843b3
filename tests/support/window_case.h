// What a case of rbcWindows says of its streams, and of all of them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "robocache/windows.h"
#include "rotation_representations.h"
#include "stream_case.h"

namespace support {

// An array of normalization: whether there is one, and whether each offset has its own.
enum class Grid { kNone, kChannels, kSteps };

struct WindowStreamCase {
  bool has_values = true;
  bool has_times = false;
  rbcDType values = kF32;
  int64_t channels = 5;
  rbcDType index_dtype = kI64;
  rbcDType offsets_dtype = kI64;  // of rows
  int64_t offsets = 6;
  double rate = 1;  // rows a period
  int32_t mode = RBC_WINDOW_GATHER;
  int32_t pad = RBC_PAD_HOLD;
  bool times_repeat = false;

  // Interpolation.
  int32_t method = RBC_METHOD_LINEAR;
  std::vector<rbcChannelGroup> groups = {};
  double max_gap = kNone;  // in periods
  double tolerance = kNone;

  double clock_offset = 0;  // seconds
  double missing = 0;       // the share of rows that sample_mask leaves out
  double fill_value = 0;
  bool specials = false;

  // Channels of poses, in a representation; -1: there are none.
  int64_t pose_begin = -1;
  Representation pose = {};
  double no_rotations = 0;
  std::vector<rbcWindowTransform> transforms = {};

  Grid shift = Grid::kNone;
  Grid scale = Grid::kNone;
  Grid bias = Grid::kNone;
  Grid low = Grid::kNone;
  Grid high = Grid::kNone;
  Grid neutral = Grid::kNone;
  bool neutral_channels = false;
  rbcDType grid_dtype = kF32;

  bool has_out = true;
  bool has_valid = true;
  rbcDType out = kF32;
  rbcDType valid = kBool;
  Layout values_layout = Layout::kContiguous;
  Layout times_layout = Layout::kContiguous;
  Layout offsets_layout = Layout::kContiguous;
  Layout grid_layout = Layout::kContiguous;
  Layout out_layout = Layout::kContiguous;
  Layout valid_layout = Layout::kContiguous;

  int64_t poseChannels() const { return 3 + channelsOf(pose); }
  bool interpolates() const { return mode == RBC_WINDOW_INTERPOLATE; }
  bool copiesAll() const {
    return std::all_of(transforms.begin(), transforms.end(), [](const rbcWindowTransform& t) {
      return t.kind == RBC_TRANSFORM_COPY;
    });
  }
  bool normalizes() const {
    return shift != Grid::kNone || scale != Grid::kNone || bias != Grid::kNone ||
           low != Grid::kNone || high != Grid::kNone || neutral != Grid::kNone;
  }
};

struct WindowCase {
  std::string name = "";
  uint64_t seed = 1;
  int64_t episodes = 4;
  int64_t windows = 7;
  rbcDType episodes_dtype = kI64;
  rbcDType times = kF64;
  bool anchor_times = false;
  int32_t anchor_stream = 0;
  bool check_times = false;
  Layout anchors_layout = Layout::kContiguous;
  Flush flush = Flush::kEnd;
  std::vector<WindowStreamCase> streams = {WindowStreamCase{}};
};

inline Representation representationOf(int32_t value) {
  for (const Representation& r : allRepresentations()) {
    if (r.value == value) return r;
  }
  return {};
}

// Of a transform.
inline bool isPose(const rbcWindowTransform& t) { return t.kind >= RBC_TRANSFORM_SE3_RELATIVE; }
inline int64_t outCount(const rbcWindowTransform& t) {
  return isPose(t) ? 3 + channelsOf(representationOf(t.out_rotation)) : t.count;
}

// All channels of a stream in order: its transforms, and copies between them.
inline std::vector<rbcWindowTransform> coverOf(const WindowStreamCase& s) {
  std::vector<rbcWindowTransform> sorted = s.transforms;
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::vector<rbcWindowTransform> cover;
  int64_t next = 0;
  const auto copyTo = [&](int64_t end) {
    if (next < end) cover.push_back({next, end - next, RBC_TRANSFORM_COPY, 0, 0, 0, 0, 0, 0, 0, 0});
    next = end;
  };
  for (const rbcWindowTransform& t : sorted) {
    copyTo(t.begin);
    cover.push_back(t);
    next = t.begin + t.count;
  }
  copyTo(s.channels);
  return cover;
}

inline int64_t outChannelsOf(const WindowStreamCase& s) {
  int64_t channels = 0;
  for (const rbcWindowTransform& t : coverOf(s)) channels += outCount(t);
  return channels;
}

inline std::string describe(const WindowStreamCase& s) {
  constexpr const char* kPads[] = {"hold", "fill", "neutral"};
  constexpr const char* kKinds[] = {"copy", "subtract", "relative", "world", "step"};
  std::string text = " | O,D " + std::to_string(s.offsets) + "," + std::to_string(s.channels) +
                     " " + nameOf(s.values) + " to " + nameOf(s.out) + " " + kPads[s.pad];
  if (s.interpolates()) {
    text += s.groups.empty() ? std::string(" by ") + methodName(s.method) : " by groups";
    for (const auto& g : s.groups) {
      text += " [" + std::to_string(g.begin) + "+" + std::to_string(g.count) + " " +
              methodName(g.method) + "]";
    }
  }
  for (const rbcWindowTransform& t : s.transforms) {
    text += std::string(" ") + ((t.flags & RBC_TRANSFORM_INVERSE) != 0 ? "inverse " : "") +
            kKinds[t.kind] + " " + std::to_string(t.begin) + "+" + std::to_string(t.count) +
            " of " + std::to_string(t.reference_stream) + "[" +
            std::to_string(t.reference_offset) + "] rotations " + std::to_string(t.rotation) + " " +
            std::to_string(t.reference_rotation) + " " + std::to_string(t.out_rotation);
  }
  return text +
         detail::flagged({{!s.has_values, "numbers"},
                          {s.has_times, "times"},
                          {s.missing != 0, "missing"},
                          {s.normalizes(), "normalized"},
                          {s.shift == Grid::kSteps, "by step"},
                          {!s.has_out, "no out"},
                          {!s.has_valid, "no valid"},
                          {s.specials, "specials"}}) +
         " layouts " + nameOf(s.values_layout) + "/" + nameOf(s.out_layout);
}

inline std::string describe(const WindowCase& c) {
  std::string text = c.name + " (seed " + std::to_string(c.seed) + "): E,B " +
                     std::to_string(c.episodes) + "," + std::to_string(c.windows) + " times " +
                     nameOf(c.times) + " anchors of " + std::to_string(c.anchor_stream) +
                     detail::flagged({{c.anchor_times, "as times"}, {c.check_times, "checked"}});
  for (const WindowStreamCase& s : c.streams) text += describe(s);
  return text;
}

}  // namespace support
