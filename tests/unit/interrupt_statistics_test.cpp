// Statistics that are cancelled halfway: they fail with CANCELLED, and an accumulator with only
// some of the samples refuses further use.
#include <string>
#include <vector>

#include "robocache/robocache.h"
#include "statistics/large_group.h"
#include "support/accumulator.h"
#include "support/expect.h"
#include "support/interrupted_call.h"
#include "support/random.h"

namespace {

using support::checkInterrupts;
using support::Context;
using support::countDown;
using support::kF32;
using support::kF64;
using support::kI64;
using Call = support::LongCall;
using Memory = support::CallMemory;

// Numbers in one row or many. The sample for the brackets may differ from the rest: then each
// quantile is searched for, with passes over all numbers.
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
    params.flags = RBC_STATISTICS_FLAG_PER_ROW;
    params.levels = &levels;
    rbcStatisticsOutputs result = rbcStatisticsOutputsInit();
    result.std = &std;
    result.quantiles = &quantiles;
    return rbcStatistics(context, &values, &result, &params);
  }

  int64_t rows_;
  Memory values_{kF32, {1, kSamples, 1}};
};

// Samples for an accumulator in its first or second pass.
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
    rbcAccumulator_t accumulator = nullptr;
    rbcStatus_t status = make(context, &accumulator);
    const rbcTensor values = values_.tensor();
    int32_t more = 0;
    for (int pass = 1; pass <= pass_ && status == RBC_STATUS_SUCCESS; ++pass) {
      if (pass > 1) status = rbcAccumulatorNextPass(accumulator, &more);
      if (status != RBC_STATUS_SUCCESS) break;
      status = rbcAccumulatorUpdate(accumulator, &values, nullptr);
    }
    if (status == RBC_STATUS_SUCCESS) status = writeResult(accumulator);
    rbcAccumulatorDestroy(accumulator);
    return status;
  }

  static rbcStatus_t make(rbcContext_t context, rbcAccumulator_t* accumulator) {
    *accumulator = nullptr;
    double number = 0.5;
    int64_t one = 1;
    const rbcTensor levels = {&number, {RBC_DEVICE_CPU, 0}, 1, kF64, &one, nullptr, 0};
    rbcAccumulatorParams params = rbcAccumulatorParamsInit();
    params.num_channels = 1;
    params.levels = &levels;
    return rbcAccumulatorCreate(context, &params, accumulator);
  }

  rbcStatus_t writeResult(rbcAccumulator_t accumulator) {
    const rbcTensor count = outputs_[0].tensor();
    const rbcTensor quantiles = outputs_[1].tensor();
    rbcStatisticsOutputs result = rbcStatisticsOutputsInit();
    result.count = &count;
    result.quantiles = &quantiles;
    return rbcAccumulatorGetResult(accumulator, &result);
  }

  int pass_;
  Memory values_{kF32, {kSamples, 1}};

 public:
  // An update that is cancelled halfway leaves some of the samples, which no call may accept as a
  // state.
  void checkInterrupted(rbcContext_t context) {
    rbcAccumulator_t accumulator = nullptr;
    rbcAccumulator_t other = nullptr;
    support::require(make(context, &accumulator));
    support::require(make(context, &other));
    const rbcTensor values = values_.tensor();
    int32_t more = 0;
    size_t bytes = 0;
    int64_t left = 3;
    support::require(rbcContextSetCancelCallback(context, countDown, &left));
    CHECK_FAILS(rbcAccumulatorUpdate(accumulator, &values, nullptr), RBC_STATUS_CANCELLED,
                "rbcContextSetCancelCallback");
    support::require(rbcContextSetCancelCallback(context, nullptr, nullptr));
    constexpr auto kInvalid = RBC_STATUS_INVALID_ARGUMENT;
    constexpr const char* kWord = "added only some of its samples";
    CHECK_FAILS(rbcAccumulatorUpdate(accumulator, &values, nullptr), kInvalid,
                "accumulator: ", kWord);
    CHECK_FAILS(rbcAccumulatorMerge(other, accumulator), kInvalid, "other: ", kWord);
    CHECK_FAILS(rbcAccumulatorMerge(accumulator, other), kInvalid, kWord);
    CHECK_FAILS(rbcAccumulatorNextPass(accumulator, &more), kInvalid, kWord);
    CHECK_FAILS(rbcAccumulatorExport(accumulator, nullptr, 0, &bytes), kInvalid, kWord);
    CHECK_FAILS(writeResult(accumulator), kInvalid, kWord);
    support::require(rbcAccumulatorDestroy(accumulator));
    support::require(rbcAccumulatorUpdate(other, &values, nullptr));
    support::require(rbcAccumulatorDestroy(other));
  }
};

}  // namespace

