// Windows of gathered streams, in vectors: the case of training batches.
//
// A warp takes some offsets of one window of one stream, and up to 32 vectors of their rows. Its lanes keep
// to a vector and go from row to row, so that what belongs to channels - the factors of the
// normalization, the row that is subtracted - is read once, while the chain of loads that no window
// can do without is under way: the episode's number, its rows, and theirs. Nothing is shared between
// warps, and nothing waits but for memory.
//
// Such a launch lasts a few microseconds, so latency is all: what is rare - times, references, rows that are
// missing or neutral - is in functions of its own, and of the rest little depends on a branch.
#pragma once

#include "element_of.h"
#include "fuse/find_sample.cuh"
#include "runtime/aligned_vec.cuh"
#include "runtime/pdl.cuh"
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

// Of a stream that has an anchor by its time, as standOf() of window_problem.h has it.
template <class Time>
__device__ __forceinline__ RowsStand standByTimeOf(const RowsLaunch& launch, int n, int64_t window,
                                                   int64_t episode) {
  RowsStand stand = rowsOfEpisode(launch.tasks[n], episode);
  const char* const anchor = launch.anchors + window * launch.anchor_step;
  Time time;
  if (launch.anchors_are_times) {
    time = *reinterpret_cast<const Time*>(anchor);
  } else {
    const RowsExtra& extra = launch.extras[launch.anchor_stream];
    const RowsStand all = rowsOfEpisode(launch.tasks[launch.anchor_stream], episode);
    if (all.count <= 0) return {0, stand.begin, 0};
    const int64_t row = *reinterpret_cast<const int64_t*>(anchor);
    time =
        TimeMath<Time>::later(timesFrom<Time>(extra, all.begin)[clampIndex(row, 0, all.count - 1)],
                              offsetAs<Time>(extra.clock_offset));
  }
  if (TimeMath<Time>::isNaN(time)) return {0, stand.begin, 0};
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

// ---- what is rare ---------------------------------------------------------------------------------

// What is subtracted from neighbouring channels; 0 where nothing is.
struct Subtrahends {
  float of[4];
  uint32_t bad;  // a bit of each channel whose reference has no value
  bool all;      // all references of the window have values
};

__device__ __noinline__ Subtrahends fetchSubtrahends(const RowsLaunch& launch, int n,
                                                     int64_t window, int64_t episode, int channel) {
  const RowsExtra& own = launch.extras[n];
  Subtrahends found = {{0, 0, 0, 0}, 0, true};
  for (int r = own.first_reference; r < own.first_reference + own.num_references; ++r) {
    const RowsReference& reference = launch.references[r];
    const RowsTask& task = launch.tasks[reference.stream];
    const RowsExtra& extra = launch.extras[reference.stream];
    const RowsStand stand = standOf(launch, reference.stream, window, episode);
    const int64_t by = loadIndex(stepped(task.offsets, reference.offset, task.offset_step),
                                 (task.flags & kWideOffsets) != 0);
    const GatheredRow at = gatheredRow(stand.anchor, by, stand.count, WindowPad::kHold);
    const int32_t row = rowOf(stand, at, extra, (task.flags & kHasMask) != 0);
    found.all = found.all && row >= 0;
    const char* const values = stepped(task.values, row, task.row_step);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int c = channel + i;
      if (i >= own.count || c < reference.begin || c >= reference.end) continue;
      if (row < 0) {
        found.bad |= 1u << i;
      } else {
        const float x = valueAt<float>(values, extra.in,
                                       reference.at + (c - reference.begin) * reference.stride);
        found.of[i] = reference.inverse ? -x : x;
      }
    }
  }
  return found;
}

__device__ __forceinline__ GatheredRow gatheredAt(const RowsTask& task, const RowsStand& stand,
                                                  int o, uint32_t flags) {
  const int64_t by =
      loadIndex(stepped(task.offsets, o, task.offset_step), (flags & kWideOffsets) != 0);
  return gatheredRow(stand.anchor, by, stand.count, padOf(flags));
}

