// Moves vectors of channels from rows to rows. Lanes keep one vector and go from row to row, so
// that the data of channels (the factors of the normalization, the row to subtract) are read once.
#pragma once

#include "element_of.h"
#include "fuse/find_sample.cuh"
#include "interpolate.h"
#include "runtime/aligned_vec.cuh"
#include "slerp.h"
#include "window_fetch.h"
#include "windows/rows_arguments.h"

namespace rbc::cuda {
namespace windows {

// ---- Finds the rows of windows: the first step of all bodies of the kernel.

// The place of a window in a stream.
struct RowsStand {
  int64_t anchor;  // relative to the episode's first row
  int32_t begin;   // range of the episode's rows
  int32_t count;
};

// Unlike __ldg(), plain loads are never moved before the loads that the kernel waits for.
template <class T>
__device__ __forceinline__ T loadPlain(const void* at) {
  return *static_cast<const T*>(at);
}

// Loads an index of i32 or i64.
__device__ __forceinline__ int64_t loadIndex(const char* at, bool wide) {
  return wide ? loadPlain<int64_t>(at) : loadPlain<int32_t>(at);
}

// The ends of an episode, unchecked.
struct EpisodeEnds {
  int64_t begin;
  int64_t end;
};
__device__ __forceinline__ EpisodeEnds loadEnds(const RowsTask& task, int64_t episode) {
  const bool wide = (task.flags & kWideEpisodes) != 0;
  const char* const at = task.episode_offsets + episode * task.episode_step;
  return {loadIndex(at, wide), loadIndex(at + task.episode_step, wide)};
}

__device__ __forceinline__ RowsStand standIn(const RowsTask& task, const EpisodeEnds& ends,
                                             int64_t anchor) {
  const int64_t begin = clampIndex(ends.begin, 0, task.rows);
  const int64_t end = clampIndex(ends.end, begin, task.rows);
  return {anchor, static_cast<int32_t>(begin), static_cast<int32_t>(end - begin)};
}

__device__ __forceinline__ RowsStand rowsOfEpisode(const RowsTask& task, int64_t episode) {
  return standIn(task, loadEnds(task, episode), 0);
}

template <class Time>
__device__ __forceinline__ TimeRow<Time> timesFrom(const RowsExtra& extra, int64_t row) {
  return {static_cast<const Time*>(extra.times) + row * extra.times_stride, extra.times_stride};
}

// The time of an anchor, as in anchorOf() of window_problem.h. Returns false if it has none.
template <class Time>
__device__ __forceinline__ bool anchorTime(const RowsLaunch& launch, int64_t window,
                                           int64_t episode, Time* time) {
  const char* const anchor = launch.anchors + window * launch.anchor_step;
  if (launch.anchors_are_times) {
    *time = loadPlain<Time>(anchor);
  } else {
    const RowsExtra& extra = launch.extras[launch.anchor_task];
    const RowsStand all = rowsOfEpisode(launch.tasks[launch.anchor_task], episode);
    if (all.count <= 0) return false;
    const auto row = loadPlain<int64_t>(anchor);
    *time =
        TimeMath<Time>::later(timesFrom<Time>(extra, all.begin)[clampIndex(row, 0, all.count - 1)],
                              offsetAs<Time>(extra.clock_offset));
  }
  return !TimeMath<Time>::isNaN(*time);
}

// For a stream with an anchor by time, as in standOf() of window_problem.h.
template <class Time>
__device__ __forceinline__ RowsStand standByTimeOf(const RowsLaunch& launch, int n, int64_t window,
                                                   int64_t episode) {
  RowsStand stand = rowsOfEpisode(launch.tasks[n], episode);
  Time time;
  if (!anchorTime(launch, window, episode, &time)) return {0, stand.begin, 0};
  const RowsExtra& extra = launch.extras[n];
  time = TimeMath<Time>::shifted(time, offsetAs<Time>(extra.clock_offset));
  stand.anchor = lastRowUpTo(timesFrom<Time>(extra, stand.begin), stand.count, time);
  return stand;
}

__device__ __noinline__ RowsStand standByTime(const RowsLaunch& launch, int n, int64_t window,
                                              int64_t episode) {
  switch (launch.time_dtype) {
    case DType::F32: return standByTimeOf<float>(launch, n, window, episode);
    case DType::F64: return standByTimeOf<double>(launch, n, window, episode);
    default: return standByTimeOf<int64_t>(launch, n, window, episode);
  }
}

__device__ __forceinline__ RowsStand standOf(const RowsLaunch& launch, int n, int64_t window,
                                             int64_t episode) {
  const RowsTask& task = launch.tasks[n];
  if ((task.flags & kByTime) != 0) return standByTime(launch, n, window, episode);
  RowsStand stand = rowsOfEpisode(task, episode);
  stand.anchor = *reinterpret_cast<const int64_t*>(launch.anchors + window * launch.anchor_step);
  return stand;
}

// Index among the rows of the stream, which has fewer than 2^31; -1: none.
__device__ __forceinline__ int32_t rowOf(const RowsStand& stand, const GatheredRow& at,
                                         const RowsExtra& extra, bool has_mask) {
  if (at.row < 0) return -1;
  const int32_t row = stand.begin + static_cast<int32_t>(at.row);
  if (has_mask && extra.sample_mask[row * extra.sample_mask_step] == 0) return -1;
  return row;
}

__device__ __forceinline__ Outside outsideOf(uint32_t flags) {
  return (flags & kFills) != 0 ? Outside::kFill : Outside::kHold;
}

// A row of the output.
struct RowSlot {
  const char* source;  // null: no value
  char* target;
};
// The position of a row between two others.
struct RowBlend {
  float weight;   // of the right one
  int32_t ahead;  // its distance from the left one in bytes; 0 if the weight is 0
};
struct WarpRows {
  RowSlot slots[kWarp];
  RowBlend blends[kWarp];
  bool after[kWarp];  // held past the end
  bool none[kWarp];   // a quaternion or a pose of the row is invalid
};

// The place of a row, before any of it is read.
struct FoundRow {
  int32_t row;  // among all rows of the stream; -1: none
  bool valid;
  bool after;
  float weight;
};

// For an interpolated stream: placeOf() of window_fetch.h, without missing samples and without
// methods of four samples.
template <class Time>
__device__ __forceinline__ FoundRow findBetweenOf(const RowsLaunch& launch, int n, int64_t window,
                                                  int64_t episode, const char* offset) {
  const RowsExtra& extra = launch.extras[n];
  const auto by = loadPlain<Time>(offset);
  const RowsStand stand = rowsOfEpisode(launch.tasks[n], episode);
  Time time;
  if (!anchorTime(launch, window, episode, &time) || stand.count <= 0) return {-1, false, false, 0};
  const auto times = timesFrom<Time>(extra, stand.begin);
  const Ends<Time> ends = {times[0], times[stand.count - 1]};
  const Time query =
      TimeMath<Time>::shifted(TimeMath<Time>::later(time, by), offsetAs<Time>(extra.clock_offset));
  int32_t guess = -1;
  const SamplePosition<Time, int32_t> position = positionOf(
      times, stand.count, ends, query, rulesOf<Time>(extra, extra.outside, extra.method), &guess);
  const bool after = !position.mask && query > ends.last;
  if (position.index < 0) return {-1, position.mask, after, 0};
  return {stand.begin + position.index, position.mask, after,
          static_cast<float>(static_cast<double>(position.weight))};
}

__device__ __noinline__ FoundRow findBetween(const RowsLaunch& launch, int n, int64_t window,
                                             int64_t episode, const char* offset) {
  switch (launch.time_dtype) {
    case DType::F32: return findBetweenOf<float>(launch, n, window, episode, offset);
    case DType::F64: return findBetweenOf<double>(launch, n, window, episode, offset);
    default: return findBetweenOf<int64_t>(launch, n, window, episode, offset);
  }
}

// The values that a lane computes for its row before the preceding launches have finished.
struct LaneRow {
  int32_t window;
  int32_t o;
  int32_t first;  // first of the unit's rows, among the rows of all windows
  bool active;
};

// The values to subtract from adjacent channels; 0 if nothing is subtracted.
struct Subtrahends {
  float of[4];
  uint32_t bad;  // a bit for each channel whose reference has no value
  bool all;      // all references of the window have values
};

// ---- the data of a lane's channels --------------------------------------------------------------

// Loads factor number i of a task.
template <int kCount>
__device__ __forceinline__ void loadFactor(const RowsTask& task, int i, const void* factor,
                                           int channel, float otherwise, float (&to)[kCount]) {
#pragma unroll
  for (float& x : to) x = otherwise;
  if (factor == nullptr) return;
  if (kCount <= 4 && (task.wide_factors >> i & 1) != 0) {
    const double* const from = static_cast<const double*>(factor) + channel;
#pragma unroll
    for (int k = 0; k < kCount; ++k) to[k] = static_cast<float>(from[k]);
  } else {
    using Vec = AlignedVec<float, kCount>;
    const auto vec = loadPlain<Vec>(static_cast<const float*>(factor) + channel);
#pragma unroll
    for (int k = 0; k < kCount; ++k) to[k] = vec.element[k];
  }
}

template <int kCount>
struct LaneFactors {
  static constexpr bool kLimits = kCount <= 4;

