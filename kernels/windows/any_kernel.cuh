// Windows of any kind: any strides and dtypes, interpolation, poses.
//
// A warp takes up to 32 offsets of a window of one stream at a time: a lane finds the row of one, or the
// rows that it lies between. Then the warp goes from one segment of channels to the next, lanes on
// neighbouring channels; of poses a lane has one. What depends on the dtype of times is here, the rest
// in any_channels.cuh and any_poses.cuh.
#pragma once

#include "runtime/pdl.cuh"
#include "windows/any_poses.cuh"

namespace rbc::cuda {
namespace windows {

// What is shared out of a stream: parts of windows, some offsets each.
struct AnyTask {
  int64_t first_unit;
  FastDivmod parts;    // of a window
  int64_t group;       // offsets of a part
  int32_t word_bytes;  // see WindowPart
};

struct AnyLaunch {
  WindowProblem problem;
  int64_t units;
  AnyTask tasks[kMaxWindowStreams];
  WindowStream streams[kMaxWindowStreams];
  WindowSegment segments[kMaxWindowSegments];
  ChannelSegment methods[kMaxSegments];
};

// A window of a stream.
template <class Time>
struct WindowOf {
  const WindowProblem& p;
  int32_t n;
  int64_t window;
  WindowAnchor<Time> anchor;
  WindowStand<Time> stand;

  __device__ __forceinline__ const WindowStream& stream() const { return p.streams[n]; }
};

// One of a stream's methods; gathered streams have none, and so one for all channels.
__device__ __forceinline__ ChannelSegment ownMethod(const WindowProblem& p, const WindowStream& s,
                                                    int32_t i) {
  if (s.interpolates) return p.methods[s.first_method + i];
  return {0, s.channels, Method::kLinear};
}

// Places of one method in memory: of the rows, or of those before them, to which steps refer.
template <class Time>
__device__ __noinline__ void findPlaces(const WindowOf<Time>& w, const WindowPart& part,
                                        Method method, bool before) {
  const WindowStream& s = w.stream();
  const int row = laneOfWarp();
  __syncwarp();
  if (row < part.count) {
    const int64_t o = part.first + row;
    if (before) {
      if (o > 0) part.memory.places[row] = placeOf(s, elementBefore(s, w.stand, o), method);
    } else {
      part.memory.places[row] = placeOf(s, elementAt(s, w.stand, o), method);
    }
  }
  __syncwarp();
}

// Channels `first` and on of a segment's reference. Returns whether all have values.
template <class Time>
__device__ __noinline__ bool fetchReferences(const WindowOf<Time>& w, const WindowPart& part,
                                             const WindowSegment& segment, int64_t first,
                                             int count) {
  WarpMemory& memory = part.memory;
  const WindowStream& s = w.p.streams[segment.reference_stream];
  const WindowElement<Time> reference = referenceElement(w.p, segment, w.window, w.anchor);
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

template <class Time>
struct Methods {
  const WindowOf<Time>& w;
  const WindowPart& part;
  int32_t count;  // 1 at least
  int32_t found = -1;

  // Calls visit(method, begin, width) for the parts of some channels that have a method each; its
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
      if (found != i) findPlaces(w, part, method.method, false);
      found = i;
      visitor(method, from, static_cast<int>(to - from));
    }
  }
};

// Copied channels, and those with something subtracted.
template <class Time>
__device__ __forceinline__ void doChannels(const WindowOf<Time>& w, const WindowPart& part,
                                           const WindowSegment& segment, Methods<Time>* methods) {
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

// Puts the channels of poses into memory.
template <class Time>
__device__ __forceinline__ void stagePoses(const WindowOf<Time>& w, const WindowPart& part,
                                           const WindowSegment& segment, Methods<Time>* methods) {
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
    findPlaces(w, part, method.method, true);
    methods->found = -1;
    const int first = part.first == 0 ? 1 : 0;  // the first of a window has none before it
    stageChannels(part, method, segment.begin, static_cast<int>(from - segment.begin),
                  static_cast<int>(to - from), first, memory.before);
  }
  __syncwarp();
}

template <class Time>
__device__ __forceinline__ void doPoses(const WindowOf<Time>& w, const WindowPart& part,
                                        const WindowSegment& segment, Methods<Time>* methods) {
  const int count = kPositionChannels + channelsOf(segment.reference_rotation.kind);
  bool referred = fetchReferences(w, part, segment, 0, count);
  if (segment.isSum()) {
    // All from the window's first on: a warp does not know what others have summed up.
    __shared__ double kept[kMaxWarps][kPitch];
    for (int64_t first = 0; first <= part.first; first += kWarp) {
      const bool is_last = first == part.first;
      const WindowPart steps = {
          part.s, part.memory, part.window, first, is_last ? part.count : kWarp, 0};
      Methods<Time> of_steps = {w, steps, methods->count};
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

// Where there are no values the rows themselves.
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
template <class Time>
__device__ __forceinline__ bool doPart(const WindowOf<Time>& w, const WindowPart& part) {
  const WindowStream& s = w.stream();
  WarpMemory& memory = part.memory;
  const int row = laneOfWarp();
  Methods<Time> methods = {w, part, s.interpolates ? s.num_methods : 1};
  bool valid = true;
  for (int32_t i = methods.count - 1; i >= 0; --i) {  // the first is left in memory
    findPlaces(w, part, ownMethod(w.p, s, i).method, false);
    valid = valid && row < part.count && memory.places[row].mask;
  }
  methods.found = 0;
  memory.valid[row] = valid;
  memory.whole[row] = s.interpolates || (row < part.count && memory.places[row].row >= 0);
  memory.after[row] = row < part.count && s.pad == WindowPad::kNeutral &&
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

template <class Time>
__device__ __forceinline__ void doAny(const AnyLaunch& launch, int64_t unit, WarpMemory& memory) {
  WindowProblem p = launch.problem;
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
  const WindowAnchor<Time> anchor = anchorOf<Time>(p, window);
  const WindowOf<Time> w = {p, n, window, anchor, standOf<Time>(p, n, window, anchor)};
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

}  // namespace windows
}  // namespace rbc::cuda
