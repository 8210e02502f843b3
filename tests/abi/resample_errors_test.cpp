// Errors of rbcResample, except in methods, groups of channels, shift and scale: see
// method_errors_test.cpp.
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "abi/ragged_errors.h"
#include "abi/resample_call.h"
#include "abi/struct_calls.h"
#include "abi/wrapper_size.h"

namespace {

using namespace resample_call;
using support::Array;
using support::checkDTypes;
using support::checkError;
using support::checkErrors;
using support::checkShapes;
using support::kF16;
using support::Seen;

const double kNaN = std::numeric_limits<double>::quiet_NaN();

const support::StructCallsOf kResampleStructs([](support::StructCalls& calls) {
  const support::StructRecording recording = calls.recording();
  const rbcTensor* resampled = calls.out(support::kF32, {2, 1});
  rbcResampleParams previous = rbcResampleParamsInit();
  previous.method = RBC_METHOD_PREVIOUS;
  calls.add("rbcResampleParams", rbcResampleParamsInit(), {previous}, "params",
            [=, c = calls.context()](const rbcResampleParams* object) {
              return rbcResample(c, recording.values, recording.times, recording.queries, resampled,
                                 nullptr, object);
            });
});

}  // namespace

COMMON_ERROR_TESTS("resample", Call)
STRUCT_ERROR_TESTS("resample", Call)

TEST_CASE("resample errors: the good call is good, with every option") {
  Call packed;
  packed.pack();
  packed.params.flags = RBC_FLAG_CHECK_TIMES;
  CHECK_SUCCEEDS(packed.run());
  CHECK_SUCCEEDS(packed.workspace());
  Call bare;
  bare.used[4] = nullptr;
  bare.used_params = nullptr;
  CHECK_SUCCEEDS(bare.run());
  CHECK(bare.mask.array.untouched());
}

TEST_CASE("resample errors: if all memory is elsewhere, the message names the values") {
  checkError<Call>({RBC_STATUS_DEVICE_MISMATCH, "values: ...device", [](Call& c) {
                      for (const auto& tensor : Call::tensors())
                        tensor.of(c).raw.device = {RBC_DEVICE_CUDA, 0};
                    }});
}

TEST_CASE("resample errors: dtypes that do not fit together") {
  checkError<Call>({RBC_STATUS_DTYPE_MISMATCH, "times: ...int32...float32, float64 or int64",
                    [](Call& c) { c.times.raw.dtype = c.query_times.raw.dtype = kI32; }});
  checkDTypes<Call>({{"times", kF16, "dtype is float16, expected float32, float64 or int64"},
                     {"query_times", kI64, "dtype is int64, expected float64 as times"},
                     {"out", kI32, "dtype is int32, expected a float for float values"},
                     {"valid", support::kI8, "dtype is int8, expected bool or uint8"},
                     {"query_lengths", support::kU32, "dtype is uint32, expected int32 or int64"},
                     {"shift", kF16, "dtype is float16, expected float32 or float64"},
                     {"scale", kI64, "dtype is int64, expected float32 or float64"},
                     {"sample_mask", support::kI8, "dtype is int8, expected bool or uint8"}});
}