// A lane's part of a unit: a vector of every `step`-th row from the first on.
struct LaneRows {
  int first;  // offset
  int end;
  int vector;
};

// Writes the channels of the lane that take other than their own values: the fill value where there is none,
// and neutral ones past the end.
__device__ __noinline__ void writeOthers(const RowsLaunch& launch, int n, int64_t window,
                                         RowsStand stand, LaneRows lane, uint32_t bad) {
  const RowsTask& task = launch.tasks[n];
  const RowsExtra& extra = launch.extras[n];
  const uint32_t flags = task.flags;
  char* const out = task.out + window * task.window_step +
                    static_cast<int64_t>(lane.vector) * extra.count * extra.out_size;
  for (int o = lane.first; o < lane.end; o += task.step) {
    const GatheredRow at = gatheredAt(task, stand, o, flags);
    const bool none = rowOf(stand, at, extra, (flags & kHasMask) != 0) < 0;
    for (int i = 0; i < extra.count; ++i) {
      char* const to = stepped(out, o, task.out_step) + i * extra.out_size;
      const int64_t d = lane.vector * extra.count + i;
      const bool fills = none || (bad >> i & 1) != 0;
      if (!fills) {
        if ((flags & kNeutral) == 0 || !at.after) continue;
        if (extra.neutral_channels != nullptr &&
            extra.neutral_channels[d * extra.neutral_channels_stride] == 0) {
          continue;
        }
      }
      const float x = extra.neutral.data != nullptr ? extra.neutral.at<float>(o, d) : 0.0f;
      switch (extra.out) {
#define RBC_CASE(name, storage, code, text)                               \
  case DType::name:                                                       \
    *reinterpret_cast<storage*>(to) =                                     \
        fills ? elementOf<storage>(extra.fill_bits) : narrow<storage>(x); \
    break;
        RBC_FLOAT_DTYPES(RBC_CASE)
#undef RBC_CASE
        default: break;
      }
    }
  }
}

// ---- what belongs to a lane's channels ------------------------------------------------------------

template <int kCount>
__device__ __forceinline__ void loadFactor(const void* factor, bool wide, int channel,
                                           float otherwise, float (&to)[kCount]) {
#pragma unroll
  for (float& x : to) x = otherwise;
  if (factor == nullptr) return;
  if (wide) {
    const double* const from = static_cast<const double*>(factor) + channel;
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = static_cast<float>(from[i]);
  } else {
    using Vec = AlignedVec<float, kCount>;
    const auto vec = loadPlain<Vec>(static_cast<const float*>(factor) + channel);
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = vec.element[i];
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
    const uint32_t wide = task.wide_factors;
    if ((flags & kNormalizes) != 0) {
      loadFactor(task.shift, (wide & 1) != 0, channel, 0, shift);
      loadFactor(task.scale, (wide & 2) != 0, channel, 1, scale);
      loadFactor(task.bias, (wide & 4) != 0, channel, -0.0f, bias);
    }
    if (kLimits && (flags & kClips) != 0) {
      loadFactor(task.low, (wide & 8) != 0, channel, -INFINITY, low);
      loadFactor(task.high, (wide & 16) != 0, channel, INFINITY, high);
    }
  }

  // As finished() of window_problem.h.
  __device__ __forceinline__ void apply(uint32_t flags, float (&x)[kCount]) const {
    if ((flags & kNormalizes) != 0) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) x[i] = normalized(x[i], shift[i], scale[i], bias[i]);
    }
    if constexpr (kLimits) {
      if ((flags & kClips) == 0) return;
#pragma unroll
      for (int i = 0; i < kCount; ++i) x[i] = clipped(x[i], low[i], high[i]);
    }
  }
};

// ---- a unit ---------------------------------------------------------------------------------------

