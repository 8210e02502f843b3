// Windows of gathered streams, in vectors: the case of training batches.
//
// A warp takes up to 32 rows of a stream's output, which may be of several windows, and up to 32
// vectors of each. First each lane finds where one row comes from and goes to. Then the warp moves them:
// its lanes keep to a vector and go from row to row, so that what belongs to channels - the factors of
// the normalization, the row that is subtracted - is read once, while the chain of loads that no
// window can do without is under way: the episode's number, its rows, and theirs.
//
// Such a launch lasts a few microseconds, so that latency and the instructions of a unit are all: what is
// rare - times, references, rows that are missing or neutral - is in functions of its own, and of the
// rest little depends on a branch.
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

// A row of the output.
struct RowSlot {
  const char* source;  // null: there is none
  char* target;
};
struct WarpRows {
  RowSlot slots[kWarp];
  bool after[kWarp];  // held past the end
};

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
    const int64_t by = loadIndex(stepped(task.offset_of, reference.offset, task.offset_step),
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

// Writes the channels of the lane's vectors that take other than their own values: the fill value where
// there is none, and neutral ones past the end.
__device__ __noinline__ void writeOthers(const RowsLaunch& launch, int n, const WarpRows& rows,
                                         int first_row, int count, int vector, int first,
                                         uint32_t bad) {
  const RowsTask& task = launch.tasks[n];
  const RowsExtra& extra = launch.extras[n];
  for (int k = first; k < count; k += task.step) {
    const bool none = rows.slots[k].source == nullptr;
    const int32_t o =
        first_row + k - task.offsets(first_row + k) * static_cast<int32_t>(task.offsets.divisor);
    for (int i = 0; i < extra.count; ++i) {
      const int64_t d = vector * extra.count + i;
      const bool fills = none || (bad >> i & 1) != 0;
      if (!fills) {
        if ((task.flags & kNeutral) == 0 || !rows.after[k]) continue;
        if (extra.neutral_channels != nullptr &&
            extra.neutral_channels[d * extra.neutral_channels_stride] == 0) {
          continue;
        }
      }
      char* const to = rows.slots[k].target + d * extra.out_size;
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

// Factor number i of a task.
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

// ---- vectors as words -----------------------------------------------------------------------------

// Pairs of 16-bit floats are words: taken apart and put together as elements they cost more.
template <class In, int kCount>
__device__ __forceinline__ void widenVec(const AlignedVec<In, kCount>& vec, float (&x)[kCount]) {
  if constexpr (std::is_same_v<In, bf16> && kCount % 2 == 0) {
    struct Pairs {
      uint32_t of[kCount / 2];
    };
    const auto pairs = bitCast<Pairs>(vec);
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      x[i] = bitCast<float>(pairs.of[i / 2] << 16);
      x[i + 1] = bitCast<float>(pairs.of[i / 2] & 0xffff0000u);
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
      uint32_t of[kCount / 2];
    };
    Pairs pairs;
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      pairs.of[i / 2] = bitCast<uint32_t>(__floats2bfloat162_rn(x[i], x[i + 1]));
    }
    return bitCast<AlignedVec<Out, kCount>>(pairs);
  } else {
    return narrowVec<Out>(x);
  }
}

// ---- a unit ---------------------------------------------------------------------------------------

// A lane's part of a unit: a vector of every `step`-th row from the first on.
struct LanePart {
  int first;
  int vector;
  int step;
  int count;  // of the unit's rows; 0: the lane is idle
};

// Returns whether all rows have values.
template <class In, class Out, int kCount>
__device__ __forceinline__ bool copyRows(const WarpRows& rows, const LanePart& lane, uint32_t flags,
                                         const LaneFactors<kCount>& factors,
                                         const Subtrahends& subtrahends) {
  using Raw = AlignedVec<In, kCount>;
  using Result = AlignedVec<Out, kCount>;
  bool complete = true;
  for (int first = lane.first; first < lane.count; first += kItems * lane.step) {
    Raw raw[kItems];
    RowSlot slot[kItems];
#pragma unroll
    for (int u = 0; u < kItems; ++u) {  // past the end the last once more: cheaper than a branch
      slot[u] = rows.slots[min(first + u * lane.step, lane.count - 1)];
      slot[u].target = stepped(slot[u].target, lane.vector, int32_t{sizeof(Result)});
    }
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
      if (slot[u].source != nullptr) {
        raw[u] = load<Raw>(stepped(slot[u].source, lane.vector, int32_t{sizeof(Raw)}));
      }
    }
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
      const bool has_value = slot[u].source != nullptr;
      complete = complete & has_value;
      float x[kCount];
      widenVec(raw[u], x);
      if constexpr (kCount <= 4) {
        if ((flags & kSubtracts) != 0) {
#pragma unroll
          for (int i = 0; i < kCount; ++i) x[i] = x[i] - subtrahends.of[i];
        }
      }
      factors.apply(flags, x);
      const Result result = narrowWords<Out>(x);
      if (has_value & (first + u * lane.step < lane.count)) store(slot[u].target, result);
    }
  }
  return complete;
}

// What a lane knows of its row before the launches ahead are done.
struct LaneRow {
  int32_t window;
  int32_t o;
  bool active;
};

