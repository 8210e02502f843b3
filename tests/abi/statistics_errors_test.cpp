// rbcStatistics: a good call, and errors.
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <vector>

#include "abi/common_errors.h"
#include "abi/operation_call.h"
#include "abi/ragged_errors.h"
#include "abi/struct_calls.h"
#include "abi/wrapper_size.h"
#include "robocache/statistics.h"

namespace {

using support::Argument;
using support::checkDTypes;
using support::checkErrors;
using support::checkShapes;
using support::kBool;
using support::kF32;
using support::kF64;
using support::kI32;
using support::kI64;

constexpr auto kInvalid = RBC_STATUS_INVALID_ARGUMENT;

// Two rows of four samples; one sample of the first and two of the second count.
struct Call : support::OperationCall<Call, rbcStatistics, rbcStatisticsWorkspaceSize> {
  Argument values{kF32, {2, 4, 2}};
  Argument lengths{kI64, {2}};
  Argument offsets{kI64, {3}};  // not in use: see pack()
  Argument mask{kBool, {2, 4}};
  Argument levels{kF64, {2}};
  Argument count{kI64, {2}};
  Argument nonfinite{kI64, {2}};
  Argument min{kF64, {2}};
  Argument max{kF64, {2}};
  Argument mean{kF64, {2}};
  Argument std{kF64, {2}};
  Argument quantiles{kF64, {2, 2}};
  rbcStatisticsParams params = rbcStatisticsParamsInit();
  rbcStatisticsOutputs result = rbcStatisticsOutputsInit();
  const rbcTensor* used_values = &values.raw;
  const rbcStatisticsParams* used_params = &params;
  const rbcStatisticsOutputs* used_result = &result;

  Call() {
    values.fill<float>({1, NAN, 9, 9, 9, 9, 9, 9, 2, -8, 6, 4, 100, 100, 100, 100});
    lengths.fill<int64_t>({1, 3});
    offsets.fill<int64_t>({0, 4, 8});
    mask.fill<uint8_t>({1, 1, 1, 1, 1, 1, 0, 1});
    levels.fill<double>({0.5, 1});
    params.lengths = &lengths.raw;
    params.sample_mask = &mask.raw;
    params.levels = &levels.raw;
    result.count = &count.raw;
    result.nonfinite = &nonfinite.raw;
    result.min = &min.raw;
    result.max = &max.raw;
    result.mean = &mean.raw;
    result.std = &std.raw;
    result.quantiles = &quantiles.raw;
  }

  void pack() {
    values.reshape({8, 2});
    mask.reshape({8});
    params.lengths = nullptr;
    params.batch_offsets = &offsets.raw;
  }

  auto arguments() const { return std::make_tuple(used_values, used_result, used_params); }
  void checkOutputs() const {
    // 1, 2 and 6; then a NaN, -8 and 4.
    using Elements = std::vector<uint64_t>;
    const auto bits = [](std::initializer_list<double> numbers) {
      Elements all;
      for (const double x : numbers) all.push_back(support::encodeFloat(kF64, x));
      return all;
    };
    CHECK(count.array.elements() == Elements{3, 2});
    CHECK(nonfinite.array.elements() == Elements{0, 1});
    CHECK(min.array.elements() == bits({1, -8}));
    CHECK(max.array.elements() == bits({6, 4}));
    CHECK(mean.array.elements() == bits({3, -2}));
    CHECK(std.array.elements() == bits({std::sqrt(14.0 / 3), 6}));
    CHECK(quantiles.array.elements() == bits({2, -2, 6, 4}));
  }

  static std::vector<support::TensorOf<Call>> tensors() {
    using support::Access;
    return {{"values", [](Call& c) -> Argument& { return c.values; }},
            {"lengths", [](Call& c) -> Argument& { return c.lengths; }},
            {"batch_offsets", [](Call& c) -> Argument& { return c.offsets; }, Access::kRead,
             [](Call& c) { c.pack(); }},
            {"sample_mask", [](Call& c) -> Argument& { return c.mask; }},
            {"count", [](Call& c) -> Argument& { return c.count; }, Access::kWritten},
            {"nonfinite", [](Call& c) -> Argument& { return c.nonfinite; }, Access::kWritten},
            {"min", [](Call& c) -> Argument& { return c.min; }, Access::kWritten},
            {"max", [](Call& c) -> Argument& { return c.max; }, Access::kWritten},
            {"mean", [](Call& c) -> Argument& { return c.mean; }, Access::kWritten},
            {"std", [](Call& c) -> Argument& { return c.std; }, Access::kWritten},
            {"quantiles", [](Call& c) -> Argument& { return c.quantiles; }, Access::kWritten}};
  }
  static std::vector<support::StructOf<Call>> structs() {
    return {
        support::structOf("params", &Call::params, &Call::used_params, RBC_STATISTICS_FLAG_PER_ROW),
        support::structOf("outputs", &Call::result, &Call::used_result)};
  }
  static std::vector<support::PointerOf<Call>> pointers() {
    return {{"values: is null", [](Call& c) { c.used_values = nullptr; }},
            {"outputs: is null", [](Call& c) { c.used_result = nullptr; }}};
  }
};

const support::StructCallsOf kStatisticsStructs([](support::StructCalls& calls) {
  const rbcTensor* values = calls.in(kF32, {4, 1}, {1, 2, 99, 6});
  const rbcTensor* mask = calls.in(support::kU8, {4}, {1, 1, 0, 1});
  rbcStatisticsParams params = rbcStatisticsParamsInit();
  params.sample_mask = mask;
  rbcStatisticsOutputs result = rbcStatisticsOutputsInit();
  result.mean = calls.out(kF64, {1});
  const auto statistics = [=, c = calls.context()](const rbcStatisticsParams* of,
                                                   const rbcStatisticsOutputs* to) {
    return rbcStatistics(c, values, to, of);
  };
  calls.add("rbcStatisticsParams", rbcStatisticsParamsInit(), {params}, "params",
            [=](const rbcStatisticsParams* object) { return statistics(object, &result); });
  calls.add("rbcStatisticsOutputs", rbcStatisticsOutputsInit(), {result}, "outputs",
            [=](const rbcStatisticsOutputs* object) { return statistics(&params, object); });
});

}  // namespace

