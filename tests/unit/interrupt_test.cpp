// Calls that are ended half way, at each of their polls: every operation fails with CANCELLED, and the
// next call on the context gives the bits that it always gives.
#include "interrupt.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "context.h"
#include "robocache/robocache.h"
#include "runtime/thread_pool.h"
#include "statistics/large_group.h"
#include "support/dtypes.h"
#include "support/expect.h"
#include "support/random.h"
#include "support/run.h"

namespace {

using support::Context;
using support::kF32;
using support::kF64;
using support::kI32;
using support::kI64;

int32_t countDown(void* left) { return --*static_cast<int64_t*>(left) == 0 ? 1 : 0; }

// Compact, and zero until a call writes it.
class Memory {
 public:
  Memory(rbcDType dtype, std::vector<int64_t> shape) : shape_(std::move(shape)), dtype_(dtype) {
    int64_t count = 1;
    for (const int64_t extent : shape_) count *= extent;
    bytes_.resize(static_cast<size_t>(count * dtype.bits / 8));
  }

  rbcTensor tensor() {
    return {bytes_.data(),
            {RBC_DEVICE_CPU, 0},
            static_cast<int32_t>(shape_.size()),
            dtype_,
            shape_.data(),
            nullptr,
            0};
  }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes_.data());
  }
  void clear() { std::fill(bytes_.begin(), bytes_.end(), uint8_t{0}); }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
  std::vector<int64_t> shape_;
  rbcDType dtype_;
};

// A call that takes several pieces of work on one thread.
class Call {
 public:
  virtual ~Call() = default;

  std::vector<std::vector<uint8_t>> run(const Context& context, rbcStatus_t* status) {
    for (Memory& output : outputs_) output.clear();
    *status = call(context.get());
    std::vector<std::vector<uint8_t>> results;
    for (const Memory& output : outputs_) results.push_back(output.bytes());
    return results;
  }

 protected:
  virtual rbcStatus_t call(rbcContext_t context) = 0;
  std::vector<Memory> outputs_;
};

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
    params.flags = RBC_CHECK_TIMES;
    return rbcResample(context, &values, &times, &queries, &out, nullptr, &params);
  }

  Memory values_{kF32, {kRows, 1}};
  Memory times_{kF64, {kRows}};
  Memory queries_{kF64, {kRows}};
};

// Points of which half lie in one voxel: a bucket with most of the work.
class PointCall : public Call {
 public:
  explicit PointCall(int64_t points) : points_(kF32, {points, 3}) {
    support::Random random(3);
    for (int64_t i = 0; i < 3 * points; ++i) {
      points_.as<float>()[i] = i < 3 * points / 2 ? 0.5f : static_cast<float>(random.uniform(0, 9));
    }
  }

 protected:
  static rbcVoxelGrid grid() { return {{0, 0, 0}, {0.25, 0.25, 0.25}, {40, 40, 40}}; }
  Memory points_;
};

class Voxelizing : public PointCall {
 public:
  explicit Voxelizing(int32_t mode) : PointCall(kPoints), mode_(mode) {
    std::vector<int64_t> shape = {40, 40, 40};
    if (mode >= RBC_VOXEL_SUM) shape.push_back(3);
    outputs_.emplace_back(kF32, shape);
  }

 private:
  static constexpr int64_t kPoints = 300000;

  rbcStatus_t call(rbcContext_t context) override {
    const rbcTensor points = points_.tensor();
    const rbcTensor out = outputs_[0].tensor();
    rbcVoxelizeParams params = rbcVoxelizeParamsInit();
    params.mode = mode_;
    params.grid = grid();
    return rbcVoxelize(context, &points, nullptr, &out, nullptr, &params);
  }

  int32_t mode_;
};

class SparseVoxelizing : public PointCall {
 public:
  SparseVoxelizing() : PointCall(kPoints) {
    outputs_.emplace_back(kI32, std::vector<int64_t>{kPoints, 4});
    outputs_.emplace_back(kI64, std::vector<int64_t>{});
    outputs_.emplace_back(kF32, std::vector<int64_t>{kPoints, 3});
    outputs_.emplace_back(kI32, std::vector<int64_t>{kPoints});
  }

 private:
  static constexpr int64_t kPoints = 300000;

  rbcStatus_t call(rbcContext_t context) override {
    const rbcTensor points = points_.tensor();
    rbcTensor out[4];
    for (size_t i = 0; i < 4; ++i) out[i] = outputs_[i].tensor();
    rbcSparseVoxels voxels = rbcSparseVoxelsInit();
    voxels.coords = &out[0];
    voxels.num_voxels = &out[1];
    voxels.features = &out[2];
    voxels.point_to_voxel = &out[3];
    rbcVoxelizeSparseParams params = rbcVoxelizeSparseParamsInit();
    params.order = RBC_VOXEL_ORDER_FIRST_POINT;
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
    rbcTsdfParams params = rbcTsdfParamsInit();
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
    return rbcConvertRotations(context, &in, &out, RBC_ROTATION_QUAT_XYZW, RBC_ROTATION_ROTVEC);
  }

