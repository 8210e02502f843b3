// rbcResample against the reference, on the shared table and on random cases, on every backend.
#include <utility>
#include <vector>

#include "support/interrupted_call.h"
#include "support/odd_floats.h"
#include "support/operation_tests.h"

namespace {

using support::Context;
using support::ResampleCase;
using support::ResampleInputs;
using support::Run;

struct Resample {
  static constexpr uint64_t kRandomCases = 800;
  static constexpr uint64_t kSameBits = 200;
  static std::vector<ResampleCase> table() {
    std::vector<ResampleCase> cases = support::resampleCases();
    for (ResampleCase& c : support::methodCases()) cases.push_back(std::move(c));
    return cases;
  }
  static ResampleCase random(uint64_t seed) { return support::randomResampleCase(seed); }
  static ResampleCase any(uint64_t seed) { return random(seed); }
};

class Resampling : public support::LongCall {
 public:
  Resampling() {
    for (int64_t i = 0; i < kRows; ++i) {
      times_.as<double>()[i] = static_cast<double>(i);
      values_.as<float>()[i] = static_cast<float>(i % 1000);
      queries_.as<double>()[i] = static_cast<double>(i * 7919 % kRows) + 0.25;
    }
    outputs_.emplace_back(support::kF32, std::vector<int64_t>{kRows, 1});
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

  support::CallMemory values_{support::kF32, {kRows, 1}};
  support::CallMemory times_{support::kF64, {kRows}};
  support::CallMemory queries_{support::kF64, {kRows}};
};

}  // namespace

OPERATION_TESTS("resample", Resample)

TEST_CASE("resample cpu: outputs too large for the caches") {
  const Context one = support::cpuContext(1, RBC_SIMD_PORTABLE);
  struct Row {
    rbcDType values;
    rbcDType out;
    int64_t channels;  // 1024: whole cache lines
  };
  constexpr Row kRows[] = {
      {support::kF32, support::kF32, 1024}, {support::kBF16, support::kBF16, 1024},
      {support::kF64, support::kF16, 1024}, {support::kF64, support::kF32, 1024},
      {support::kF16, support::kF64, 1024}, {support::kF32, support::kF32, 1023}};
  for (const Row& row : kRows) {
    if (support::kSanitized && &row != &kRows[5]) continue;  // the hardest one to write
    ResampleCase c;
    c.batch = 2;
    c.samples = 50;
    c.channels = row.channels;
    c.queries = (int64_t{26} << 20) / (c.batch * c.channels * support::sizeOf(row.out));
    c.values = row.values;
    c.out = row.out;
    if (c.channels % 2 != 0) c.out_layout = support::Layout::kMisaligned;
    const ResampleInputs in = support::makeInputs(c);
    const Run expected = support::run(one, in);
    for (const int32_t level : support::simdLevels()) {
      if (level == RBC_SIMD_PORTABLE) continue;
      const Run got = support::run(support::cpuContext(2, level), in);
      CHECK_FALSE(got.stray_writes);
      CHECK_MESSAGE(got.output == expected.output, support::describe(c));
    }
  }
}

TEST_CASE("resample cpu: the caller's rounding mode and flushing of subnormals do not matter") {
  std::vector<ResampleCase> cases = Resample::table();
  for (const ResampleCase& c : support::randomResampleCases(4000, 100)) cases.push_back(c);
  const Context context = support::cpuContext(2);
  for (ResampleCase& c : support::fewerWhenSanitized(cases)) {
    if (support::isFloat(c.out)) c.fill_value = 0.1;
    const ResampleInputs in = support::makeInputs(c);
    const Run expected = support::run(context, in);
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      if (support::kSanitized && mode != FE_UPWARD) continue;
      bool kept = false;
      const Run got = support::run(context, in, [&](auto&& call) {
        const support::OddFloats odd(mode);
        const rbcStatus_t status = call();
        kept = odd.still();
        return status;
      });
      CHECK(kept);
      REQUIRE_MESSAGE(got.output == expected.output, support::describe(c));
    }
  }
}

TEST_CASE("resample cpu: the same call gives the same bits again") {
  const Context context = support::cpuContext(4);
  for (const ResampleCase& c : support::randomResampleCases(2000, 60))
    support::checkSame(support::makeInputs(c), context, context, "again");
}

// ---- the harness itself -------------------------------------------------------------------------

TEST_CASE("reference: a wrong bit, a wrong valid and a missing write are found") {
  ResampleCase c;
  c.order = support::QueryOrder::kRandom;
  const ResampleInputs in = support::makeInputs(c);
  const Context context = support::cpuContext(1);
  const Run good = support::run(context, in);
  REQUIRE(support::firstError(in, good.output) == "");
  for (size_t i = 0; i < good.output.out.size(); i += 17) {
    support::Output bad = good.output;
    bad.out[i] ^= 1;
    CHECK(support::firstError(in, bad) != "");
    bad.out[i] = 0xA5A5A5A5;
    CHECK(support::firstError(in, bad) != "");
  }
  support::Output bad = good.output;
  bad.mask[5] ^= 1;
  CHECK(support::firstError(in, bad) != "");
}

TEST_CASE("reference: one method is not accepted as another") {
  const Context context = support::cpuContext(1);
  for (const int32_t method : support::kAllMethods) {
    ResampleCase c;
    c.method = method;
    c.channels = 8;
    c.queries = 60;
    c.order = support::QueryOrder::kRandom;
    ResampleInputs in = support::makeInputs(c);
    const support::Output output = support::run(context, in).output;
    REQUIRE(support::firstError(in, output) == "");
    for (const int32_t other : support::kAllMethods) {
      if (other == method) continue;
      in.c.method = other;
      CHECK_MESSAGE(support::firstError(in, output) != "", support::methodName(method), " as ",
                    support::methodName(other));
    }
  }
}

TEST_CASE("interrupt: resampling and its check of times") {
  support::checkInterrupts(Resampling());
}
