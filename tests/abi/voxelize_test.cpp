// rbcVoxelize on clouds small enough to voxelize by hand, and edge cases; also the common part with
// rbcVoxelizeSparse.
#include <cfenv>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>

#include "abi/voxelize_call.h"

namespace {

using namespace voxelize_call;
using support::Array;
using support::Layout;

const float kNaN = std::numeric_limits<float>::quiet_NaN();
const float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("voxelize: occupancy and counts in every dtype") {
  const auto check = [](int32_t mode, rbcDType dtype, std::initializer_list<int64_t> expected) {
    Dense call;
    call.tell(mode, dtype);
    CHECK_SUCCEEDS(call.run());
    std::vector<uint64_t> bits;
    for (const int64_t x : expected) bits.push_back(support::encode(dtype, x));
    CHECK(elements(call.out) == bits);
    CHECK(elements(call.dropped) == bitsOf(kI64, {1, 1}));
  };
  for (const rbcDType dtype :
       {support::kBool, support::kU8, kI32, support::kF16, support::kBF16, kF32, kF64}) {
    check(RBC_REDUCE_OCCUPANCY, dtype, {1, 0, 0, 1, 0, 0, 0, 1});
  }
  for (const rbcDType dtype : {kI32, kI64, support::kF16, support::kBF16, kF32, kF64}) {
    check(RBC_REDUCE_COUNT, dtype, {2, 0, 0, 1, 0, 0, 0, 1});
  }
}

TEST_CASE("voxelize: sums, means, maxima and minima") {
  const auto check = [](int32_t mode, std::initializer_list<float> expected) {
    Dense call;
    call.params.reduction = mode;
    call.params.fill_value = 0.25;
    CHECK_SUCCEEDS(call.run());
    CHECK(elements(call.out) == bitsOf(expected));
  };
  const float e = 0.25f;
  check(RBC_REDUCE_SUM, {5, -10, e, e, e, e, -2, 5, e, e, e, e, e, e, 8, 0.5f});
  check(RBC_REDUCE_MEAN, {2.5f, -5, e, e, e, e, -2, 5, e, e, e, e, e, e, 8, 0.5f});
  check(RBC_REDUCE_MAX, {4, 10, e, e, e, e, -2, 5, e, e, e, e, e, e, 8, 0.5f});
  check(RBC_REDUCE_MIN, {1, -20, e, e, e, e, -2, 5, e, e, e, e, e, e, 8, 0.5f});

  // Without features, the columns of points are reduced.
  Dense columns;
  columns.used_features = nullptr;
  columns.params.fill_value = 0;
  columns.out.shape = {2, 2, 2, 1, 4};
  columns.out.array = Array(kF32, columns.out.shape);
  columns.out.restore();
  CHECK_SUCCEEDS(columns.run());
  CHECK(elements(columns.out) ==
        bitsOf({-0.75f, 0.75f, 0.625f, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0.5f, 3, 0.5f,  9,
                0,      0,     0,      0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    2, 0.75f, 9}));
}

TEST_CASE("voxelize: features that are not finite, of both signs of 0, and denormal") {
  const auto check = [](int32_t mode, std::initializer_list<float> features, float expected) {
    Dense call;
    call.features.fill<float>(features);
    call.params.reduction = mode;
    CHECK_SUCCEEDS(call.run());
    CHECK(call.out.array.get({0, 0, 0, 0, 0}) == support::encodeFloat(kF32, expected));
    CHECK(call.out.array.get({0, 0, 0, 0, 1}) == support::encodeFloat(kF32, 2));  // untouched by it
  };
  struct Row {
    float a, b;  // of the two points in the first voxel
    float mean, max, min;
  };
  const Row rows[] = {{kNaN, 1, kNaN, kNaN, kNaN},
                      {1, -kNaN, kNaN, kNaN, kNaN},
                      {kInfinity, -5, kInfinity, kInfinity, -5},
                      {3, -kInfinity, -kInfinity, 3, -kInfinity},
                      {kInfinity, -kInfinity, kNaN, kInfinity, -kInfinity},
                      {kInfinity, kNaN, kNaN, kNaN, kNaN},
                      {0, -0.0f, 0, 0, -0.0f},
                      {1e-45f, -1e-45f, 0, 1e-45f, -1e-45f}};
  for (const Row& row : rows) {
    CAPTURE(row.a);
    CAPTURE(row.b);
    const std::initializer_list<float> features = {row.a, 2, row.b, 2, 0, 0, 0, 0,
                                                   0,     0, 0,     0, 0, 0, 0, 0};
    check(RBC_REDUCE_MEAN, features, row.mean);
    check(RBC_REDUCE_MAX, features, row.max);
    check(RBC_REDUCE_MIN, features, row.min);
  }
}

TEST_CASE("voxelize: a voxel contains its lower faces and not its upper ones") {
  const auto check = [](rbcDType dtype, double least, double below_half, double below_end) {
    const double inf = std::numeric_limits<double>::infinity();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    Line line(dtype,
              {0, -0.0, least, below_half, 0.5, below_end, -least, 1.5, inf, -inf, nan, -nan}, 3);
    line.grid.voxel_size[0] = 0.5;
    const Argument counts(kI32, {3, 1, 1});
    const Argument dropped(kI64, {});
    rbcVoxelizeParams params = rbcVoxelizeParamsInit();
    params.reduction = RBC_REDUCE_COUNT;
    params.grid = line.grid;
    CHECK_SUCCEEDS(rbcVoxelize(support::refusingContext().get(), &line.points.raw, nullptr,
                               &counts.raw, &dropped.raw, &params));
    CHECK(elements(counts) == bitsOf(kI32, {4, 1, 1}));
    CHECK(elements(dropped) == bitsOf(kI64, {6}));
  };
  check(kF32, 0x1p-149, 0x1.fffffep-2, 0x1.7ffffep0);
  check(kF64, 0x1p-1074, 0x1.fffffffffffffp-2, 0x1.7ffffffffffffp0);
  check(support::kF16, 0x1p-24, 0x1.ffcp-2, 0x1.7fcp0);
  check(support::kBF16, 0x1p-133, 0x1.fep-2, 0x1.7ep0);
}

TEST_CASE("voxelize: any strides of any tensor") {
  for (const Layout layout : support::kLayouts) {
    if (layout == Layout::kBroadcast) continue;
    CAPTURE(support::nameOf(layout));
    Dense dense;
    Sparse sparse;
    const auto relay = [&](Argument& argument, support::Access access) {
      Array array(argument.array.dtype(), argument.shape, layout);
      if (access == support::Access::kRead) {
        const std::vector<uint64_t> from = argument.array.elements();
        size_t i = 0;
        const auto size = static_cast<size_t>(support::sizeOf(array.dtype()));
        array.each([&](std::byte* p) { std::memcpy(p, &from[i++], size); });
      }
      argument.array = std::move(array);
      argument.raw = argument.array.tensor();
    };
    for (const auto& tensor : Dense::tensors()) relay(tensor.of(dense), tensor.access);
    for (const auto& tensor : Sparse::tensors()) relay(tensor.of(sparse), tensor.access);
    CHECK_SUCCEEDS(dense.run());
    dense.checkOutputs();
    CHECK_SUCCEEDS(sparse.run());
    sparse.checkOutputs();
    const auto clean = [](const auto& tensors, auto& call) {
      for (const auto& tensor : tensors) {
        if (tensor.access == support::Access::kRead) continue;
        CHECK(tensor.of(call).array.gapsArePoison());
      }
    };
    clean(Dense::tensors(), dense);
    clean(Sparse::tensors(), sparse);
  }
}

TEST_CASE("voxelize: a permuted view of the output gives a z-major grid") {
  // Two points in a grid of 2 x 3 x 2, in memory in the order z, y, x.
  const float points[] = {1.5f, 2.5f, 0.5f, 0.5f, 1.5f, 1.5f};
  float grid[12];
  int64_t points_shape[] = {2, 3};
  int64_t shape[] = {2, 3, 2};
  int64_t strides[] = {1, 2, 6};
  const rbcTensor cloud = {
      const_cast<float*>(points), {RBC_DEVICE_CPU, 0}, 2, kF32, points_shape, nullptr, 0};
  const rbcTensor out = {grid, {RBC_DEVICE_CPU, 0}, 3, kF32, shape, strides, 0};
  rbcVoxelizeParams params = rbcVoxelizeParamsInit();
  params.grid = {{0, 0, 0}, {1, 1, 1}, {2, 3, 2}};
  CHECK_SUCCEEDS(
      rbcVoxelize(support::refusingContext().get(), &cloud, nullptr, &out, nullptr, &params));
  for (int z = 0; z < 2; ++z) {
    for (int y = 0; y < 3; ++y) {
      for (int x = 0; x < 2; ++x) {
        const bool there = (x == 1 && y == 2 && z == 0) || (x == 0 && y == 1 && z == 1);
        CHECK(grid[z * 6 + y * 2 + x] == (there ? 1 : 0));
      }
    }
  }
}

TEST_CASE("voxelize: without a batch, and with only the required arguments") {
  Dense dense;
  dense.points.reshape({4, 4});
  dense.features.reshape({4, 2});
  dense.params.lengths = nullptr;
  const Argument out(kF32, {2, 2, 1, 2});
  const Argument dropped(kI64, {});
  dense.used_out = &out.raw;
  dense.used_dropped = &dropped.raw;
  CHECK_SUCCEEDS(dense.run());
  CHECK(elements(out) == bitsOf({2.5f, -5, -1, -1, -1, -1, -2, 5}));
  CHECK(elements(dropped) == bitsOf(kI64, {1}));
  const Argument again(kF32, {2, 2, 1, 2});
  dense.used_out = &again.raw;
  dense.used_dropped = nullptr;
  CHECK_SUCCEEDS(dense.run());
  CHECK(elements(again) == elements(out));

  Sparse sparse;
  const rbcTensor* const coords = sparse.voxels.coords;
  const rbcTensor* const num_voxels = sparse.voxels.num_voxels;
  sparse.voxels = rbcVoxelizeSparseOutputsInit();
  sparse.voxels.coords = coords;
  sparse.voxels.num_voxels = num_voxels;
  sparse.used_features = nullptr;
  CHECK_SUCCEEDS(sparse.run());
  CHECK(elements(sparse.coords) == bitsOf(kI32, {0, 0, 0, 0, 0, 1, 1, 0}));
  CHECK(elements(sparse.num_voxels) == bitsOf(kI64, {2}));
  for (const auto& tensor : Sparse::tensors()) {
    const Argument& argument = tensor.of(sparse);
    if (tensor.access == support::Access::kRead || &argument == &sparse.coords ||
        &argument == &sparse.num_voxels)
      continue;
    CHECK(argument.array.untouched());
  }
}

TEST_CASE("voxelize: no points, no clouds, no features, no voxel met") {
  Dense pointless;
  pointless.params.lengths = nullptr;
  empty(pointless.points, {2, 0, 4});
  empty(pointless.features, {2, 0, 2});
  CHECK_SUCCEEDS(pointless.workspace());
  CHECK_SUCCEEDS(pointless.run());
  CHECK(elements(pointless.out) == std::vector<uint64_t>(16, support::encodeFloat(kF32, -1)));
  CHECK(elements(pointless.dropped) == bitsOf(kI64, {0, 0}));

  for (const bool packed : {false, true}) {
    Dense cloudless;
    if (packed) {
      cloudless.pack();
      cloudless.offsets.reshape({1});
    } else {
      empty(cloudless.points, {0, 4, 4});
      empty(cloudless.features, {0, 4, 2});
      empty(cloudless.lengths, {0});
    }
    empty(cloudless.out, {0, 2, 2, 1, 2});
    empty(cloudless.dropped, {0});
    CHECK_SUCCEEDS(cloudless.workspace());
    CHECK_SUCCEEDS(cloudless.run());
    CHECK(cloudless.untouched());
  }

  Dense featureless;
  empty(featureless.features, {2, 4, 0});
  empty(featureless.out, {2, 2, 2, 1, 0});
  CHECK_SUCCEEDS(featureless.workspace());
  CHECK_SUCCEEDS(featureless.run());
  CHECK(featureless.out.array.untouched());
  CHECK(elements(featureless.dropped) == bitsOf(kI64, {1, 1}));

  for (const bool outside : {false, true}) {  // or past the lengths
    Dense missed;
    if (outside) missed.params.grid.origin[2] = 100;
    if (!outside) missed.lengths.fill<int32_t>({0, 0});
    CHECK_SUCCEEDS(missed.run());
    CHECK(elements(missed.out) == std::vector<uint64_t>(16, support::encodeFloat(kF32, -1)));
    CHECK(elements(missed.dropped) == (outside ? bitsOf(kI64, {4, 2}) : bitsOf(kI64, {0, 0})));
  }
}

TEST_CASE("voxelize: the caller's rounding and traps have no effect, and are not changed") {
  const auto checkUnder = [](auto&& set) {
    Dense dense;
    dense.params.grid.voxel_size[0] = 1 / 3.0;  // all results are inexact
    dense.params.grid.origin[0] = -1.1;
    dense.params.grid.shape[0] = 7;
    dense.out.shape[1] = 7;
    dense.out.array = Array(kF32, dense.out.shape);
    dense.out.restore();
    Dense refused;
    refused.params.grid.voxel_size[2] = 1e-40;
    Sparse sparse;
    CHECK_SUCCEEDS(dense.run());
    const std::vector<uint64_t> expected = elements(dense.out);
    dense.out.array.memory().poison();
    std::fenv_t before;
    std::fegetenv(&before);
    set();
    const rbcStatus_t status[] = {dense.workspace(), dense.run(),   sparse.workspace(),
                                  sparse.run(),      refused.run(), refused.workspace()};
    const int mode = std::fegetround();
    std::fesetenv(&before);
    for (int i = 0; i < 4; ++i) CHECK(status[i] == RBC_STATUS_SUCCESS);
    for (int i = 4; i < 6; ++i) CHECK(status[i] == RBC_STATUS_INVALID_ARGUMENT);
    CHECK(elements(dense.out) == expected);
    sparse.checkOutputs();
    return mode;
  };
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    CHECK(checkUnder([&] { std::fesetround(mode); }) == mode);
  }
#if defined(__GLIBC__)
  checkUnder([] {
    std::feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT);
  });
#endif
}
