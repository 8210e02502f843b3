#include "voxel_expected.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "all_cores.h"
#include "data_arrays.h"

namespace bench {
namespace {

using support::Array;
using Counts = std::vector<std::atomic<int32_t>>;

[[noreturn]] void wrong(const std::string& what) { throw std::runtime_error(what + " is wrong"); }

// The voxel of a point, numbered through all clouds, or -1.
class Locate {
 public:
  Locate(const VoxelCase& c, const VoxelCloud& cloud)
      : c_(c),
        points_(elements<float>(cloud.points)),
        inverse_(static_cast<float>(1 / c.voxel_size)) {
    for (int axis = 0; axis < 3; ++axis) origin_[axis] = static_cast<float>(c.origin(axis));
  }
  int64_t operator()(int64_t point) const {
    int64_t voxel = point / c_.points;
    for (int axis = 0; axis < 3; ++axis) {
      const float p = points_[point * c_.columns + axis];
      const float index = std::floor((p - origin_[axis]) * inverse_);
      const int64_t extent = c_.shape[static_cast<size_t>(axis)];
      if (!(index >= 0) || !(index < static_cast<float>(extent))) return -1;
      voxel = voxel * extent + static_cast<int64_t>(index);
    }
    return voxel;
  }

 private:
  const VoxelCase& c_;
  const float* points_;
  float inverse_;
  float origin_[3];
};

// Points in the grid by their voxels.
std::vector<std::pair<int64_t, int64_t>> sortByVoxel(const VoxelCase& c, const VoxelCloud& cloud) {
  const Locate locate(c, cloud);
  std::vector<std::pair<int64_t, int64_t>> sorted(static_cast<size_t>(c.total()));
  onAllCores(c.total(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sorted[static_cast<size_t>(i)] = {locate(i), i};
  });
  sortOnAllCores(sorted);
  const auto inside = std::lower_bound(sorted.begin(), sorted.end(), std::make_pair(0L, 0L));
  sorted.erase(sorted.begin(), inside);
  return sorted;
}

// The mean of each voxel's features, voxel after voxel.
class Means {
 public:
  Means(const VoxelCase& c, const VoxelCloud& cloud) : c_(c), sorted_(sortByVoxel(c, cloud)) {
    const bool beside = c.features > 0;
    values_ = elements<float>(beside ? cloud.features : cloud.points);
    stride_ = beside ? c.features : c.columns;
  }

  int64_t inRange() const { return static_cast<int64_t>(sorted_.size()); }

  // Calls visit(voxel, row) for each voxel that has points, in order; returns how many they are.
  template <class Visit>
  int64_t each(Visit&& visit) {
    int64_t rows = 0;
    for (begin_ = 0; begin_ < sorted_.size(); begin_ = end_) {
      const int64_t voxel = sorted_[begin_].first;
      for (end_ = begin_; end_ < sorted_.size() && sorted_[end_].first == voxel;) ++end_;
      visit(voxel, rows++);
    }
    return rows;
  }

  // Whether these are the means of the voxel that is visited, within rounding.
  bool match(const float* actual) const {
    for (int64_t k = 0; k < c_.channels(); ++k) {
      double sum = 0, largest = 0;
      for (size_t i = begin_; i < end_; ++i) {
        const double x = values_[sorted_[i].second * stride_ + k];
        sum += x;
        largest = std::max(largest, std::fabs(x));
      }
      const double mean = sum / static_cast<double>(end_ - begin_);
      if (!(std::fabs(actual[k] - mean) <= 0x1p-23 * largest)) return false;
    }
    return true;
  }

