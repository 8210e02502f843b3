// Occupancy and counts of many points, which CUDA does by bins: the CPU's bits.
#include <doctest/doctest.h>

#include <vector>

#include "support/expect.h"
#include "support/voxel_check.h"

namespace {

using support::CloudPattern;
using support::Context;
using support::VoxelizeCase;

// A little more than where bins begin.
VoxelizeCase manyPoints(const char* name, uint64_t seed) {
  VoxelizeCase c;
  c.name = name;
  c.seed = seed;
  c.clouds = 1;
  c.points = 4'300'000;
  c.batched = false;
  c.features = false;
  c.setUnitGrid();
  c.setGrid(90, 101, 64);
  c.out = support::kI32;
  return c;
}

VoxelizeCase with(VoxelizeCase c, CloudPattern pattern, int32_t mode, rbcDType out) {
  c.pattern = pattern;
  c.mode = mode;
  c.out = out;
  return c;
}

}  // namespace

TEST_CASE("voxelize cuda: by bins") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  support::checkBackends(cuda, std::vector<VoxelizeCase>{manyPoints("uniform", 7001)});
}

TEST_CASE("large: voxelize cuda by bins, of any kind") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  std::vector<VoxelizeCase> cases = {
      with(manyPoints("occupied", 7101), CloudPattern::kUniform, RBC_VOXEL_OCCUPANCY, support::kU8),
      with(manyPoints("sweep", 7102), CloudPattern::kSweep, RBC_VOXEL_OCCUPANCY, support::kBool),
      with(manyPoints("heavy", 7103), CloudPattern::kHeavy, RBC_VOXEL_COUNT, support::kI64),
      with(manyPoints("one voxel", 7104), CloudPattern::kOneVoxel, RBC_VOXEL_COUNT, support::kF16),
      with(manyPoints("clustered", 7105), CloudPattern::kClustered, RBC_VOXEL_COUNT, support::kF32),
  };
  // More voxels than bins of any size have cells, in several clouds; an output of no simple layout.
  VoxelizeCase batch = manyPoints("batch", 7106);
  batch.batched = true;
  batch.clouds = 3;
  batch.points = 1'500'000;
  batch.lengths = true;
  batch.specials = true;
  batch.out_layout = support::Layout::kPermuted;
  batch.empty_value = -3;
  cases.push_back(batch);
  VoxelizeCase packed = batch;
  packed.name = "packed";
  packed.lengths = false;
  packed.packed = true;
  packed.columns = 4;
  packed.dtype = support::kF64;
  cases.push_back(packed);
  VoxelizeCase small = manyPoints("few voxels", 7107);
  small.setGrid(3, 1, 5);
  cases.push_back(small);
  VoxelizeCase outside = manyPoints("nearly all outside", 7108);
  outside.outside = 0.9999;
  cases.push_back(outside);
  cases.push_back(with(manyPoints("all outside", 7109), CloudPattern::kOutside, RBC_VOXEL_COUNT,
                       support::kI32));
  // Many cut bins: all points in a third of some 500 bins.
  VoxelizeCase cuts = manyPoints("more cuts than blocks", 7110);
  cuts.batched = true;
  cuts.clouds = 3;
  cuts.packed = true;
  cuts.setGrid(177, 177, 177);
  cases.push_back(cuts);
  support::checkBackends(cuda, cases);
}

TEST_CASE("large: voxelize cuda, counts of points that fall together") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  const VoxelizeCase sweep =
      with(manyPoints("sweep counted", 7201), CloudPattern::kSweep, RBC_VOXEL_COUNT, support::kI32);
  std::vector<VoxelizeCase> cases = {sweep};
  // More voxels than a block's table has places, and about as many different ones as points.
  for (const int64_t side : {10, 20}) {
    VoxelizeCase dense = manyPoints("collisions", 7202);
    dense.setGrid(side, 10, side == 10 ? 3 : 10);
    cases.push_back(dense);
  }
  VoxelizeCase misaligned = sweep;
  misaligned.name = "misaligned";
  misaligned.out_layout = support::Layout::kMisaligned;
  cases.push_back(misaligned);
  VoxelizeCase batch = sweep;
  batch.name = "batch";
  batch.batched = true;
  batch.clouds = 3;
  batch.points = 1'500'000;
  batch.lengths = true;
  batch.specials = true;
  cases.push_back(batch);
  VoxelizeCase rows = sweep;
  rows.name = "rows of f64";
  rows.dtype = support::kF64;
  rows.columns = 5;
  rows.dropped = false;
  cases.push_back(rows);
  VoxelizeCase direct = sweep;
  direct.name = "fewer points than bins take";
  direct.points = 2'000'000;
  cases.push_back(direct);
  support::checkBackends(cuda, cases);
}

TEST_CASE("large: voxelize cuda by bins, whatever lies in the workspace") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  support::checkScratch(RBC_BACKEND_CUDA, std::vector<VoxelizeCase>{
                                              with(manyPoints("heavy", 7301), CloudPattern::kHeavy,
                                                   RBC_VOXEL_COUNT, support::kI32),
                                              with(manyPoints("sweep", 7302), CloudPattern::kSweep,
                                                   RBC_VOXEL_OCCUPANCY, support::kU8)});
}
