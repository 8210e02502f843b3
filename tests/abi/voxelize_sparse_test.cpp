// rbcVoxelizeSparse on clouds small enough to voxelize by hand, and edge cases.
#include <vector>

#include "abi/voxelize_call.h"

namespace {

using namespace voxelize_call;

// Voxels and points beyond the capacity, and points beyond the size of a group.
template <class Call>
std::vector<uint64_t> overOf(const Call& call) {
  std::vector<uint64_t> over;
  for (const Argument* each : {&call.voxels_over, &call.points_over, &call.group_over}) {
    over.push_back(each->array.elements()[0]);
  }
  return over;
}

// Points in voxel 3, 1, 3, 0, none and 1, of one feature each.
struct SixPoints : Line {
  Argument features{kF32, {6, 1}};
  Argument coords, num_voxels{kI64, {}}, counts, reduced, grouped;
  Argument point_to_voxel{kI64, {6}}, dropped{kI64, {}}, voxels_over{kI64, {}},
      points_over{kI64, {}}, group_over{kI64, {}};
  rbcVoxelizeSparseParams params = rbcVoxelizeSparseParamsInit();
  rbcVoxelizeSparseOutputs voxels = rbcVoxelizeSparseOutputsInit();

  SixPoints(int64_t capacity, int64_t max_points)
      : Line(kF32, {3.5, 1, 3.25, 0, 4, 1.75}, 4),
        coords(kI32, {capacity, 4}),
        counts(kI32, {capacity}),
        reduced(kF32, {capacity, 1}),
        grouped(kF32, {capacity, max_points, 1}) {
    features.fill<float>({-8, 2, -4, 1, 100, 6});
    params.grid = grid;
    voxels.coords = &coords.raw;
    voxels.num_voxels = &num_voxels.raw;
    voxels.points_per_voxel = &counts.raw;
    voxels.voxel_features = &reduced.raw;
    voxels.grouped = &grouped.raw;
    voxels.point_to_voxel = &point_to_voxel.raw;
    voxels.num_points_outside = &dropped.raw;
    voxels.num_voxels_over_capacity = &voxels_over.raw;
    voxels.num_points_over_capacity = &points_over.raw;
    voxels.num_points_over_group = &group_over.raw;
  }

  rbcStatus_t run() const {
    return rbcVoxelizeSparse(support::refusingContext().get(), &points.raw, &features.raw, &voxels,
                             &params);
  }
};

}  // namespace

TEST_CASE("voxelize sparse: without points, clouds or features") {
  const auto checkNone = [](const Sparse& call) {
    CHECK_SUCCEEDS(call.workspace());
    CHECK_SUCCEEDS(call.run());
    CHECK(elements(call.coords) == bitsOf(kI32, {-1, -1, -1, -1, -1, -1, -1, -1}));
    CHECK(elements(call.num_voxels) == bitsOf(kI64, {0}));
    CHECK(elements(call.counts) == bitsOf(kI32, {0, 0}));
    CHECK(elements(call.reduced) == bitsOf({0, 0, 0, 0}));
    CHECK(elements(call.grouped) == bitsOf({0, 0, 0, 0}));
    CHECK(overOf(call) == bitsOf(kI64, {0, 0, 0}));
  };
  for (const int32_t order :
       {RBC_VOXELIZE_SPARSE_ORDER_LEXICOGRAPHIC, RBC_VOXELIZE_SPARSE_ORDER_FIRST_POINT}) {
    Sparse pointless;
    pointless.params.order = order;
    pointless.params.lengths = nullptr;
    empty(pointless.points, {2, 0, 4});
    empty(pointless.features, {2, 0, 2});
    empty(pointless.point_to_voxel, {2, 0});
    checkNone(pointless);
    CHECK(elements(pointless.dropped) == bitsOf(kI64, {0, 0}));

    Sparse cloudless;
    cloudless.params.order = order;
    empty(cloudless.points, {0, 4, 4});
    empty(cloudless.features, {0, 4, 2});
    empty(cloudless.lengths, {0});
    empty(cloudless.point_to_voxel, {0, 4});
    empty(cloudless.dropped, {0});
    checkNone(cloudless);

    Sparse unclaimed;  // packed points without a cloud
    unclaimed.params.order = order;
    unclaimed.pack();
    unclaimed.offsets.reshape({1});
    empty(unclaimed.dropped, {0});
    checkNone(unclaimed);
    CHECK(elements(unclaimed.point_to_voxel) == bitsOf(kI32, {-1, -1, -1, -1, -1, -1, -1, -1}));

    Sparse missed;
    missed.params.order = order;
    missed.params.grid.origin[2] = 100;
    checkNone(missed);
    CHECK(elements(missed.dropped) == bitsOf(kI64, {4, 2}));
    CHECK(elements(missed.point_to_voxel) == bitsOf(kI32, {-1, -1, -1, -1, -1, -1, -1, -1}));

    Sparse featureless;  // `grouped` still sets how many points a voxel may have
    featureless.params.order = order;
    empty(featureless.features, {2, 4, 0});
    empty(featureless.reduced, {2, 0});
    empty(featureless.grouped, {2, 1, 0});
    CHECK_SUCCEEDS(featureless.workspace());
    CHECK_SUCCEEDS(featureless.run());
    CHECK(elements(featureless.coords) == bitsOf(kI32, {0, 0, 0, 0, 0, 1, 1, 0}));
    CHECK(elements(featureless.counts) == bitsOf(kI32, {1, 1}));
    CHECK(overOf(featureless) == bitsOf(kI64, {1, 1, 1}));
  }
}

