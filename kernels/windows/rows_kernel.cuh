// Windows in vectors of channels: the case of training batches.
//
// A warp processes up to 32 rows of a stream's output, which may belong to several windows, and up
// to 32 vectors of each. First each lane finds the source and the destination of one row. Then the
// warp moves the rows (rows_vectors.cuh), or each lane processes a pose.
//
// Such a launch lasts a few microseconds, so that only latency and the instructions of a unit
// matter: independent loads come first, and rare cases (times, references, missing or neutral rows)
// are in separate functions.
#pragma once

#include "dtype.h"
#include "runtime/pdl.cuh"
#include "windows/pose_channels.cuh"
#include "windows/rows_vectors.cuh"

namespace rbc::cuda {
namespace windows {

// ---- Poses of gathered rows: a lane has the pose of one row and fetches its reference, and the
// warp writes them.

inline constexpr int kPosePitch = kMaxPoseChannels + 1;  // odd: rows are in different banks

// Loads channels of a row as f64.
template <class Storage>
__device__ __forceinline__ void loadAs(const char* row, int64_t first, int64_t stride, int count,
                                       double (&to)[kMaxPoseChannels]) {
  const auto* const from = reinterpret_cast<const Storage*>(row) + first * stride;
#pragma unroll
  for (int i = 0; i < kMaxPoseChannels; ++i) {
    to[i] = i < count ? static_cast<double>(widen(from[i * stride])) : 0;
  }
}
__device__ __forceinline__ void loadChannels(const char* row, DType dtype, int64_t first,
                                             int64_t stride, int count,
                                             double (&to)[kMaxPoseChannels]) {
  switch (dtype) {
    case DType::F32: return loadAs<float>(row, first, stride, count, to);
    case DType::BF16: return loadAs<bf16>(row, first, stride, count, to);
    default: return loadAs<f16>(row, first, stride, count, to);
  }
}

__device__ __forceinline__ bool isQuaternion(RotationKind kind) {
  return kind == RotationKind::QuatXyzw || kind == RotationKind::QuatWxyz;
}

// readPose(), with quaternions inlined. Returns false if the rotation is invalid.
__device__ __forceinline__ bool readNumbers(const RotationFormat& rotation,
                                            const double (&from)[kMaxPoseChannels],
                                            Pose<double>* pose) {
  if (!isQuaternion(rotation.kind)) {
    double numbers[kMaxPoseChannels];
#pragma unroll
    for (int i = 0; i < kMaxPoseChannels; ++i) numbers[i] = from[i];
    return poseAt(rotation, numbers, pose);
  }
  const bool last = rotation.kind == RotationKind::QuatXyzw;
  pose->p = {from[0], from[1], from[2]};
  pose->q = readQuaternion<double>(last ? from[6] : from[3], last ? from[3] : from[4],
                                   last ? from[4] : from[5], last ? from[5] : from[6]);
  return isRotation(pose->q);
}

// writePose(), with quaternions, matrices and 6-D inlined.
__device__ __forceinline__ void writeNumbers(const RotationFormat& rotation,
                                             const Pose<double>& pose, float (&to)[kPosePitch]) {
  double numbers[kMaxPoseChannels];
  if (listsEntries(rotation.kind)) {
    double entries[9] = {};
    writeColumns(rotation.kind, columnsOf(pose.q), entries);
    to[0] = static_cast<float>(pose.p.x);
    to[1] = static_cast<float>(pose.p.y);
    to[2] = static_cast<float>(pose.p.z);
#pragma unroll
    for (int i = 0; i < 9; ++i) to[kPositionChannels + i] = static_cast<float>(entries[i]);
    return;
  }
  putPose(rotation, pose, numbers);
  const int count = kPositionChannels + channelsOf(rotation.kind);
  for (int i = 0; i < count; ++i) to[i] = static_cast<float>(numbers[i]);
}

// The row that a pose refers to, with the pad hold; -1: none.
__device__ __forceinline__ int32_t findReference(const RowsLaunch& launch, int task_number,
                                                 int64_t window, int64_t episode, int32_t offset) {
  const RowsTask& task = launch.tasks[task_number];
  const RowsStand stand = standOf(launch, task_number, window, episode);
  const int64_t by = loadIndex(stepped(task.offset_of, offset, task.offset_step),
                               (task.flags & kWideOffsets) != 0);
  const GatheredRow at = gatheredRow(stand.anchor, by, stand.count, Outside::kHold);
  return rowOf(stand, at, launch.extras[task_number], (task.flags & kHasMask) != 0);
}

__device__ __forceinline__ float factorAt(const RowsTask& task, int i, const void* factor,
                                          int64_t d) {
  return (task.wide_factors >> i & 1) != 0
             ? static_cast<float>(static_cast<const double*>(factor)[d])
             : static_cast<const float*>(factor)[d];
}

// Normalizes and writes `width` channels of the rows, starting at channel `d` of out.
__device__ __forceinline__ void writePoses(const RowsTask& task, const RowsExtra& extra,
                                           const WarpRows& rows, const LaneRow& own, int count,
                                           int width, int64_t d, const float (*poses)[kPosePitch]) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int step = kWarp / width;
  const int first = lane / width;
  const int i = lane - first * width;
  const int64_t channel = d + i;
  float shift = 0, scale = 1, bias = -0.0f, low = -INFINITY, high = INFINITY;
  if (task.shift != nullptr) shift = factorAt(task, 0, task.shift, channel);
  if (task.scale != nullptr) scale = factorAt(task, 1, task.scale, channel);
  if (task.bias != nullptr) bias = factorAt(task, 2, task.bias, channel);
  if (task.low != nullptr) low = factorAt(task, 3, task.low, channel);
  if (task.high != nullptr) high = factorAt(task, 4, task.high, channel);
  const bool is_neutral = (task.flags & kNeutral) != 0 &&
                          (extra.neutral_channels == nullptr ||
                           extra.neutral_channels[channel * extra.neutral_channels_stride] != 0);
  const int32_t window_step = static_cast<int32_t>(task.offsets.divisor);
  for (int k = first; k < count && first < step; k += step) {
    const bool none = rows.none[k];
    float x = poses[k][i];
    if ((task.flags & kNormalizes) != 0) {
      x = normalized(x, shift, scale, bias, (task.flags & kDivides) != 0);
    }
    if ((task.flags & kClips) != 0) x = clipped(x, low, high);
    if (is_neutral && rows.after[k]) {
      const int32_t o = (own.first + k) % window_step;
      x = extra.neutral.data != nullptr ? extra.neutral.at<float>(o, channel) : 0.0f;
    }
    char* const to = rows.slots[k].target + channel * extra.out_size;
    switch (extra.out) {
#define RBC_CASE(name, storage, code, text)                              \
  case DType::name:                                                      \
    *reinterpret_cast<storage*>(to) =                                    \
        none ? elementOf<storage>(extra.fill_bits) : narrow<storage>(x); \
    break;
      RBC_FLOAT_DTYPES(RBC_CASE)
#undef RBC_CASE
      default: break;
    }
  }
}

// Processes the poses of a unit's rows, whose slots are in memory. Returns whether all poses of the
// lane's row have values.
__device__ __noinline__ bool doPoses(const RowsLaunch& launch, int n, LaneRow row, int64_t episode,
                                     int count, WarpRows* rows, float (*poses)[kPosePitch]) {
  const RowsTask& task = launch.tasks[n];
  const RowsExtra& extra = launch.extras[n];
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const char* const source = rows->slots[lane].source;
  bool all = true;
  for (int i = extra.first_pose; i < extra.first_pose + extra.num_poses; ++i) {
    const RowsPose& pose = launch.poses[i];
    const WindowSegment& segment = pose.segment;
    const bool is_step = segment.kind == WindowKind::kStep && row.o > 0;
    const int from = is_step ? n : pose.task;
    const int32_t reference_row = findReference(launch, from, row.window, episode,
                                                is_step ? row.o - 1 : segment.reference_offset);
    bool posed = source != nullptr && reference_row >= 0;
    if (posed) {
      const RotationFormat& format = is_step ? segment.rotation : segment.reference_rotation;
      double numbers[kMaxPoseChannels];
      Pose<double> own;
      Pose<double> other;
      loadChannels(source, extra.in, segment.begin, pose.stride,
                   kPositionChannels + channelsOf(segment.rotation.kind), numbers);
      posed = readNumbers(segment.rotation, numbers, &own);
      const RowsTask& reference = launch.tasks[from];
      loadChannels(stepped(reference.values, reference_row, reference.row_step),
                   launch.extras[from].in, is_step ? segment.begin : segment.reference_begin,
                   is_step ? pose.stride : pose.reference_stride,
                   kPositionChannels + channelsOf(format.kind), numbers);
      posed = posed & readNumbers(format, numbers, &other);
      if (posed) {
        writeNumbers(segment.out_rotation, transformed(segment, referenceOf(other), own),
                     poses[lane]);
      }
    }
    rows->none[lane] = !posed;
    all = all && posed;
    __syncwarp();
    writePoses(task, extra, *rows, row, count, static_cast<int>(segment.out_count),
               segment.out_begin, poses);
    __syncwarp();
  }
  return all;
}

// ---- rare cases ---------------------------------------------------------------------------------

__device__ __noinline__ Subtrahends fetchSubtrahends(const RowsLaunch& launch, int n,
                                                     int64_t window, int64_t episode, int channel) {
  const RowsExtra& own = launch.extras[n];
  Subtrahends found = {{0, 0, 0, 0}, 0, true};
  for (int r = own.first_reference; r < own.first_reference + own.num_references; ++r) {
    const RowsReference& reference = launch.references[r];
    const RowsTask& task = launch.tasks[reference.task];
    const RowsExtra& extra = launch.extras[reference.task];
    const RowsStand stand = standOf(launch, reference.task, window, episode);
    const int64_t by = loadIndex(stepped(task.offset_of, reference.offset, task.offset_step),
                                 (task.flags & kWideOffsets) != 0);
    const GatheredRow at = gatheredRow(stand.anchor, by, stand.count, Outside::kHold);
    const int32_t row = rowOf(stand, at, extra, (task.flags & kHasMask) != 0);
    found.all = found.all && row >= 0;
    const char* const values = stepped(task.values, row, task.row_step);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int c = own.channel + channel + i;
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

// Overwrites channels of the lane's vectors that do not keep their own values: the fill value if
// there is no value, and neutral values past the end.
__device__ __noinline__ void writeOthers(const RowsLaunch& launch, int n, const WarpRows& rows,
                                         int first_row, int count, int vector, int first,
                                         uint32_t bad, uint32_t lost) {
  const RowsTask& task = launch.tasks[n];
  const RowsExtra& extra = launch.extras[n];
  for (int k = first; k < count; k += task.step) {
    const bool none = rows.slots[k].source == nullptr;
    const int32_t o =
        first_row + k - task.offsets(first_row + k) * static_cast<int32_t>(task.offsets.divisor);
    for (int i = 0; i < extra.count; ++i) {
      const int own = vector * extra.count + i;
      const int64_t d = extra.out_channel + own;
      const bool fills = none || (bad >> i & 1) != 0 || (lost >> k & 1) != 0;
      if (!fills) {
        if ((task.flags & kNeutral) == 0 || !rows.after[k]) continue;
        if (extra.neutral_channels != nullptr &&
            extra.neutral_channels[d * extra.neutral_channels_stride] == 0) {
          continue;
        }
      }
      char* const to = rows.slots[k].target + own * extra.out_size;
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

// ---- a unit -------------------------------------------------------------------------------------

// The row at an offset, for a gathered stream.
__device__ __forceinline__ FoundRow findGathered(const RowsLaunch& launch, int n, uint32_t flags,
                                                 int64_t by, const EpisodeEnds& ends,
                                                 int64_t anchor) {
  const RowsStand stand = standIn(launch.tasks[n], ends, anchor);
  const GatheredRow at = gatheredRow(stand.anchor, by, stand.count, outsideOf(flags));
  FoundRow found = {at.row < 0 ? -1 : stand.begin + static_cast<int32_t>(at.row), at.valid,
                    at.after, 0};
  if ((flags & kHasMask) != 0 && found.row >= 0) {
    const RowsExtra& extra = launch.extras[n];
    if (extra.sample_mask[found.row * extra.sample_mask_step] == 0) found = {-1, false, false, 0};
  }
  return found;
}

// Writes a lane's row to memory.
__device__ __forceinline__ void putRow(const RowsTask& task, const FoundRow& found, char* target,
                                       WarpRows* rows) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  rows->slots[lane] = {found.row >= 0 ? stepped(task.values, found.row, task.row_step) : nullptr,
                       target};
  rows->after[lane] = found.after;
}

__device__ __forceinline__ void writeValid(const RowsTask& task, const LaneRow& row, bool valid) {
  if (!row.active || task.valid == nullptr) return;
  task.valid[row.window * task.valid_window_step + static_cast<int64_t>(row.o) * task.valid_step] =
      valid ? 1 : 0;
}

template <bool kPoses, bool kDivisions>
__device__ __forceinline__ void doRows(const RowsLaunch& launch, int32_t unit, WarpRows* rows,
                                       float (*poses)[kPosePitch]) {
  int n = 0;
  while (n + 1 < launch.num_tasks && unit >= launch.first_unit[n + 1]) ++n;
  const RowsTask& task = launch.tasks[n];
  const int32_t own = unit - launch.first_unit[n];
  const int32_t piece = task.chunks(own);
  const int32_t chunk = own - piece * static_cast<int32_t>(task.chunks.divisor);
  // Units with a subtraction start anew in each window; others extend to the next one.
  const int32_t per_window = static_cast<int32_t>(task.parts.divisor);
  const int32_t per_row = static_cast<int32_t>(task.offsets.divisor);
  int32_t first_row = piece * task.group;
  int32_t end_row = task.all_rows;
  if ((task.flags & kSubtracts) != 0) {
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
  row.first = first_row;
  row.active = lane_id < count;
  const auto first = static_cast<int>(static_cast<uint32_t>(lane_id) * task.per_width >> 16);
  LanePart lane = {first, chunk * kWarp + lane_id - first * task.width, task.step, count};
  if (first >= task.step || lane.vector >= task.vectors) lane = {0, 0, task.step, 0};  // idle
  const uint32_t flags = kDivisions ? task.flags : task.flags & ~kDivides;
  const int body = task.body;
  const char* const offset_of = stepped(task.offset_of, row.o, task.offset_step);
  const char* const episode_of = stepped(launch.episode_of, row.window, launch.episode_step);
  const char* const anchor_of = stepped(launch.anchors, row.window, launch.anchor_step);
  char* const target = stepped(task.out + row.window * task.window_step, row.o, task.out_step);
  waitForLaunchesAhead();

  // All independent loads come first.
  const int64_t by =
      (flags & kInterpolates) != 0 ? 0 : loadIndex(offset_of, (flags & kWideOffsets) != 0);
  const int64_t episode_number = loadIndex(episode_of, launch.wide_episodes);
  int64_t anchor = 0;
  if (!launch.anchors_are_times) anchor = loadPlain<int64_t>(anchor_of);
  const int64_t episode = clampIndex(episode_number, 0, launch.episodes - 1);
  EpisodeEnds ends = {0, 0};
  FoundRow between = {-1, false, false, 0};
  if ((flags & (kByTime | kInterpolates)) == 0) {
    ends = loadEnds(task, episode);
  } else if ((flags & kInterpolates) != 0) {
    between = findBetween(launch, n, row.window, episode, offset_of);
    rows->blends[lane_id] = {between.weight, between.weight != 0 ? task.row_step : 0};
    rows->none[lane_id] = false;
  } else {
    const RowsStand timed = standByTime(launch, n, row.window, episode);
    ends = {timed.begin, timed.begin + timed.count};
    anchor = timed.anchor;
  }
  letNextLaunchBegin();
  if constexpr (kPoses) {
    if (body == kPosesBody) {
      const FoundRow found = findGathered(launch, n, flags, by, ends, anchor);
      putRow(task, found, target, rows);
      const bool posed = doPoses(launch, n, row, episode, count, rows, poses);
      writeValid(task, row, found.valid && posed);
      return;
    }
  }
  Subtrahends subtrahends = {{0, 0, 0, 0}, 0, true};
  if ((flags & kSubtracts) != 0) {
    subtrahends =
        fetchSubtrahends(launch, n, row.window, episode, lane.vector * launch.extras[n].count);
  }
  uint32_t lost = 0;
  const auto move = [&](auto kind, auto in, auto out, auto elements) {
    constexpr RowsKind kKind = decltype(kind)::value;
    constexpr int kCount = decltype(elements)::value;
    LaneFactors<kCount> factors;
    factors.load(task, flags, lane.vector * kCount);
    FoundRow found = between;
    if constexpr (kKind == RowsKind::kCopy) {
      found = findGathered(launch, n, flags, by, ends, anchor);
    }
    putRow(task, found, target, rows);
    const bool valid = found.valid && found.row >= 0 && subtrahends.all;
    if (kKind != RowsKind::kQuaternion && chunk == 0) writeValid(task, row, valid);
    __syncwarp();
    const bool complete =
        moveRows<kKind, typename decltype(in)::type, typename decltype(out)::type, kCount>(
            *rows, lane, flags, factors, subtrahends, &lost);
    if (kKind == RowsKind::kQuaternion) {
      __syncwarp();
      writeValid(task, row, valid && !rows->none[lane_id]);
    }
    return complete;
  };
  bool complete = true;
  switch (body) {
#define RBC_BODY(kind, in, out, count)                                                     \
  case kBodyOf<RowsKind::kind, DType::in, DType::out, count>:                              \
    complete = move(std::integral_constant<RowsKind, RowsKind::kind>(),                    \
                    Tag<StorageOf<DType::in>::type>(), Tag<StorageOf<DType::out>::type>(), \
                    std::integral_constant<int, count>());                                 \
    break;
    RBC_ROWS_BODIES(RBC_BODY)
#undef RBC_BODY
    default: break;
  }
  if (!complete || subtrahends.bad != 0 || lost != 0 || (flags & kNeutral) != 0) {
    writeOthers(launch, n, *rows, first_row, lane.count, lane.vector, lane.first, subtrahends.bad,
                lost);
  }
}

}  // namespace windows

}  // namespace rbc::cuda