  float shift[kCount];
  float scale[kCount];
  float bias[kCount];
  float low[kLimits ? kCount : 1];
  float high[kLimits ? kCount : 1];

  __device__ __forceinline__ void load(const RowsTask& task, uint32_t flags, int channel) {
    if ((flags & kNormalizes) != 0) {
      loadFactor(task, 0, task.shift, channel, 0, shift);
      loadFactor(task, 1, task.scale, channel, 1, scale);
      loadFactor(task, 2, task.bias, channel, -0.0f, bias);
    }
    if (kLimits && (flags & kClips) != 0) {
      loadFactor(task, 3, task.low, channel, -INFINITY, low);
      loadFactor(task, 4, task.high, channel, INFINITY, high);
    }
  }

  // As in finished() of window_problem.h.
  __device__ __forceinline__ void apply(uint32_t flags, float (&x)[kCount]) const {
    if ((flags & kNormalizes) != 0) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        x[i] = normalized(x[i], shift[i], scale[i], bias[i], (flags & kDivides) != 0);
      }
    }
    if constexpr (kLimits) {
      if ((flags & kClips) == 0) return;
#pragma unroll
      for (int i = 0; i < kCount; ++i) x[i] = clipped(x[i], low[i], high[i]);
    }
  }
};

// ---- vectors as words ---------------------------------------------------------------------------

