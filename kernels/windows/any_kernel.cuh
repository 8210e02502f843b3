// Windows of any kind: any strides and dtypes, interpolation, poses.
//
// A warp processes up to 32 offsets of a window of one stream at a time: a lane finds the row of
// one offset, or the rows around it. Then the warp goes from one segment of channels to the next,
// with lanes on adjacent channels; for poses a lane has one pose.
#pragma once

#include "element_of.h"
#include "runtime/pdl.cuh"
#include "window_transforms.h"
#include "windows/pose_channels.cuh"
#include "windows/select.h"

namespace rbc::cuda {
namespace windows {

// ---- The shared memory of a warp for windows of any kind.

inline constexpr int kPitch = kMaxPoseChannels + 1;  // odd: rows are in different banks
inline constexpr int kReferences = 64;  // channels whose references are fetched at once

// For up to 32 consecutive offsets of a window, which are called rows here.
struct WarpMemory {
  WindowPlace places[kWarp];
  double poses[kWarp][kPitch];
  double before[kWarp][kPitch];   // the poses where steps begin
  double reference[kReferences];  // channels of a reference
  bool referred[kReferences];     // whether they have values
  bool valid[kWarp];
  bool whole[kWarp];  // all channels have values
  bool after[kWarp];  // past the end
  bool posed[kWarp];  // the pose and the one before have values
};

// Arguments of functions that do not depend on the dtype of times.
struct WindowPart {
  const WindowStream& s;
  WarpMemory& memory;
  int64_t window;
  int64_t first;   // first offset
  int count;       // number of rows
  int word_bytes;  // for an output of integers, which are copied; else 0
};

__device__ __forceinline__ int laneOfWarp() { return static_cast<int>(threadIdx.x % kWarp); }

// Calls visit(row, i) for i < width of each row, adjacent lanes on adjacent items.
template <class Visitor>
__device__ __forceinline__ void visitItems(int rows, int width, Visitor&& visit) {
  const int step_rows = kWarp / width;
  const int step_items = kWarp - step_rows * width;
  int k = laneOfWarp() / width;
  int i = laneOfWarp() - k * width;
  while (k < rows) {
    visit(k, i);
    k += step_rows;
    i += step_items;
    if (i >= width) {
      i -= width;
      ++k;
    }
  }
}

// ---- Channels one by one: reads, copies, subtracts, normalizes and writes them, for any dtype.

// Writes a channel of a row, if there is an output: `x`, or the fill value if there is no value.
template <class Number>
__device__ __forceinline__ void writeChannel(const WindowPart& part, int row, int64_t d, Number x,
                                             bool has_value) {
  const WindowStream& s = part.s;
  if (!has_value) {
    part.memory.valid[row] = false;
    part.memory.whole[row] = false;
  }
  if (s.out.data == nullptr) return;
  const int64_t o = part.first + row;
  const int64_t at = part.window * s.out.stride[0] + o * s.out.stride[1] + d * s.out.stride[2];
  if (has_value) x = finished(s, o, d, x, part.memory.after[row]);
  switch (s.out.dtype) {
#define RBC_CASE(name, storage, code, text)                               \
  case DType::name:                                                       \
    static_cast<storage*>(s.out.data)[at] =                               \
        has_value ? narrow<storage>(x) : elementOf<storage>(s.fill_bits); \
    return;
    RBC_FLOAT_DTYPES(RBC_CASE)
#undef RBC_CASE
    default: return;
  }
}

// Copies integer channels unchanged; neutral ones are 0.
template <class Word>
__device__ __forceinline__ void copyWords(const WindowPart& part, const WindowSegment& segment) {
  const WindowStream& s = part.s;
  for (int k = 0; k < part.count; ++k) {
    const int64_t row = part.memory.places[k].row;
    const Word* const values = static_cast<const Word*>(s.values) + row * s.values_stride[0];
    Word* const out = static_cast<Word*>(s.out.data) + part.window * s.out.stride[0] +
                      (part.first + k) * s.out.stride[1];
    for (int64_t i = laneOfWarp(); i < segment.count; i += kWarp) {
      const int64_t d = segment.out_begin + i;
      auto word = elementOf<Word>(s.fill_bits);
      if (row >= 0) word = values[(segment.begin + i) * s.values_stride[1]];
      if (part.memory.after[k] && isNeutral(s, d)) word = 0;
      out[d * s.out.stride[2]] = word;
    }
  }
}

// Channels of one method, beginning at `first` of the segment: copied, or minus the references in
// memory.
template <class Number>
__device__ __noinline__ void writeChannels(const WindowPart& part, const WindowSegment& segment,
                                           const ChannelSegment& method, int64_t first, int count,
                                           int reference) {
  visitItems(part.count, count, [&](int row, int i) {
    Number x = 0;
    const int64_t channel = segment.begin + first + i;
    bool has_value =
        fetchChannel(part.s, part.memory.places[row], method.method, method.begin, channel, &x);
    if (segment.kind == WindowKind::kSubtract) {
      has_value = has_value && part.memory.referred[reference + i];
      x = subtracted(x, static_cast<Number>(part.memory.reference[reference + i]), segment.inverse);
    }
    writeChannel(part, row, segment.out_begin + first + i, x, has_value);
  });
}

// Stages the channels of a pose that have one method, as f64, for the rows from `first_row` on.
__device__ __noinline__ void stageChannels(const WindowPart& part, const ChannelSegment& method,
                                           int64_t begin, int first, int count, int first_row,
                                           double (&to)[kWarp][kPitch]) {
  visitItems(part.count, count, [&](int row, int i) {
    if (row < first_row) return;
    const bool has_value = fetchChannel(part.s, part.memory.places[row], method.method,
                                        method.begin, begin + first + i, &to[row][first + i]);
    if (!has_value) part.memory.posed[row] = false;
  });
}

// ---- Poses of a window relative to others: one per lane.

// Writes a pose to memory between two steps.
__device__ __forceinline__ void keep(const Pose<double>& pose, double* to) {
  to[0] = pose.p.x;
  to[1] = pose.p.y;
  to[2] = pose.p.z;
  to[3] = pose.q.w;
  to[4] = pose.q.x;
  to[5] = pose.q.y;
  to[6] = pose.q.z;
}
__device__ __forceinline__ void keep(const Pose<DoubleDouble>& pose, double* to) {
  keep(Pose<double>{pose.p, head(pose.q)}, to);
  to[7] = pose.q.w.tail;
  to[8] = pose.q.x.tail;
  to[9] = pose.q.y.tail;
  to[10] = pose.q.z.tail;
}
__device__ __forceinline__ void take(const double* from, Pose<double>* pose) {
  *pose = {{from[0], from[1], from[2]}, {from[3], from[4], from[5], from[6]}};
}
__device__ __forceinline__ void take(const double* from, Pose<DoubleDouble>* pose) {
  *pose = {{from[0], from[1], from[2]},
           {{from[3], from[7]}, {from[4], from[8]}, {from[5], from[9]}, {from[6], from[10]}}};
}

// Replaces poses in memory by poses relative to the reference, whose channels are also in memory.
// Steps are relative to the preceding pose, or at the window's first offset to the reference.
template <class Number>
__device__ __forceinline__ void relateBy(const WindowPart& part, const WindowSegment& segment) {
  WarpMemory& memory = part.memory;
  const int row = laneOfWarp();
  if (row >= part.count || !memory.posed[row]) return;
  const bool is_step = segment.kind == WindowKind::kStep && part.first + row > 0;
  Pose<Number> pose;
  Pose<Number> reference;
  const bool has_reference = poseAt(is_step ? segment.rotation : segment.reference_rotation,
                                    is_step ? memory.before[row] : memory.reference, &reference);
  if (has_reference & poseAt(segment.rotation, memory.poses[row], &pose)) {
    putPose(segment.out_rotation, transformed(segment, referenceOf(reference), pose),
            memory.poses[row]);
  } else {
    memory.posed[row] = false;
  }
}
__device__ __noinline__ void relate(const WindowPart& part, const WindowSegment& segment) {
  relateBy<double>(part, segment);
}
__device__ __noinline__ void relateInDoubleDouble(const WindowPart& part,
                                                  const WindowSegment& segment) {
  relateBy<DoubleDouble>(part, segment);
}

// Sums steps, starting with the reference: each step in memory is replaced by the sum so far.
// `*sum` is kept by the first lane, or is null.
template <class Number>
__device__ __forceinline__ void addStepsBy(const WindowPart& part, const WindowSegment& segment,
                                           bool is_first, double (&kept)[kPitch], bool* has_sum) {
  WarpMemory& memory = part.memory;
  const int lane = laneOfWarp();
  Pose<Number> pose;
  if (is_first && lane == 0) {
    *has_sum = *has_sum && poseAt(segment.reference_rotation, memory.reference, &pose);
    keep(pose, kept);
  }
  if (lane < part.count && memory.posed[lane]) {
    if (poseAt(segment.rotation, memory.poses[lane], &pose)) {
      keep(pose, memory.poses[lane]);
    } else {
      memory.posed[lane] = false;
    }
  }
  __syncwarp();
  if (lane == 0) {
    Pose<Number> sum;
    take(kept, &sum);
    for (int row = 0; row < part.count; ++row) {
      *has_sum = *has_sum && memory.posed[row];
      memory.posed[row] = *has_sum;
      if (!*has_sum) continue;
      take(memory.poses[row], &pose);
      sum = afterStep(sum, pose);
      keep(sum, memory.poses[row]);
    }
    keep(sum, kept);
  }
  __syncwarp();
}
template <class Number>
__device__ __forceinline__ void writeSumsBy(const WindowPart& part, const WindowSegment& segment) {
  WarpMemory& memory = part.memory;
  const int row = laneOfWarp();
  if (row >= part.count || !memory.posed[row]) return;
  Pose<Number> pose;
  take(memory.poses[row], &pose);
  putPose(segment.out_rotation, pose, memory.poses[row]);
}
__device__ __noinline__ void addSteps(const WindowPart& part, const WindowSegment& segment,
                                      bool is_first, double (&kept)[kPitch], bool* has_sum) {
  if (inDoubleDouble(segment)) {
    addStepsBy<DoubleDouble>(part, segment, is_first, kept, has_sum);
  } else {
    addStepsBy<double>(part, segment, is_first, kept, has_sum);
  }
}
__device__ __noinline__ void writeSums(const WindowPart& part, const WindowSegment& segment) {
  if (inDoubleDouble(segment)) {
    writeSumsBy<DoubleDouble>(part, segment);
  } else {
    writeSumsBy<double>(part, segment);
  }
}

// Writes the transformed poses in memory like all other channels.
template <class Number>
__device__ __noinline__ void writePoses(const WindowPart& part, const WindowSegment& segment) {
  visitItems(part.count, static_cast<int>(segment.out_count), [&](int row, int i) {
    writeChannel(part, row, segment.out_begin + i, static_cast<Number>(part.memory.poses[row][i]),
                 part.memory.posed[row]);
  });
}

// The division of a stream's work: parts of windows, some offsets each.
struct AnyTask {
  int64_t first_unit;
  FastDivmod parts;    // per window
  int64_t group;       // offsets per part
  int32_t word_bytes;  // see WindowPart
};

struct AnyLaunch {
  PlainWindows problem;
  int64_t units;
  AnyTask tasks[kMaxWindowStreams];
  WindowStream streams[kMaxWindowStreams];
  WindowSegment segments[kMaxWindowSegments];
  ChannelSegment methods[kMaxSegments];
};

// The same with what few problems have.
struct CausalLaunch : AnyLaunch {
  TimeOffset lag;
  Arrivals arrivals[kMaxWindowStreams];
  ArrivalLines lines[kMaxWindowStreams];
  SegmentAge ages[kMaxSegments];
};

// A window of a stream, on a clock of window_problem.h.
template <class Clock>
struct WindowOf {
  const WindowsOn<Clock>& p;
  int32_t n;
  int64_t window;
  WindowAnchor<TimeOn<Clock>> anchor;
  WindowStand<Clock> stand;