  Memory rotations_{kF64, {kRotations, 4}};
};

// Of columns, which are not compact.
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

// Numbers in one row or many. Those that quantiles are guessed from may tell nothing of the others:
// then each quantile is searched for, by reads of all.
class Summing : public Call {
 public:
  enum class Rows { kOne, kMany };
  enum class Sample { kTells, kMisleads };

  Summing(Rows rows, Sample sample) : rows_(rows == Rows::kOne ? 1 : 300) {
    support::Random random(7);
    for (int64_t i = 0; i < kSamples; ++i) {
      values_.as<float>()[i] = static_cast<float>(random.uniform(0, 1));
    }
    const int64_t size = rbc::cpu::sampleSize(kSamples);
    for (int64_t i = 0; i < size && sample == Sample::kMisleads; ++i) {
      values_.as<float>()[rbc::cpu::samplePlace(i, size, kSamples)] = static_cast<float>(5 + i);
    }
    outputs_.emplace_back(kF64, std::vector<int64_t>{rows_, 1});
    outputs_.emplace_back(kF64, std::vector<int64_t>{rows_, 2, 1});
  }

 private:
  static constexpr int64_t kSamples = 300000;

  rbcStatus_t call(rbcContext_t context) override {
    double numbers[] = {0.25, 0.5};
    int64_t two = 2;
    int64_t shape[] = {rows_, kSamples / rows_, 1};
    rbcTensor values = values_.tensor();
    values.shape = shape;
    const rbcTensor levels = {numbers, {RBC_DEVICE_CPU, 0}, 1, kF64, &two, nullptr, 0};
    const rbcTensor std = outputs_[0].tensor();
    const rbcTensor quantiles = outputs_[1].tensor();
    rbcStatisticsParams params = rbcStatisticsParamsInit();
    params.flags = RBC_STATISTICS_PER_ROW;
    params.levels = &levels;
    rbcStatisticsResult result = rbcStatisticsResultInit();
    result.std = &std;
    result.quantiles = &quantiles;
    return rbcStatistics(context, &values, &params, &result);
  }

  int64_t rows_;
  Memory values_{kF32, {1, kSamples, 1}};
};

// Samples for an accumulator in its first pass, or in its second one.
class Accumulating : public Call {
 public:
  explicit Accumulating(int pass) : pass_(pass) {
    support::Random random(9);
    for (int64_t i = 0; i < kSamples; ++i) {
      values_.as<float>()[i] = static_cast<float>(random.uniform(0, 1));
    }
    outputs_.emplace_back(kI64, std::vector<int64_t>{1});
    outputs_.emplace_back(kF64, std::vector<int64_t>{1, 1});
  }

 private:
  static constexpr int64_t kSamples = 300000;

  rbcStatus_t call(rbcContext_t context) override {
    rbcStatisticsAccumulator_t accumulator = nullptr;
    rbcStatus_t status = make(context, &accumulator);
    const rbcTensor values = values_.tensor();
    int32_t more = 0;
    for (int pass = 1; pass <= pass_ && status == RBC_STATUS_SUCCESS; ++pass) {
      if (pass > 1) status = rbcStatisticsAccumulatorNextPass(context, accumulator, &more);
      if (status != RBC_STATUS_SUCCESS) break;
      status = rbcStatisticsAccumulatorUpdate(context, accumulator, &values, nullptr);
    }
    if (status == RBC_STATUS_SUCCESS) status = writeResult(context, accumulator);
    rbcStatisticsAccumulatorDestroy(accumulator);
    return status;
  }

  static rbcStatus_t make(rbcContext_t context, rbcStatisticsAccumulator_t* accumulator) {
    *accumulator = nullptr;
    double number = 0.5;
    int64_t one = 1;
    const rbcTensor levels = {&number, {RBC_DEVICE_CPU, 0}, 1, kF64, &one, nullptr, 0};
    rbcStatisticsAccumulatorParams params = rbcStatisticsAccumulatorParamsInit();
    params.channels = 1;
    params.levels = &levels;
    return rbcStatisticsAccumulatorCreate(context, &params, accumulator);
  }

  rbcStatus_t writeResult(rbcContext_t context, rbcStatisticsAccumulator_t accumulator) {
    const rbcTensor count = outputs_[0].tensor();
    const rbcTensor quantiles = outputs_[1].tensor();
    rbcStatisticsResult result = rbcStatisticsResultInit();
    result.count = &count;
    result.quantiles = &quantiles;
    return rbcStatisticsAccumulatorResult(context, accumulator, &result);
  }

  int pass_;
  Memory values_{kF32, {kSamples, 1}};

