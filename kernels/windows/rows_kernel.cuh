// Windows of gathered streams, in vectors: the case of training batches.
//
// A warp takes some offsets of one window of one stream, and up to 32 vectors of their rows. Its lanes keep
// to a vector and go from row to row, so that what belongs to channels - the factors of the
// normalization, the row that is subtracted - is read once, while the chain of loads that no window
// can do without is under way: the episode's number, its rows, and theirs. Nothing is shared between
// warps, and nothing waits but for memory.
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
  RowRange rows;   // of the episode
  int64_t anchor;  // from its first row
};

__device__ __forceinline__ RowRange rowsOfEpisode(const RowsTask& task, int64_t episode) {
  return rangeOf({}, task.episode_offsets, task.rows, episode);
}

template <class Time>
__device__ __forceinline__ TimeRow<Time> timesFrom(const RowsExtra& extra, int64_t row) {
  return {static_cast<const Time*>(extra.times) + row * extra.times_stride, extra.times_stride};
}

// Of a stream that has an anchor by its time, as standOf() has it.
template <class Time>
__device__ __forceinline__ RowsStand standByTime(const RowsLaunch& launch, int n, int64_t window,
                                                 int64_t episode) {
  const RowsShared& shared = launch.shared;
  const RowRange rows = rowsOfEpisode(launch.tasks[n], episode);
  Time time;
  if (shared.anchors_are_times) {
    time = static_cast<const Time*>(shared.anchors)[window * shared.anchors_stride];
  } else {
    const RowsExtra& extra = launch.extras[shared.anchor_stream];
    const RowRange all = rowsOfEpisode(launch.tasks[shared.anchor_stream], episode);
    if (all.count <= 0) return {{rows.begin, 0}, 0};
    const int64_t row = static_cast<const int64_t*>(shared.anchors)[window * shared.anchors_stride];
    time =
        TimeMath<Time>::later(timesFrom<Time>(extra, all.begin)[clampIndex(row, 0, all.count - 1)],
                              offsetAs<Time>(extra.clock_offset));
  }
  if (TimeMath<Time>::isNaN(time)) return {{rows.begin, 0}, 0};
  const RowsExtra& extra = launch.extras[n];
  time = TimeMath<Time>::shifted(time, offsetAs<Time>(extra.clock_offset));
  return {rows, lastRowUpTo(timesFrom<Time>(extra, rows.begin), rows.count, time)};
}

__device__ __forceinline__ RowsStand standOf(const RowsLaunch& launch, int n, int64_t window,
                                             int64_t episode) {
  const RowsShared& shared = launch.shared;
  if (launch.tasks[n].by_time) {
    switch (shared.time_dtype) {
      case DType::F32: return standByTime<float>(launch, n, window, episode);
      case DType::F64: return standByTime<double>(launch, n, window, episode);
      default: return standByTime<int64_t>(launch, n, window, episode);
    }
  }
  const int64_t anchor =
      static_cast<const int64_t*>(shared.anchors)[window * shared.anchors_stride];
  return {rowsOfEpisode(launch.tasks[n], episode), anchor};
}

// A row among all of the stream, of which there are fewer than 2^31.
struct RowAt {
  int32_t row;  // -1: there is none, and the element is invalid
  bool valid;
  bool after;
};

__device__ __forceinline__ RowAt rowAt(const RowsTask& task, const RowsStand& stand, int o,
                                       WindowPad pad) {
  const char* const offset = stepped(task.offsets, o, task.offset_stride);
  const int64_t by = task.offsets_are_64 ? __ldg(reinterpret_cast<const long long*>(offset))
                                         : __ldg(reinterpret_cast<const int*>(offset));
  const GatheredRow at = gatheredRow(stand.anchor, by, stand.rows.count, pad);
  RowAt result = {static_cast<int32_t>(at.row), at.valid, at.after};
  if (result.row < 0) return result;
  result.row += static_cast<int32_t>(stand.rows.begin);
  if (task.sample_mask == nullptr || task.sample_mask[result.row * task.sample_mask_step] != 0) {
    return result;
  }
  return {-1, false, false};
}

// ---- what belongs to a lane's channels ------------------------------------------------------------

struct LaneFactors {
  float shift[kMostElements];
  float scale[kMostElements];
  float bias[kMostElements];
  float low[kMostElements];
  float high[kMostElements];
  float reference[kMostElements];  // what is subtracted
  uint32_t bad;                    // a bit of each channel whose reference has no value
};

