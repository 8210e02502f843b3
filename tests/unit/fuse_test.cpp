// rbcFuse against the reference, on the table of fusion cases and on random ones, on every backend.
#include <utility>
#include <vector>

#include "support/operation_tests.h"

namespace {

using support::Context;
using support::FuseCase;
using support::FuseInputs;
using support::Run;
using support::StreamCase;

struct Fuse {
  static constexpr uint64_t kRandomCases = 400;
  static constexpr uint64_t kSameBits = 100;
  static std::vector<FuseCase> table() { return support::fuseCases(); }
  static FuseCase random(uint64_t seed) { return support::randomFuseCase(seed); }
  static FuseCase any(uint64_t seed) { return random(seed); }
};

// Enough queries that blocks of CUDA's kernels take several rounds, with all of their loads in
// flight.
std::vector<FuseCase> manyRounds() {
  std::vector<FuseCase> cases;
  const auto add = [&](const char* name, int streams, int64_t queries, rbcDType out,
                       const StreamCase& stream) {
    FuseCase c;
    c.name = name;
    c.seed = 8001 + cases.size();
    c.batch = 40;
    c.queries = queries;
    c.out = out;
    c.order = support::QueryOrder::kRandom;
    c.streams.assign(static_cast<size_t>(streams), stream);
    cases.push_back(std::move(c));
  };
  StreamCase lines;
  lines.samples = 20;
  lines.channels = 64;
  lines.values = support::kBF16;
  lines.outside = RBC_OUTSIDE_FILL;
  lines.fill_value = 3;
  add("bf16", 1, 1700, support::kBF16, lines);
  add("16 streams of bf16", 16, 110, support::kBF16, lines);
  lines.values = support::kF16;
  add("f16 to f32", 1, 1001, support::kF32, lines);
  lines.channels = 72;
  add("f16, ranges that rounds do not divide", 1, 1001, support::kF16, lines);
  lines.values = support::kF32;
  add("f32 to bf16", 1, 1001, support::kBF16, lines);
  lines.channels = 33;
  add("single channels", 1, 1001, support::kF32, lines);
  add("single channels of 9 streams", 9, 110, support::kF32, lines);
  StreamCase formulas = lines;
  formulas.channels = 36;
  formulas.shift = true;
  for (const int32_t method : {RBC_METHOD_LINEAR, RBC_METHOD_SLERP, RBC_METHOD_CUBIC}) {
    formulas.method = method;
    add("a formula", 1, 1001, support::kF32, formulas);
    add("a formula in 9 streams", 9, 110, support::kF32, formulas);
  }
  return cases;
}

std::vector<FuseCase> narrowCases() {
  std::vector<FuseCase> cases = support::narrowFuseCases();
  for (FuseCase& c : support::mixedFuseCases()) cases.push_back(std::move(c));
  return cases;
}

}  // namespace

OPERATION_TESTS("fuse", Fuse)

TEST_CASE("fuse cpu: narrow streams") {
  if (support::kThreadSanitizer) SKIP_BECAUSE("other fusions have as many threads");
  support::checkAll(support::cpuContext(), support::fewer(narrowCases(), true));
}

TEST_CASE("fuse cuda: narrow streams") {
  WITH_CUDA(cuda);
  support::checkAll(cuda, narrowCases());
}

TEST_CASE("fuse cuda: narrow streams, the bits of the CPU, and the same again") {
  WITH_CUDA(cuda);
  support::checkBackends(cuda, support::flushedOtherwise(narrowCases()));
}

TEST_CASE("large: fuse cuda, blocks of several rounds") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  support::checkBackends(cuda, manyRounds());
}

TEST_CASE("reference: a wrong bit and a wrong valid of a fusion are found") {
  const FuseInputs in = support::makeFuseInputs(support::fuseCases()[0]);
  const Context context = support::cpuContext(1);
  const Run good = support::run(context, in);
  REQUIRE(support::firstError(in, good.output) == "");
  for (size_t i = 0; i < good.output.out.size(); i += 17) {
    support::Output bad = good.output;
    bad.out[i] ^= uint64_t{1} << 14;
    CHECK(support::firstError(in, bad) != "");
  }
  for (size_t i = 0; i < good.output.mask.size(); i += 5) {
    support::Output bad = good.output;
    bad.mask[i] ^= 1;
    CHECK(support::firstError(in, bad) != "");
  }
}