TEST_CASE("resample errors: ranks and shapes that do not fit together") {
  constexpr auto kStatus = RBC_STATUS_SHAPE_MISMATCH;
  checkShapes<Call>({{"values", {24}, "rank is 1 (shape [24]), expected 2 or 3"},
                     {"values", {}, "rank is 0 (shape []), expected 2 or 3"},
                     {"values", {1, 2, 3, 4}, "rank is 4 (shape [1,2,3,4]), expected 2 or 3"},
                     {"times", {}, "rank is 0 (shape []), expected 1 or 2"},
                     {"times", {2, 3, 1}, "rank is 3 (shape [2,3,1]), expected 1 or 2"},
                     {"times", {2, 2}, "shape is [2,2], expected [2,3]"},
                     {"times", {1, 3}, "shape is [1,3], expected [2,3]"},
                     {"times", {2}, "shape is [2], expected [3]"},
                     {"query_times", {}, "rank is 0 (shape []), expected 1 or 2"},
                     {"query_times", {1, 2}, "shape is [1,2], expected [2,2]"},
                     {"query_times", {2, 2, 1}, "rank is 3 (shape [2,2,1]), expected 1 or 2"},
                     {"out", {2, 2, 3}, "shape is [2,2,3], expected [2,2,4]"},
                     {"out", {2, 1, 4}, "shape is [2,1,4], expected [2,2,4]"},
                     {"out", {1, 2, 4}, "shape is [1,2,4], expected [2,2,4]"},
                     {"out", {4, 4}, "shape is [4,4], expected [2,2,4]"},
                     {"valid", {2}, "shape is [2], expected [2,2]"},
                     {"valid", {2, 1}, "shape is [2,1], expected [2,2]"},
                     {"valid", {2, 2, 1}, "shape is [2,2,1], expected [2,2]"},
                     {"query_lengths", {1}, "shape is [1], expected [2]"},
                     {"query_lengths", {}, "shape is [], expected [2]"},
                     {"shift", {3}, "shape is [3], expected [4]"},
                     {"shift", {1}, "shape is [1], expected [4]"},
                     {"shift", {2, 4}, "shape is [2,4], expected [4]"},
                     {"scale", {3}, "shape is [3], expected [4]"},
                     {"scale", {4, 1}, "shape is [4,1], expected [4]"},
                     {"sample_mask", {}, "rank is 0 (shape []), expected 1 or 2"},
                     {"sample_mask", {2, 3, 1}, "rank is 3 (shape [2,3,1]), expected 1 or 2"},
                     {"sample_mask", {2, 2}, "shape is [2,2], expected [2,3]"},
                     {"sample_mask", {1, 3}, "shape is [1,3], expected [2,3]"},
                     {"sample_mask", {2}, "shape is [2], expected [3]"}});
  // Without a batch nothing else may have one.
  checkErrors<Call>({{kStatus, "times:",
                      [](Call& c) {
                        c.values.reshape({3, 4});
                      }},
                     {kStatus, "lengths:",
                      [](Call& c) {
                        c.values.reshape({3, 4});
                        c.times.reshape({3});
                      }},
                     {kStatus, "query_times:",
                      [](Call& c) {
                        c.values.reshape({3, 4});
                        c.times.reshape({3});
                        c.params.lengths = nullptr;
                      }},
                     // Packed values are [N,D], with one time each.
                     {kStatus, "values:",
                      [](Call& c) {
                        c.pack();
                        c.values.reshape({1, 6, 4});
                      }},
                     {kStatus, "times:",
                      [](Call& c) {
                        c.pack();
                        c.times.reshape({5});
                      }},
                     {kStatus, "times:",
                      [](Call& c) {
                        c.pack();
                        c.times.reshape({2, 3});
                      }},
                     {kStatus, "sample_mask:",
                      [](Call& c) {
                        c.maskSamples();
                        c.values.reshape({3, 4});
                        c.times.reshape({3});
                        c.params.lengths = nullptr;
                      }},
                     {kStatus, "sample_mask:",
                      [](Call& c) {
                        c.maskSamples();
                        c.pack();
                        c.sample_mask.reshape({2, 3});
                      }},
                     {kStatus, "sample_mask:",
                      [](Call& c) {
                        c.maskSamples();
                        c.pack();
                        c.sample_mask.reshape({5});
                      }},
                     {kStatus, "query_times:", [](Call& c) {
                        c.pack();
                        c.offsets.reshape({2});
                      }}});
}

TEST_CASE("resample errors: parameters") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  const auto wrong = [&](const support::ErrorText& message, auto&& spoil) {
    checkError<Call>({kStatus, message, [&](Call& c) { spoil(c.params); }});
  };
  for (const int32_t outside : {-1, 3}) {
    const std::string told = std::to_string(outside);
    wrong(std::string("outside...") + told, [&](auto& p) { p.outside = outside; });
  }
  for (const double limit : {-1.0, -0x1p-1074, kNaN, -std::numeric_limits<double>::infinity()}) {
    wrong("max_gap", [&](auto& p) { p.max_gap = limit; });
    wrong("tolerance", [&](auto& p) {
      p.method = RBC_METHOD_NEAREST;
      p.tolerance = limit;
    });
  }
  // Seconds with ticks, which would round down to 0. Floats may have such limits, and ticks may be
  // 0.
  for (const double limit : {0.05, 0x1p-1074, 0x1.fffffffffffffp-1}) {
    checkErrors<Call>({{kStatus, "max_gap: is ...less than one tick...whole ticks",
                        [&](Call& c) {
                          c.times.raw.dtype = c.query_times.raw.dtype = kI64;
                          c.params.max_gap = limit;
                        }},
                       {kStatus, "tolerance: is ...less than one tick...whole ticks", [&](Call& c) {
                          c.times.raw.dtype = c.query_times.raw.dtype = kI64;
                          c.params.method = RBC_METHOD_NEAREST;
                          c.params.tolerance = limit;
                        }}});
    Call seconds;
    seconds.params.max_gap = limit;
    CHECK_SUCCEEDS(seconds.run());
  }
  for (const double limit : {0.0, 1.0, 1.5}) {
    Call ticks;
    ticks.times.raw.dtype = ticks.query_times.raw.dtype = kI64;
    ticks.params.max_gap = limit;
    CHECK_SUCCEEDS(ticks.run());
  }
}

