// rbcVoxelizeSparse against the reference, on the table of its cases and on random ones, on every backend.
#include "support/voxel_check.h"

namespace {

using support::Context;
using support::SparseCase;
using support::SparseInputs;

// More voxels, and rows for them, than CUDA has threads at once: each does one after the other. No
// two of the first kVoxels points share a voxel, in an order that has none.
SparseInputs manyVoxels(int32_t order, int64_t capacity) {
  constexpr int64_t kVoxels = 4'500'007;
  constexpr int64_t kSide = 200;
  SparseInputs in;
  in.c.name = "many voxels";
  in.c.order = order;
  in.c.clouds = 1;
  in.c.points = 4'600'003;
  in.c.batched = in.c.features = false;
  in.c.without = {"features", "grouped"};
  in.c.setUnitGrid();
  in.c.setGrid(kVoxels / kSide / kSide + 1, kSide, kSide);
  in.capacity = capacity;
  in.points = support::Array(support::kF32, {in.c.points, 3});
  auto* at = reinterpret_cast<float*>(in.points.memory().data());
  for (int64_t i = 0; i < in.c.points; ++i) {
    const int64_t voxel = i * 2654435761 % kVoxels;
    for (const int64_t index : {voxel / kSide / kSide, voxel / kSide % kSide, voxel % kSide})
      *at++ = static_cast<float>(index) + 0.5f;
  }
  return in;
}

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

TEST_CASE("large: voxelize sparse cuda, more voxels than threads") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  const Context cpu = support::cpuContext();
  for (const int32_t order : support::kVoxelOrders) {
    for (const int64_t capacity : {4'450'000, 4'700'000}) {
      support::checkSame(manyVoxels(order, capacity), cpu, cuda, "on CUDA");
    }
  }
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
