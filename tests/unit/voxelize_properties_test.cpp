// Properties of voxelization for all points: consistent sums, dense compared with sparse, and
// changes that must not affect a bit.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "support/operation_tests.h"
#include "support/voxel_cases.h"
#include "support/voxel_run.h"

namespace {

using support::Array;
using support::CloudCase;
using support::CloudInputs;
using support::Context;
using support::Random;
using support::SparseCase;
using support::SparseInputs;
using support::VoxelizeCase;
using support::VoxelizeInputs;
using support::VoxelOutput;

template <class Inputs>
VoxelOutput outputOf(const Context& context, const Inputs& in) {
  const auto result = support::run(context, in);
  REQUIRE_MESSAGE(result.status == RBC_STATUS_SUCCESS, result.message, " in ",
                  support::describe(in.c));
  return result.output;
}

VoxelOutput outputIn(const Context& context, VoxelizeCase c, int32_t mode, rbcDType out) {
  c.mode = mode;
  c.out = out;
  c.fill_value = 0;
  return outputOf(context, support::inputsOf(c));
}

int64_t total(const std::vector<uint64_t>& elements) {
  return static_cast<int64_t>(std::accumulate(elements.begin(), elements.end(), uint64_t{0}));
}

// Points of all clouds.
int64_t pointsOf(const CloudCase& c, const CloudInputs& in) {
  int64_t points = 0;
  for (int64_t b = 0; b < c.clouds; ++b) points += in.count(b);
  return points;
}

CloudInputs copyOf(const CloudInputs& in) {
  return {support::copyOf(in.points), support::copyOf(in.features), support::copyOf(in.lengths),
          support::copyOf(in.offsets)};
}

// The cloud of a case with every cloud's points in another order: row i was row from[i].
CloudInputs shuffled(const CloudCase& c, const CloudInputs& in, Random& random,
                     std::vector<int64_t>* from) {
  from->resize(static_cast<size_t>(in.rows()));
  std::iota(from->begin(), from->end(), int64_t{0});
  for (int64_t b = 0; b < c.clouds; ++b) {
    const auto first = from->begin() + in.first(b);
    for (int64_t i = in.count(b); i > 1; --i) std::swap(first[i - 1], first[random.below(i)]);
  }
  CloudInputs result = copyOf(in);
  for (Array* array : {&result.points, &result.features}) {
    if (array->ndim() == 0) continue;
    const Array& source = array == &result.points ? in.points : in.features;
    for (int64_t row = 0; row < in.rows(); ++row) {
      for (int64_t k = 0; k < source.extent(source.ndim() - 1); ++k) {
        CloudInputs::set(*array, row, k,
                         CloudInputs::get(source, (*from)[static_cast<size_t>(row)], k));
      }
    }
  }
  return result;
}

// ---- consistent sums ----------------------------------------------------------------------------

void checkEveryPointIsCounted(const Context& context, uint64_t first, uint64_t count) {
  for (VoxelizeCase& c : support::randomVoxelizeCases(first, count)) {
    c.dropped = true;
    const VoxelOutput output = outputIn(context, c, RBC_REDUCE_COUNT, support::kI64);
    const CloudInputs in = support::inputsOf(c);
    const auto voxels = static_cast<size_t>(c.shape[0] * c.shape[1] * c.shape[2]);
    const auto counts = output.at("out").begin();
    for (int64_t b = 0; b < c.clouds; ++b) {
      const auto at = static_cast<size_t>(b);
      const uint64_t inside =
          std::accumulate(counts + static_cast<std::ptrdiff_t>(at * voxels),
                          counts + static_cast<std::ptrdiff_t>((at + 1) * voxels), uint64_t{0});
      REQUIRE_MESSAGE(
          static_cast<int64_t>(inside + output.at("num_points_outside")[at]) == in.count(b),
          "cloud ", b, " of ", support::describe(c));
    }
  }
  for (SparseCase& c : support::randomSparseCases(first, count)) {
    c.without.clear();
    const SparseInputs in = support::inputsOf(c);
    const VoxelOutput output = outputOf(context, in);
    const uint64_t over =
        output.at("num_points_over_capacity")[0] + output.at("num_points_over_group")[0];
    REQUIRE_MESSAGE(total(output.at("points_per_voxel")) + total(output.at("num_points_outside")) +
                            static_cast<int64_t>(over) ==
                        pointsOf(c, in),
                    support::describe(c));
  }
}

void checkModesAgree(const Context& context, uint64_t first, uint64_t count) {
  int64_t occupied = 0;
  for (VoxelizeCase& c : support::randomVoxelizeCases(first, count)) {
    const auto counts = outputIn(context, c, RBC_REDUCE_COUNT, support::kI32).at("out");
    const auto occupancy = outputIn(context, c, RBC_REDUCE_OCCUPANCY, support::kU8).at("out");
    const auto sum = outputIn(context, c, RBC_REDUCE_SUM, support::kF64).at("out");
    const auto mean = outputIn(context, c, RBC_REDUCE_MEAN, support::kF64).at("out");
    const auto max = outputIn(context, c, RBC_REDUCE_MAX, support::kF64).at("out");
    const auto min = outputIn(context, c, RBC_REDUCE_MIN, support::kF64).at("out");
    const auto number = [](uint64_t bits) {
      return static_cast<double>(support::decodeFloat(support::kF64, bits));
    };
    const auto F = static_cast<size_t>(c.reduced());
    for (size_t v = 0; v < counts.size(); ++v) {
      REQUIRE_MESSAGE(occupancy[v] == (counts[v] > 0 ? 1u : 0u), support::describe(c));
      if (counts[v] == 0) continue;
      ++occupied;
      const auto n = static_cast<double>(counts[v]);
      for (size_t i = v * F; i < (v + 1) * F; ++i) {
        // Bit by bit, since a sum is rounded to f64 before it is divided.
        REQUIRE_MESSAGE(mean[i] == support::encodeFloat(support::kF64, number(sum[i]) / n),
                        support::describe(c));
        const double slack = 1e-15 * std::max(std::fabs(number(max[i])), std::fabs(number(min[i])));
        if (std::isfinite(number(mean[i])) && std::isfinite(slack)) {
          REQUIRE_MESSAGE(number(mean[i]) >= number(min[i]) - slack, support::describe(c));
          REQUIRE_MESSAGE(number(mean[i]) <= number(max[i]) + slack, support::describe(c));
        }
        if (counts[v] == 1) REQUIRE_MESSAGE(max[i] == min[i], support::describe(c));
      }
    }
  }
  CHECK(occupied > 1000);
}

// Sparse voxels, written to their coords, give the dense grid.
void checkSparseIsDense(const Context& context, uint64_t first, uint64_t count) {
  int64_t voxels = 0;
  for (SparseCase& c : support::randomSparseCases(first, count)) {
    c.room = 1;
    c.max_points = 0;
    c.without.clear();
    const VoxelOutput sparse = outputOf(context, support::inputsOf(c));
    VoxelizeCase dense;
    static_cast<CloudCase&>(dense) = c;
    const auto counts = outputIn(context, dense, RBC_REDUCE_COUNT, support::kI32);
    const auto reduced = outputIn(context, dense, c.reduce, c.out);
    std::vector<uint64_t> all_counts(counts.at("out").size(), 0);
    std::vector<uint64_t> all_reduced(reduced.at("out").size(), 0);
    const auto F = static_cast<size_t>(c.reduced());
    for (size_t v = 0; v < sparse.at("num_voxels")[0]; ++v) {
      const uint64_t* place = &sparse.at("coords")[4 * v];
      size_t at = place[0];
      for (size_t axis = 0; axis < 3; ++axis)
        at = at * static_cast<size_t>(c.shape[axis]) + place[axis + 1];
      all_counts[at] = sparse.at("points_per_voxel")[v];
      for (size_t k = 0; k < F; ++k) all_reduced[at * F + k] = sparse.at("features")[v * F + k];
      ++voxels;
    }
    REQUIRE_MESSAGE(all_counts == counts.at("out"), support::describe(c));
    REQUIRE_MESSAGE(all_reduced == reduced.at("out"), support::describe(c));
    REQUIRE_MESSAGE(sparse.at("num_points_outside") == counts.at("num_points_outside"),
                    support::describe(c));
  }
  CHECK(voxels > 1000);
}

// ---- changes without effect ---------------------------------------------------------------------

void checkOrderOfPoints(const Context& context, uint64_t first, uint64_t count) {
  Random random(first);
  std::vector<int64_t> from;
  for (const VoxelizeCase& c : support::randomVoxelizeCases(first, count)) {
    const VoxelizeInputs in = support::inputsOf(c);
    VoxelizeInputs other;
    other.c = in.c;
    static_cast<CloudInputs&>(other) = shuffled(c, in, random, &from);
    REQUIRE_MESSAGE(outputOf(context, other) == outputOf(context, in), support::describe(c));
  }
  for (SparseCase& c : support::randomSparseCases(first, count)) {
    c.order = RBC_VOXELIZE_SPARSE_ORDER_LEXICOGRAPHIC;
    c.without = {};
    const SparseInputs in = support::inputsOf(c);
    SparseInputs other;
    other.c = in.c;
    other.capacity = in.capacity;
    static_cast<CloudInputs&>(other) = shuffled(c, in, random, &from);
    VoxelOutput before = outputOf(context, in);
    VoxelOutput after = outputOf(context, other);
    // Rows follow their points, but the first points of a voxel change.
    std::vector<uint64_t>& rows = before["point_to_voxel"];
    const std::vector<uint64_t> old_rows = rows;
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = old_rows[static_cast<size_t>(from[i])];
    before.erase("grouped");
    after.erase("grouped");
    REQUIRE_MESSAGE(before == after, support::describe(c));
  }
}

// Every feature is reduced independently of the others.
void checkFeaturesAlone(const Context& context, uint64_t first, uint64_t count) {
  int columns = 0;
  for (const VoxelizeCase& c : support::randomVoxelizeCases(first, count)) {
    if (!support::reducesFeatures(c.mode)) continue;
    const VoxelizeInputs in = support::inputsOf(c);
    const std::vector<uint64_t> whole = outputOf(context, in).at("out");
    const int64_t F = c.reduced();
    for (int64_t k = 0; k < F; ++k) {
      VoxelizeInputs one;
      one.c = in.c;
      one.c.features = true;
      one.c.channels = 1;
      static_cast<CloudInputs&>(one) = copyOf(in);
      std::vector<int64_t> shape = in.values().placement().shape;
      shape.back() = 1;
      std::vector<uint64_t> elements;
      for (int64_t row = 0; row < in.rows(); ++row)
        elements.push_back(CloudInputs::get(in.values(), row, k));
      one.features = support::arrayOf(in.values().dtype(), shape, elements);
      const std::vector<uint64_t> part = outputOf(context, one).at("out");
      for (size_t v = 0; v < part.size(); ++v) {
        REQUIRE_MESSAGE(part[v] == whole[v * static_cast<size_t>(F) + static_cast<size_t>(k)],
                        "feature ", k, " of ", support::describe(c));
      }
      ++columns;
    }
  }
  CHECK(columns > 100);
}

// Moving points by whole voxels moves the grid, with numbers for which every step is exact.
void checkTranslation(const Context& context) {
  constexpr int64_t kPoints = 500, kInner = 10, kOuter = 16;
  Random random(77);
  for (const rbcDType dtype : support::kFloatDTypes) {
    VoxelizeCase c;
    c.batched = false;
    c.clouds = 1;
    c.points = kPoints;
    c.dtype = dtype;
    c.mode = RBC_REDUCE_MEAN;
    c.fill_value = -5;
    for (int axis = 0; axis < 3; ++axis) c.origin[axis] = 0, c.voxel_size[axis] = 0.5;
    std::vector<double> points;
    for (int64_t i = 0; i < 3 * kPoints; ++i)
      points.push_back(static_cast<double>(random.below(16 * kInner / 2)) / 16);
    std::vector<uint64_t> features;
    for (int64_t i = 0; i < c.channels * kPoints; ++i)
      features.push_back(support::encodeFloat(c.values, random.uniform(-1, 1)));
    const auto outputAt = [&](int64_t extent, const int64_t(&by)[3]) {
      VoxelizeInputs in;
      in.c = c;
      in.c.setGrid(extent, extent, extent);
      std::vector<uint64_t> moved;
      for (size_t i = 0; i < points.size(); ++i)
        moved.push_back(
            support::encodeFloat(dtype, points[i] + 0.5 * static_cast<double>(by[i % 3])));
      in.points = support::arrayOf(dtype, {kPoints, 3}, moved);
      in.features = support::arrayOf(c.values, {kPoints, c.channels}, features);
      return outputOf(context, in);
    };
    const VoxelOutput inner = outputAt(kInner, {0, 0, 0});
    REQUIRE(inner.at("num_points_outside")[0] == 0);
    for (int round = 0; round < 10; ++round) {
      const int64_t by[] = {random.below(7), random.below(7), random.below(7)};
      std::vector<uint64_t> expected(static_cast<size_t>(kOuter * kOuter * kOuter * c.channels),
                                     support::encodeFloat(c.out, c.fill_value));
      size_t next = 0;
      for (int64_t x = 0; x < kInner; ++x) {
        for (int64_t y = 0; y < kInner; ++y) {
          for (int64_t z = 0; z < kInner; ++z) {
            const int64_t voxel = ((x + by[0]) * kOuter + y + by[1]) * kOuter + z + by[2];
            for (int64_t k = 0; k < c.channels; ++k)
              expected[static_cast<size_t>(voxel * c.channels + k)] = inner.at("out")[next++];
          }
        }
      }
      CHECK(outputAt(kOuter, by).at("out") == expected);
    }
  }
}

}  // namespace

