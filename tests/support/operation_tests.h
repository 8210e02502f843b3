// The tests of every operation: its cases compared with the reference, both backends and every
// division of the work compared with each other, and a workspace with arbitrary contents.
//
// A case describes a call. With it belong, found by argument-dependent lookup,
//
//   inputsOf(case)                  its arrays
//   placedOf(context, inputs)       call(context), workspaceSize(context), fetch(context, &stray)
//   firstError(inputs, output)      the error that the reference finds; output has ==
//   describe(case), flushOtherwise(&case)
//
// An operation is described by
//
//   struct Resample {
//     static constexpr uint64_t kRandomCases = 800;  // compared with the reference
//     static constexpr uint64_t kSameBits = 200;     // only compared between backends and threads
//     static std::vector<ResampleCase> table();
//     static ResampleCase random(uint64_t seed);
//     static ResampleCase any(uint64_t seed);        // may be beyond the reference
//   };
#pragma once

#include <vector>

#include "check_cases.h"
#include "poisoned_scratch.h"

namespace support {

// For any contents of the workspace: the result equals another context's, which other tests compare
// with the reference, and nothing past its bytes is written.
template <class Case>
void checkScratch(int32_t backend, const std::vector<Case>& cases) {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = backend;
  const PoisonedScratch scratch(params);
  Failures failures;
  bool reserved = false;
  for (const Case& c : fewerWhenSanitized(cases)) {
    const auto in = inputsOf(c);
    const auto expected = run(scratch.other(), in);
    for (const uint8_t byte : {0xA5, 0xFF}) {
      auto placed = placedOf(scratch.other(), in);
      const size_t used = placed.workspaceSize(scratch.context());
      reserved = reserved || used > 0;
      require(rbcContextReserve(scratch.context().get(), used));
      scratch.poison(byte);
      const auto result = detail::finish(
          scratch.context(), placed, [](auto&& call) { return call(); },
          [&] { return placed.call(scratch.context()); });
      const bool right = result.status == RBC_STATUS_SUCCESS && result.output == expected.output;
      const bool inside = reserved ? scratch.isPoisonPast(used, byte) : scratch.isEmpty();
      CHECK_MESSAGE(right, "a workspace of ", static_cast<int>(byte), " changes ", describe(c), " ",
                    result.message);
      CHECK_MESSAGE(inside, "wrote past ", used, " bytes of workspace in ", describe(c));
      failures.add(right && inside);
      if (!reserved) break;  // there is nothing to poison
    }
  }
}

// Tests of the tests: `spoil` changes one element of an output, number i of the relevant ones, or
// returns false past the last.
template <class Operation, class Spoil>
void checkReferenceTells(uint64_t count, Spoil&& spoil) {
  const Context context = cpuContext(1);
  size_t spoilt = 0;
  for (const auto& c : casesOf(Operation::random, 4000, count)) {
    const auto in = inputsOf(c);
    const auto good = run(context, in).output;
    REQUIRE(firstError(in, good) == "");
    for (size_t i = 0;; ++i) {
      auto bad = good;
      if (!spoil(&bad, i)) break;
      CHECK_MESSAGE(firstError(in, bad) != "", describe(c));
      ++spoilt;
    }
  }
  CHECK(spoilt > count);
}

template <class Operation>
auto randomCases(uint64_t first, uint64_t count) {
  return casesOf(Operation::random, first, randomShareOf(count));
}

template <class Operation>
auto sameBitsCases(uint64_t first, uint64_t count) {
  auto cases = Operation::table();
  for (auto& c : casesOf(Operation::any, first, randomShareOf(count)))
    cases.push_back(std::move(c));
  return cases;
}

}  // namespace support

// Skips the case if CUDA is not usable.
#define WITH_CUDA(context)                                        \
  std::string why_;                                               \
  const ::support::Context context = support::cudaContext(&why_); \
  if (context == nullptr) SKIP_BECAUSE(why_)

// The test cases of an operation: a macro, since each is a separate ctest with its own name.
#define OPERATION_TESTS(name, Operation)                                                      \
  TEST_CASE(name " cpu: the table of cases") {                                                \
    ::support::checkAll(::support::cpuContext(), Operation::table());                         \
  }                                                                                           \
  TEST_CASE(name " cpu: the table of cases at every SIMD level") {                            \
    ::support::checkAtEveryLevel(::support::flushedOtherwise(Operation::table()));            \
  }                                                                                           \
  TEST_CASE(name " cpu: random cases") {                                                      \
    ::support::checkAll(::support::cpuContext(2),                                             \
                        ::support::randomCases<Operation>(0, Operation::kRandomCases));       \
  }                                                                                           \
  TEST_CASE(name " cpu: random cases at every SIMD level") {                                  \
    ::support::checkAtEveryLevel(                                                             \
        ::support::randomCases<Operation>(1000, Operation::kRandomCases / 3));                \
  }                                                                                           \
  TEST_CASE(name " cpu: SIMD levels and thread counts give the same bits") {                  \
    ::support::checkLevelsAndThreads(                                                         \
        ::support::sameBitsCases<Operation>(6000, Operation::kSameBits));                     \
  }                                                                                           \
  TEST_CASE(name " cpu: the contents of the workspace do not matter") {                       \
    ::support::checkScratch(RBC_BACKEND_CPU, Operation::table());                             \
  }                                                                                           \
  TEST_CASE(name " cuda: the table of cases") {                                               \
    WITH_CUDA(cuda);                                                                          \
    ::support::checkAll(cuda, Operation::table());                                            \
  }                                                                                           \
  TEST_CASE(name " cuda: random cases") {                                                     \
    WITH_CUDA(cuda);                                                                          \
    ::support::checkAll(cuda, ::support::randomCases<Operation>(0, Operation::kRandomCases)); \
  }                                                                                           \
  TEST_CASE(name " cuda: the bits of the CPU, and the same again") {                          \
    WITH_CUDA(cuda);                                                                          \
    ::support::checkBackends(                                                                 \
        cuda, ::support::flushedOtherwise(                                                    \
                  ::support::sameBitsCases<Operation>(3000, 3 * Operation::kSameBits)));      \
  }                                                                                           \
  TEST_CASE(name " cuda: the contents of the workspace do not matter") {                      \
    WITH_CUDA(cuda);                                                                          \
    ::support::checkScratch(RBC_BACKEND_CUDA, Operation::table());                            \
  }
