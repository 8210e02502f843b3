// rbcVoxelizeSparse against the reference, on the table of its cases and on random ones, on every backend.
#include "support/voxel_check.h"

namespace {

using support::Context;
using support::SparseCase;
using support::SparseInputs;

}  // namespace

TEST_CASE("voxelize sparse cpu: the table of cases") {
  support::checkAll(support::cpuContext(), support::sparseCases());
}

TEST_CASE("voxelize sparse cpu: random cases") {
  support::checkAll(support::cpuContext(2), support::randomSparseCases(0, 400));
}

TEST_CASE("voxelize sparse cpu: the table of cases against the other inaccessible page") {
  support::checkAll(support::cpuContext(3), support::flushedOtherwise(support::sparseCases()));
}

TEST_CASE("voxelize sparse cpu: SIMD levels and thread counts give the same bits") {
  std::vector<SparseCase> cases = support::sparseCases();
  for (SparseCase& c : support::randomSparseCases(2000, 100)) cases.push_back(std::move(c));
  support::checkLevelsAndThreads(cases);
}

TEST_CASE("voxelize sparse cpu: what lies in the workspace does not matter") {
  support::checkScratch(RBC_BACKEND_CPU, support::sparseCases());
}

TEST_CASE("voxelize sparse cuda: the table of cases") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  support::checkAll(cuda, support::sparseCases());
}

TEST_CASE("voxelize sparse cuda: random cases") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  support::checkAll(cuda, support::randomSparseCases(0, 400));
}

TEST_CASE("voxelize sparse cuda: what lies in the workspace does not matter") {
  std::string why;
  if (support::cudaContext(&why) == nullptr) SKIP_BECAUSE(why);
  support::checkScratch(RBC_BACKEND_CUDA, support::sparseCases());
}

TEST_CASE("voxelize sparse cuda: the bits of the CPU, and the same again") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  support::checkBackends(cuda, support::flushedOtherwise(support::sparseCases()));
}

TEST_CASE("voxelize sparse cuda: the bits of the CPU in random cases") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  support::checkBackends(cuda, support::randomSparseCases(3000, 300));
}

TEST_CASE("reference: a wrong bit of sparse voxels is told") {
  for (const SparseCase& c : support::randomSparseCases(4000, 20)) {
    const SparseInputs in = support::inputsOf(c);
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
