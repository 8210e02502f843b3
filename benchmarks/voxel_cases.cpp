#include "voxel_cases.h"

#include <utility>

namespace bench {
namespace {

using Kind = VoxelCase::Kind;

struct Grid {
  const char* name;
  std::array<int64_t, 3> shape;
  double voxel_size;
};
const Grid k128 = {"128^3", {128, 128, 128}, 0.1};
const Grid k200 = {"200^3", {200, 200, 200}, 0.1};
const Grid k256 = {"256^3", {256, 256, 256}, 0.1};
// Streets around a car: coarse, fine and finest.
const Grid kCoarse = {"352x400x20", {352, 400, 20}, 0.2};
const Grid kFine = {"1000x1000x40", {1000, 1000, 40}, 0.1};
const Grid kFinest = {"2000x2000x100", {2000, 2000, 100}, 0.05};

constexpr int64_t kMillion = 1'000'000;

std::string nameOf(int64_t points) {
  return points < kMillion ? std::to_string(points / 1000) + "k"
                           : std::to_string(points / kMillion) + "M";
}

VoxelCase makeCase(const char* result, int64_t clouds, int64_t points, const Grid& grid,
                   const char* trait = "") {
  VoxelCase c;
  c.name = std::string(result) + "/" + (clouds > 1 ? std::to_string(clouds) + "x" : "") +
           nameOf(points) + " " + grid.name + trait;
  c.clouds = clouds;
  c.points = points;
  c.shape = grid.shape;
  c.voxel_size = grid.voxel_size;
  return c;
}

}  // namespace

std::vector<VoxelCase> voxelCases() {
  std::vector<VoxelCase> cases;
  // Those of one cloud stand together: it is made once.
  const auto add = [&](const std::vector<VoxelCase>& kinds) {
    for (const bool sweeps : {false, true}) {
      for (VoxelCase c : kinds) {
        c.name += sweeps ? " sweeps" : " uniform";
        c.sweeps = sweeps;
        c.variant = c.variant || sweeps;
        cases.push_back(std::move(c));
      }
    }
  };
  const auto occupancyAndCount = [&](int64_t points, const Grid& grid) {
    VoxelCase occupancy = makeCase("occupancy", 1, points, grid);
    VoxelCase count = makeCase("count", 1, points, grid);
    count.mode = RBC_VOXEL_COUNT;
    add({occupancy, count});
  };
  const auto sparseMean = [](int64_t clouds, int64_t points, const Grid& grid) {
    VoxelCase c = makeCase("sparse mean", clouds, points, grid);
    c.kind = Kind::kSparse;
    c.mode = RBC_VOXEL_MEAN;
    c.columns = 4;
    return c;
  };

  occupancyAndCount(kMillion, k128);
  occupancyAndCount(10 * kMillion, k256);
  occupancyAndCount(100 * kMillion, k256);
  VoxelCase mean = makeCase("mean", 1, kMillion, k200, " 16 features");
  mean.mode = RBC_VOXEL_MEAN;
  mean.features = 16;
  add({mean});

  add({sparseMean(1, kSweepPoints, kCoarse)});
  add({sparseMean(1, kMillion, kFine)});
  add({sparseMean(1, 10 * kMillion, kFinest)});
  VoxelCase beside = makeCase("sparse mean", 1, kMillion, kFine, " 4 features beside");
  beside.kind = Kind::kSparse;
  beside.mode = RBC_VOXEL_MEAN;
  beside.features = 4;
  beside.variant = true;
  add({beside});

  add({makeCase("occupancy", 32, kSweepPoints, kCoarse)});
  add({sparseMean(32, kSweepPoints, kCoarse)});

  VoxelCase tsdf = makeCase("tsdf", 1, kSweepPoints, k256);
  tsdf.kind = Kind::kTsdf;
  add({tsdf});
  return cases;
}

}  // namespace bench
