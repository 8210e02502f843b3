// Align a robot's joints, recorded at about 100 Hz with jitter, on a camera's 30 Hz clock.
//
//   c++ -std=c++17 resample.cpp $(pkg-config --cflags --libs robocache) && ./a.out
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <robocache/robocache.hpp>

constexpr int kSamples = 200;
constexpr int kFrames = 60;
constexpr int kJoints = 7;

struct Recording {
  std::vector<float> positions;
  std::vector<int64_t> stamps;  // nanoseconds since the epoch, as a robot's logger writes them
  std::vector<int64_t> frames;
};

// Two seconds of motion. The joint stamps jitter by up to 4 ms, and 0.2 s were lost at second 1.
Recording record() {
  constexpr int64_t start = 1'700'000'000'000'000'000;
  Recording recording;
  uint32_t seed = 1;
  for (int i = 0; i < kSamples; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const int64_t jitter = static_cast<int64_t>(seed >> 8) % 8'000'001 - 4'000'000;
    const int64_t since_start = i * INT64_C(10'000'000) + jitter + (i < 100 ? 0 : 200'000'000);
    recording.stamps.push_back(start + since_start);
    for (int j = 0; j < kJoints; ++j) {
      recording.positions.push_back(
          static_cast<float>(std::sin(1e-9 * static_cast<double>(since_start) + j)));
    }
  }
  for (int i = 0; i < kFrames; ++i) {
    recording.frames.push_back(start + i * INT64_C(1'000'000'000) / 30);
  }
  return recording;
}

int main() try {
  const Recording recording = record();
  std::vector<float> aligned(kFrames * kJoints);
  std::vector<uint8_t> valid(kFrames);

  // On a GPU's tensors this would be Context::cuda(), and the call would return at once.
  const auto context = robocache::Context::cpu();

  robocache::ResampleOptions options;
  options.check_times = true;
  options.max_gap = 50e6;  // ns: across a longer hole in the stream, nothing is made up
  options.valid = valid;
  robocache::resample(context, {recording.positions, {kSamples, kJoints}}, recording.stamps,
                      recording.frames, {aligned, {kFrames, kJoints}}, options);

  double error = 0;
  for (int i = 0; i < kFrames; ++i) {
    for (int j = 0; j < kJoints && valid[i]; ++j) {
      error = std::max(error, std::abs(aligned[i * kJoints + j] - std::sin(i / 30.0 + j)));
    }
  }
  std::printf("%d of %d frames have joint positions, off by at most %.0e\n",
              static_cast<int>(std::count(valid.begin(), valid.end(), 1)), kFrames, error);
  for (int i = 28; i < 38; ++i) {
    std::printf("frame %d  %s  %7.4f %7.4f\n", i, valid[i] ? "valid" : "     ",
                aligned[i * kJoints], aligned[i * kJoints + 1]);
  }
} catch (const robocache::Error& error) {
  // One line: which argument was wrong, what it was and what was expected.
  std::fprintf(stderr, "%s: %s\n", rbcStatusName(error.status()), error.what());
  return 1;
}
