// Runs cases of any operation and compares them with the reference, or with each other.
#pragma once

#include <string>
#include <vector>

#include "expect.h"
#include "run.h"
#include "sanitizers.h"
#include "share.h"

namespace support {

inline ResampleInputs inputsOf(const ResampleCase& c) { return makeInputs(c); }
inline FuseInputs inputsOf(const FuseCase& c) { return makeFuseInputs(c); }

// Runs a case and compares it with the reference. Returns false if it failed.
template <class Inputs>
bool isRight(const Context& context, const Inputs& in) {
  const auto result = run(context, in);
  std::string error = result.message;
  if (result.status == RBC_STATUS_SUCCESS)
    error = result.stray_writes ? "wrote outside its elements" : firstError(in, result.output);
  CHECK_MESSAGE(error.empty(), error, " in ", describe(in.c));
  return error.empty();
}

// Checks that both runs give the same bits, and write nothing else.
template <class Inputs>
bool checkSame(const Inputs& in, const Context& a, const Context& b, const std::string& what) {
  const auto first = run(a, in);
  const auto second = run(b, in);
  const bool same_bits = first.status == second.status && first.output == second.output;
  const bool clean = !first.stray_writes && !second.stray_writes;
  CHECK_MESSAGE(same_bits, describe(in.c), " ", what, ": ", first.message, " ", second.message);
  CHECK_MESSAGE(clean, describe(in.c), " ", what, ": wrote outside its elements");
  return same_bits && clean;
}

// Counts failures and stops after a few: a defect in one place fails every case.
class Failures {
 public:
  void add(bool passed) {
    if (!passed && ++count_ == 8) FAIL("more may follow");
  }

 private:
  int count_ = 0;
};

template <class Case>
void checkAll(const Context& context, const std::vector<Case>& cases) {
  Failures failures;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (inShare(i)) failures.add(isRight(context, inputsOf(cases[i])));
  }
}

// At the other inaccessible page.
template <class Case>
void flushOtherwise(Case* c) {
  c->flush = c->flush == Flush::kEnd ? Flush::kBegin : Flush::kEnd;
}
template <class Case>
std::vector<Case> flushedOtherwise(std::vector<Case> cases) {
  for (Case& c : cases) flushOtherwise(&c);
  return cases;
}

// Cases that other tests run as well: sanitizers, which make each case ten times slower, run a
// share of them.
template <class Case>
std::vector<Case> fewer(const std::vector<Case>& cases, bool when) {
  std::vector<Case> chosen;
  for (size_t i = 0; i < cases.size(); i += when ? 5 : 1) chosen.push_back(cases[i]);
  return shareOf(chosen);
}
template <class Case>
std::vector<Case> fewerWhenSanitized(const std::vector<Case>& cases) {
  return fewer(cases, kSanitized);
}

// The first level is compared with the reference, the others with the first level's bits. All on
// one thread.
template <class Case>
void checkAtEveryLevel(const std::vector<Case>& cases) {
  std::vector<Context> contexts;
  for (const int32_t level : simdLevels()) contexts.push_back(cpuContext(1, level));
  Failures failures;
  for (const Case& c : fewer(cases, kThreadSanitizer)) {
    const auto in = inputsOf(c);
    failures.add(isRight(contexts[0], in));
    for (size_t i = 1; i < contexts.size(); ++i) {
      failures.add(checkSame(in, contexts[0], contexts[i], "at another level"));
    }
  }
}

template <class Case>
void checkLevelsAndThreads(const std::vector<Case>& cases) {
  const Context one = cpuContext(1, RBC_SIMD_PORTABLE);
  std::vector<Context> others;
  for (const int32_t level : simdLevels()) {
    if (level != RBC_SIMD_PORTABLE) others.push_back(cpuContext(1, level));
    for (const int32_t threads : {2, 3, 7}) others.push_back(cpuContext(threads, level));
  }
  Failures failures;
  for (const Case& c : fewerWhenSanitized(cases)) {
    const auto in = inputsOf(c);
    const auto expected = run(one, in);
    for (const Context& other : others) {
      const auto got = run(other, in);
      const bool same_bits =
          got.status == expected.status && got.output == expected.output && !got.stray_writes;
      CHECK_MESSAGE(same_bits, describe(c), " at level ", infoOf(other).simd, " with ",
                    infoOf(other).num_threads, " threads");
      failures.add(same_bits);
    }
  }
}

// Checks that CUDA gives the bits of the CPU, and the same bits again.
template <class Case>
void checkBackends(const Context& cuda, const std::vector<Case>& cases) {
  const Context cpu = cpuContext();
  Failures failures;
  for (const Case& c : cases) {
    const auto in = inputsOf(c);
    failures.add(checkSame(in, cpu, cuda, "on CUDA"));
    failures.add(checkSame(in, cuda, cuda, "on CUDA again"));
  }
}

// Cases that a function makes from the seeds first, first + 1, ...
template <class Make>
auto casesOf(Make&& make, uint64_t first, uint64_t count) {
  std::vector<decltype(make(first))> cases;
  for (uint64_t seed = first; seed < first + count; ++seed) cases.push_back(make(seed));
  return cases;
}
inline std::vector<ResampleCase> randomResampleCases(uint64_t first, uint64_t count) {
  return casesOf(randomResampleCase, first, count);
}
inline std::vector<FuseCase> randomFuseCases(uint64_t first, uint64_t count) {
  return casesOf(randomFuseCase, first, count);
}

}  // namespace support
