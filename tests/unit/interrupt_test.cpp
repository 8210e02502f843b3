// Calls that are cancelled halfway, at each of their polls: every operation fails with CANCELLED,
// and the next call on the context gives its usual bits.
#include "interrupt.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "guard.h"
#include "robocache/robocache.h"
#include "runtime/thread_pool.h"
#include "support/expect.h"
#include "support/interrupted_call.h"
#include "support/random.h"

namespace {

using support::checkInterrupts;
using support::Context;
using support::kF32;
using support::kF64;
using support::kI32;
using support::kI64;
using Call = support::LongCall;
using Memory = support::CallMemory;

class Resampling : public Call {
 public:
  Resampling() {
    for (int64_t i = 0; i < kRows; ++i) {
      times_.as<double>()[i] = static_cast<double>(i);
      values_.as<float>()[i] = static_cast<float>(i % 1000);
      queries_.as<double>()[i] = static_cast<double>(i * 7919 % kRows) + 0.25;
    }
    outputs_.emplace_back(kF32, std::vector<int64_t>{kRows, 1});
  }

 private:
  static constexpr int64_t kRows = 100000;

  rbcStatus_t call(rbcContext_t context) override {
    const rbcTensor values = values_.tensor();
    const rbcTensor times = times_.tensor();
    const rbcTensor queries = queries_.tensor();
    const rbcTensor out = outputs_[0].tensor();
    rbcResampleParams params = rbcResampleParamsInit();
    params.flags = RBC_FLAG_CHECK_TIMES;
    return rbcResample(context, &values, &times, &queries, &out, nullptr, &params);
  }

  Memory values_{kF32, {kRows, 1}};
  Memory times_{kF64, {kRows}};
  Memory queries_{kF64, {kRows}};
};

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

class Converting : public Call {
 public:
  Converting() {
    support::Random random(5);
    for (int64_t i = 0; i < 4 * kRotations; ++i) {
      rotations_.as<double>()[i] = random.uniform(-1, 1);
    }
    outputs_.emplace_back(kF64, std::vector<int64_t>{kRotations, 3});
  }

 private:
  static constexpr int64_t kRotations = 10000;

  rbcStatus_t call(rbcContext_t context) override {
    const rbcTensor in = rotations_.tensor();
    const rbcTensor out = outputs_[0].tensor();
    rbcConvertRotationsParams params = rbcConvertRotationsParamsInit();
    params.target = RBC_ROTATION_ROTVEC;
    return rbcConvertRotations(context, &in, &out, &params);
  }

  Memory rotations_{kF64, {kRotations, 4}};
};

// Indices are checked one by one, even if the rows have nothing to copy.
class TakingRows : public Call {
 public:
  TakingRows() { outputs_.emplace_back(kF32, std::vector<int64_t>{kPlaces, 0}); }

 private:
  static constexpr int64_t kPlaces = 1'000'000;

  rbcStatus_t call(rbcContext_t context) override {
    const rbcTensor values = values_.tensor();
    const rbcTensor indices = indices_.tensor();
    const rbcTensor out = outputs_[0].tensor();
    return rbcTakeRows(context, &values, &indices, &out, nullptr);
  }

  Memory values_{kF32, {7, 0}};
  Memory indices_{support::kI64, {kPlaces}};
};

// Many windows of poses and a very long one, for the sum of its steps.
class Cutting : public Call {
 public:
  Cutting(int64_t windows, int64_t offsets, int32_t kind) : kind_(kind) {
    support::Random random(5);
    for (int64_t i = 0; i < 7 * kRows; ++i) values_.as<float>()[i] = static_cast<float>(i % 17);
    ends_.as<int64_t>()[1] = kRows;
    at_ = Memory(kI32, {offsets});
    for (int64_t o = 0; o < offsets; ++o) {
      at_.as<int32_t>()[o] = static_cast<int32_t>(random.below(kRows));
    }
    episodes_ = Memory(kI32, {windows});
    anchors_ = Memory(kI64, {windows});
    outputs_.emplace_back(kF32, std::vector<int64_t>{windows, offsets, 9});
  }

 private:
  static constexpr int64_t kRows = 1000;

