// Workspace sizes in the C++ wrapper equal the workspace of the operation with the same arguments.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "robocache/robocache.hpp"
#include "support/expect.h"

namespace {

using robocache::Context;
using robocache::Tensor;

constexpr int64_t kRows = 20000;

std::vector<float> rampOf(int64_t count) {
  std::vector<float> ramp(static_cast<size_t>(count));
  std::iota(ramp.begin(), ramp.end(), 0.0f);
  return ramp;
}

// Reserves the size on a new context, and checks that the run needs no more. Returns whether it
// needs any.
template <class Size, class Run>
bool checkSize(const char* operation, const Size& size, const Run& run) {
  CAPTURE(operation);
  Context context = Context::cpu(2);
  const size_t bytes = size(context);
  context.reserve(bytes);
  const int64_t reserved = context.info().workspace_bytes;
  CHECK(reserved >= static_cast<int64_t>(bytes));
  run(context);
  CHECK(context.info().workspace_bytes == reserved);
  return bytes > 0;
}

#define CHECK_SIZE(operation, ...)                                                                 \
  checkSize(                                                                                       \
      #operation,                                                                                  \
      [&](Context& context) { return robocache::operation##WorkspaceSize(context, __VA_ARGS__); }, \
      [&](Context& context) { robocache::operation(context, __VA_ARGS__); })

}  // namespace

TEST_CASE("wrapper: each operation uses the workspace of its size function") {
  const std::vector<float> ramp = rampOf(3 * kRows);
  const Tensor rows(ramp, {kRows, 3});
  const Tensor times(ramp.data(), {kRows});
  std::vector<float> written(3 * kRows);
  const Tensor out(written, {kRows, 3});
  std::vector<int64_t> numbers(kRows);
  const Tensor indices(numbers, {kRows});
  int64_t number = 0;
  const Tensor one(&number, {});
  const rbcVoxelGrid grid = {{0, 0, 0}, {5000, 5000, 5000}, {20, 20, 20}};

  std::vector<bool> takes;
  takes.push_back(CHECK_SIZE(resample, rows, times, times, out));
  takes.push_back(CHECK_SIZE(fuse, {robocache::FuseStream(rows, times)}, times, out));
  takes.push_back(CHECK_SIZE(takeRows, rows, indices, out));
  takes.push_back(CHECK_SIZE(farthestPoints, rows, Tensor(numbers.data(), {100})));

  const std::vector<float> depth(100 * 100, 1.0f);
  const double camera[] = {60, 60, 50, 50};
  takes.push_back(CHECK_SIZE(unproject, Tensor(depth, {100, 100}), Tensor(camera, {4}),
                             Tensor(written.data(), {10000, 3}), one));

  std::vector<float> volume(8000);
  std::vector<float> weight(8000);
  const Tensor cells(volume, {20, 20, 20});
  robocache::VoxelizeOptions mean;
  mean.reduction = robocache::Reduction::kMean;
  takes.push_back(CHECK_SIZE(voxelize, rows, grid, Tensor(volume, {20, 20, 20, 1}), [&] {
    mean.features = Tensor(ramp.data(), {kRows, 1});
    return mean;
  }()));
  std::vector<int32_t> coords(4 * kRows);
  takes.push_back(CHECK_SIZE(voxelizeSparse, rows, grid,
                             robocache::VoxelizeSparseOutputs({coords, {kRows, 4}}, one)));
  const float sensor[] = {0, 0, 0};
  takes.push_back(CHECK_SIZE(voxelizeTsdf, rows, Tensor(sensor, {3}), grid, 10000.0, cells,
                             Tensor(weight, {20, 20, 20})));

  const std::vector<float> quaternions(4 * 100, 0.5f);
  takes.push_back(CHECK_SIZE(convertRotations, Tensor(quaternions, {100, 4}),
                             Tensor(written.data(), {100, 3}), robocache::Rotation::kQuatXyzw,
                             robocache::Rotation::kRotvec));

  double mean_of[3];
  double quantiles[3];
  robocache::StatisticsOutputs statistics;
  statistics.mean = Tensor(mean_of, {3});
  statistics.quantiles = Tensor(quantiles, {1, 3});
  robocache::StatisticsOptions median;
  median.levels = {0.5};
  takes.push_back(CHECK_SIZE(statistics, rows, statistics, median));

  const int64_t ends[] = {0, kRows};
  const int64_t steps[] = {0, 1};
  const int32_t episodes[] = {0, 0};
  const int64_t anchors[] = {0, 9};
  robocache::WindowsStream stream(rows, Tensor(ends, {2}), Tensor(steps, {2}));
  stream.out = Tensor(written.data(), {2, 2, 3});
  takes.push_back(CHECK_SIZE(windows, {stream}, Tensor(episodes, {2}), Tensor(anchors, {2})));

  CHECK(std::count(takes.begin(), takes.end(), true) >= 4);

  Context context = Context::cpu(2);
  auto accumulator = robocache::Accumulator::create(context, 3);
  context.reserve(accumulator.updateWorkspaceSize(rows));
  const int64_t reserved = context.info().workspace_bytes;
  accumulator.update(rows);
  CHECK(context.info().workspace_bytes == reserved);
}

TEST_CASE("wrapper: a size function fails as the call does") {
  const auto context = Context::cpu(1);
  const float values[] = {1, 2, 3};
  const int64_t indices[] = {0};
  float out[2];
  const auto size = robocache::takeRowsWorkspaceSize<robocache::Expect>(
      context, {values, {3, 1}}, {indices, {1}}, {out, {2, 1}});
  const auto done = robocache::takeRows<robocache::Expect>(context, {values, {3, 1}},
                                                           {indices, {1}}, {out, {2, 1}});
  REQUIRE(!size);
  REQUIRE(!done);
  CHECK(size.error().status() == done.error().status());
  CHECK(std::string(size.error().what()) == done.error().what());
  const auto read_only = robocache::takeRowsWorkspaceSize<robocache::Expect>(
      context, {values, {3, 1}}, {indices, {1}}, {values, {1, 1}});
  CHECK(read_only.error().status() == RBC_STATUS_INVALID_ARGUMENT);
}
