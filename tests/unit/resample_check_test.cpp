// The check of times: a bad step is found at any place, and reported by row and index.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "robocache/robocache.hpp"
#include "support/expect.h"
#include "support/run.h"

namespace {

using robocache::ResampleOptions;
using robocache::Tensor;

template <class Time>
struct Rows {
  int64_t batch;
  int64_t samples;
  support::Array times;

  Rows(int64_t b, int64_t s, support::Layout layout)
      : batch(b), samples(s), times(robocache::dtypeOf<Time>(), {b, s}, layout) {
    for (int64_t i = 0; i < batch; ++i) {
      for (int64_t k = 0; k < samples; ++k) set(i, k, static_cast<Time>(k / 2));  // each time twice
    }
  }
  void set(int64_t row, int64_t i, Time time) {
    uint64_t bits = 0;
    std::memcpy(&bits, &time, sizeof time);
    times.set({row, i}, bits);
  }

  // "" if the times pass, else the message.
  std::string verdict(const robocache::Context& context, const Tensor* lengths = nullptr) const {
    const uint8_t value = 1;
    const Time query = 0;
    std::vector<uint8_t> out(static_cast<size_t>(batch), 0xA5);
    ResampleOptions options;
    options.method = robocache::Method::kPrevious;
    options.check_times = true;
    if (lengths != nullptr) options.lengths = *lengths;
    try {
      robocache::resample(context, {&value, {batch, samples, 1}, {0, 0, 0}}, Tensor(times.tensor()),
                          {&query, {1}}, {out.data(), {batch, 1, 1}}, options);
    } catch (const robocache::Error& error) {
      CHECK(std::count(out.begin(), out.end(), 0xA5) == batch);
      return error.what();
    }
    CHECK(std::count(out.begin(), out.end(), 1) == batch);
    return "";
  }
};

// Corrupts one time of an ascending row, calls the check, and restores it.
template <class Time>
bool finds(Rows<Time>& rows, const robocache::Context& context, int64_t row, int64_t i, bool nan) {
  rows.set(row, i, nan ? std::numeric_limits<Time>::quiet_NaN() : static_cast<Time>(-1));
  const std::string verdict = rows.verdict(context);
  rows.set(row, i, static_cast<Time>(i / 2));
  // A first time of -1 does not step back.
  if (i == 0 && !nan) return verdict.empty();
  const std::string where = "row " + std::to_string(row) + (nan ? " is NaN at" : " decreases at") +
                            " index " + std::to_string(i);
  const std::string end =
      verdict.substr(std::min(verdict.size(), verdict.find(where) + where.size()), 1);
  const bool is_reported = verdict.find("times: " + where) == 0 && (end.empty() || end == " ");
  CHECK_MESSAGE(is_reported, "expected ", where, ", got \"", verdict, "\"");
  return is_reported;
}

std::vector<robocache::Context> contexts() {
  std::vector<robocache::Context> all;
  for (const int32_t level : support::simdLevels()) {
    rbcContextParams params = rbcContextParamsInit();
    params.backend = RBC_BACKEND_CPU;
    params.simd = level;
    params.num_threads = 3;
    all.emplace_back(params);
  }
  return all;
}

}  // namespace

