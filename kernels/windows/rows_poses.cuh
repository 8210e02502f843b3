// Poses of gathered rows: a lane has that of a row, relative to one that it fetches itself, and the warp
// writes them.
#pragma once

#include "windows/pose_channels.cuh"
#include "windows/rows_find.cuh"

namespace rbc::cuda {
namespace windows {

inline constexpr int kPosePitch = kMaxPoseChannels + 1;  // odd: rows lie in different banks

// Channels of a row as f64.
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

// readPose(), with quaternions in line. False, if the rotation is none.
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

// writePose(), with quaternions, matrices and 6-D in line.
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

// The row that a pose refers to, held; -1: there is none.
__device__ __forceinline__ int32_t findReference(const RowsLaunch& launch, int task_number,
                                                 int64_t window, int64_t episode, int32_t offset) {
  const RowsTask& task = launch.tasks[task_number];
  const RowsStand stand = standOf(launch, task_number, window, episode);
  const int64_t by = loadIndex(stepped(task.offset_of, offset, task.offset_step),
                               (task.flags & kWideOffsets) != 0);
  const GatheredRow at = gatheredRow(stand.anchor, by, stand.count, WindowPad::kHold);
  return rowOf(stand, at, launch.extras[task_number], (task.flags & kHasMask) != 0);
}

__device__ __forceinline__ float factorAt(const RowsTask& task, int i, const void* factor,
                                          int64_t d) {
  return (task.wide_factors >> i & 1) != 0
             ? static_cast<float>(static_cast<const double*>(factor)[d])
             : static_cast<const float*>(factor)[d];
}

// Normalizes and writes `width` channels of the rows, from channel `d` of out on.
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
    if ((task.flags & kNormalizes) != 0) x = normalized(x, shift, scale, bias);
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

// The poses of a unit's rows, whose slots are in memory. Returns whether all those of the lane's row have
// values.
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

}  // namespace windows
}  // namespace rbc::cuda
