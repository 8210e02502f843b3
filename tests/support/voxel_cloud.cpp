// The clouds of a case of voxelization, from its seed.
#include "support/voxel_cloud.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "support/dtypes.h"

namespace support {
namespace {

// The next number up or down.
uint64_t neighbour(rbcDType dtype, uint64_t bits, bool up) {
  const FloatFormat f = formatOf(dtype);
  if ((bits & (f.sign() - 1)) == 0) return up ? 1 : f.sign() + 1;
  return ((bits & f.sign()) == 0) == up ? bits + 1 : bits - 1;
}

// ---- values -------------------------------------------------------------------------------------

uint64_t oneValue(rbcDType dtype, ValuePattern pattern, Random& random) {
  const FloatFormat f = formatOf(dtype);
  switch (pattern) {
    case ValuePattern::kPlain: break;
    case ValuePattern::kNegative: return encodeFloat(dtype, random.uniform(-3, -1));
    case ValuePattern::kZeros: return random.chance(0.5) ? 0 : f.sign();
    case ValuePattern::kWide: {
      const int64_t exponents = -2 * f.min_exponent + f.precision;
      const auto exponent =
          static_cast<int>(random.below(exponents)) + f.min_exponent - f.precision;
      return encodeFloat(dtype,
                         std::scalbn(static_cast<long double>(random.uniform(-2, 2)), exponent));
    }
    case ValuePattern::kCancelling: {
      if (random.chance(0.5)) return encodeFloat(dtype, random.chance(0.5) ? 1 : -1);
      // Around the quantum, which is 2^-62 or, for f64, 2^-124, and more for many points.
      const auto down = static_cast<int>(random.below(30)) + (f.bits == 64 ? 100 : 38);
      return encodeFloat(dtype,
                         std::scalbn(static_cast<long double>(random.uniform(-1, 1)), -down));
    }
    case ValuePattern::kInfinities:
      if (random.chance(0.1)) return f.infinity() | (random.chance(0.5) ? f.sign() : 0);
      break;
    case ValuePattern::kSpecials:
      if (random.chance(0.2)) {
        const uint64_t odd[] = {f.nan(),
                                f.nan() | f.sign(),
                                f.infinity() + 1,
                                f.infinity(),
                                f.infinity() | f.sign(),
                                f.infinity() - 1,
                                (f.infinity() - 1) | f.sign(),
                                1,
                                f.sign() + 1,
                                0,
                                f.sign()};
        return random.pick(odd);
      }
      break;
  }
  return encodeFloat(dtype, random.uniform(-2, 2));
}

// ---- points -------------------------------------------------------------------------------------

// Draws the points of one cloud: coordinates in voxels from the grid's origin.
class PointSource {
 public:
  PointSource(const CloudCase& c, int64_t count, Random& random)
      : c_(c), count_(count), random_(random) {
    for (auto& centre : centres_) {
      for (int axis = 0; axis < 3; ++axis) centre[axis] = random.uniform(0, extent(axis));
    }
  }

  void draw(int64_t i, uint64_t (&point)[3]) {
    double u[3];
    for (int axis = 0; axis < 3; ++axis) u[axis] = random_.uniform(0, extent(axis));
    const auto& centre = random_.pick(centres_);
    switch (c_.pattern) {
      case CloudPattern::kUniform: break;
      case CloudPattern::kSweep: sweep(i, u); break;
      case CloudPattern::kClustered:
        for (int axis = 0; axis < 3; ++axis)
          u[axis] = centre[axis] + random_.uniform(-1, 1) + random_.uniform(-1, 1);
        break;
      case CloudPattern::kHeavy:
        for (int axis = 0; axis < 3 && !random_.chance(0.1); ++axis) u[axis] = inside(centre[axis]);
        break;
      case CloudPattern::kOneVoxel:
        for (int axis = 0; axis < 3; ++axis) u[axis] = inside(extent(axis) / 2);
        break;
      case CloudPattern::kOutside: moveOut(u); break;
      case CloudPattern::kBorders: break;
    }
    if (c_.pattern != CloudPattern::kOneVoxel && random_.chance(c_.outside)) moveOut(u);
    for (int axis = 0; axis < 3; ++axis)
      point[axis] = c_.pattern == CloudPattern::kBorders ? border(axis) : at(axis, u[axis]);
    if (c_.specials && random_.chance(0.15)) point[random_.below(3)] = odd();
  }

 private:
  double extent(int axis) const { return static_cast<double>(c_.shape[axis]); }
  uint64_t at(int axis, double u) const {
    return encodeFloat(c_.dtype,
                       c_.origin[axis] + static_cast<long double>(c_.voxel_size[axis]) * u);
  }
  // A coordinate in the voxel of u, away from its borders.
  double inside(double u) { return std::floor(u) + random_.uniform(0.05, 0.95); }

