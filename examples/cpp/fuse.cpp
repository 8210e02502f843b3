// Fuse an arm's pose (100 Hz) and its force sensor (500 Hz) on a camera's 30 Hz clock, in one call.
//
//   c++ -std=c++17 fuse.cpp $(pkg-config --cflags --libs robocache) && ./a.out
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <robocache/robocache.hpp>

constexpr int kPoses = 200;
constexpr int kForces = 1100;
constexpr int kFrames = 60;
constexpr int kPose = 8;  // x y z, a quaternion x y z w, the gripper
constexpr int kForce = 3;
constexpr int kFused = kPose + kForce;

struct Recording {
  std::vector<float> poses;
  std::vector<float> forces;
  std::vector<int64_t> pose_stamps;  // nanoseconds since the epoch
  std::vector<int64_t> force_stamps;
  std::vector<int64_t> frames;
};

// Two seconds: the arm circles and turns, the gripper closes. 0.2 s of its poses were lost.
Recording record() {
  constexpr int64_t start = 1'700'000'000'000'000'000;
  Recording recording;
  for (int i = 0; i < kPoses; ++i) {
    const int64_t since_start = i * INT64_C(10'000'000) + (i < 100 ? 0 : 200'000'000);
    const double t = 1e-9 * static_cast<double>(since_start);
    for (const double x : {std::cos(t), std::sin(t), 0.5, 0.0, 0.0, std::sin(t / 2),
                           std::cos(t / 2), t < 0.75 ? 0.0 : 1.0}) {
      recording.poses.push_back(static_cast<float>(x));
    }
    recording.pose_stamps.push_back(start + since_start);
  }
  for (int i = 0; i < kForces; ++i) {  // stamped when it arrives: 4 ms late
    for (int j = 0; j < kForce; ++j) {
      recording.forces.push_back(static_cast<float>(std::sin(0.002 * i + j)));
    }
    recording.force_stamps.push_back(start + i * INT64_C(2'000'000) + 4'000'000);
  }
  for (int i = 0; i < kFrames; ++i) {
    recording.frames.push_back(start + i * INT64_C(1'000'000'000) / 30);
  }
  return recording;
}

int main() try {
  using robocache::channels;
  using robocache::Method;
  const Recording recording = record();
  std::vector<float> fused(kFrames * kFused);
  std::vector<uint8_t> valid(kFrames * 2);

  // Positions smoothly, rotations at constant speed, the gripper as it last was.
  robocache::FuseStream pose({recording.poses, {kPoses, kPose}}, recording.pose_stamps);
  pose.groups = {channels(0, 3, Method::kPchip), channels(3, 4, Method::kSlerp),
                 channels(7, 1, Method::kPrevious)};
  pose.max_gap = 50e6;  // ns: across a longer hole in the stream, nothing is made up
  robocache::FuseStream force({recording.forces, {kForces, kForce}}, recording.force_stamps);
  force.clock_offset_ticks = -4'000'000;

  const auto context = robocache::Context::cpu();
  robocache::FuseOptions options;
  options.check_times = true;
  options.valid = robocache::Tensor(valid, {kFrames, 2});
  robocache::fuse(context, {pose, force}, recording.frames, {fused, {kFrames, kFused}}, options);

  int filled[2] = {};
  double error = 0;
  for (int i = 0; i < kFrames; ++i) {
    const float* const frame = &fused[i * kFused];
    for (int n = 0; n < 2; ++n) filled[n] += valid[i * 2 + n];
    const double turned = 2 * std::atan2(double{frame[5]}, double{frame[6]});
    if (valid[i * 2]) error = std::max(error, std::abs(turned - i / 30.0));
    if (valid[i * 2 + 1]) error = std::max(error, std::abs(frame[8] - std::sin(i / 30.0)));
  }
  std::printf(
      "of %d frames %d have a pose and %d a force; rotation and force are off by at most %.0e\n",
      kFrames, filled[0], filled[1], error);
  for (int i = 20; i < 40; i += 2) {
    const float* const frame = &fused[i * kFused];
    std::printf("frame %d  %s  x %7.4f  gripper %.0f  force %7.4f\n", i,
                valid[i * 2] ? "pose" : "    ", frame[0], frame[7], frame[8]);
  }
} catch (const robocache::Error& error) {
  // One line: which argument was wrong, what it was and what was expected.
  std::fprintf(stderr, "%s: %s\n", rbcStatusName(error.status()), error.what());
  return 1;
}
