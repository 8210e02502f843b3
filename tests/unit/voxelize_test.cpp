// rbcVoxelize against the reference, on the table of its cases and on random ones, on every backend.
#include "support/voxel_check.h"

namespace {

using support::Context;
using support::VoxelizeCase;
using support::VoxelizeInputs;

}  // namespace

TEST_CASE("voxelize cpu: the table of cases") {
  support::checkAll(support::cpuContext(), support::voxelizeCases());
}

TEST_CASE("voxelize cpu: random cases") {
  support::checkAll(support::cpuContext(2), support::randomVoxelizeCases(0, 400));
}

TEST_CASE("voxelize cpu: the table of cases against the other inaccessible page") {
  support::checkAll(support::cpuContext(3), support::flushedOtherwise(support::voxelizeCases()));
}

TEST_CASE("voxelize cpu: SIMD levels and thread counts give the same bits") {
  std::vector<VoxelizeCase> cases = support::voxelizeCases();
  for (VoxelizeCase& c : support::randomVoxelizeCases(2000, 100)) cases.push_back(std::move(c));
  support::checkLevelsAndThreads(cases);
}

TEST_CASE("voxelize cpu: what lies in the workspace does not matter") {
  support::checkScratch(RBC_BACKEND_CPU, support::voxelizeCases());
}

TEST_CASE("voxelize cuda: the table of cases") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  support::checkAll(cuda, support::voxelizeCases());
}

TEST_CASE("voxelize cuda: random cases") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  support::checkAll(cuda, support::randomVoxelizeCases(0, 400));
}

TEST_CASE("voxelize cuda: what lies in the workspace does not matter") {
  std::string why;
  if (support::cudaContext(&why) == nullptr) SKIP_BECAUSE(why);
  support::checkScratch(RBC_BACKEND_CUDA, support::voxelizeCases());
}

TEST_CASE("voxelize cuda: the bits of the CPU, and the same again") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  support::checkBackends(cuda, support::flushedOtherwise(support::voxelizeCases()));
}

TEST_CASE("voxelize cuda: the bits of the CPU in random cases") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  support::checkBackends(cuda, support::randomVoxelizeCases(3000, 300));
}

TEST_CASE("reference: a wrong bit of a dense grid is told") {
  for (const VoxelizeCase& c : support::randomVoxelizeCases(4000, 20)) {
    const VoxelizeInputs in = support::inputsOf(c);
    const auto good = support::run(support::cpuContext(1), in).output;
    REQUIRE(support::firstError(in, good) == "");
    for (const auto& [name, elements] : good) {
      for (size_t i = 0; i < elements.size(); i += 37) {
        auto bad = good;
        bad[name][i] ^= 1;
        CHECK(support::firstError(in, bad) != "");
      }
    }
  }
}