TEST_CASE("voxelize cpu: every point is in a voxel, dropped or over capacity") {
  checkEveryPointIsCounted(support::cpuContext(2), 10000, 150);
}

TEST_CASE("voxelize cpu: occupancy, counts, sums, means and extremes agree") {
  checkModesAgree(support::cpuContext(2), 11000, 80);
}

TEST_CASE("voxelize cpu: sparse voxels equal the dense grid") {
  checkSparseIsDense(support::cpuContext(2), 12000, 150);
}

TEST_CASE("voxelize cpu: the order of points changes no bit") {
  checkOrderOfPoints(support::cpuContext(2), 13000, 150);
}

TEST_CASE("voxelize cpu: each feature is reduced independently") {
  checkFeaturesAlone(support::cpuContext(2), 14000, 100);
}

TEST_CASE("voxelize cpu: points that move by whole voxels move the grid") {
  checkTranslation(support::cpuContext(2));
}

TEST_CASE("voxelize cuda: the properties of the CPU, on random clouds") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  checkEveryPointIsCounted(cuda, 10000, 80);
  checkModesAgree(cuda, 11000, 40);
  checkSparseIsDense(cuda, 12000, 80);
  checkOrderOfPoints(cuda, 13000, 80);
  checkFeaturesAlone(cuda, 14000, 50);
  checkTranslation(cuda);
}
