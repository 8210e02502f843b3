// Errors of rbcVoxelize and rbcVoxelizeSparse, except in their outputs: see
// voxelize_output_errors_test.cpp.
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "abi/ragged_errors.h"
#include "abi/struct_calls.h"
#include "abi/voxelize_call.h"
#include "abi/wrapper_size.h"

namespace {

using namespace voxelize_call;
using support::checkError;
using support::checkErrors;

const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

const support::StructCallsOf kVoxelizeStructs([](support::StructCalls& calls) {
  const rbcVoxelGrid grid = {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}};
  const rbcTensor* points = calls.in(support::kF32, {2, 3}, {1.5, 0.5, 0.5, 0.5, 0.5, 0.25});
  const rbcTensor* dense = calls.out(support::kI32, {2, 2, 2});
  rbcVoxelizeParams count = rbcVoxelizeParamsInit();
  count.reduction = RBC_REDUCE_COUNT;
  count.grid = grid;
  calls.add("rbcVoxelizeParams", rbcVoxelizeParamsInit(), {count}, "params",
            [=, c = calls.context()](const rbcVoxelizeParams* object) {
              return rbcVoxelize(c, points, nullptr, dense, nullptr, object);
            });
});

const support::StructCallsOf kVoxelizeSparseStructs([](support::StructCalls& calls) {
  const rbcVoxelGrid grid = {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}};
  const rbcTensor* points = calls.in(support::kF32, {2, 3}, {1.5, 0.5, 0.5, 0.5, 0.5, 0.25});
  rbcVoxelizeSparseParams sparse = rbcVoxelizeSparseParamsInit();
  sparse.grid = grid;
  rbcVoxelizeSparseOutputs voxels = rbcVoxelizeSparseOutputsInit();
  voxels.coords = calls.out(support::kI32, {3, 4});
  voxels.num_voxels = calls.out(support::kI64, {});
  const auto voxelize = [=, c = calls.context()](const rbcVoxelizeSparseOutputs* to,
                                                 const rbcVoxelizeSparseParams* params) {
    return rbcVoxelizeSparse(c, points, nullptr, to, params);
  };
  calls.add("rbcVoxelizeSparseParams", rbcVoxelizeSparseParamsInit(), {sparse}, "params",
            [=](const rbcVoxelizeSparseParams* object) { return voxelize(&voxels, object); });
  calls.add("rbcVoxelizeSparseOutputs", rbcVoxelizeSparseOutputsInit(), {voxels}, "outputs",
            [=](const rbcVoxelizeSparseOutputs* object) { return voxelize(object, &sparse); });
});

}  // namespace

COMMON_ERROR_TESTS("voxelize", Dense)
STRUCT_ERROR_TESTS("voxelize", Dense)
COMMON_ERROR_TESTS("voxelize sparse", Sparse)
STRUCT_ERROR_TESTS("voxelize sparse", Sparse)

TEST_CASE("voxelize errors: the good calls succeed in every form") {
  const auto good = [](auto& call) {
    CHECK_SUCCEEDS(call.workspace());
    CHECK_SUCCEEDS(call.run());
    call.checkOutputs();
  };
  Dense dense;
  dense.pack();
  good(dense);
  Sparse sparse;
  sparse.pack();
  good(sparse);
}

TEST_CASE("voxelize errors: constants out of range") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  for (const int32_t value : {-1, 6, 99, std::numeric_limits<int32_t>::min()}) {
    const std::string is = ": is " + std::to_string(value) + ", expected ";
    const std::string mode = "reduction" + is + "RBC_REDUCE_OCCUPANCY to _MIN";
    checkError<Dense>({kStatus, mode, [&](Dense& c) { c.params.reduction = value; }});
    const std::string order =
        "order" + is + "RBC_VOXELIZE_SPARSE_ORDER_LEXICOGRAPHIC or _FIRST_POINT";
    checkError<Sparse>({kStatus, order, [&](Sparse& c) { c.params.order = value; }});
  }
  checkError<Sparse>({kStatus, "order: is 2", [](Sparse& c) { c.params.order = 2; }});
  for (const int32_t value : {-1, RBC_REDUCE_OCCUPANCY, RBC_REDUCE_COUNT, 6}) {
    const std::string reduce =
        "reduction: is " + std::to_string(value) + ", expected RBC_REDUCE_SUM, _MEAN, _MAX or _MIN";
    checkError<Sparse>({kStatus, reduce, [&](Sparse& c) { c.params.reduction = value; }});
  }
}