__device__ __forceinline__ void loadFactor(const ChannelFactor& factor, int channel, int count,
                                           float otherwise, float (&to)[kMostElements]) {
  const auto take = [&](const auto& vec) {
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof vec / sizeof(float)); ++i) {
      to[i] = vec.element[i];
    }
  };
  if (factor.data == nullptr) {
#pragma unroll
    for (float& x : to) x = otherwise;
  } else if (factor.is_64) {
    const double* from = static_cast<const double*>(factor.data) + channel;
#pragma unroll
    for (int i = 0; i < kMostElements; ++i) {
      if (i < count) to[i] = static_cast<float>(__ldg(from + i));
    }
  } else {
    const float* from = static_cast<const float*>(factor.data) + channel;
    if (count == 1) {
      take(load<AlignedVec<float, 1>>(from));
    } else if (count == 2) {
      take(load<AlignedVec<float, 2>>(from));
    } else {
      take(load<AlignedVec<float, 4>>(from));
    }
  }
}

// Returns whether all references of the window have a value.
__device__ __forceinline__ bool loadReferences(const RowsLaunch& launch, int n,
                                               const RowsStand& own, int64_t window,
                                               int64_t episode, int channel, LaneFactors* factors) {
  const RowsTask& task = launch.tasks[n];
  bool all = true;
  for (int r = task.first_reference; r < task.first_reference + task.num_references; ++r) {
    const RowsReference& reference = launch.references[r];
    const RowsTask& from = launch.tasks[reference.stream];
    const RowsStand stand =
        reference.stream == n ? own : standOf(launch, reference.stream, window, episode);
    const RowAt at = rowAt(from, stand, reference.offset, WindowPad::kHold);
    all = all && at.row >= 0;
    const char* row = stepped(from.values, at.row, from.row_step);
#pragma unroll
    for (int i = 0; i < kMostElements; ++i) {
      const int c = channel + i;
      if (i >= task.count || c < reference.begin || c >= reference.end) continue;
      if (at.row < 0) {
        factors->bad |= 1u << i;
      } else {
        const float x =
            valueAt<float>(row, from.in, reference.at + (c - reference.begin) * reference.stride);
        factors->reference[i] = reference.inverse ? -x : x;
      }
    }
  }
  return all;
}

// ---- a unit ---------------------------------------------------------------------------------------

// A lane's part of a unit.
struct LaneRows {
  RowsStand stand;
  int64_t window;
  int begin;  // offsets
  int end;
  int row;  // the lane's first, from `begin`
  int vector;
  bool active;
  bool references;  // all of them have a value
};

// A vector as it lies in memory: f32, or one of the 16-bit floats.
template <bool kNarrow, int kCount>
using RowVec = AlignedVec<std::conditional_t<kNarrow, uint16_t, float>, kCount>;

template <int kCount>
__device__ __forceinline__ void widenVec(const RowVec<false, kCount>& vec, DType,
                                         float (&x)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) x[i] = vec.element[i];
}
template <int kCount>
__device__ __forceinline__ void widenVec(const RowVec<true, kCount>& vec, DType dtype,
                                         float (&x)[kCount]) {
  if (dtype == DType::BF16) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) x[i] = widen(bf16{vec.element[i]});
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) x[i] = widen(f16{vec.element[i]});
  }
}

template <bool kNarrow, int kCount>
__device__ __forceinline__ RowVec<kNarrow, kCount> narrowTo(DType dtype, const float (&x)[kCount]) {
  using Vec = RowVec<kNarrow, kCount>;
  if constexpr (!kNarrow) {
    return narrowVec<float>(x);
  } else {
    return dtype == DType::BF16 ? bitCast<Vec>(narrowVec<bf16>(x))
                                : bitCast<Vec>(narrowVec<f16>(x));
  }
}

// Past the end, where the pad is neutral.
template <int kCount>
__device__ __forceinline__ void putNeutral(const RowsExtra& extra, int o, int channel,
                                           float (&x)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int64_t c = channel + i;
    if (extra.neutral_channels != nullptr &&
        extra.neutral_channels[c * extra.neutral_channels_stride] == 0) {
      continue;
    }
    x[i] = extra.neutral.data != nullptr ? extra.neutral.at<float>(o, c) : 0.0f;
  }
}

// What becomes of a vector's numbers, as of finished().
template <int kCount>
__device__ __forceinline__ void finish(const RowsTask& task, const LaneFactors& factors,
                                       float (&x)[kCount]) {
  if (task.num_references > 0) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) x[i] = x[i] - factors.reference[i];
  }
  if (task.normalizes) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      x[i] = normalized(x[i], factors.shift[i], factors.scale[i], factors.bias[i]);
    }
  }
  if (task.clips) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) x[i] = clipped(x[i], factors.low[i], factors.high[i]);
  }
}