// What a body has of a task, in registers: the compiler would read it from the constants each time.
struct RowsRegisters {
  const char* offsets;
  const char* values;
  char* out;
  const uint8_t* sample_mask;
  int32_t offset_step;
  int32_t row_step;
  int32_t out_step;
  int32_t step;
  uint32_t flags;
};

using OffsetBatch = int64_t[kItems];

// Past the end the last once more: cheaper than a branch.
__device__ __forceinline__ void loadOffsets(const RowsRegisters& r, int first, int last,
                                            OffsetBatch& by) {
  const bool wide = (r.flags & kWideOffsets) != 0;
#pragma unroll
  for (int u = 0; u < kItems; ++u) {
    by[u] = loadIndex(stepped(r.offsets, min(first + u * r.step, last), r.offset_step), wide);
  }
}

// Returns whether all rows of the lane have values. `by` are the offsets of its first rows.
template <class In, class Out, int kCount>
__device__ __forceinline__ bool copyRows(const RowsRegisters& r, const RowsExtra& extra,
                                         const RowsStand& stand, const LaneRows& lane,
                                         const LaneFactors<kCount>& factors,
                                         const Subtrahends& subtrahends, OffsetBatch& by) {
  using Raw = AlignedVec<In, kCount>;
  using Result = AlignedVec<Out, kCount>;
  const char* const values = r.values + lane.vector * static_cast<int>(sizeof(Raw));
  char* const out = r.out + lane.vector * static_cast<int>(sizeof(Result));
  bool complete = true;
  for (int first = lane.first; first < lane.end; first += kItems * r.step) {
    int32_t row[kItems];
    Raw raw[kItems];
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
      const GatheredRow at = gatheredRow(stand.anchor, by[u], stand.count, padOf(r.flags));
      row[u] = at.row < 0 ? -1 : stand.begin + static_cast<int32_t>(at.row);
    }
    if (r.sample_mask != nullptr) {
#pragma unroll
      for (int u = 0; u < kItems; ++u) {
        if (row[u] >= 0 && r.sample_mask[row[u] * extra.sample_mask_step] == 0) row[u] = -1;
      }
    }
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
      if (row[u] >= 0) raw[u] = load<Raw>(stepped(values, row[u], r.row_step));
    }
    loadOffsets(r, first + kItems * r.step, lane.end - 1, by);
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
      const int o = first + u * r.step;
      complete = complete & (row[u] >= 0);
      float x[kCount];
#pragma unroll
      for (int i = 0; i < kCount; ++i) x[i] = widen(raw[u].element[i]);
      if constexpr (kCount <= 4) {
        if ((r.flags & kSubtracts) != 0) {
#pragma unroll
          for (int i = 0; i < kCount; ++i) x[i] = x[i] - subtrahends.of[i];
        }
      }
      factors.apply(r.flags, x);
      const Result result = narrowVec<Out>(x);
      if ((o < lane.end) & (row[u] >= 0)) store(stepped(out, o, r.out_step), result);
    }
  }
  return complete;
}

template <class T>
__device__ __forceinline__ void keepInRegister(T& x) {
  if constexpr (std::is_pointer_v<T>) {
    asm volatile("" : "+l"(x));
    __builtin_assume(__isGlobal(x));
  } else {
    asm volatile("" : "+r"(x));
  }
}

