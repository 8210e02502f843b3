// rbcVoxelize against the reference, on the table of its cases and on random ones, on every
// backend.
#include <vector>

#include "support/operation_tests.h"
#include "support/voxel_cases.h"
#include "support/voxel_run.h"

namespace {

using support::Context;
using support::VoxelizeCase;
using support::VoxelizeInputs;

struct Voxelize {
  static constexpr uint64_t kRandomCases = 400;
  static constexpr uint64_t kSameBits = 100;
  static std::vector<VoxelizeCase> table() { return support::voxelizeCases(); }
  static VoxelizeCase random(uint64_t seed) { return support::randomVoxelizeCase(seed); }
  static VoxelizeCase any(uint64_t seed) { return random(seed); }
};

}  // namespace

OPERATION_TESTS("voxelize", Voxelize)

// A table groups up to 2^17 points; more are grouped by bits of the grid.
TEST_CASE("voxelize cuda: features of more points than the limit of a table") {
  WITH_CUDA(cuda);
  std::vector<VoxelizeCase> cases;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    VoxelizeCase c = support::randomVoxelizeCase(7000 + seed);
    c.mode = support::kReductions[seed % 4];
    if (!support::isFloat(c.out)) c.out = support::kF32;
    support::growBeyondTables(&c, seed);
    cases.push_back(c);
  }
  support::checkBackends(cuda, cases);
}

TEST_CASE("reference: a wrong bit of a dense grid is found") {
  support::checkReferenceTells<Voxelize>(20, support::spoilElement);
}