// Pairs of 16-bit floats are words: splitting and joining them as elements costs more.
template <class In, int kCount>
__device__ __forceinline__ void widenVec(const AlignedVec<In, kCount>& vec, float (&x)[kCount]) {
  if constexpr (std::is_same_v<In, bf16> && kCount % 2 == 0) {
    struct Pairs {
      uint32_t words[kCount / 2];
    };
    const auto pairs = bitCast<Pairs>(vec);
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      x[i] = bitCast<float>(pairs.words[i / 2] << 16);
      x[i + 1] = bitCast<float>(pairs.words[i / 2] & 0xffff0000u);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) x[i] = widen(vec.element[i]);
  }
}

template <class Out, int kCount>
__device__ __forceinline__ AlignedVec<Out, kCount> narrowWords(const float (&x)[kCount]) {
  if constexpr (std::is_same_v<Out, bf16> && kCount % 2 == 0) {
    struct Pairs {
      uint32_t words[kCount / 2];
    };
    Pairs pairs;
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      pairs.words[i / 2] = bitCast<uint32_t>(__floats2bfloat162_rn(x[i], x[i + 1]));
    }
    return bitCast<AlignedVec<Out, kCount>>(pairs);
  } else {
    return narrowVec<Out>(x);
  }
}

// ---- rows ---------------------------------------------------------------------------------------

