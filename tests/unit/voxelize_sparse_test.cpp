// rbcVoxelizeSparse against the reference, on the table of its cases and on random ones, on every
// backend.
#include <vector>

#include "support/operation_tests.h"
#include "support/voxel_cases.h"
#include "support/voxel_run.h"

namespace {

using support::Context;
using support::SparseCase;
using support::SparseInputs;

// More voxels, and rows for them, than CUDA has threads at once: each thread processes several. No
// two of the first kVoxels points share a voxel, in a shuffled order.
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

struct VoxelizeSparse {
  static constexpr uint64_t kRandomCases = 400;
  static constexpr uint64_t kSameBits = 100;
  static std::vector<SparseCase> table() { return support::sparseCases(); }
  static SparseCase random(uint64_t seed) { return support::randomSparseCase(seed); }
  static SparseCase any(uint64_t seed) { return random(seed); }
};

}  // namespace

OPERATION_TESTS("voxelize sparse", VoxelizeSparse)

TEST_CASE(
    "voxelize sparse cpu: in the order of first points, for more points than a table has room "
    "for") {
  SparseCase c;
  c.name = "many first points";
  c.order = RBC_VOXELIZE_SPARSE_ORDER_FIRST_POINT;
  c.clouds = 2;
  c.points = 140'000;
  c.features = false;
  c.max_points = 2;
  c.room = 0.8;
  c.setGrid(40, 30, 20);
  support::checkAll(support::cpuContext(2), std::vector<SparseCase>{c});
}

// Up to 2^17 points are grouped by a table if there is room for their keys; voxels with many points
// have separate code.
TEST_CASE("voxelize sparse cuda: points around the limit of a table, in few voxels and in many") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  std::vector<SparseCase> cases;
  for (const int64_t points : {131'072, 131'073}) {
    for (const int64_t side : {2, 13, 500, 600}) {
      for (const int32_t order : support::kVoxelOrders) {
        SparseCase c;
        c.name = "points around the limit of a table";
        c.order = order;
        c.clouds = 1;
        c.points = points;
        c.features = side == 13;
        c.max_points = side == 13 ? 70 : 3;
        c.room = 0.9;
        if (side >= 500) c.without = {"grouped"};
        c.setGrid(side, side, side);
        cases.push_back(c);
      }
    }
  }
  support::checkAll(cuda, cases);
}

TEST_CASE("voxelize sparse cuda: any clouds of more points than the limit of a table") {
  WITH_CUDA(cuda);
  std::vector<SparseCase> cases;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SparseCase c = support::randomSparseCase(7000 + seed);
    support::growBeyondTables(&c, seed);
    cases.push_back(c);
  }
  support::checkBackends(cuda, cases);
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

TEST_CASE("reference: a wrong bit of sparse voxels is found") {
  support::checkReferenceTells<VoxelizeSparse>(20, support::spoilElement);
}