  void moveOut(double (&u)[3]) {
    const auto axis = static_cast<int>(random_.below(3));
    const double away = random_.uniform(0.5, 3);
    u[axis] = random_.chance(0.5) ? -away : extent(axis) + away;
  }

  void sweep(int64_t i, double (&u)[3]) {
    constexpr int64_t kRings = 8;
    const double turn = static_cast<double>(i * kRings) / static_cast<double>(count_);
    const double azimuth = 6.283185307179586 * turn;
    const double range = 0.35 + 0.1 * std::sin(3 * azimuth) + random_.uniform(0, 0.01);
    u[0] = extent(0) * (0.5 + range * std::cos(azimuth));
    u[1] = extent(1) * (0.5 + range * std::sin(azimuth));
    u[2] = extent(2) * (std::floor(turn) + 0.5) / kRings;
  }

  // On the lower face of a voxel, possibly beyond the grid, or a step of the dtype next to it.
  uint64_t border(int axis) {
    const double ends[] = {-1, 0, 1, extent(axis) - 1, extent(axis), extent(axis) + 1};
    const double face =
        random_.chance(0.4) ? random_.pick(ends) : std::floor(random_.uniform(0, extent(axis) + 1));
    const uint64_t bits = at(axis, face);
    switch (random_.below(4)) {
      case 0: return neighbour(c_.dtype, bits, true);
      case 1: return neighbour(c_.dtype, bits, false);
      case 2: return bits == 0 ? formatOf(c_.dtype).sign() : bits;  // -0
      default: return bits;
    }
  }

  uint64_t odd() {
    const FloatFormat f = formatOf(c_.dtype);
    const uint64_t bits[] = {f.nan(),
                             f.nan() | f.sign(),
                             f.infinity() + 1,
                             f.infinity(),
                             f.infinity() | f.sign(),
                             f.infinity() - 1,
                             (f.infinity() - 1) | f.sign()};
    return random_.pick(bits);
  }

  const CloudCase& c_;
  const int64_t count_;
  Random& random_;
  double centres_[3][3];
};

Array makeIndices(const CloudCase& c, const std::vector<int64_t>& numbers) {
  Array array(c.index_dtype, {static_cast<int64_t>(numbers.size())}, c.index_layout, c.flush);
  for (size_t i = 0; i < numbers.size(); ++i)
    array.set({static_cast<int64_t>(i)}, static_cast<uint64_t>(numbers[i]));
  return array;
}

}  // namespace

namespace detail {

CloudInputs makeCloud(const CloudCase& c, Random& random) {
  CloudInputs in;
  // Ragged clouds: a full one, an empty one and one with a single point are always included.
  std::vector<int64_t> counts(static_cast<size_t>(c.clouds), c.points);
  for (size_t b = 1; b < counts.size() && (c.packed || c.lengths); ++b)
    counts[b] = b == 1 ? 0 : b == 2 ? std::min<int64_t>(1, c.points) : random.below(c.points + 1);
  std::vector<int64_t> offsets = {c.packed ? random.below(3) : 0};
  for (const int64_t count : counts) offsets.push_back(offsets.back() + count);
  if (c.lengths) in.lengths = makeIndices(c, counts);
  const bool padded = c.batched && !c.packed;
  const int64_t beyond = !c.packed ? 0 : c.clouds == 0 ? c.points : random.below(3);
  const int64_t rows = c.packed ? offsets.back() + beyond : c.points;
  if (c.packed) {  // of a longer array, whose next cloud does not belong to the call
    offsets.push_back(rows);
    in.offsets = makeIndices(c, offsets);
    in.offsets.endAfter(c.clouds + 1);
  }
  const auto shapeWith = [&](int64_t last) {
    return padded ? std::vector<int64_t>{c.clouds, rows, last} : std::vector<int64_t>{rows, last};
  };
  in.points = Array(c.dtype, shapeWith(c.columns), c.points_layout, c.flush);
  for (int64_t b = 0; b < (padded ? c.clouds : 1); ++b) {
    PointSource source(c, rows, random);
    for (int64_t i = 0; i < rows; ++i) {
      uint64_t point[3];
      source.draw(i, point);
      const int64_t row = b * rows + i;
      for (int64_t k = 0; k < c.columns; ++k) {
        CloudInputs::set(in.points, row, k,
                         k < 3 ? point[k] : oneValue(c.dtype, c.value_pattern, random));
      }
    }
  }
  if (c.features) {
    in.features = Array(c.values, shapeWith(c.channels), c.features_layout, c.flush);
    in.features.each([&](std::byte* p) {
      const uint64_t bits = oneValue(c.values, c.value_pattern, random);
      std::memcpy(p, &bits, static_cast<size_t>(sizeOf(c.values)));
    });
  }
  for (Array* array : {&in.points, &in.features, &in.lengths, &in.offsets})
    array->memory().forbidWrites();
  return in;
}

}  // namespace detail
}  // namespace support