TEST_CASE_TEMPLATE("check: a bad step is found in rows of every length and layout", Time, float,
                   double, int64_t) {
  for (const robocache::Context& context : contexts()) {
    for (const int64_t samples : {1, 2, 3, 4, 5, 8, 9, 16, 17, 18, 31, 33, 34, 50, 70}) {
      for (const auto layout :
           {support::Layout::kContiguous, support::Layout::kPermuted, support::Layout::kReversed}) {
        Rows<Time> rows(2, samples, layout);
        REQUIRE(rows.verdict(context) == "");
        for (int64_t i = 0; i < samples; ++i) {
          if (!finds(rows, context, i % 2, i, false)) return;
          if (!std::is_integral_v<Time> && !finds(rows, context, 1 - i % 2, i, true)) return;
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("check: a bad step is found in long rows and many rows", Time, float, double,
                   int64_t) {
  for (const auto& [batch, samples] :
       {std::pair<int64_t, int64_t>{1, 300001}, {3, 70000}, {4001, 50}}) {
    Rows<Time> rows(batch, samples, support::Layout::kContiguous);
    support::Random random(9);
    for (const robocache::Context& context : contexts()) {
      REQUIRE(rows.verdict(context) == "");
      for (const int64_t edge :
           {int64_t{65535}, int64_t{65536}, int64_t{65537}, int64_t{131072}, batch * samples - 1}) {
        for (const bool nan : {false, true}) {
          const int64_t row = edge / samples;
          if (row < batch &&
              !(nan && std::is_integral_v<Time>)&&!finds(rows, context, row, edge % samples, nan))
            return;
        }
      }
      for (int k = 0; k < 5; ++k) {
        if (!finds(rows, context, random.below(batch), 1 + random.below(samples - 1), false))
          return;
      }
    }
  }
}

TEST_CASE("check: the first of several bad steps is reported, for any timing of threads") {
  Rows<double> rows(50, 9000, support::Layout::kContiguous);
  rows.set(20, 8000, -1);
  rows.set(20, 4000, -1);
  rows.set(49, 5, -1);
  for (const robocache::Context& context : contexts()) {
    for (int k = 0; k < 20; ++k)
      CHECK(support::tells(rows.verdict(context),
                           {"times: row 20 decreases at index 4000 (1999 -> -1)"}));
  }
}

TEST_CASE("check: samples beyond a row's length are not checked") {
  Rows<double> rows(3, 100, support::Layout::kContiguous);
  std::vector<int64_t> lengths = {100, 40, 0};
  const Tensor tensor(lengths.data(), {3});
  for (int64_t i = 40; i < 100; ++i) rows.set(1, i, std::numeric_limits<double>::quiet_NaN());
  for (int64_t i = 0; i < 100; ++i) rows.set(2, i, static_cast<double>(-i));
  const std::vector<robocache::Context> all = contexts();
  // A row of length 0 has no samples.
  const auto passes = [&](const robocache::Context& context) {
    const float values[1] = {};
    const double query = 0;
    float out[3];
    ResampleOptions options;
    options.check_times = true;
    options.lengths = tensor;
    robocache::resample(context, {values, {3, 100, 1}, {0, 0, 0}}, Tensor(rows.times.tensor()),
                        {&query, {1}}, {out, {3, 1, 1}}, options);
  };
  for (const robocache::Context& context : all) CHECK_NOTHROW(passes(context));
  lengths[1] = 41;
  for (const robocache::Context& context : all)
    CHECK(support::tells(rows.verdict(context, &tensor), {"row 1 is NaN at index 40"}));
}

TEST_CASE("check: rows with as many samples as 64 bits allow are checked up to their lengths") {
  constexpr int64_t kBatch = 4;
  constexpr int64_t kSamples = (int64_t{1} << 61) - 1;
  const uint8_t value = 7;
  const float query = 2;
  const int64_t lengths[kBatch] = {0, 1, 0, 3};
  for (const robocache::Context& context : contexts()) {
    for (const float time : {2.0f, std::numeric_limits<float>::quiet_NaN()}) {
      uint8_t out[kBatch] = {};
      ResampleOptions options;
      options.method = robocache::Method::kPrevious;
      options.check_times = true;
      options.lengths = Tensor(lengths, {kBatch});
      std::string verdict;
      try {
        robocache::resample(context, {&value, {kBatch, kSamples, 1}, {0, 0, 0}},
                            {&time, {kSamples}, {0}}, {&query, {1}}, {out, {kBatch, 1, 1}},
                            options);
      } catch (const robocache::Error& error) {
        verdict = error.what();
      }
      if (time == 2) {
        CHECK(verdict == "");
        CHECK(std::vector<uint8_t>(out, out + kBatch) == std::vector<uint8_t>{0, 7, 0, 7});
      } else {
        CHECK(support::tells(verdict, {"times: row 1 is NaN at index 0"}));
      }
    }
  }
}