TEST_CASE("voxelize errors: a grid must have a finite origin and size") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  const auto wrong = [&](rbcDType points, const std::string& told, auto&& spoil) {
    checkBoth(kStatus, told, [&](auto& c) {
      c.points.raw.dtype = points;
      spoil(c.params.grid);
    });
  };
  for (int axis = 0; axis < 3; ++axis) {
    const std::string at = "[" + std::to_string(axis) + "]: is ";
    const auto origin = [&](rbcDType points, double x, const char* told) {
      wrong(points, "origin" + at + told, [&](rbcVoxelGrid& grid) { grid.origin[axis] = x; });
    };
    origin(kF32, kNaN, "nan, expected a finite float32");
    origin(kF32, -kInfinity, "-inf, expected a finite float32");
    origin(kF32, 1e39, "1e+39, expected a finite float32");  // finite, but not in f32
    origin(support::kBF16, 1e39, "1e+39, expected a finite float32");

    const auto size = [&](rbcDType points, double x, const char* told) {
      wrong(points, "voxel_size" + at + told,
            [&](rbcVoxelGrid& grid) { grid.voxel_size[axis] = x; });
    };
    size(kF32, 0, "0, expected more than 0 and finite");
    size(kF32, -0.0, "-0, expected more than 0 and finite");
    size(kF32, -0.1, "-0.1, expected more than 0 and finite");
    size(kF32, kNaN, "nan, expected more than 0 and finite");
    size(kF32, kInfinity, "inf, expected more than 0 and finite");
    size(kF32, 1e-40, "1e-40, expected one whose inverse is a finite float32 above 0");
    size(support::kF16, 1e-40, "1e-40, expected one whose inverse is a finite float32 above 0");
    size(kF32, 1e50, "1e+50, expected one whose inverse is a finite float32 above 0");

    for (const int64_t extent : {int64_t{0}, int64_t{-1}, int64_t{1} << 31, kMost, -kMost - 1}) {
      const std::string told = "shape" + at + std::to_string(extent) + ", expected 1 to 2^31 - 1";
      wrong(kF32, told, [&](rbcVoxelGrid& grid) { grid.shape[axis] = extent; });
    }
  }
}

TEST_CASE("voxelize errors: in f64 a grid may be beyond the range of f32") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  const auto wide = [](Dense& c) {
    c.points.array = support::Array(kF64, {2, 4, 4});
    c.points.restore();
    c.points.array.each([](std::byte* p) { std::memset(p, 0, sizeof(double)); });
  };
  const auto wrong = [&](const char* told, auto&& spoil) {
    checkError<Dense>({kStatus, told, [&](Dense& c) {
                         wide(c);
                         spoil(c.params.grid);
                       }});
  };
  wrong("origin[1]: is nan, expected a finite float64", [](auto& g) { g.origin[1] = kNaN; });
  wrong("origin[2]: is inf, expected a finite float64", [](auto& g) { g.origin[2] = kInfinity; });
  wrong("voxel_size[0]: is 4.94066e-324, expected one whose inverse is a finite float64 above 0",
        [](auto& g) { g.voxel_size[0] = 0x1p-1074; });
  Dense fine;
  wide(fine);
  fine.params.grid.origin[0] = -1e300;
  fine.params.grid.voxel_size[1] = 1e-40;
  fine.params.grid.voxel_size[2] = 1e50;
  CHECK_SUCCEEDS(fine.run());
}

TEST_CASE("voxelize errors: more voxels than 2^62") {
  const auto grid = [](auto& c, int64_t x, int64_t y, int64_t z) {
    const int64_t shape[] = {x, y, z};
    std::copy(shape, shape + 3, c.params.grid.shape);
  };
  constexpr int64_t kMaxExtent = (int64_t{1} << 31) - 1;
  constexpr int64_t kHalf = int64_t{1} << 30;
  const auto wrong = [&](const char* told, int64_t x, int64_t y, int64_t z) {
    checkBoth(RBC_STATUS_INVALID_ARGUMENT, {told}, [&](auto& c) { grid(c, x, y, z); });
  };
  wrong("shape: [2147483647,2147483647,1] for 2 clouds, expected at most 2^62 voxels in all",
        kMaxExtent, kMaxExtent, 1);
  wrong("shape: [1073741824,1073741824,3] for 2 clouds, expected at most 2^62 voxels in all", kHalf,
        kHalf, 3);
  wrong("shape: [2147483647,2147483647,2147483647] for 2 clouds", kMaxExtent, kMaxExtent,
        kMaxExtent);
  Sparse most;  // 2^62 voxels
  grid(most, kHalf, kHalf, 2);
  CHECK_SUCCEEDS(most.workspace());
  CHECK_SUCCEEDS(most.run());
  CHECK(most.num_voxels.array.elements() == bitsOf(kI64, {2}));
}