TEST_CASE("resample errors: a fill value that the output cannot represent") {
  struct Row {
    rbcDType dtype;
    double bad[4];
    double good[3];
  };
  const Row rows[] = {
      {support::kU8, {-1, 256, 0.5, kNaN}, {0, 255, 1}},
      {support::kI8, {-129, 128, -0.5, INFINITY}, {-128, 127, -0.0}},
      {support::kBool, {2, -1, 0.5, kNaN}, {0, 1, 1}},
      {kI32, {2147483648.0, -2147483649.0, 1e300, kNaN}, {2147483647.0, -2147483648.0, 0}},
      {kI64, {0x1p63, -0x1.8p63, -INFINITY, kNaN}, {-0x1p63, 0x1p62, 0}},
      {support::kU64, {0x1p64, -1, INFINITY, kNaN}, {0x1p63, 0, 1}},
  };
  for (const Row& row : rows) {
    const auto set = [&](Call& c, double fill) {
      c.params.method = RBC_METHOD_PREVIOUS;
      c.params.fill_value = fill;
      c.withoutAffine();
      // Enough memory for every dtype: the same descriptors on larger arrays.
      c.values.array = Array(row.dtype, {2, 3, 4});
      c.out.array = Array(row.dtype, {2, 2, 4});
      c.values.restore();
      c.out.restore();
    };
    for (const double fill : row.bad) {
      checkError<Call>({RBC_STATUS_INVALID_ARGUMENT, "fill_value", [&](Call& c) { set(c, fill); }});
    }
    for (const double fill : row.good) {
      Call call;
      set(call, fill);
      CHECK_SUCCEEDS(call.run());
    }
  }
}

TEST_CASE("resample errors: lengths and offsets out of range") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  for (const uint32_t flags : {0u, RBC_FLAG_CHECK_TIMES}) {  // the CPU always checks
    support::checkRaggedRows<Call>("samples", Seen::kByTheCallAlone,
                                   [flags](Call& c) { c.params.flags = flags; });
    const auto wrong = [&](const support::ErrorText& message, auto&& spoil) {
      checkError<Call>({kStatus, message,
                        [&](Call& c) {
                          c.params.flags = flags;
                          spoil(c);
                        },
                        Seen::kByTheCallAlone});
    };
    wrong("query_lengths:...row 0...3", [](Call& c) { c.query_lengths.fill<int32_t>({3, 0}); });
    wrong("query_lengths:...row 1...-7", [](Call& c) { c.query_lengths.fill<int32_t>({0, -7}); });
  }
}

TEST_CASE("resample errors: bad times, with checking") {
  const auto wrong = [&](const support::ErrorText& message, auto&& spoil) {
    checkError<Call>({RBC_STATUS_INVALID_ARGUMENT, message,
                      [&](Call& c) {
                        c.params.flags = RBC_FLAG_CHECK_TIMES;
                        spoil(c);
                      },
                      Seen::kByTheCallAlone});
  };
  wrong("times:...row 0...index 2...1 -> 0.5", [](Call& c) {
    c.times.fill<double>({0, 1, 0.5, 0, 1, 2});
  });
  wrong("times: row 1 is NaN at index 1", [](Call& c) {
    c.times.fill<double>({0, 1, 2, 0, kNaN, 2});
  });
  wrong("times: row 0 is NaN at index 0", [](Call& c) {
    c.times.fill<double>({kNaN, 1, 2, 0, 1, 2});
  });
  // The first error is reported.
  wrong("times:...row 0...index 1", [](Call& c) { c.times.fill<double>({3, 2, 1, 2, 1, 0}); });
  wrong("times:...row 1...index 1", [](Call& c) { c.times.fill<double>({0, 0, 0, 2, 1, 0}); });
  wrong("times:...row 1...index 1...2 -> 1", [](Call& c) {
    c.pack();
    c.times.fill<double>({0, 1, 2, 2, 1, 2});
  });
  // In f32 and in ticks.
  wrong("times:...row 0...index 2...9223372036854775807 -> -9223372036854775808", [](Call& c) {
    c.times.raw.dtype = c.query_times.raw.dtype = kI64;
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    c.times.fill<int64_t>({0, kMost, -kMost - 1, 0, 1, 2});
  });
  // Equal times are fine, and so is anything beyond a row's length or between packed rows.
  Call fine;
  fine.params.flags = RBC_FLAG_CHECK_TIMES;
  fine.times.fill<double>({1, 1, 1, -3, -3, kNaN});
  CHECK_SUCCEEDS(fine.run());
  Call packed;
  packed.pack();
  packed.params.flags = RBC_FLAG_CHECK_TIMES;
  packed.offsets.fill<int64_t>({1, 3, 5});
  packed.times.fill<double>({kNaN, 5, 6, 0, 1, -9});
  CHECK_SUCCEEDS(packed.run());
}