TEST_CASE("interrupt: statistics of one row") {
  checkInterrupts(Summing(Summing::Rows::kOne, Summing::Sample::kTells));
}
TEST_CASE("interrupt: statistics with a search for quantiles") {
  checkInterrupts(Summing(Summing::Rows::kOne, Summing::Sample::kMisleads));
}
TEST_CASE("interrupt: statistics of many rows") {
  checkInterrupts(Summing(Summing::Rows::kMany, Summing::Sample::kTells));
}
TEST_CASE("interrupt: an accumulator's first pass") { checkInterrupts(Accumulating(1)); }
TEST_CASE("interrupt: an accumulator's second pass") { checkInterrupts(Accumulating(2)); }
TEST_CASE("interrupt: an accumulator after a cancelled update can only be destroyed") {
  const Context context = support::cpuContext(1);
  context->state->interrupt.setPeriod(0);
  Accumulating(1).checkInterrupted(context.get());
}

TEST_CASE("interrupt: windows feed all of their accumulators, or leave none usable") {
  constexpr int64_t kRows = 1000;
  constexpr int64_t kSteps = 100;
  constexpr int64_t kWindows = 40000;
  const Context context = support::cpuContext(1);
  Memory values(kF32, {kRows, 1});
  Memory ends(kI64, {2});
  Memory offsets(kI64, {kSteps});
  Memory episodes(kI64, {kWindows});
  Memory anchors(kI64, {kWindows});
  ends.as<int64_t>()[1] = kRows;
  for (int64_t i = 0; i < kSteps; ++i) offsets.as<int64_t>()[i] = i;
  for (int64_t i = 0; i < kWindows; ++i) anchors.as<int64_t>()[i] = i % kRows;
  const rbcTensor tensors[] = {values.tensor(), ends.tensor(), offsets.tensor()};
  const rbcTensor of_windows[] = {episodes.tensor(), anchors.tensor()};
  const auto statusOf = [&](const support::Accumulator& accumulator) {
    size_t bytes = 0;
    return rbcAccumulatorExport(accumulator.get(), nullptr, 0, &bytes);
  };
  const support::Bytes nothing = exported(support::makeAccumulator(context, 1, {}));
  context->state->interrupt.setPeriod(0);
  rbcWindowsOutputs outputs[] = {rbcWindowsOutputsInit(), rbcWindowsOutputsInit()};
  int half_added = 0;
  for (int64_t poll = 1;; poll += 1 + poll / 4) {  // there are thousands
    const support::Accumulator fed[] = {support::makeAccumulator(context, 1, {}),
                                        support::makeAccumulator(context, 1, {})};
    rbcWindowsStream streams[2];
    for (int n = 0; n < 2; ++n) {
      streams[n] = rbcWindowsStreamInit();
      streams[n].values = &tensors[0];
      streams[n].episode_offsets = &tensors[1];
      streams[n].offsets = &tensors[2];
      outputs[n].accumulator = fed[n].get();
    }
    int64_t left = poll;
    support::require(rbcContextSetCancelCallback(context.get(), countDown, &left));
    const rbcStatus_t status =
        rbcWindows(context.get(), streams, 2, &of_windows[0], &of_windows[1], outputs, nullptr);
    support::require(rbcContextSetCancelCallback(context.get(), nullptr, nullptr));
    if (left > 0) {
      CHECK(status == RBC_STATUS_SUCCESS);
      CHECK(exported(fed[0]) == exported(fed[1]));
      CHECK(exported(fed[0]) != nothing);
      break;
    }
    CHECK(status == RBC_STATUS_CANCELLED);
    CHECK(statusOf(fed[0]) == statusOf(fed[1]));
    if (statusOf(fed[0]) == RBC_STATUS_SUCCESS) {
      CHECK(exported(fed[0]) == nothing);
      CHECK(exported(fed[1]) == nothing);
    } else {
      ++half_added;
    }
  }
  CHECK(half_added > 2);
}