__device__ __forceinline__ void doRows(const RowsLaunch& launch, int32_t unit) {
  int n = 0;
  while (n + 1 < launch.num_streams && unit >= launch.first_unit[n + 1]) ++n;
  const RowsTask& task = launch.tasks[n];
  const int32_t own = unit - launch.first_unit[n];
  const int32_t window = task.parts(own);
  const int32_t part = own - window * static_cast<int32_t>(task.parts.divisor);
  const int32_t group = task.chunks(part);
  const int32_t chunk = part - group * static_cast<int32_t>(task.chunks.divisor);
  const auto lane_id = static_cast<int>(threadIdx.x % kWarp);
  const auto row = static_cast<int>(static_cast<uint32_t>(lane_id) * task.per_width >> 16);
  const int begin = group * task.group;
  const int end = min(begin + task.group, task.num_offsets);
  LaneRows lane = {begin + row, end, chunk * kWarp + lane_id - row * task.width};
  if (row >= task.step || lane.vector >= task.vectors) lane = {begin, begin, 0};  // idle

  RowsRegisters r = {task.offsets,
                     task.values,
                     task.out + window * task.window_step,
                     (task.flags & kHasMask) != 0 ? launch.extras[n].sample_mask : nullptr,
                     task.offset_step,
                     task.row_step,
                     task.out_step,
                     task.step,
                     task.flags};
  int body = task.body;
  keepInRegister(r.offsets);
  keepInRegister(r.values);
  keepInRegister(r.out);
  keepInRegister(r.offset_step);
  keepInRegister(r.row_step);
  keepInRegister(r.out_step);
  keepInRegister(r.step);
  keepInRegister(r.flags);
  keepInRegister(body);
  waitForLaunchesAhead();

  // All loads that need not wait for others come first.
  const int64_t found_episode = loadIndex(
      launch.episode_of + static_cast<int64_t>(window) * launch.episode_step, launch.wide_episodes);
  int64_t anchor = 0;
  if (!launch.anchors_are_times) {
    anchor = loadPlain<int64_t>(launch.anchors + static_cast<int64_t>(window) * launch.anchor_step);
  }
  OffsetBatch by;
  loadOffsets(r, lane.first, max(lane.end - 1, 0), by);
  const int64_t episode = clampIndex(found_episode, 0, launch.episodes - 1);
  EpisodeEnds ends;
  if ((r.flags & kByTime) == 0) {
    ends = loadEnds(task, episode);
  } else {
    const RowsStand timed = standByTime(launch, n, window, episode);
    ends = {timed.begin, timed.begin + timed.count};
    anchor = timed.anchor;
  }
  letNextLaunchBegin();
  Subtrahends subtrahends = {{0, 0, 0, 0}, 0, true};
  if ((r.flags & kSubtracts) != 0) {
    subtrahends =
        fetchSubtrahends(launch, n, window, episode, lane.vector * launch.extras[n].count);
  }
  RowsStand stand = {0, 0, 0};
  const auto copy = [&](auto in, auto out, auto count) {
    constexpr int kCount = decltype(count)::value;
    LaneFactors<kCount> factors;
    factors.load(task, r.flags, lane.vector * kCount);
    stand = standIn(task, ends, anchor);
    return copyRows<typename decltype(in)::type, typename decltype(out)::type, kCount>(
        r, launch.extras[n], stand, lane, factors, subtrahends, by);
  };
  bool complete = true;
  switch (body) {
#define RBC_BODY(in, out, count)                                                           \
  case kBodyOf<DType::in, DType::out, count>:                                              \
    complete = copy(Tag<StorageOf<DType::in>::type>(), Tag<StorageOf<DType::out>::type>(), \
                    std::integral_constant<int, count>());                                 \
    break;
    RBC_ROWS_BODIES(RBC_BODY)
#undef RBC_BODY
    default: break;
  }
  if (!complete || subtrahends.bad != 0 || (r.flags & kNeutral) != 0) {
    writeOthers(launch, n, window, stand, lane, subtrahends.bad);
  }
  if (chunk != 0 || task.valid == nullptr) return;
  uint8_t* const valid = task.valid + window * task.valid_window_step;
  for (int o = begin + lane_id; o < end; o += kWarp) {
    const GatheredRow at = gatheredAt(task, stand, o, r.flags);
    const bool has_row = rowOf(stand, at, launch.extras[n], r.sample_mask != nullptr) >= 0;
    *stepped(valid, o, task.valid_step) = at.valid && has_row && subtrahends.all ? 1 : 0;
  }
}

}  // namespace windows
}  // namespace rbc::cuda