 private:
  const VoxelCase& c_;
  std::vector<std::pair<int64_t, int64_t>> sorted_;
  const float* values_;
  int64_t stride_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

bool allEqual(const float* begin, const float* end, float value) {
  return std::all_of(begin, end, [value](float x) { return x == value; });
}

}  // namespace

// ---- occupancy and count ------------------------------------------------------------------------

std::vector<std::atomic<int32_t>> countPoints(const VoxelCase& c, const VoxelCloud& cloud) {
  const Locate locate(c, cloud);
  Counts counts(static_cast<size_t>(c.clouds * c.volume()));
  onAllCores(c.total(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t voxel = locate(i);
      if (voxel >= 0) counts[static_cast<size_t>(voxel)].fetch_add(1, std::memory_order_relaxed);
    }
  });
  return counts;
}

VoxelTruth truthOf(const Counts& counts) {
  VoxelTruth truth;
  for (const std::atomic<int32_t>& count : counts) {
    truth.in_range += count;
    truth.voxels += count > 0 ? 1 : 0;
  }
  return truth;
}

void checkCounts(const VoxelCase& c, const Counts& counts, const Array& out) {
  const bool occupancy = c.mode == RBC_VOXEL_OCCUPANCY;
  for (size_t i = 0; i < counts.size(); ++i) {
    const int32_t actual = occupancy ? elements<uint8_t>(out)[i] : elements<int32_t>(out)[i];
    if (actual != (occupancy ? (counts[i] > 0 ? 1 : 0) : counts[i].load()))
      wrong("voxel " + std::to_string(i));
  }
}

// ---- means --------------------------------------------------------------------------------------

VoxelTruth checkDenseMean(const VoxelCase& c, const VoxelCloud& cloud, const Array& out) {
  Means means(c, cloud);
  const float* actual = elements<float>(out);
  const int64_t channels = c.channels();
  int64_t done = 0;  // elements
  const int64_t voxels = means.each([&](int64_t voxel, int64_t) {
    const int64_t begin = voxel * channels;
    if (!allEqual(actual + done, actual + begin, 0) || !means.match(actual + begin))
      wrong("the mean up to voxel " + std::to_string(voxel));
    done = begin + channels;
  });
  if (!allEqual(actual + done, actual + out.count(), 0)) wrong("the empty end");
  return {means.inRange(), voxels};
}

VoxelTruth checkSparseMean(const VoxelCase& c, const VoxelCloud& cloud, const Array& coords,
                           const Array& num_voxels, const Array& features) {
  Means means(c, cloud);
  const int32_t* places = elements<int32_t>(coords);
  const float* actual = elements<float>(features);
  const int64_t channels = c.channels();
  const int64_t voxels = means.each([&](int64_t voxel, int64_t row) {
    const int32_t* place = places + 4 * row;
    int64_t number = place[0];
    for (size_t axis = 0; axis < 3; ++axis) number = number * c.shape[axis] + place[axis + 1];
    if (number != voxel || !means.match(actual + channels * row))
      wrong("row " + std::to_string(row));
  });
  if (*elements<int64_t>(num_voxels) != voxels) wrong("num_voxels");
  if (!std::all_of(places + 4 * voxels, places + coords.count(), [](int32_t i) { return i == -1; }))
    wrong("the end of coords");
  if (!allEqual(actual + channels * voxels, actual + features.count(), 0))
    wrong("the end of features");
  return {means.inRange(), voxels};
}

// ---- tsdf ---------------------------------------------------------------------------------------

namespace {

struct Observed {
  int32_t rays = 0;
  double sum = 0;
};

// Calls observe(voxel, distance) for the voxels that hold some of the ray from the sensor, near
// the point p: of those in the box around that part, each is asked.
template <class Observe>
void eachOnRay(const VoxelCase& c, const VoxelCloud& cloud, const float* p, Observe&& observe) {
  double direction[3], range = 0;
  for (size_t axis = 0; axis < 3; ++axis) {
    direction[axis] = p[axis] - cloud.sensor[axis];
    range += direction[axis] * direction[axis];
  }
  range = std::sqrt(range);
  const double first = std::max(range - kTsdfTruncation, 0.0);
  const double last = range + kTsdfTruncation;
  int64_t low[3], high[3];
  for (size_t axis = 0; axis < 3; ++axis) {
    direction[axis] /= range;
    const double from = cloud.sensor[axis] - c.origin(static_cast<int>(axis));
    const double a = (from + first * direction[axis]) / c.voxel_size;
    const double b = (from + last * direction[axis]) / c.voxel_size;
    low[axis] = std::max<int64_t>(static_cast<int64_t>(std::floor(std::min(a, b))), 0);
    high[axis] = std::min(static_cast<int64_t>(std::floor(std::max(a, b))), c.shape[axis] - 1);
  }
  for (int64_t x = low[0]; x <= high[0]; ++x) {
    for (int64_t y = low[1]; y <= high[1]; ++y) {
      for (int64_t z = low[2]; z <= high[2]; ++z) {
        const int64_t index[3] = {x, y, z};
        double enter = first, leave = last, depth = 0;
        for (size_t axis = 0; axis < 3; ++axis) {
          const double size = c.voxel_size;
          const double corner = c.origin(static_cast<int>(axis)) +
                                static_cast<double>(index[axis]) * size - cloud.sensor[axis];
          const double a = corner / direction[axis];
          const double b = (corner + size) / direction[axis];
          enter = std::max(enter, std::min(a, b));
          leave = std::min(leave, std::max(a, b));
          depth += (corner + 0.5 * size) * direction[axis];
        }
        if (enter >= leave) continue;
        observe((x * c.shape[1] + y) * c.shape[2] + z,
                std::clamp(range - depth, -kTsdfTruncation, kTsdfTruncation));
      }
    }
  }
}

}  // namespace

VoxelTruth checkTsdf(const VoxelCase& c, const VoxelCloud& cloud, const Array& tsdf,
                     const Array& weight) {
  constexpr double kClose = 1e-4;
  std::vector<Observed> observed(static_cast<size_t>(c.volume()));
  const Locate locate(c, cloud);
  VoxelTruth truth;
  for (int64_t i = 0; i < c.total(); ++i) {
    truth.in_range += locate(i) >= 0 ? 1 : 0;
    eachOnRay(c, cloud, elements<float>(cloud.points) + i * c.columns,
              [&](int64_t voxel, double distance) {
                Observed& o = observed[static_cast<size_t>(voxel)];
                ++o.rays;
                o.sum += distance;
              });
  }
  int64_t others = 0;
  for (size_t i = 0; i < observed.size(); ++i) {
    const Observed& o = observed[i];
    const double actual_weight = elements<float>(weight)[i];
    if (o.rays == 0 && actual_weight == 0) continue;
    ++truth.voxels;
    const double expected = o.sum / std::max(o.rays, 1);
    const double actual = elements<float>(tsdf)[i];
    if (actual_weight != o.rays || !(std::fabs(actual - expected) <= kClose)) ++others;
  }
  if (others * 100 > truth.voxels) wrong(std::to_string(others) + " voxels of the tsdf");
  return truth;
}

}  // namespace bench