// Finds where the lane's row comes from, writes whether it is valid, and puts both into memory. The offset, the
// anchor and the episode are on their way.
__device__ __forceinline__ void findRow(const RowsLaunch& launch, int n, const LaneRow& row,
                                        int64_t by, const EpisodeEnds& ends, int64_t anchor,
                                        bool referred, bool writes_valid, char* target,
                                        WarpRows* rows) {
  const RowsTask& task = launch.tasks[n];
  const RowsStand stand = standIn(task, ends, anchor);
  const GatheredRow at = gatheredRow(stand.anchor, by, stand.count, padOf(task.flags));
  bool has_row = at.row >= 0;
  const int32_t number = stand.begin + static_cast<int32_t>(at.row);
  if ((task.flags & kHasMask) != 0 && has_row) {
    const RowsExtra& extra = launch.extras[n];
    has_row = extra.sample_mask[number * extra.sample_mask_step] != 0;
  }
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  rows->slots[lane] = {has_row ? stepped(task.values, number, task.row_step) : nullptr, target};
  rows->after[lane] = at.after;
  if (row.active && writes_valid) {
    task.valid[row.window * task.valid_window_step +
               static_cast<int64_t>(row.o) * task.valid_step] =
        at.valid && has_row && referred ? 1 : 0;
  }
}

__device__ __forceinline__ void doRows(const RowsLaunch& launch, int32_t unit, WarpRows* rows) {
  int n = 0;
  while (n + 1 < launch.num_streams && unit >= launch.first_unit[n + 1]) ++n;
  const RowsTask& task = launch.tasks[n];
  const int32_t own = unit - launch.first_unit[n];
  const int32_t piece = task.chunks(own);
  const int32_t chunk = own - piece * static_cast<int32_t>(task.chunks.divisor);
  // Units of windows begin anew in each; others go from one to the next.
  const int32_t per_window = static_cast<int32_t>(task.parts.divisor);
  const int32_t per_row = static_cast<int32_t>(task.offsets.divisor);
  int32_t first_row = piece * task.group;
  int32_t end_row = task.all_rows;
  if (per_window > 1 || (task.flags & kSubtracts) != 0) {
    const int32_t window = task.parts(piece);
    first_row = window * per_row + (piece - window * per_window) * task.group;
    end_row = (window + 1) * per_row;
  }
  const int count = min(task.group, end_row - first_row);
  const auto lane_id = static_cast<int>(threadIdx.x % kWarp);
  const int32_t flat = first_row + min(lane_id, count - 1);
  LaneRow row;
  row.window = task.offsets(flat);
  row.o = flat - row.window * per_row;
  row.active = lane_id < count;
  const auto first = static_cast<int>(static_cast<uint32_t>(lane_id) * task.per_width >> 16);
  LanePart lane = {first, chunk * kWarp + lane_id - first * task.width, task.step, count};
  if (first >= task.step || lane.vector >= task.vectors) lane = {0, 0, task.step, 0};  // idle
  uint32_t flags = task.flags;
  int body = task.body;
  const char* const offset_of = stepped(task.offset_of, row.o, task.offset_step);
  const char* const episode_of = stepped(launch.episode_of, row.window, launch.episode_step);
  const char* const anchor_of = stepped(launch.anchors, row.window, launch.anchor_step);
  char* const target = stepped(task.out + row.window * task.window_step, row.o, task.out_step);
  waitForLaunchesAhead();

  // All loads that need not wait for others come first.
  const int64_t by = loadIndex(offset_of, (flags & kWideOffsets) != 0);
  const int64_t found = loadIndex(episode_of, launch.wide_episodes);
  int64_t anchor = 0;
  if (!launch.anchors_are_times) anchor = loadPlain<int64_t>(anchor_of);
  const int64_t episode = clampIndex(found, 0, launch.episodes - 1);
  EpisodeEnds ends;
  if ((flags & kByTime) == 0) {
    ends = loadEnds(task, episode);
  } else {
    const RowsStand timed = standByTime(launch, n, row.window, episode);
    ends = {timed.begin, timed.begin + timed.count};
    anchor = timed.anchor;
  }
  letNextLaunchBegin();
  Subtrahends subtrahends = {{0, 0, 0, 0}, 0, true};
  if ((flags & kSubtracts) != 0) {
    subtrahends =
        fetchSubtrahends(launch, n, row.window, episode, lane.vector * launch.extras[n].count);
  }
  const auto copy = [&](auto in, auto out, auto elements) {
    constexpr int kCount = decltype(elements)::value;
    LaneFactors<kCount> factors;
    factors.load(task, flags, lane.vector * kCount);
    findRow(launch, n, row, by, ends, anchor, subtrahends.all, chunk == 0 && task.valid != nullptr,
            target, rows);
    __syncwarp();
    return copyRows<typename decltype(in)::type, typename decltype(out)::type, kCount>(
        *rows, lane, flags, factors, subtrahends);
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
  if (!complete || subtrahends.bad != 0 || (flags & kNeutral) != 0) {
    writeOthers(launch, n, *rows, first_row, lane.count, lane.vector, lane.first, subtrahends.bad);
  }
}

}  // namespace windows
}  // namespace rbc::cuda
