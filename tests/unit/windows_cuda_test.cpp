// rbcWindows on CUDA gives the bits of the CPU, for all options, and writes nothing else.
#include "support/expect.h"
#include "support/operation_tests.h"
#include "support/random_windows.h"
#include "support/share.h"

namespace {

using support::Context;
using support::RandomWindows;
using support::Variety;
using support::WindowCall;
using support::WindowResult;

// Returns whether the call succeeded.
bool checkSame(const Context& cuda, const WindowCall& call, uint64_t seed) {
  static const Context cpu = support::cpuContext();
  const WindowResult expected = support::resultOf(cpu, call);
  const WindowResult got = support::resultOf(cuda, call);
  CAPTURE(seed);
  CHECK_MESSAGE(expected.status == RBC_STATUS_SUCCESS, expected.message);
  CHECK_MESSAGE(got.status == expected.status, got.message);
  CHECK_FALSE(got.stray);
  for (size_t i = 0; i < expected.written.size(); ++i) {
    const auto& a = expected.written[i];
    const auto& b = got.written[i];
    size_t at = 0;
    while (at < a.size() && a[at] == b[at]) ++at;
    CHECK_MESSAGE(at == a.size(), "output ", i, " of ", a.size(), " elements differs at ", at, ": ",
                  at < a.size() ? a[at] : 0, " and ", at < b.size() ? b[at] : 0);
  }
  for (size_t i = 0; i < expected.accumulated.size(); ++i) {
    CHECK_MESSAGE(got.accumulated[i] == expected.accumulated[i], "accumulator ", i);
  }
  return expected.status == RBC_STATUS_SUCCESS;
}

void checkRandom(const Context& cuda, uint64_t first, uint64_t count, Variety variety,
                 bool accumulates = false) {
  uint64_t good = 0;
  uint64_t tried = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    if (!support::inShare(seed)) continue;
    ++tried;
    good += checkSame(cuda, RandomWindows(seed).make(variety, accumulates), seed) ? 1 : 0;
  }
  CHECK(good == tried);
}

}  // namespace

TEST_CASE("windows cuda: calls of any kind") {
  WITH_CUDA(cuda);
  checkRandom(cuda, 0, 500, Variety::kAny);
}

TEST_CASE("windows cuda: training batches") {
  WITH_CUDA(cuda);
  checkRandom(cuda, 10'000, 500, Variety::kNarrow);
  checkRandom(cuda, 40'000, 500, Variety::kRows);
}

TEST_CASE("windows cuda: calls into accumulators") {
  WITH_CUDA(cuda);
  checkRandom(cuda, 20'000, 150, Variety::kAny, true);
  checkRandom(cuda, 30'000, 50, Variety::kNarrow, true);
}
