// Voxelization with sizes and offsets beyond 32 bits. On the CPU most of the address space is never
// touched.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "robocache/robocache.hpp"
#include "support/expect.h"
#include "support/random.h"
#include "support/run.h"
#include "support/sanitizers.h"
#include "support/sparse_array.h"

namespace {

using robocache::Tensor;
using support::SparseArray;

constexpr int64_t kTwo31 = int64_t{1} << 31;
constexpr int64_t kSide = 1291;
static_assert(kSide * kSide * kSide > kTwo31, "more voxels than 31 bits count");

template <class Params>
Params withUnitGrid(Params params, int64_t x, int64_t y, int64_t z) {
  const int64_t shape[] = {x, y, z};
  for (int axis = 0; axis < 3; ++axis) {
    params.grid.voxel_size[axis] = 1;
    params.grid.shape[axis] = shape[axis];
  }
  return params;
}

// Voxels at both ends of the grid and anywhere in it, in ascending order; two points in each.
struct FewVoxels {
  FewVoxels() {
    support::Random random(1);
    voxels = {0, 1, kTwo31 - 1, kTwo31, kSide * kSide * kSide - 1};
    while (voxels.size() < 40) voxels.insert(random.below(kSide * kSide * kSide));
    for (const int64_t voxel : voxels) {
      for (const float part : {0.25f, 0.75f}) {
        for (const int64_t index : {voxel / kSide / kSide, voxel / kSide % kSide, voxel % kSide})
          points.push_back(static_cast<float>(index) + part);
      }
    }
  }

  int64_t count() const { return static_cast<int64_t>(points.size()) / 3; }

  std::set<int64_t> voxels;
  std::vector<float> points;
};

}  // namespace

TEST_CASE("large: a dense grid of more than 2^31 voxels") {
#if RBC_TEST_SANITIZED
  SKIP_BECAUSE("sanitizers would need a minute for it");
#endif
  if (sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE) < int64_t{5} << 30)
    SKIP_BECAUSE("less than 5 GiB of free memory");
  const SparseArray<uint8_t> out(kSide * kSide * kSide);
  REQUIRE(out);
  const FewVoxels few;
  auto params = withUnitGrid(rbcVoxelizeParamsInit(), kSide, kSide, kSide);
  params.fill_value = 7;
  const Tensor points(few.points.data(), {few.count(), 3});
  const Tensor grid(out.data(), {kSide, kSide, kSide});
  CHECK_SUCCEEDS(rbcVoxelize(support::cpuContext().get(), points.get(), nullptr, grid.get(),
                             nullptr, &params));
  for (const int64_t voxel : few.voxels) {
    CHECK(out[voxel] == 1);
    out[voxel] = 7;
  }
  CHECK(std::count(out.data(), out.data() + kSide * kSide * kSide, 7) == kSide * kSide * kSide);
}

