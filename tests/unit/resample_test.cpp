// rbcResample against the reference, on the shared table and on random cases, on every backend.
#include <cfenv>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "support/expect.h"
#include "support/run.h"

namespace {

using support::Context;
using support::ResampleCase;
using support::ResampleInputs;
using support::ResampleRun;

// Runs a case and holds it against the reference. False if it failed.
bool isRight(const Context& context, const ResampleInputs& in) {
  const ResampleRun result = support::run(context, in);
  std::string error = result.message;
  if (result.status == RBC_STATUS_SUCCESS) {
    error =
        result.stray_writes ? "wrote outside its elements" : support::firstError(in, result.output);
  }
  CHECK_MESSAGE(error.empty(), support::describe(in.c), ": ", error);
  return error.empty();
}

// Both runs give the same bits, whatever they are.
void checkSame(const ResampleInputs& in, const Context& a, const Context& b,
               const std::string& what) {
  const ResampleRun first = support::run(a, in);
  const ResampleRun second = support::run(b, in);
  CHECK_MESSAGE(first.status == second.status, support::describe(in.c), " ", what, ": ",
                second.message);
  CHECK_MESSAGE(first.output == second.output, support::describe(in.c), " ", what);
}

// Stops after some failures: a defect in one place fails every case.
template <class Cases>
void checkAll(const Context& context, const Cases& cases) {
  int failures = 0;
  for (const ResampleCase& c : cases) {
    if (!isRight(context, support::makeInputs(c)) && ++failures == 8) FAIL("more may follow");
  }
}

// A floating-point environment that no result may depend on.
class OddFloats {
 public:
  explicit OddFloats(int mode) : mode_(mode) {
    std::fegetenv(&before_);
    std::fesetround(mode);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | kFlush);
#endif
  }
  ~OddFloats() { std::fesetenv(&before_); }

  bool still() const {
#if defined(__x86_64__)
    if ((_mm_getcsr() & kFlush) != kFlush) return false;
#endif
    return std::fegetround() == mode_;
  }

 private:
  static constexpr unsigned kFlush = 0x8040;  // flush-to-zero, denormals-are-zero
  int mode_;
  std::fenv_t before_;
};

std::vector<ResampleCase> randomCases(uint64_t first, uint64_t count) {
  std::vector<ResampleCase> cases;
  for (uint64_t seed = first; seed < first + count; ++seed)
    cases.push_back(support::randomResampleCase(seed));
  return cases;
}

}  // namespace

TEST_CASE("resample cpu: the table of cases") {
  checkAll(support::cpuContext(), support::resampleCases());
}

TEST_CASE("resample cpu: the table of cases at every SIMD level") {
  std::vector<ResampleCase> cases = support::resampleCases();
  for (ResampleCase& c : cases) {  // against the other inaccessible page
    c.flush = c.flush == support::Flush::kEnd ? support::Flush::kBegin : support::Flush::kEnd;
  }
  for (const int32_t level : support::simdLevels()) {
    CAPTURE(level);
    checkAll(support::cpuContext(1, level), cases);
  }
}

TEST_CASE("resample cpu: random cases") { checkAll(support::cpuContext(2), randomCases(0, 600)); }

TEST_CASE("resample cpu: random cases at every SIMD level") {
  for (const int32_t level : support::simdLevels()) {
    CAPTURE(level);
    checkAll(support::cpuContext(1, level), randomCases(1000, 200));
  }
}

TEST_CASE("resample cpu: SIMD levels and thread counts give the same bits") {
  const Context one = support::cpuContext(1, RBC_SIMD_PORTABLE);
  std::vector<ResampleCase> cases;
  for (const ResampleCase& c : support::resampleCases()) {
    if (c.batch * c.queries * c.channels > 50000 || c.specials) cases.push_back(c);
  }
  CHECK(cases.size() >= 5);
  for (const ResampleCase& c : cases) {
    const ResampleInputs in = support::makeInputs(c);
    for (const int32_t level : support::simdLevels()) {
      for (const int32_t threads : {1, 2, 3, 7}) {
        checkSame(in, one, support::cpuContext(threads, level), "with other threads or SIMD");
      }
    }
  }
}

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
    ResampleCase c;
    c.batch = 2;
    c.samples = 50;
    c.channels = row.channels;
    c.queries = (int64_t{26} << 20) / (c.batch * c.channels * support::sizeOf(row.out));
    c.values = row.values;
    c.out = row.out;
    if (c.channels % 2 != 0) c.out_layout = support::Layout::kMisaligned;
    const ResampleInputs in = support::makeInputs(c);
    const ResampleRun expected = support::run(one, in);
    for (const int32_t level : support::simdLevels()) {
      if (level == RBC_SIMD_PORTABLE) continue;
      const ResampleRun got = support::run(support::cpuContext(2, level), in);
      CHECK_FALSE(got.stray_writes);
      CHECK_MESSAGE(got.output == expected.output, support::describe(c));
    }
  }
}

TEST_CASE("resample cpu: the caller's rounding mode and flushing of subnormals do not matter") {
  std::vector<ResampleCase> cases = support::resampleCases();
  for (const ResampleCase& c : randomCases(4000, 100)) cases.push_back(c);
  const Context context = support::cpuContext(2);
  for (ResampleCase& c : cases) {
    if (support::isFloat(c.out)) c.fill_value = 0.1;
    const ResampleInputs in = support::makeInputs(c);
    const ResampleRun expected = support::run(context, in);
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      bool kept = false;
      const ResampleRun got = support::run(context, in, [&](auto&& call) {
        const OddFloats odd(mode);
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
  for (const ResampleCase& c : randomCases(2000, 60))
    checkSame(support::makeInputs(c), context, context, "again");
}

TEST_CASE("resample cuda: the table of cases") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  checkAll(cuda, support::resampleCases());
}

TEST_CASE("resample cuda: random cases") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  checkAll(cuda, randomCases(0, 600));
}

TEST_CASE("resample cuda: the bits of the CPU, and the same again") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  const Context cpu = support::cpuContext();
  std::vector<ResampleCase> cases = support::resampleCases();
  for (const ResampleCase& c : randomCases(3000, 400)) cases.push_back(c);
  for (const ResampleCase& c : cases) {
    const ResampleInputs in = support::makeInputs(c);
    checkSame(in, cpu, cuda, "on CUDA");
    checkSame(in, cuda, cuda, "on CUDA again");
  }
}

// ---- the harness itself -------------------------------------------------------------------------

TEST_CASE("reference: a wrong bit, a wrong mask and a missing write are told") {
  ResampleCase c;
  c.order = support::QueryOrder::kRandom;
  const ResampleInputs in = support::makeInputs(c);
  const Context context = support::cpuContext(1);
  const ResampleRun good = support::run(context, in);
  REQUIRE(support::firstError(in, good.output) == "");
  for (size_t i = 0; i < good.output.out.size(); i += 17) {
    support::ResampleOutput bad = good.output;
    bad.out[i] ^= 1;
    CHECK(support::firstError(in, bad) != "");
    bad.out[i] = 0xA5A5A5A5;
    CHECK(support::firstError(in, bad) != "");
  }
  support::ResampleOutput bad = good.output;
  bad.mask[5] ^= 1;
  CHECK(support::firstError(in, bad) != "");
}
