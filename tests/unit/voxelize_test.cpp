// rbcVoxelize against the reference, on the table of its cases and on random ones, on every backend.
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

TEST_CASE("reference: a wrong bit of a dense grid is told") {
  support::checkReferenceTells<Voxelize>(20, support::spoilElement);
}