// A lane's part of a unit: a vector of every `step`-th row, starting at the first.
struct LanePart {
  int first;
  int vector;
  int step;
  int count;  // number of the unit's rows; 0: the lane is idle
};

// Combines elements of two rows, or one, to a vector's numbers. Returns false if a quaternion is
// invalid.
template <RowsKind kKind, class In, int kCount>
__device__ __forceinline__ bool blendVecs(const AlignedVec<In, kCount>& left,
                                          const AlignedVec<In, kCount>& right, float weight,
                                          uint32_t flags, float (&x)[kCount]) {
  widenVec(left, x);
  if constexpr (kKind != RowsKind::kCopy) {
    float y[kCount];
    widenVec(right, y);
    if constexpr (kKind == RowsKind::kQuaternion) {
      if (!(isRotation(x) & isRotation(y))) return false;
      if (weight != 0) slerp(x, y, weight, x);
    } else if (weight != 0) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        x[i] = (flags & kAngles) != 0 ? lerpAngle(x[i], y[i], weight) : lerp(x[i], y[i], weight);
      }
    }
  }
  return true;
}

// Returns whether all rows have values. `*lost` gets a bit for each row in which the lane's
// quaternion is invalid.
template <RowsKind kKind, class In, class Out, int kCount>
__device__ __forceinline__ bool moveRows(WarpRows& rows, const LanePart& lane, uint32_t flags,
                                         const LaneFactors<kCount>& factors,
                                         const Subtrahends& subtrahends, uint32_t* lost) {
  using Raw = AlignedVec<In, kCount>;
  using Result = AlignedVec<Out, kCount>;
  constexpr bool kTwo = kKind != RowsKind::kCopy;
  constexpr int kOwnItems = kKind == RowsKind::kQuaternion ? 1 : kTwo ? 2 : kItems;
  bool complete = true;
  for (int first = lane.first; first < lane.count; first += kOwnItems * lane.step) {
    Raw raw[kOwnItems];
    Raw right[kTwo ? kOwnItems : 1];
    RowSlot slot[kOwnItems];
    RowBlend blend[kTwo ? kOwnItems : 1];
#pragma unroll
    for (int u = 0; u < kOwnItems; ++u) {  // past the end the last one again: cheaper than a branch
      const int k = min(first + u * lane.step, lane.count - 1);
      slot[u] = rows.slots[k];
      slot[u].target = stepped(slot[u].target, lane.vector, int32_t{sizeof(Result)});
      if constexpr (kTwo) blend[u] = rows.blends[k];
    }
#pragma unroll
    for (int u = 0; u < kOwnItems; ++u) {
      if (slot[u].source == nullptr) continue;
      const char* const source = stepped(slot[u].source, lane.vector, int32_t{sizeof(Raw)});
      raw[u] = load<Raw>(source);
      if constexpr (kTwo) right[u] = load<Raw>(source + blend[u].ahead);
    }
#pragma unroll
    for (int u = 0; u < kOwnItems; ++u) {
      const bool has_value = slot[u].source != nullptr;
      complete = complete & has_value;
      float x[kCount];
      bool is_one = true;
      if constexpr (kTwo) {
        is_one = blendVecs<kKind>(raw[u], right[u], blend[u].weight, flags, x);
      } else {
        widenVec(raw[u], x);
      }
      if constexpr (kCount <= 4) {
        if ((flags & kSubtracts) != 0) {
#pragma unroll
          for (int i = 0; i < kCount; ++i) x[i] = x[i] - subtrahends.of[i];
        }
      }
      factors.apply(flags, x);
      const Result result = narrowWords<Out>(x);
      const int k = first + u * lane.step;
      if constexpr (kKind == RowsKind::kQuaternion) {
        if (has_value & !is_one & (k < lane.count)) {
          *lost |= 1u << k;
          rows.none[k] = true;
        }
      }
      if (has_value & (k < lane.count)) store(slot[u].target, result);
    }
  }
  return complete;
}

}  // namespace windows

}  // namespace rbc::cuda