TEST_CASE("large: clouds and voxels whose strides reach beyond 32 bits") {
  constexpr int64_t B = 3, N = 4, F = 2, kExtent = 3;
  constexpr int64_t kPoints[] = {5000000011, kTwo31 + 7, 3};
  constexpr int64_t kFeatures[] = {7000000001, -(kTwo31 + 11), 2};
  constexpr int64_t kOut[] = {60000000041, 20000000003, 5000000009, kTwo31 + 9, 1};
  constexpr int64_t kRows[] = {7000000003, kTwo31 + 1};
  const SparseArray<float> points(kPoints[0] * (B - 1) + kPoints[1] * (N - 1) + 3 * 3);
  const SparseArray<double> features(kFeatures[0] * (B - 1) - kFeatures[1] * (N - 1) + 2 * F);
  const SparseArray<float> out(kOut[0] * B);
  const SparseArray<int64_t> rows(kRows[0] * (B - 1) + kRows[1] * (N - 1) + 1);
  if (!points || !features || !out || !rows) SKIP_BECAUSE("not enough address space");
  double* const first_feature = features.data() - kFeatures[1] * (N - 1);

  // Cloud b has its points 0 and 2 in voxel (b,1,2), 1 and 3 in (0,b,0).
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t i = 0; i < N; ++i) {
      const int64_t at[] = {i % 2 == 0 ? b : 0, i % 2 == 0 ? 1 : b, i % 2 == 0 ? 2 : 0};
      for (int64_t k = 0; k < 3; ++k)
        points[b * kPoints[0] + i * kPoints[1] + k * kPoints[2]] = static_cast<float>(at[k]) + 0.5f;
      for (int64_t k = 0; k < F; ++k) {
        first_feature[b * kFeatures[0] + i * kFeatures[1] + k * kFeatures[2]] =
            static_cast<double>(100 * b + 10 * i + k);
      }
    }
  }
  const Tensor point_tensor(points.data(), {B, N, 3}, {kPoints[0], kPoints[1], kPoints[2]});
  const Tensor feature_tensor(first_feature, {B, N, F}, {kFeatures[0], kFeatures[1], kFeatures[2]});
  const support::Context context = support::cpuContext(2);

  auto params = withUnitGrid(rbcVoxelizeParamsInit(), kExtent, kExtent, kExtent);
  params.reduction = RBC_REDUCE_SUM;
  params.fill_value = -1;
  const Tensor grid(out.data(), {B, kExtent, kExtent, kExtent, F},
                    {kOut[0], kOut[1], kOut[2], kOut[3], kOut[4]});
  CHECK_SUCCEEDS(rbcVoxelize(context.get(), point_tensor.get(), feature_tensor.get(), grid.get(),
                             nullptr, &params));
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t voxel = 0; voxel < kExtent * kExtent * kExtent; ++voxel) {
      const int64_t x = voxel / 9, y = voxel / 3 % 3, z = voxel % 3;
      const bool even = x == b && y == 1 && z == 2;
      const bool odd = x == 0 && y == b && z == 0;
      for (int64_t k = 0; k < F; ++k) {
        const float got = out[b * kOut[0] + x * kOut[1] + y * kOut[2] + z * kOut[3] + k * kOut[4]];
        const int64_t sum = 2 * (100 * b + k) + (even ? 20 : 40);
        CHECK(got == (even || odd ? static_cast<float>(sum) : -1.0f));
      }
    }
  }

  std::vector<int32_t> coords(2 * B * 4);
  int64_t num_voxels = 0;
  const Tensor coord_tensor(coords.data(), {2 * B, 4});
  const Tensor num_tensor(&num_voxels, {});
  const Tensor row_tensor(rows.data(), {B, N}, {kRows[0], kRows[1]});
  rbcVoxelizeSparseOutputs voxels = rbcVoxelizeSparseOutputsInit();
  voxels.coords = coord_tensor.get();
  voxels.num_voxels = num_tensor.get();
  voxels.point_to_voxel = row_tensor.get();
  const auto sparse = withUnitGrid(rbcVoxelizeSparseParamsInit(), kExtent, kExtent, kExtent);
  CHECK_SUCCEEDS(rbcVoxelizeSparse(context.get(), point_tensor.get(), nullptr, &voxels, &sparse));
  REQUIRE(num_voxels == 2 * B);
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t i = 0; i < N; ++i) {
      const std::array<int64_t, 4> expected = {b, i % 2 == 0 ? b : 0, i % 2 == 0 ? 1 : b,
                                               i % 2 == 0 ? 2 : 0};
      const int64_t row = rows[b * kRows[0] + i * kRows[1]];
      REQUIRE((row >= 0 && row < num_voxels));
      for (size_t k = 0; k < 4; ++k) CHECK(coords[static_cast<size_t>(4 * row) + k] == expected[k]);
    }
  }
}

