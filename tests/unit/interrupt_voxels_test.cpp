// Voxelizations that are cancelled halfway, at each of their polls.
#include <algorithm>
#include <string>
#include <vector>

#include "context.h"
#include "robocache/robocache.h"
#include "support/expect.h"
#include "support/interrupted_call.h"
#include "support/random.h"

namespace {

using support::checkInterrupts;
using support::Context;
using support::kF32;
using support::kI32;
using support::kI64;
using Call = support::LongCall;
using Memory = support::CallMemory;

// Points, half of them in one voxel: a bucket with most of the work.
class PointCall : public Call {
 public:
  explicit PointCall(int64_t points) : points_(kF32, {points, 3}) {
    support::Random random(3);
    for (int64_t i = 0; i < 3 * points; ++i) {
      points_.as<float>()[i] = i < 3 * points / 2 ? 0.5f : static_cast<float>(random.uniform(0, 9));
    }
  }

 protected:
  static rbcVoxelGrid grid(int64_t side = 40, double origin = 0) {
    const double size = 10.0 / static_cast<double>(side);
    return {{origin, origin, origin}, {size, size, size}, {side, side, side}};
  }
  Memory points_;
};

class Voxelizing : public PointCall {
 public:
  // With `side` voxels along each axis.
  explicit Voxelizing(int32_t mode, int64_t points = 300'000, int64_t side = 40, double origin = 0)
      : PointCall(points), mode_(mode), side_(side), origin_(origin) {
    std::vector<int64_t> shape = {side, side, side};
    if (mode >= RBC_REDUCE_SUM) shape.push_back(3);
    outputs_.emplace_back(mode == RBC_REDUCE_OCCUPANCY ? support::kU8 : kF32, shape);
  }

 private:
  rbcStatus_t call(rbcContext_t context) override {
    const rbcTensor points = points_.tensor();
    const rbcTensor out = outputs_[0].tensor();
    rbcVoxelizeParams params = rbcVoxelizeParamsInit();
    params.reduction = mode_;
    params.grid = grid(side_, origin_);
    return rbcVoxelize(context, &points, nullptr, &out, nullptr, &params);
  }

  int32_t mode_;
  int64_t side_;
  double origin_;
};

class SparseVoxelizing : public PointCall {
 public:
  explicit SparseVoxelizing(int64_t points) : PointCall(points) {
    outputs_.emplace_back(kI32, std::vector<int64_t>{points, 4});
    outputs_.emplace_back(kI64, std::vector<int64_t>{});
    outputs_.emplace_back(kF32, std::vector<int64_t>{points, 3});
    outputs_.emplace_back(kI32, std::vector<int64_t>{points});
  }

 private:
  rbcStatus_t call(rbcContext_t context) override {
    const rbcTensor points = points_.tensor();
    rbcTensor out[4];
    for (size_t i = 0; i < 4; ++i) out[i] = outputs_[i].tensor();
    rbcVoxelizeSparseOutputs voxels = rbcVoxelizeSparseOutputsInit();
    voxels.coords = &out[0];
    voxels.num_voxels = &out[1];
    voxels.voxel_features = &out[2];
    voxels.point_to_voxel = &out[3];
    rbcVoxelizeSparseParams params = rbcVoxelizeSparseParamsInit();
    params.order = RBC_VOXELIZE_SPARSE_ORDER_FIRST_POINT;
    params.grid = grid();
    return rbcVoxelizeSparse(context, &points, nullptr, &voxels, &params);
  }
};

class Integrating : public PointCall {
 public:
  Integrating() : PointCall(3000) {
    outputs_.emplace_back(kF32, std::vector<int64_t>{40, 40, 40});
    outputs_.emplace_back(kF32, std::vector<int64_t>{40, 40, 40});
  }