TEST_CASE("voxelize sparse: voxels in both orders, with room to spare") {
  SixPoints call(5, 3);
  CHECK_SUCCEEDS(call.run());
  CHECK(elements(call.coords) ==
        bitsOf(kI32, {0, 0, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1}));
  CHECK(elements(call.num_voxels) == bitsOf(kI64, {3}));
  CHECK(elements(call.counts) == bitsOf(kI32, {1, 2, 2, 0, 0}));
  CHECK(elements(call.reduced) == bitsOf({1, 4, -6, 0, 0}));
  CHECK(elements(call.grouped) == bitsOf({1, 0, 0, 2, 6, 0, -8, -4, 0, 0, 0, 0, 0, 0, 0}));
  CHECK(elements(call.point_to_voxel) == bitsOf(kI64, {2, 1, 2, 0, -1, 1}));
  CHECK(elements(call.dropped) == bitsOf(kI64, {1}));
  CHECK(overOf(call) == bitsOf(kI64, {0, 0, 0}));

  call.params.order = RBC_VOXELIZE_SPARSE_ORDER_FIRST_POINT;
  call.params.reduction = RBC_REDUCE_MAX;
  CHECK_SUCCEEDS(call.run());
  CHECK(elements(call.coords) ==
        bitsOf(kI32, {0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1}));
  CHECK(elements(call.counts) == bitsOf(kI32, {2, 2, 1, 0, 0}));
  CHECK(elements(call.reduced) == bitsOf({-4, 6, 1, 0, 0}));
  CHECK(elements(call.grouped) == bitsOf({-8, -4, 0, 2, 6, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}));
  CHECK(elements(call.point_to_voxel) == bitsOf(kI64, {0, 1, 0, 2, -1, 1}));
}

TEST_CASE("voxelize sparse: voxels and points that do not fit are counted") {
  struct Row {
    int32_t order;
    int64_t capacity;
    std::vector<uint64_t> coords, rows, counts, grouped, overflow;
  };
  const Row rows[] = {
      {RBC_VOXELIZE_SPARSE_ORDER_LEXICOGRAPHIC, 1, bitsOf(kI32, {0, 0, 0, 0}),
       bitsOf(kI64, {-1, -1, -1, 0, -1, -1}), bitsOf(kI32, {1}), bitsOf({1}),
       bitsOf(kI64, {2, 4, 0})},
      {RBC_VOXELIZE_SPARSE_ORDER_FIRST_POINT, 1, bitsOf(kI32, {0, 3, 0, 0}),
       bitsOf(kI64, {0, -1, 0, -1, -1, -1}), bitsOf(kI32, {1}), bitsOf({-8}),
       bitsOf(kI64, {2, 3, 1})},
      {RBC_VOXELIZE_SPARSE_ORDER_FIRST_POINT, 3, bitsOf(kI32, {0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}),
       bitsOf(kI64, {0, 1, 0, 2, -1, 1}), bitsOf(kI32, {1, 1, 1}), bitsOf({-8, 2, 1}),
       bitsOf(kI64, {0, 0, 2})},
  };
  for (const Row& row : rows) {
    SixPoints call(row.capacity, 1);
    call.params.order = row.order;
    CHECK_SUCCEEDS(call.run());
    CHECK(elements(call.coords) == row.coords);
    CHECK(elements(call.num_voxels) == bitsOf(kI64, {row.capacity}));
    CHECK(elements(call.point_to_voxel) == row.rows);
    CHECK(elements(call.counts) == row.counts);
    CHECK(elements(call.grouped) == row.grouped);
    CHECK(overOf(call) == row.overflow);
  }
  // Without groups, every point of a kept voxel counts.
  SixPoints whole(2, 1);
  whole.voxels.grouped = nullptr;
  CHECK_SUCCEEDS(whole.run());
  CHECK(elements(whole.counts) == bitsOf(kI32, {1, 2}));
  CHECK(overOf(whole) == bitsOf(kI64, {1, 2, 0}));
  CHECK(whole.grouped.array.untouched());
}

TEST_CASE("voxelize sparse: voxels are found in grids that no memory holds") {
  constexpr int64_t kSide = int64_t{1} << 20;  // 2^60 voxels
  Argument points(kF64, {3, 3});
  points.fill<double>({kSide - 0.5, kSide - 0.5, kSide - 0.5, 0, 0, 0.5, 0, kSide - 1, 0});
  const Argument coords(kI32, {3, 4});
  const Argument num_voxels(kI64, {});
  rbcVoxelizeSparseOutputs voxels = rbcVoxelizeSparseOutputsInit();
  voxels.coords = &coords.raw;
  voxels.num_voxels = &num_voxels.raw;
  rbcVoxelizeSparseParams params = rbcVoxelizeSparseParamsInit();
  params.grid = {{0, 0, 0}, {1, 1, 1}, {kSide, kSide, kSide}};
  CHECK_SUCCEEDS(
      rbcVoxelizeSparse(support::refusingContext().get(), &points.raw, nullptr, &voxels, &params));
  CHECK(elements(coords) ==
        bitsOf(kI32, {0, 0, 0, 0, 0, 0, kSide - 1, 0, 0, kSide - 1, kSide - 1, kSide - 1}));
}