TEST_CASE("large: a dense grid of more than 2^31 voxels on CUDA") {
  std::string why;
  if (support::cudaContext(&why) == nullptr) SKIP_BECAUSE(why);
  const auto context = robocache::Context::cuda();
  if (context.info().total_memory_bytes < uint64_t{40} << 30)
    SKIP_BECAUSE("less than 40 GiB of device memory");
  const FewVoxels few;
  robocache::OwnedTensor points(context, support::kF32, {few.count(), 3});
  robocache::copy(context, {few.points.data(), {few.count(), 3}}, points.view());
  for (const int32_t mode : {RBC_REDUCE_OCCUPANCY, RBC_REDUCE_COUNT}) {
    CAPTURE(mode);
    auto params = withUnitGrid(rbcVoxelizeParamsInit(), kSide, kSide, kSide);
    params.reduction = mode;
    params.fill_value = 7;
    robocache::OwnedTensor out(context, support::kI32, {kSide, kSide, kSide});
    const Tensor grid = out.view();
    CHECK_SUCCEEDS(
        rbcVoxelize(context.get(), points.view().get(), nullptr, grid.get(), nullptr, &params));
    // Slices along x: all with points, and a few others.
    std::set<int64_t> slices = {kSide / 2, kSide - 2};
    for (const int64_t voxel : few.voxels) slices.insert(voxel / kSide / kSide);
    std::vector<int32_t> slice(kSide * kSide);
    for (const int64_t x : slices) {
      auto* first = static_cast<int32_t*>(grid.data()) + x * kSide * kSide;
      robocache::copy(context, {first, {kSide * kSide}, {}, grid.device()},
                      {slice.data(), {kSide * kSide}});
      int64_t occupied = 0;
      for (const int64_t voxel : few.voxels) {
        if (voxel / kSide / kSide != x) continue;
        ++occupied;
        CHECK(slice[static_cast<size_t>(voxel % (kSide * kSide))] ==
              (mode == RBC_REDUCE_COUNT ? 2 : 1));
      }
      CHECK(std::count(slice.begin(), slice.end(), 7) == kSide * kSide - occupied);
    }
  }
}

// A line of voxels; each takes the memory of 32 in its bricks.
TEST_CASE("large: a signed distance field with places of voxels beyond 32 bits on CUDA") {
  std::string why;
  if (support::cudaContext(&why) == nullptr) SKIP_BECAUSE(why);
  const auto context = robocache::Context::cuda();
  if (context.info().total_memory_bytes < uint64_t{10} << 30)
    SKIP_BECAUSE("less than 10 GiB of device memory");
  constexpr int64_t kBeyond = int64_t{1} << 27;
  constexpr int64_t kLine = kBeyond + 77;
  constexpr int64_t kReach = 3;
  constexpr int64_t kPart = 2 * kReach + 1;
  constexpr int64_t kVoxels[] = {5, kBeyond / 2, kBeyond - 40, kBeyond, kLine - 4};
  std::vector<double> points;
  for (const int64_t voxel : kVoxels) {
    for (const double x : {static_cast<double>(voxel) + 0.5, 0.5, 0.5}) points.push_back(x);
  }
  const double sensor[] = {-1000, 0.5, 0.5};
  const auto count = static_cast<int64_t>(std::size(kVoxels));
  robocache::OwnedTensor on_device(context, support::kF64, {count, 3});
  robocache::OwnedTensor seen_from(context, support::kF64, {3});
  robocache::copy(context, {points.data(), {count, 3}}, on_device.view());
  robocache::copy(context, sensor, seen_from.view());

  robocache::OwnedTensor tsdf(context, support::kF32, {kLine, 1, 1});
  robocache::OwnedTensor weight(context, support::kF32, {kLine, 1, 1});
  const auto around = [&](robocache::OwnedTensor& volume, int64_t voxel) {
    const Tensor all = volume.view();
    return Tensor(static_cast<float*>(all.data()) + voxel - kReach, {kPart}, {}, all.device());
  };
  std::vector<float> part(kPart, 0.0f);
  for (const int64_t voxel : kVoxels) robocache::copy(context, part, around(weight, voxel));
  auto params = withUnitGrid(rbcVoxelizeTsdfParamsInit(), kLine, 1, 1);
  params.truncation = kReach;
  const Tensor tsdf_view = tsdf.view();
  const Tensor weight_view = weight.view();
  CHECK_SUCCEEDS(rbcVoxelizeTsdf(context.get(), on_device.view().get(), seen_from.view().get(),
                                 tsdf_view.get(), weight_view.get(), nullptr, &params));
  for (const int64_t voxel : kVoxels) {
    CAPTURE(voxel);
    robocache::copy(context, around(weight, voxel), part);
    CHECK(part == std::vector<float>(kPart, 1.0f));
    robocache::copy(context, around(tsdf, voxel), part);
    CHECK(part == std::vector<float>{3, 2, 1, 0, -1, -2, -3});
  }
}