  __device__ __forceinline__ const WindowStream& stream() const { return p.streams[n]; }
};

// One of a stream's methods; gathered streams have none, which counts as one for all channels.
__device__ __forceinline__ ChannelSegment ownMethod(const PlainWindows& p, const WindowStream& s,
                                                    int32_t i) {
  if (s.interpolates) return p.methods[s.first_method + i];
  return {0, s.channels, Method::kLinear};
}

// Finds the places of method `i` of the stream in memory: for the rows, or for the preceding rows
// that steps refer to.
template <class Clock>
__device__ __noinline__ void findPlaces(const WindowOf<Clock>& w, const WindowPart& part,
                                        Method method, int32_t i, bool before) {
  const WindowStream& s = w.stream();
  const int row = laneOfWarp();
  __syncwarp();
  if (row < part.count) {
    const int64_t o = part.first + row;
    if (before) {
      if (o > 0) part.memory.places[row] = placeOf(s, elementBefore(s, w.stand, o), method, i);
    } else {
      part.memory.places[row] = placeOf(s, elementAt(s, w.stand, o), method, i);
    }
  }
  __syncwarp();
}

// Fetches channels of a segment's reference, starting at `first`. Returns whether all have values.
template <class Clock>
__device__ __noinline__ bool fetchReferences(const WindowOf<Clock>& w, const WindowPart& part,
                                             const WindowSegment& segment, int64_t first,
                                             int count) {
  WarpMemory& memory = part.memory;
  const WindowStream& s = w.p.streams[segment.reference_stream];
  const auto reference = referenceElement<Clock>(w.p, segment, w.window, w.anchor);
  bool all = true;
  __syncwarp();
  for (int i = laneOfWarp(); i < count; i += kWarp) {
    memory.referred[i] =
        fetchChannel(w.p, s, reference, segment.reference_begin + first + i, &memory.reference[i]);
    all = all && memory.referred[i];
  }
  __syncwarp();
  return __all_sync(0xffffffffu, all);
}

template <class Clock>
struct Methods {
  const WindowOf<Clock>& w;
  const WindowPart& part;
  int32_t count;  // at least 1
  int32_t found = -1;