 public:
  // An update that is ended half way leaves some of the samples, which nothing may take for a state.
  void checkInterrupted(rbcContext_t context) {
    rbcStatisticsAccumulator_t accumulator = nullptr;
    rbcStatisticsAccumulator_t other = nullptr;
    support::require(make(context, &accumulator));
    support::require(make(context, &other));
    const rbcTensor values = values_.tensor();
    int32_t more = 0;
    size_t bytes = 0;
    int64_t left = 3;
    support::require(rbcContextSetInterrupt(context, countDown, &left));
    CHECK_FAILS(rbcStatisticsAccumulatorUpdate(context, accumulator, &values, nullptr),
                RBC_STATUS_CANCELLED, "rbcContextSetInterrupt");
    support::require(rbcContextSetInterrupt(context, nullptr, nullptr));
    constexpr auto kInvalid = RBC_STATUS_INVALID_ARGUMENT;
    constexpr const char* kWord = "left half way";
    CHECK_FAILS(rbcStatisticsAccumulatorUpdate(context, accumulator, &values, nullptr), kInvalid,
                "accumulator: ", kWord);
    CHECK_FAILS(rbcStatisticsAccumulatorMerge(context, other, accumulator), kInvalid,
                "other: ", kWord);
    CHECK_FAILS(rbcStatisticsAccumulatorMerge(context, accumulator, other), kInvalid, kWord);
    CHECK_FAILS(rbcStatisticsAccumulatorNextPass(context, accumulator, &more), kInvalid, kWord);
    CHECK_FAILS(rbcStatisticsAccumulatorExport(context, accumulator, nullptr, 0, &bytes), kInvalid,
                kWord);
    CHECK_FAILS(writeResult(context, accumulator), kInvalid, kWord);
    support::require(rbcStatisticsAccumulatorDestroy(accumulator));
    support::require(rbcStatisticsAccumulatorUpdate(context, other, &values, nullptr));
    support::require(rbcStatisticsAccumulatorDestroy(other));
  }
};

// Ends the call at its first poll, at its second and so on, until it asks no more. Returns how many
// calls were ended.
int64_t interruptEverywhere(Call& call, int threads) {
  const Context context = support::cpuContext(threads);
  rbcStatus_t status = RBC_STATUS_SUCCESS;
  const auto expected = call.run(context, &status);
  REQUIRE(status == RBC_STATUS_SUCCESS);
  context->state->interrupt.setPeriod(0);
  int64_t ended = 0;
  for (int64_t poll = 1;; poll += 1 + poll / 4) {
    int64_t left = poll;
    support::require(rbcContextSetInterrupt(context.get(), countDown, &left));
    call.run(context, &status);
    if (left > 0) {
      CHECK(status == RBC_STATUS_SUCCESS);
      return ended;
    }
    ++ended;
    CHECK(status == RBC_STATUS_CANCELLED);
    CHECK(std::string(rbcGetLastError()).find("rbcContextSetInterrupt") != std::string::npos);
    left = INT64_MAX;
    const bool same = call.run(context, &status) == expected;
    CHECK_MESSAGE(same, "after the end at poll ", poll);
    CHECK(status == RBC_STATUS_SUCCESS);
  }
}

void checkInterrupts(Call&& call) {
  CHECK(interruptEverywhere(call, 1) >= 2);
  interruptEverywhere(call, 3);
}

}  // namespace

TEST_CASE("interrupt: resampling and its check of times") { checkInterrupts(Resampling()); }
TEST_CASE("interrupt: counts of points") { checkInterrupts(Voxelizing(RBC_VOXEL_COUNT)); }
TEST_CASE("interrupt: sums of points") { checkInterrupts(Voxelizing(RBC_VOXEL_SUM)); }
TEST_CASE("interrupt: maxima of points") { checkInterrupts(Voxelizing(RBC_VOXEL_MAX)); }
TEST_CASE("interrupt: sparse voxels") { checkInterrupts(SparseVoxelizing()); }
TEST_CASE("interrupt: distance fields") { checkInterrupts(Integrating()); }
TEST_CASE("interrupt: rotations") { checkInterrupts(Converting()); }
TEST_CASE("interrupt: copies") { checkInterrupts(Copying()); }
TEST_CASE("interrupt: statistics of one row") {
  checkInterrupts(Summing(Summing::Rows::kOne, Summing::Sample::kTells));
}
TEST_CASE("interrupt: statistics whose quantiles are searched for") {
  checkInterrupts(Summing(Summing::Rows::kOne, Summing::Sample::kMisleads));
}
TEST_CASE("interrupt: statistics of many rows") {
  checkInterrupts(Summing(Summing::Rows::kMany, Summing::Sample::kTells));
}
TEST_CASE("interrupt: an accumulator's first pass") { checkInterrupts(Accumulating(1)); }
TEST_CASE("interrupt: an accumulator's second pass") { checkInterrupts(Accumulating(2)); }
TEST_CASE("interrupt: an accumulator that was left half way can only be destroyed") {
  const Context context = support::cpuContext(1);
  context->state->interrupt.setPeriod(0);
  Accumulating(1).checkInterrupted(context.get());
}

TEST_CASE("interrupt: a thread that has no more work asks while it waits for the others") {
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