TEST_CASE("voxelize errors: points of a wrong rank, shape or dtype") {
  constexpr auto kShape = RBC_STATUS_SHAPE_MISMATCH;
  checkBothShapes({{"points", {32}, "rank is 1 (shape [32]), expected 2 or 3"},
                   {"points", {}, "rank is 0 (shape []), expected 2 or 3"},
                   {"points", {1, 2, 4, 4}, "rank is 4 (shape [1,2,4,4]), expected 2 or 3"},
                   {"points", {2, 4, 2}, "shape is [2,4,2], expected 3 columns or more: x, y, z"},
                   {"points", {2, 4, 0}, "shape is [2,4,0], expected 3 columns or more: x, y, z"}});
  checkBoth(kShape, "lengths: shape is [2], expected [1]", [](auto& c) {
    c.points.reshape({4, 4});  // one cloud without a batch
  });
  checkBoth(kShape, "points: got 2147483648, expected at most 2^31 - 1", [](auto& c) {
    c.points.reshape({2, int64_t{1} << 30, 4});
    c.points.restride({0, 0, 1});
  });
  checkBoth(kShape, "points: got 2147483648, expected at most 2^31 - 1", [](auto& c) {
    c.pack();
    c.points.reshape({int64_t{1} << 31, 4});
    c.points.restride({0, 1});
  });
  checkBoth(kShape, "points: rank is 3 (shape [2,4,4]), expected 2", [](auto& c) {
    c.pack();
    c.points.reshape({2, 4, 4});
  });

  constexpr auto kDType = RBC_STATUS_DTYPE_MISMATCH;
  checkBoth(kDType, "points: dtype is int32, expected a float",
            [](auto& c) { c.points.raw.dtype = kI32; });
  checkBoth(kDType, "points: dtype is bool, expected a float",
            [](auto& c) { c.points.raw.dtype = support::kBool; });
}

TEST_CASE("voxelize errors: features") {
  constexpr auto kShape = RBC_STATUS_SHAPE_MISMATCH;
  checkBothShapes({{"features", {2, 3, 2}, "shape is [2,3,2], expected [2,4,2]"},
                   {"features", {1, 4, 2}, "shape is [1,4,2], expected [2,4,2]"},
                   {"features", {8, 2}, "rank is 2 (shape [8,2]), expected 3"},
                   {"features", {2, 4}, "rank is 2 (shape [2,4]), expected 3"}});
  checkBoth(kShape, "features: shape is [7,2], expected [8,2]", [](auto& c) {
    c.pack();
    c.features.reshape({7, 2});
  });
  checkBoth(kShape, "features: rank is 3 (shape [2,4,2]), expected 2", [](auto& c) {
    c.pack();
    c.features.reshape({2, 4, 2});
  });
  checkBoth(RBC_STATUS_DTYPE_MISMATCH, "features: dtype is int32, expected a float",
            [](auto& c) { c.features.raw.dtype = kI32; });
  for (const int32_t mode : {RBC_REDUCE_OCCUPANCY, RBC_REDUCE_COUNT}) {
    checkError<Dense>({RBC_STATUS_INVALID_ARGUMENT,
                       "features: are only used by sum, mean, max and min, expected null",
                       [&](Dense& c) {
                         c.tell(mode, kI32);
                         c.used_features = &c.features.raw;
                       }});
  }
}

TEST_CASE("voxelize errors: lengths and offsets") {
  support::checkRaggedRows<Dense>("points");
  support::checkRaggedRows<Sparse>("points");
}

TEST_CASE("wrapper: the workspaces of voxels have the sizes of their size functions") {
  support::WrapperCloud cloud;
  robocache::VoxelizeOptions mean;
  mean.reduction = robocache::Reduction::kMean;
  mean.features = robocache::Tensor(cloud.ramp.data(), {support::WrapperCloud::kPoints, 1});
  CHECK(CHECKED_WRAPPER_SIZE(voxelize, cloud.points, cloud.grid, {cloud.volume, {20, 20, 20, 1}},
                             mean) > 0);
  std::vector<int32_t> coords(4 * support::WrapperCloud::kPoints);
  int64_t number = 0;
  const robocache::VoxelizeSparseOutputs voxels({coords, {support::WrapperCloud::kPoints, 4}},
                                                {&number, {}});
  CHECK(CHECKED_WRAPPER_SIZE(voxelizeSparse, cloud.points, cloud.grid, voxels) > 0);
}