COMMON_ERROR_TESTS("statistics", Call)
STRUCT_ERROR_TESTS("statistics", Call)

TEST_CASE("statistics errors: levels") {
  for (const double bad : {-0.001, 1.0001, std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    checkErrors<Call>({{kInvalid, "levels: number 1 is ", [&](Call& c) {
                          c.levels.fill<double>({0, bad});
                        }}});
  }
  checkErrors<Call>({{RBC_STATUS_DTYPE_MISMATCH, "levels: dtype is float32, expected float64",
                      [](Call& c) { c.levels.raw.dtype = kF32; }},
                     {RBC_STATUS_SHAPE_MISMATCH, "levels: rank is 2 (shape [1,2]), expected 1",
                      [](Call& c) {
                        c.levels.reshape({1, 2});
                      }},
                     {RBC_STATUS_SHAPE_MISMATCH, "levels: got 65, expected at most 64",
                      [](Call& c) {
                        c.levels.reshape({65});
                        c.levels.restride({0});
                      }},
                     {RBC_STATUS_DEVICE_MISMATCH, "levels: lives on device (type 2, id 0)",
                      [](Call& c) { c.levels.raw.device.type = RBC_DEVICE_CUDA; }},
                     {kInvalid, "quantiles: is set, expected null without levels",
                      [](Call& c) { c.params.levels = nullptr; }}});
}

TEST_CASE("statistics errors: shapes and dtypes") {
  checkShapes<Call>({{"values", {16}, "shape is [16], expected [S,D] or [B,...,D]"},
                     {"sample_mask", {2, 3}, "shape is [2,3], expected [2,4]"},
                     {"sample_mask", {2, 4, 1}, "shape is [2,4,1], expected [2,4]"},
                     {"count", {1}, "shape is [1], expected [2]"},
                     {"std", {2, 1}, "shape is [2,1], expected [2]"},
                     {"quantiles", {4}, "shape is [4], expected [2,2]"}});
  checkDTypes<Call>({{"sample_mask", support::kI8, "dtype is int8, expected bool or uint8"},
                     {"count", kF64, "dtype is float64, expected int64"},
                     {"nonfinite", kI32, "dtype is int32, expected int64"},
                     {"min", kF32, "dtype is float32, expected float64"},
                     {"max", kF32, "dtype is float32, expected float64"},
                     {"mean", kF32, "dtype is float32, expected float64"},
                     {"std", kI64, "dtype is int64, expected float64"},
                     {"quantiles", kF32, "dtype is float32, expected float64"}});
  checkErrors<Call>(
      {{RBC_STATUS_SHAPE_MISMATCH, "values: shape is [2,4,2], expected [N,D] with batch_offsets",
        [](Call& c) {
          c.pack();
          c.values.reshape({2, 4, 2});
        }},
       {kInvalid, "lengths: are for values [B,S,D]",
        [](Call& c) {
          c.values.reshape({2, 4, 1, 2});
        }},
       {RBC_STATUS_UNSUPPORTED, "values: shape is [1099511627777,2], expected at most 2^40",
        [](Call& c) {
          c.values.reshape({(int64_t{1} << 40) + 1, 2});
          c.values.restride({0, 1});
          c.params.lengths = nullptr;
          c.params.sample_mask = nullptr;
        }},
       {kInvalid, "ddof: is 2, expected 0 or 1", [](Call& c) { c.params.ddof = 2; }},
       {kInvalid, "ddof: is -1, expected 0 or 1", [](Call& c) { c.params.ddof = -1; }},
       {kInvalid,
        "flags: RBC_STATISTICS_FLAG_PER_ROW is set, expected values [B,S,D] or batch_offsets",
        [](Call& c) {
          c.params.flags = RBC_STATISTICS_FLAG_PER_ROW;
          c.params.lengths = nullptr;
          c.values.reshape({8, 2});
          c.mask.reshape({8});
        }}});
}

TEST_CASE("statistics errors: lengths and offsets") { support::checkRaggedRows<Call>("values"); }

TEST_CASE("statistics: outputs and params may be null") {
  Call call;
  call.used_params = nullptr;
  call.result.quantiles = nullptr;
  call.result.std = nullptr;
  CHECK_SUCCEEDS(call.run());
  CHECK(call.std.array.untouched());
  CHECK(call.quantiles.array.untouched());
  CHECK(call.count.array.elements() == std::vector<uint64_t>{8, 7});
}

TEST_CASE("wrapper: the workspace of statistics has the size of its size function") {
  constexpr int64_t kRows = 20000;
  std::vector<float> ramp(3 * kRows);
  std::iota(ramp.begin(), ramp.end(), 0.0f);
  const robocache::Tensor rows(ramp, {kRows, 3});
  double mean[3];
  double quantiles[3];
  robocache::StatisticsOutputs outputs;
  outputs.mean = robocache::Tensor(mean, {3});
  outputs.quantiles = robocache::Tensor(quantiles, {1, 3});
  robocache::StatisticsOptions median;
  median.levels = {0.5};
  CHECK(CHECKED_WRAPPER_SIZE(statistics, rows, outputs, median) > 0);
}