  // Calls visit(method, begin, width) for the parts of some channels with one method each; its
  // places are in memory then.
  template <class Visitor>
  __device__ __forceinline__ void visit(int64_t begin, int64_t end, Visitor&& visitor) {
    const WindowStream& s = w.stream();
    for (int32_t i = 0; i < count; ++i) {
      const ChannelSegment method = ownMethod(w.p, s, i);
      const int64_t from = begin > method.begin ? begin : method.begin;
      const int64_t own_end = i + 1 < count ? ownMethod(w.p, s, i + 1).begin : s.channels;
      const int64_t to = end < own_end ? end : own_end;
      if (from >= to) continue;
      if (found != i) findPlaces(w, part, method.method, i, false);
      found = i;
      visitor(method, from, static_cast<int>(to - from));
    }
  }
};

// Processes copied channels and channels with a reference.
template <class Clock>
__device__ __forceinline__ void doChannels(const WindowOf<Clock>& w, const WindowPart& part,
                                           const WindowSegment& segment, Methods<Clock>* methods) {
  const WindowStream& s = w.stream();
  switch (part.word_bytes) {
    case 0: break;
    case 1: return copyWords<uint8_t>(part, segment);
    case 2: return copyWords<uint16_t>(part, segment);
    case 4: return copyWords<uint32_t>(part, segment);
    default: return copyWords<uint64_t>(part, segment);
  }
  const int64_t end = segment.begin + segment.count;
  for (int64_t begin = segment.begin; begin < end; begin += kReferences) {
    const int64_t to = end - begin < kReferences ? end : begin + kReferences;
    if (segment.kind == WindowKind::kSubtract) {
      fetchReferences(w, part, segment, begin - segment.begin, static_cast<int>(to - begin));
    }
    methods->visit(begin, to, [&](const ChannelSegment& method, int64_t from, int width) {
      const auto first = static_cast<int>(from - begin);
      if (s.in_double) {
        writeChannels<double>(part, segment, method, from - segment.begin, width, first);
      } else {
        writeChannels<float>(part, segment, method, from - segment.begin, width, first);
      }
    });
    __syncwarp();
  }
}

// Stages the channels of poses in memory.
template <class Clock>
__device__ __forceinline__ void stagePoses(const WindowOf<Clock>& w, const WindowPart& part,
                                           const WindowSegment& segment, Methods<Clock>* methods) {
  const WindowStream& s = w.stream();
  WarpMemory& memory = part.memory;
  memory.posed[laneOfWarp()] = true;
  __syncwarp();
  const int64_t end = segment.begin + segment.count;
  methods->visit(segment.begin, end, [&](const ChannelSegment& method, int64_t from, int width) {
    stageChannels(part, method, segment.begin, static_cast<int>(from - segment.begin), width, 0,
                  memory.poses);
  });
  __syncwarp();
  if (segment.kind != WindowKind::kStep || segment.inverse) return;
  for (int32_t i = 0; i < methods->count; ++i) {
    const ChannelSegment method = ownMethod(w.p, s, i);
    const int64_t own_end = i + 1 < methods->count ? ownMethod(w.p, s, i + 1).begin : s.channels;
    const int64_t from = segment.begin > method.begin ? segment.begin : method.begin;
    const int64_t to = end < own_end ? end : own_end;
    if (from >= to) continue;
    findPlaces(w, part, method.method, i, true);
    methods->found = -1;
    const int first = part.first == 0 ? 1 : 0;  // the first of a window has no preceding row
    stageChannels(part, method, segment.begin, static_cast<int>(from - segment.begin),
                  static_cast<int>(to - from), first, memory.before);
  }
  __syncwarp();
}

template <class Clock>
__device__ __forceinline__ void doPoses(const WindowOf<Clock>& w, const WindowPart& part,
                                        const WindowSegment& segment, Methods<Clock>* methods) {
  const int count = kPositionChannels + channelsOf(segment.reference_rotation.kind);
  bool referred = fetchReferences(w, part, segment, 0, count);
  if (segment.isSum()) {
    // Sums everything from the window's first offset on: a warp does not have the sums of others.
    __shared__ double kept[kAnyWarps][kPitch];
    for (int64_t first = 0; first <= part.first; first += kWarp) {
      const bool is_last = first == part.first;
      const WindowPart steps = {
          part.s, part.memory, part.window, first, is_last ? part.count : kWarp, 0};
      Methods<Clock> of_steps = {w, steps, methods->count};
      stagePoses(w, steps, segment, &of_steps);
      addSteps(steps, segment, first == 0, kept[threadIdx.x / kWarp], &referred);
    }
    methods->found = -1;
    writeSums(part, segment);
  } else {
    stagePoses(w, part, segment, methods);
    if (!referred && (segment.kind != WindowKind::kStep || part.first + laneOfWarp() == 0)) {
      part.memory.posed[laneOfWarp()] = false;
    }
    __syncwarp();
    if (inDoubleDouble(segment)) {
      relateInDoubleDouble(part, segment);
    } else {
      relate(part, segment);
    }
  }
  __syncwarp();
  if (part.s.in_double) {
    writePoses<double>(part, segment);
  } else {
    writePoses<float>(part, segment);
  }
  __syncwarp();
}

// Writes row numbers if there are no values.
__device__ __forceinline__ void writeRowNumbers(const WindowPart& part) {
  const WindowStream& s = part.s;
  const int row = laneOfWarp();
  if (s.out.data == nullptr || row >= part.count) return;
  const int64_t number = part.memory.places[row].row;
  static_cast<int64_t*>(
      s.out.data)[part.window * s.out.stride[0] + (part.first + row) * s.out.stride[1]] =
      number >= 0 ? number : elementOf<int64_t>(s.fill_bits);
}

// Returns whether all rows are valid.
template <class Clock>
__device__ __forceinline__ bool doPart(const WindowOf<Clock>& w, const WindowPart& part) {
  const WindowStream& s = w.stream();
  WarpMemory& memory = part.memory;
  const int row = laneOfWarp();
  Methods<Clock> methods = {w, part, s.interpolates ? s.num_methods : 1};
  bool valid = true;
  for (int32_t i = methods.count - 1; i >= 0; --i) {  // the first method stays in memory
    findPlaces(w, part, ownMethod(w.p, s, i).method, i, false);
    valid = valid && row < part.count && memory.places[row].mask;
  }
  methods.found = 0;
  memory.valid[row] = valid;
  memory.whole[row] = s.interpolates || (row < part.count && memory.places[row].row >= 0);
  memory.after[row] = row < part.count && s.outside == Outside::kNeutral &&
                      isPastEnd(s, elementAt(s, w.stand, part.first + row), valid);
  __syncwarp();
  if (s.values == nullptr) writeRowNumbers(part);
  for (int32_t i = s.first_segment; i < s.first_segment + s.num_segments; ++i) {
    const WindowSegment& segment = w.p.segments[i];
    if (segment.isPose()) {
      doPoses(w, part, segment, &methods);
    } else {
      doChannels(w, part, segment, &methods);
    }
  }
  __syncwarp();
  if (row < part.count) {
    const int64_t o = part.first + row;
    valid = memory.valid[row];
    if (s.valid != nullptr) {
      s.valid[part.window * s.valid_stride[0] + o * s.valid_stride[1]] = valid ? 1 : 0;
    }
    if (s.counted != nullptr) {
      s.counted[part.window * s.num_offsets + o] =
          memory.whole[row] && (valid || s.rule == WindowRule::kAll) ? 1 : 0;
    }
  }
  return __all_sync(0xffffffffu, row >= part.count || valid);
}

template <class Clock, class Launch>
__device__ __forceinline__ void doUnit(const Launch& launch, WindowsOn<Clock>& p, int64_t unit,
                                       WarpMemory& memory) {
  p.streams = launch.streams;
  p.segments = launch.segments;
  p.methods = launch.methods;
  int32_t n = 0;
  while (n + 1 < p.num_streams && unit >= launch.tasks[n + 1].first_unit) ++n;
  const AnyTask& task = launch.tasks[n];
  const WindowStream& s = launch.streams[n];
  const int64_t own = unit - task.first_unit;
  const int64_t window = task.parts(own);
  const int64_t begin = (own - window * static_cast<int64_t>(task.parts.divisor)) * task.group;
  const int64_t end = s.num_offsets - begin < task.group ? s.num_offsets : begin + task.group;
  const auto anchor = anchorOf<TimeOn<Clock>>(p, window);
  const WindowOf<Clock> w = {p, n, window, anchor, standOf<Clock>(p, n, window, anchor)};
  letNextLaunchBegin();
  bool all = true;
  for (int64_t first = begin; first < end; first += kWarp) {
    const auto count = static_cast<int>(end - first < kWarp ? end - first : kWarp);
    const bool valid = doPart(w, {s, memory, window, first, count, task.word_bytes});
    all = all && valid;
    __syncwarp();
  }
  if (s.counted == nullptr || s.rule != WindowRule::kWhole || all) return;
  for (int64_t o = begin + laneOfWarp(); o < end; o += kWarp) {
    s.counted[window * s.num_offsets + o] = 0;
  }
}

template <class Clock, class Launch>
__device__ __forceinline__ void doAny(const Launch& launch, int64_t unit, WarpMemory& memory) {
  WindowsOn<Clock> p = {launch.problem};
  if constexpr (ClockOf<Clock>::kArrives) {
    const CausalWindows causal = {launch.lag, launch.arrivals, launch.ages, 0, launch.lines};
    p.causal = &causal;
    doUnit<Clock>(launch, p, unit, memory);
  } else {
    doUnit<Clock>(launch, p, unit, memory);
  }
}

}  // namespace windows

}  // namespace rbc::cuda