TEST_CASE("resample errors: bad times without checking write only the outputs") {
  support::Random random(17);
  for (int i = 0; i < 200; ++i) {
    support::ResampleCase c = support::randomResampleCase(static_cast<uint64_t>(7000 + i));
    c.check_times = false;
    support::ResampleInputs in = support::makeInputs(c);
    support::Array times(
        c.times, in.times.placement().shape,
        c.times_layout == support::Layout::kBroadcast ? support::Layout::kStrided : c.times_layout,
        c.flush);
    times.each([&](std::byte* p) {
      const uint64_t bits = random.bits();
      std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(c.times)));
    });
    in.times = std::move(times);
    const support::ResampleRun run = support::run(support::refusingContext(), in);
    CHECK_MESSAGE(run.status == RBC_STATUS_SUCCESS, support::describe(c), ": ", run.message);
    CHECK_MESSAGE(!run.stray_writes, support::describe(c));
  }
}

TEST_CASE("resample errors: outputs that overlap by an element") {
  const auto onto = [&](Argument Call::*out, Argument Call::*other, int64_t bytes,
                        const char* message) {
    checkError<Call>({RBC_STATUS_INVALID_ARGUMENT, message, [&](Call& c) {
                        (c.*out).raw.data = static_cast<std::byte*>((c.*other).raw.data) + bytes;
                      }});
  };
  onto(&Call::out, &Call::values, 92, "values: overlaps out");   // by its last
  onto(&Call::out, &Call::values, -60, "values: overlaps out");  // by its first
  onto(&Call::out, &Call::query_lengths, 4, "query_lengths: overlaps out");
  onto(&Call::mask, &Call::shift, 15, "shift: overlaps valid");
  onto(&Call::mask, &Call::scale, 31, "scale: overlaps valid");
  onto(&Call::mask, &Call::values, 95, "values: overlaps valid");
  onto(&Call::mask, &Call::times, 1, "times: overlaps valid");
  onto(&Call::mask, &Call::query_times, 1, "query_times: overlaps valid");
  onto(&Call::mask, &Call::out, 63, "valid: overlaps out");
  for (const auto out : {&Call::out, &Call::mask}) {
    checkError<Call>({RBC_STATUS_INVALID_ARGUMENT, "sample_mask: overlaps", [&](Call& c) {
                        c.maskSamples();
                        c.sample_mask.raw.data = (c.*out).raw.data;
                      }});
  }
}

TEST_CASE("resample errors: an output whose elements share memory") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  checkErrors<Call>({{kStatus, "out:...share memory",
                      [](Call& c) {
                        c.out.restride({0, 4, 1});
                      }},
                     {kStatus, "out:...share memory",
                      [](Call& c) {
                        c.out.restride({8, 0, 1});
                      }},
                     {kStatus, "out:...share memory",
                      [](Call& c) {
                        c.out.restride({4, 3, 1});
                      }},
                     {kStatus, "valid:...share memory",
                      [](Call& c) {
                        c.mask.restride({0, 1});
                      }},
                     {kStatus, "valid:...share memory", [](Call& c) {
                        c.mask.restride({1, 1});
                      }}});
}

TEST_CASE("resample errors: inputs may share memory with each other") {
  Call call;
  call.params.lengths = call.params.query_lengths = nullptr;
  call.query_times.raw = call.times.raw;
  call.query_times.reshape({2, 2});
  CHECK_SUCCEEDS(call.run());
}

TEST_CASE("wrapper: the workspace of resample has the size of its size function") {
  constexpr int64_t kRows = 20000;
  std::vector<float> ramp(kRows);
  std::iota(ramp.begin(), ramp.end(), 0.0f);
  std::vector<float> written(kRows);
  const robocache::Tensor values(ramp, {kRows, 1});
  const robocache::Tensor times(ramp.data(), {kRows});
  CHECK(CHECKED_WRAPPER_SIZE(resample, values, times, times, {written, {kRows, 1}}) == 0);
}