 private:
  rbcStatus_t call(rbcContext_t context) override {
    float position[3] = {5, 5, 5};
    int64_t three = 3;
    const rbcTensor points = points_.tensor();
    const rbcTensor sensor = {position, {RBC_DEVICE_CPU, 0}, 1, kF32, &three, nullptr, 0};
    const rbcTensor tsdf = outputs_[0].tensor();
    const rbcTensor weight = outputs_[1].tensor();
    rbcVoxelizeTsdfParams params = rbcVoxelizeTsdfParamsInit();
    params.truncation = 1;
    params.grid = grid();
    return rbcVoxelizeTsdf(context, &points, &sensor, &tsdf, &weight, nullptr, &params);
  }
};

// Overwrites the stack where the next call has its variables.
__attribute__((noinline)) void fillStack() {
  volatile uint8_t bytes[16 << 10];
  for (volatile uint8_t& byte : bytes) byte = 0x5A;
}

}  // namespace

TEST_CASE("interrupt: counts of points") { checkInterrupts(Voxelizing(RBC_REDUCE_COUNT)); }
TEST_CASE("interrupt: sums of points") { checkInterrupts(Voxelizing(RBC_REDUCE_SUM)); }
TEST_CASE("interrupt: maxima of points") { checkInterrupts(Voxelizing(RBC_REDUCE_MAX)); }
// Enough voxels that a bucket of points is counted in several windows of keys. Most are in the
// first voxel, so that a count that continued in the next window would be before the array.
TEST_CASE("interrupt: occupied voxels of a fine grid") {
  checkInterrupts(Voxelizing(RBC_REDUCE_OCCUPANCY, 1'000'000, 320, 0.5));
}
// A voxel whose reduction is cancelled halfway keeps its previous contents, not data from the
// stack.
TEST_CASE("interrupt: features of one voxel") {
  constexpr int64_t kPoints = 300'000;
  constexpr int64_t kFeatures = 64;
  float position[3] = {0.5, 0.5, 0.5};
  float feature[kFeatures];
  std::fill_n(feature, kFeatures, 1.0f);
  Memory out(kF32, {1, 1, 1, kFeatures});
  int64_t shapes[2][2] = {{kPoints, 3}, {kPoints, kFeatures}};
  int64_t strides[] = {0, 1};
  const rbcTensor points = {position, {RBC_DEVICE_CPU, 0}, 2, kF32, shapes[0], strides, 0};
  const rbcTensor features = {feature, {RBC_DEVICE_CPU, 0}, 2, kF32, shapes[1], strides, 0};
  const rbcTensor voxels = out.tensor();
  rbcVoxelizeParams params = rbcVoxelizeParamsInit();
  params.grid = {{0, 0, 0}, {1, 1, 1}, {1, 1, 1}};
  const Context context = support::cpuContext(1);
  context->state->interrupt.setPeriod(0);
  for (const int32_t mode : {RBC_REDUCE_SUM, RBC_REDUCE_MAX}) {
    params.reduction = mode;
    out.clear();
    const float result = mode == RBC_REDUCE_SUM ? static_cast<float>(kPoints) : 1.0f;
    int64_t ended = 0;
    rbcStatus_t status = RBC_STATUS_CANCELLED;
    while (status == RBC_STATUS_CANCELLED) {
      int64_t left = ++ended;
      support::require(rbcContextSetCancelCallback(context.get(), support::countDown, &left));
      fillStack();
      status = rbcVoxelize(context.get(), &points, &features, &voxels, nullptr, &params);
      const float* const at = out.as<float>();
      CHECK(std::all_of(at, at + kFeatures, [&](float x) { return x == 0 || x == result; }));
    }
    CHECK(status == RBC_STATUS_SUCCESS);
    CHECK(ended > 4);
  }
}
TEST_CASE("interrupt: sparse voxels") { checkInterrupts(SparseVoxelizing(300'000)); }
TEST_CASE("interrupt: sparse voxels numbered by a table") {
  checkInterrupts(SparseVoxelizing(200'000));
}
TEST_CASE("interrupt: distance fields") { checkInterrupts(Integrating()); }
