// Many points, which CUDA sorts into bins or adds directly to the grid, depending on the points.
// One captured graph contains both ways, and each replay must choose again.
#include "support/expect.h"

#if RBC_WITH_CUDA

#include <cstring>
#include <vector>

#include "abi/cuda_support.h"
#include "support/random.h"

namespace {

using cuda_support::beginCapture;
using cuda_support::check;
using cuda_support::Graph;
using cuda_support::OnStream;
using cuda_support::Stream;
using cuda_support::upload;
using support::Array;
using support::Context;
using support::Placed;

constexpr int64_t kPoints = 4'300'000;
constexpr int64_t kSide = 100;

// Points anywhere in the grid, or in order along a line, as from a scanner.
Array makePoints(bool coherent) {
  Array points(support::kF32, {kPoints, 3});
  support::Random random(coherent ? 1 : 2);
  auto* at = reinterpret_cast<float*>(points.memory().data());
  for (int64_t i = 0; i < 3 * kPoints; ++i) {
    const double along = static_cast<double>(i / 3) / static_cast<double>(kPoints);
    at[i] = static_cast<float>(kSide * (coherent ? along : random.uniform(0, 1)));
  }
  return points;
}

std::vector<uint64_t> voxelized(const Context& context, const Array& points, rbcDType out,
                                const rbcVoxelizeParams& params) {
  Array grid(out, {kSide, kSide, kSide});
  const rbcTensor input = points.tensor();
  const rbcTensor output = grid.tensor();
  support::require(rbcVoxelize(context.get(), &input, nullptr, &output, nullptr, &params));
  return grid.elements();
}

}  // namespace

TEST_CASE("voxelize cuda: many points, captured once and replayed on others") {
  REQUIRE_CUDA();
  const Context cpu = support::cpuContext(2);
  const Stream stream;
  const Array uniform = makePoints(false);
  const Array sweep = makePoints(true);
  for (const int32_t mode : {RBC_REDUCE_OCCUPANCY, RBC_REDUCE_COUNT}) {
    CAPTURE(mode);
    const rbcDType dtype = mode == RBC_REDUCE_COUNT ? support::kI32 : support::kU8;
    rbcVoxelizeParams params = rbcVoxelizeParamsInit();
    params.reduction = mode;
    params.grid = {{0, 0, 0}, {1, 1, 1}, {kSide, kSide, kSide}};
    Array out(dtype, {kSide, kSide, kSide});
    const Placed points(cuda, uniform, true);
    const Placed grid(cuda, out, true);
    size_t bytes = 0;
    CHECK_SUCCEEDS(rbcVoxelizeWorkspaceSize(cuda.get(), points.get(), nullptr, grid.get(), nullptr,
                                            &params, &bytes));
    CHECK_SUCCEEDS(rbcContextReserve(cuda.get(), bytes));
    CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
    const OnStream on_stream(cuda, stream);
    beginCapture(stream);
    CHECK_SUCCEEDS(rbcVoxelize(cuda.get(), points.get(), nullptr, grid.get(), nullptr, &params));
    Graph graph(stream);
    for (const Array* each : {&uniform, &sweep, &sweep, &uniform}) {
      upload(*each, points.get(), stream);
      graph.launch(stream);
      check(cudaStreamSynchronize(stream.get()));
      CHECK(grid.fetch(cuda, out));
      CHECK((out.elements() == voxelized(cpu, *each, dtype, params)));
    }
  }
}

#endif  // RBC_WITH_CUDA
