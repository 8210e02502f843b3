// Where the rows of windows are found: what bodies of the kernel of gathered rows, and others, begin with.
#pragma once

#include "element_of.h"
#include "fuse/find_sample.cuh"
#include "runtime/aligned_vec.cuh"
#include "window_fetch.h"
#include "windows/rows_arguments.cuh"

namespace rbc::cuda {
namespace windows {

// Where a window stands in a stream.
struct RowsStand {
  int64_t anchor;  // from the episode's first row
  int32_t begin;   // of the episode's rows
  int32_t count;
};

// Plain loads, unlike __ldg(), are never made before those that the kernel waits for.
template <class T>
__device__ __forceinline__ T loadPlain(const void* at) {
  return *static_cast<const T*>(at);
}

// An index of i32 or i64.
__device__ __forceinline__ int64_t loadIndex(const char* at, bool wide) {
  return wide ? loadPlain<int64_t>(at) : loadPlain<int32_t>(at);
}

// The ends of an episode, as they are.
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

__device__ __forceinline__ int64_t episodeOf(const RowsLaunch& launch, int64_t window) {
  const int64_t e =
      loadIndex(launch.episode_of + window * launch.episode_step, launch.wide_episodes);
  return clampIndex(e, 0, launch.episodes - 1);
}

template <class Time>
__device__ __forceinline__ TimeRow<Time> timesFrom(const RowsExtra& extra, int64_t row) {
  return {static_cast<const Time*>(extra.times) + row * extra.times_stride, extra.times_stride};
}

// The time of an anchor, as anchorOf() of window_problem.h has it. False: it has none.
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

// Of a stream that has an anchor by its time, as standOf() there has it.
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

// Among the rows of the stream, of which there are fewer than 2^31; -1: there is none.
__device__ __forceinline__ int32_t rowOf(const RowsStand& stand, const GatheredRow& at,
                                         const RowsExtra& extra, bool has_mask) {
  if (at.row < 0) return -1;
  const int32_t row = stand.begin + static_cast<int32_t>(at.row);
  if (has_mask && extra.sample_mask[row * extra.sample_mask_step] == 0) return -1;
  return row;
}

__device__ __forceinline__ WindowPad padOf(uint32_t flags) {
  return (flags & kFills) != 0 ? WindowPad::kFill : WindowPad::kHold;
}

// A row of the output.
struct RowSlot {
  const char* source;  // null: there is none
  char* target;
};
// How a row lies between two.
struct RowBlend {
  float weight;   // of the right one
  int32_t ahead;  // where it is, from the left one, in bytes; 0 where the weight is
};
struct WarpRows {
  RowSlot slots[kWarp];
  RowBlend blends[kWarp];
  bool after[kWarp];  // held past the end
  bool none[kWarp];   // a quaternion of the row, or a pose, is none
};

// Where a row is, before anything of it is read.
struct FoundRow {
  int32_t row;  // among all of the stream; -1: there is none
  bool valid;
  bool after;
  float weight;
};

// Of an interpolated stream: placeOf() of window_fetch.h, where no sample is missing and no method looks
// at four.
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
      times, stand.count, ends, query, rulesOf<Time>(extra, extra.bounds, extra.method), &guess);
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

// What a lane knows of its row before the launches ahead are done.
struct LaneRow {
  int32_t window;
  int32_t o;
  int32_t first;  // of the unit's rows, among those of all windows
  bool active;
};

}  // namespace windows
}  // namespace rbc::cuda
