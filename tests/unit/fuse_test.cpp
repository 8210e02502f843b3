// rbcFuse against the reference, on the table of fusion cases and on random ones, on every backend.
#include "support/check_cases.h"

namespace {

using support::Context;
using support::FuseCase;
using support::FuseInputs;
using support::Run;

}  // namespace

TEST_CASE("fuse cpu: the table of cases") {
  support::checkAll(support::cpuContext(), support::fuseCases());
}

TEST_CASE("fuse cpu: the table of cases at every SIMD level") {
  support::checkAtEveryLevel(support::flushedOtherwise(support::fuseCases()));
}

TEST_CASE("fuse cpu: random cases") {
  support::checkAll(support::cpuContext(2), support::randomFuseCases(0, 400));
}

TEST_CASE("fuse cpu: random cases at every SIMD level") {
  support::checkAtEveryLevel(support::randomFuseCases(1000, 120));
}

TEST_CASE("fuse cpu: SIMD levels and thread counts give the same bits") {
  std::vector<FuseCase> cases = support::fuseCases();
  for (FuseCase& c : support::randomFuseCases(2000, 100)) cases.push_back(std::move(c));
  support::checkLevelsAndThreads(cases);
}

TEST_CASE("fuse cuda: the table of cases") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  support::checkAll(cuda, support::fuseCases());
}

TEST_CASE("fuse cuda: random cases") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  support::checkAll(cuda, support::randomFuseCases(0, 400));
}

TEST_CASE("fuse cuda: the bits of the CPU, and the same again") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  std::vector<FuseCase> cases = support::fuseCases();
  for (FuseCase& c : support::randomFuseCases(3000, 300)) cases.push_back(std::move(c));
  support::checkBackends(cuda, cases);
}

TEST_CASE("reference: a wrong bit and a wrong mask of a fusion are told") {
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
