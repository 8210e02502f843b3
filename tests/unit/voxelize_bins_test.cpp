// Occupancy and counts of many points, which CUDA computes by bins: same bits as on the CPU.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "support/expect.h"
#include "support/operation_tests.h"
#include "support/voxel_cases.h"
#include "support/voxel_run.h"

namespace {

using support::CloudPattern;
using support::Context;
using support::VoxelizeCase;
using support::VoxelizeInputs;

// Slightly more points than the threshold for bins.
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

// Enough points, anywhere in the grid and around it, that a block of threads sorts several tiles of
// them. Each coordinate is one of 1024 values, so that drawing them is quick.
VoxelizeInputs manyTiles(int64_t points, rbcDType dtype, int32_t mode, rbcDType out) {
  VoxelizeInputs in;
  in.c = with(manyPoints("many tiles", 7401), CloudPattern::kUniform, mode, out);
  in.c.points = points;
  in.c.dtype = dtype;
  support::Random random(in.c.seed);
  uint64_t numbers[3][1024];
  for (int axis = 0; axis < 3; ++axis) {
    const auto extent = static_cast<double>(in.c.shape[axis]);
    for (uint64_t& number : numbers[axis])
      number = support::encode(dtype, random.uniform(-1, extent + 1));
  }
  in.points = support::Array(dtype, {points, 3});
  const auto size = static_cast<size_t>(support::sizeOf(dtype));
  std::byte* at = in.points.memory().data();
  for (int64_t i = 0; i < points; ++i) {
    const uint64_t bits = random.bits();
    for (int axis = 0; axis < 3; ++axis, at += size)
      std::memcpy(at, &numbers[axis][bits >> 10 * axis & 1023], size);
  }
  return in;
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
      with(manyPoints("occupied", 7101), CloudPattern::kUniform, RBC_REDUCE_OCCUPANCY,
           support::kU8),
      with(manyPoints("sweep", 7102), CloudPattern::kSweep, RBC_REDUCE_OCCUPANCY, support::kBool),
      with(manyPoints("heavy", 7103), CloudPattern::kHeavy, RBC_REDUCE_COUNT, support::kI64),
      with(manyPoints("one voxel", 7104), CloudPattern::kOneVoxel, RBC_REDUCE_COUNT, support::kF16),
      with(manyPoints("clustered", 7105), CloudPattern::kClustered, RBC_REDUCE_COUNT,
           support::kF32),
  };
  // More voxels than bins of any size have cells, in several clouds; an output without a simple
  // layout.
  VoxelizeCase batch = manyPoints("batch", 7106);
  batch.batched = true;
  batch.clouds = 3;
  batch.points = 1'500'000;
  batch.lengths = true;
  batch.specials = true;
  batch.out_layout = support::Layout::kPermuted;
  batch.fill_value = -3;
  cases.push_back(batch);
  VoxelizeCase packed = batch;
  packed.name = "packed";
  packed.lengths = false;
  packed.packed = true;
  packed.points = 4'300'000;  // in the first cloud; the second has none, the third has one
  packed.columns = 4;
  packed.dtype = support::kF64;
  cases.push_back(packed);
  VoxelizeCase small = manyPoints("few voxels", 7107);
  small.setGrid(3, 1, 5);
  cases.push_back(small);
  VoxelizeCase outside = manyPoints("nearly all outside", 7108);
  outside.outside = 0.9999;
  cases.push_back(outside);
  cases.push_back(with(manyPoints("all outside", 7109), CloudPattern::kOutside, RBC_REDUCE_COUNT,
                       support::kI32));
  // Every way to load points, in one cloud and in several, with cells counted in the output itself.
  VoxelizeCase flags = batch;
  flags.name = "occupied in a batch";
  flags.mode = RBC_REDUCE_OCCUPANCY;
  flags.out = support::kU8;
  flags.out_layout = support::Layout::kContiguous;
  flags.fill_value = 0;
  cases.push_back(flags);
  flags.name = "occupied in a batch by a sweep";
  flags.pattern = CloudPattern::kSweep;
  cases.push_back(flags);
  VoxelizeCase words = manyPoints("packed rows of words", 7111);
  words.batched = words.packed = true;
  words.clouds = 4;
  words.columns = 4;
  words.setGrid(50, 41, 33);
  cases.push_back(words);
  for (const rbcDType dtype : {support::kF32, support::kBF16}) {
    VoxelizeCase rows = manyPoints("rows", 7112);
    rows.dtype = dtype;
    rows.columns = 4;
    cases.push_back(rows);
  }
  // Many divided bins: all points are in a third of about 500 bins.
  VoxelizeCase cuts = manyPoints("more cuts than blocks", 7110);
  cuts.batched = true;
  cuts.clouds = 3;
  cuts.packed = true;
  cuts.setGrid(177, 177, 177);
  cases.push_back(cuts);
  support::checkBackends(cuda, cases);
}

TEST_CASE("large: voxelize cuda by bins, several tiles per block") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  const Context cpu = support::cpuContext();
  // Three tiles per block, and one for the last block; then eight, the maximum.
  const VoxelizeInputs inputs[] = {
      manyTiles(12'590'001, support::kF32, RBC_REDUCE_OCCUPANCY, support::kU8),
      manyTiles(12'590'001, support::kF32, RBC_REDUCE_COUNT, support::kI32),
      manyTiles(34'000'003, support::kF16, RBC_REDUCE_COUNT, support::kI64)};
  for (const VoxelizeInputs& in : inputs) support::checkSame(in, cpu, cuda, "on CUDA");
}

TEST_CASE("large: voxelize cuda, counts of points that share cells") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  const VoxelizeCase sweep = with(manyPoints("sweep counted", 7201), CloudPattern::kSweep,
                                  RBC_REDUCE_COUNT, support::kI32);
  std::vector<VoxelizeCase> cases = {sweep};
  // More voxels than a block's table has places, with about as many distinct ones as points.
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

TEST_CASE("large: voxelize cuda by bins, for any contents of the workspace") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  support::checkScratch(RBC_BACKEND_CUDA, std::vector<VoxelizeCase>{
                                              with(manyPoints("heavy", 7301), CloudPattern::kHeavy,
                                                   RBC_REDUCE_COUNT, support::kI32),
                                              with(manyPoints("sweep", 7302), CloudPattern::kSweep,
                                                   RBC_REDUCE_OCCUPANCY, support::kU8)});
}
