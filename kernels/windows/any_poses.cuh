// Poses of a window relative to others: a lane has one.
#pragma once

#include "windows/any_channels.cuh"
#include "windows/pose_channels.cuh"

namespace rbc::cuda {
namespace windows {

// A pose as it lies in memory between two steps.
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

// Poses in memory become what they are relative to the reference, whose channels are in memory as well;
// steps, to the pose before, or at the window's first offset to the reference.
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

// The sum of the steps so far, which begins with the reference. Steps in memory are added to it one
// after the other, and become what it is then. `*sum` is kept by the first lane, or is none.
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

// What became of the poses in memory goes the way of all channels.
template <class Number>
__device__ __noinline__ void writePoses(const WindowPart& part, const WindowSegment& segment) {
  visitItems(part.count, static_cast<int>(segment.out_count), [&](int row, int i) {
    writeChannel(part, row, segment.out_begin + i, static_cast<Number>(part.memory.poses[row][i]),
                 part.memory.posed[row]);
  });
}

}  // namespace windows
}  // namespace rbc::cuda
