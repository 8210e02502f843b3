// Converts channels to poses and back, for any representation: functions, since their code is
// large.
#pragma once

#include "window_transforms.h"

namespace rbc::cuda {
namespace windows {

// Reads a pose from channels; returns false if its rotation is invalid.
template <class Number>
__device__ __noinline__ bool poseAt(const RotationFormat& rotation, const double* from,
                                    Pose<Number>* pose) {
  double values[kMaxPoseChannels];
  const int count = kPositionChannels + channelsOf(rotation.kind);
#pragma unroll
  for (int i = 0; i < kMaxPoseChannels; ++i) values[i] = i < count ? from[i] : 0;
  *pose = readPose<Number>(rotation, values);
  return isRotation(pose->q);
}

template <class Number>
__device__ __noinline__ void putPose(const RotationFormat& rotation, const Pose<Number>& pose,
                                     double* to) {
  double values[kMaxPoseChannels];
  writePose(rotation, pose, values);
  const int count = kPositionChannels + channelsOf(rotation.kind);
#pragma unroll
  for (int i = 0; i < kMaxPoseChannels; ++i) {
    if (i < count) to[i] = values[i];
  }
}

}  // namespace windows
}  // namespace rbc::cuda
