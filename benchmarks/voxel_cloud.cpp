// The points and the features of a case of voxelization, the same ones for each call.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include "support/random.h"
#include "voxels.h"

namespace bench {
namespace {

using support::Random;

using Vector = std::array<double, 3>;

constexpr int64_t kSweepPoints = 100'000;

struct Box {
  Vector low, high;
};

// Where a ray from `eye` with the inverse direction `inverse` enters and leaves a box.
struct Crossing {
  double enter, leave;
};
Crossing crossingOf(const Box& box, const Vector& eye, const Vector& inverse) {
  Crossing crossing = {-INFINITY, INFINITY};
  for (size_t axis = 0; axis < 3; ++axis) {
    const double a = (box.low[axis] - eye[axis]) * inverse[axis];
    const double b = (box.high[axis] - eye[axis]) * inverse[axis];
    crossing.enter = std::max(crossing.enter, std::min(a, b));
    crossing.leave = std::min(crossing.leave, std::max(a, b));
  }
  return crossing;
}

class Uniform {
 public:
  explicit Uniform(const VoxelCase& c) {
    for (size_t axis = 0; axis < 3; ++axis) {
      // Slightly inside: rounding to f32 drops no point.
      const double extent = static_cast<double>(c.shape[axis]) * c.voxel_size;
      low_[axis] = c.origin(axis) + 1e-6 * extent;
      extent_[axis] = (1 - 2e-6) * extent;
    }
  }
  void point(int64_t, Random& random, float* p) const {
    for (size_t axis = 0; axis < 3; ++axis)
      p[axis] = static_cast<float>(low_[axis] + extent_[axis] * random.uniform());
  }

 private:
  Vector low_, extent_;
};

class Sweeps {
 public:
  explicit Sweeps(const VoxelCase& c) {
    constexpr int kBoxes = 12;
    for (size_t axis = 0; axis < 3; ++axis) {
      const double origin = c.origin(axis);
      const double extent = static_cast<double>(c.shape[axis]) * c.voxel_size;
      hall_.low[axis] = origin + 0.02 * extent;
      hall_.high[axis] = origin + 0.98 * extent;
    }
    Random random(3);
    for (int i = 0; i < kBoxes; ++i) {
      Box box = hall_;
      for (size_t axis = 0; axis < 2; ++axis) {
        const double extent = hall_.high[axis] - hall_.low[axis];
        const double size = extent * random.uniform(0.02, 0.06);
        box.low[axis] += (extent - size) * random.uniform();
        box.high[axis] = box.low[axis] + size;
      }
      box.high[2] = box.low[2] + (hall_.high[2] - hall_.low[2]) * random.uniform(0.1, 0.7);
      boxes_.push_back(box);
    }
  }

  // The path advances a metre per sweep, in rounds that are never exactly the same.
  Vector eye(int64_t sweep) const {
    const double size = std::min(hall_.high[0] - hall_.low[0], hall_.high[1] - hall_.low[1]);
    const double radius = size * (0.2 + 0.1 * std::sin(0.1 * static_cast<double>(sweep)));
    const double angle = static_cast<double>(sweep) * 4 / size;
    const double height = std::min(1.8, 0.4 * (hall_.high[2] - hall_.low[2]));
    return {radius * std::cos(angle), radius * std::sin(angle), hall_.low[2] + height};
  }

  void point(int64_t i, Random& random, float* p) const {
    constexpr int64_t kBeams = 64;
    constexpr double kLowest = -0.44, kHighest = 0.26;  // radians
    constexpr double kNoise = 0.02;
    constexpr double kTurn = 2 * 3.14159265358979;

    const int64_t sweep = i / kSweepPoints;
    const int64_t in_sweep = i % kSweepPoints;
    // No ray is parallel to a wall.
    const double azimuth = kTurn * static_cast<double>(in_sweep / kBeams * kBeams) / kSweepPoints +
                           0.3 * static_cast<double>(sweep) + 0.01;
    const double beam = static_cast<double>(in_sweep % kBeams) / (kBeams - 1);
    const double elevation = kLowest + (kHighest - kLowest) * beam;
    const Vector direction = {std::cos(elevation) * std::cos(azimuth),
                              std::cos(elevation) * std::sin(azimuth), std::sin(elevation)};
    const Vector inverse = {1 / direction[0], 1 / direction[1], 1 / direction[2]};
    const Vector from = eye(sweep);
    double range = crossingOf(hall_, from, inverse).leave;
    for (const Box& box : boxes_) {
      const Crossing crossing = crossingOf(box, from, inverse);
      if (crossing.enter > 0 && crossing.enter < crossing.leave)
        range = std::min(range, crossing.enter);
    }
    range += random.uniform(-kNoise, kNoise);
    for (size_t axis = 0; axis < 3; ++axis)
      p[axis] = static_cast<float>(from[axis] + range * direction[axis]);
  }

 private:
  Box hall_;
  std::vector<Box> boxes_;
};

// Calls fill(i, random) for each point, on all cores.
template <class Fill>
void eachPoint(int64_t count, bool features, Fill&& fill) {
  const int64_t cores = std::max<int64_t>(std::thread::hardware_concurrency(), 1);
  const int64_t part = std::max((count + cores - 1) / cores, int64_t{1} << 14);
  std::vector<std::thread> threads;
  for (int64_t begin = 0; begin < count; begin += part) {
    threads.emplace_back([=, &fill] {
      for (int64_t i = begin; i < std::min(begin + part, count); ++i) {
        Random random(static_cast<uint64_t>(features ? ~i : i));
        fill(i, random);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

template <class Shape>
void fillWith(const VoxelCase& c, const Shape& shape, float* points) {
  eachPoint(c.total(), false, [&](int64_t i, Random& random) {
    float* p = points + i * c.columns();
    shape.point(i, random, p);
    for (int64_t k = 3; k < c.columns(); ++k) p[k] = static_cast<float>(random.uniform());
  });
}

}  // namespace

void fillPoints(const VoxelCase& c, float* points) {
  c.sweeps ? fillWith(c, Sweeps(c), points) : fillWith(c, Uniform(c), points);
}

void fillFeatures(const VoxelCase& c, float* features) {
  eachPoint(c.total(), true, [&](int64_t i, Random& random) {
    for (int64_t k = 0; k < c.features; ++k)
      features[i * c.features + k] = static_cast<float>(random.uniform(-2, 2));
  });
}

std::array<double, 3> firstEye(const VoxelCase& c) { return Sweeps(c).eye(0); }

}  // namespace bench