template <bool kNarrowIn, bool kNarrowOut, int kCount>
__device__ __forceinline__ void copyRows(const RowsTask& task, const RowsExtra& extra,
                                         const LaneRows& lane, const LaneFactors& factors) {
  using Raw = RowVec<kNarrowIn, kCount>;
  using Result = RowVec<kNarrowOut, kCount>;
  const char* const values = task.values + lane.vector * static_cast<int>(sizeof(Raw));
  char* const out =
      task.out + lane.window * task.window_step + lane.vector * static_cast<int>(sizeof(Result));
  for (int first = lane.begin + lane.row; first < lane.end; first += kItems * task.step) {
    Raw raw[kItems];
    RowAt at[kItems];
#pragma unroll
    for (int u = 0; u < kItems; ++u) {  // past the end the last once more: cheaper than a branch
      at[u] = rowAt(task, lane.stand, min(first + u * task.step, lane.end - 1), task.pad);
    }
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
      if (at[u].row >= 0) raw[u] = load<Raw>(stepped(values, at[u].row, task.row_step));
    }
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
      const int o = first + u * task.step;
      if (o >= lane.end || !lane.active) break;
      float x[kCount];
      widenVec<kCount>(raw[u], task.in, x);
      finish(task, factors, x);
      if (at[u].after && task.pad == WindowPad::kNeutral) {
        putNeutral(extra, o, lane.vector * kCount, x);
      }
      auto result = narrowTo<kNarrowOut>(task.out_dtype, x);
      const uint32_t bad = at[u].row >= 0 ? factors.bad : ~0u;
      if (bad != 0) {
        using Element = std::decay_t<decltype(result.element[0])>;
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
          if ((bad >> i & 1) != 0) result.element[i] = elementOf<Element>(task.fill_bits);
        }
      }
      store(stepped(out, o, task.out_step), result);
    }
  }
}

// Of the unit's offsets.
__device__ __forceinline__ void writeValid(const RowsTask& task, const LaneRows& lane) {
  const auto first = static_cast<int>(threadIdx.x % kWarp);
  uint8_t* const valid = task.valid + lane.window * task.valid_window_step;
  for (int o = lane.begin + first; o < lane.end; o += kWarp) {
    const RowAt at = rowAt(task, lane.stand, o, task.pad);
    *stepped(valid, o, task.valid_step) = at.valid && lane.references ? 1 : 0;
  }
}

template <int kBody>
__device__ __forceinline__ void copyByBody(const RowsTask& task, const RowsExtra& extra,
                                           const LaneRows& lane, const LaneFactors& factors) {
  using Body = RowsBody<kBody>;
  if (task.body == kBody) {
    copyRows<Body::kNarrowIn, Body::kNarrowOut, Body::kCount>(task, extra, lane, factors);
  } else if constexpr (kBody + 1 < kNumRowsBodies) {
    copyByBody<kBody + 1>(task, extra, lane, factors);
  }
}

// The stream that a unit belongs to.
__device__ __forceinline__ int streamOf(const RowsLaunch& launch, int64_t unit) {
  int n = 0;
  while (n + 1 < launch.num_streams && unit >= launch.tasks[n + 1].first_unit) ++n;
  return n;
}

__device__ __forceinline__ void doRows(const RowsLaunch& launch, int64_t unit) {
  const int n = streamOf(launch, unit);
  const RowsTask& task = launch.tasks[n];
  const auto lane_id = static_cast<int>(threadIdx.x % kWarp);
  const int64_t own = unit - task.first_unit;
  const int64_t window = task.parts(own);
  const auto part = static_cast<int>(own - window * static_cast<int64_t>(task.parts.divisor));
  const int group = part / task.chunks;
  const int chunk = part - group * task.chunks;
  const int64_t episode =
      clampIndex(launch.shared.episode_of[window], 0, launch.shared.episodes - 1);

  LaneRows lane;
  lane.window = window;
  lane.begin = group * task.group;
  lane.end = min(lane.begin + task.group, task.num_offsets);
  const int width = min(task.vectors, kWarp);
  lane.row = lane_id / width;
  lane.vector = chunk * kWarp + lane_id - lane.row * width;
  lane.active = lane.row < task.step && lane.vector < task.vectors;
  if (!lane.active) lane.vector = 0;
  lane.stand = standOf(launch, n, window, episode);
  letNextLaunchBegin();

  LaneFactors factors;
  const int channel = lane.vector * task.count;
  if (task.normalizes) {
    loadFactor(task.shift, channel, task.count, 0, factors.shift);
    loadFactor(task.scale, channel, task.count, 1, factors.scale);
    loadFactor(task.bias, channel, task.count, -0.0f, factors.bias);
  }
  if (task.clips) {
    loadFactor(task.low, channel, task.count, -INFINITY, factors.low);
    loadFactor(task.high, channel, task.count, INFINITY, factors.high);
  }
  factors.bad = 0;
  lane.references = true;
  if (task.num_references > 0) {
#pragma unroll
    for (float& x : factors.reference) x = 0;
    lane.references = loadReferences(launch, n, lane.stand, window, episode, channel, &factors);
  }
  copyByBody<0>(task, launch.extras[n], lane, factors);
  if (chunk == 0 && task.valid != nullptr) writeValid(task, lane);
}

}  // namespace windows
}  // namespace rbc::cuda