  rbcStatus_t call(rbcContext_t context) override {
    const rbcTensor tensors[] = {values_.tensor(),   ends_.tensor(),    at_.tensor(),
                                 episodes_.tensor(), anchors_.tensor(), outputs_[0].tensor()};
    const rbcWindowsTransform transform = {0,
                                           7,
                                           kind_,
                                           0,
                                           0,
                                           0,
                                           0,
                                           RBC_ROTATION_QUAT_XYZW,
                                           RBC_ROTATION_QUAT_XYZW,
                                           RBC_ROTATION_ROT6D_ROWS,
                                           0};
    rbcWindowsStream stream = rbcWindowsStreamInit();
    stream.values = &tensors[0];
    stream.episode_offsets = &tensors[1];
    stream.offsets = &tensors[2];
    stream.transforms = &transform;
    stream.num_transforms = 1;
    rbcWindowsOutputs outputs = rbcWindowsOutputsInit();
    outputs.out = &tensors[5];
    return rbcWindows(context, &stream, 1, &tensors[3], &tensors[4], &outputs, nullptr);
  }

  int32_t kind_;
  Memory values_{kF32, {kRows, 7}};
  Memory ends_{kI64, {2}};
  Memory at_{kI32, {0}};
  Memory episodes_{kI32, {0}};
  Memory anchors_{kI64, {0}};
};

// Copies columns, which are not compact.
class Copying : public Call {
 public:
  Copying() {
    for (int64_t i = 0; i < kRows * 4; ++i) source_.as<float>()[i] = static_cast<float>(i);
    outputs_.emplace_back(kF32, std::vector<int64_t>{kRows, 2});
  }

 private:
  static constexpr int64_t kRows = 600000;

  rbcStatus_t call(rbcContext_t context) override {
    int64_t shape[2] = {kRows, 2};
    int64_t strides[2] = {4, 2};
    rbcTensor source = source_.tensor();
    source.shape = shape;
    source.strides = strides;
    const rbcTensor out = outputs_[0].tensor();
    return rbcTensorCopy(context, &source, &out);
  }

  Memory source_{kF32, {kRows, 4}};
};

// Overwrites the stack where the next call has its variables.
__attribute__((noinline)) void fillStack() {
  volatile uint8_t bytes[16 << 10];
  for (volatile uint8_t& byte : bytes) byte = 0x5A;
}

}  // namespace

TEST_CASE("interrupt: resampling and its check of times") { checkInterrupts(Resampling()); }
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
TEST_CASE("interrupt: rows by index") { checkInterrupts(TakingRows()); }
TEST_CASE("interrupt: rotations") { checkInterrupts(Converting()); }
TEST_CASE("interrupt: windows") {
  checkInterrupts(Cutting(3000, 10, RBC_WINDOWS_TRANSFORM_SE3_RELATIVE));
}
TEST_CASE("interrupt: a long window") {
  checkInterrupts(Cutting(1, 20'000, RBC_WINDOWS_TRANSFORM_SE3_STEP));
}
TEST_CASE("interrupt: copies") { checkInterrupts(Copying()); }
TEST_CASE("interrupt: a thread without work polls while it waits for the others") {
  rbc::Interrupt interrupt;
  interrupt.setPeriod(0);
  std::atomic<int> polls{0};
  interrupt.set(
      [](void* count) -> int32_t { return ++*static_cast<std::atomic<int>*>(count) == 3; }, &polls);
  rbc::cpu::ThreadPool pool(2, interrupt);
  REQUIRE(pool.start() == 1);
  interrupt.beginCall();
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> joined{false};
  const auto body = [&](int64_t) {
    if (std::this_thread::get_id() == caller) {
      while (!joined) std::this_thread::yield();
      return;
    }
    joined = true;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!interrupt.stopped() && std::chrono::steady_clock::now() < patience) {
      std::this_thread::yield();
    }
  };
  CHECK_FAILS(rbc::guard([&] { pool.parallelFor(2, 2, body); }), RBC_STATUS_CANCELLED, "call");
  CHECK(polls == 3);
  interrupt.beginCall();
  std::atomic<int> done{0};
  pool.parallelFor(3, 2, [&](int64_t) { ++done; });
  CHECK(done == 3);
}
