// Calls every function that the library exports under conditions of the calling thread: each
// rounding mode, another locale, a small stack, a fork during the call. The results have to be the
// same as without the condition. A function that was not called under one of the conditions is a
// defect.
//
//   robocache_conditions [CASES [FORKS]]    cases per operation and program; forks per function
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "fuzz/calls.h"
#include "fuzz/conditions.h"
#include "fuzz/programs.h"
#include "fuzz/spoil.h"
#include "support/comma_locale.h"
#include "support/odd_floats.h"
#include "support/sanitizers.h"

namespace fuzz {
namespace {

using Program = void (*)(Machine&, Choices, Transcript&);
constexpr Program kPrograms[] = {accumulatorProgram, tensorProgram, liveProgram, contextProgram,
                                 storeProgram};
constexpr const char* kProgramNames[] = {"accumulators", "tensors", "live", "contexts", "stores"};

rbcContextParams paramsOf(const Play& play) {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.simd = play.seed % 4 == 3 ? RBC_SIMD_PORTABLE : RBC_SIMD_AUTO;
  params.num_threads = play.seed % 3 == 2 ? 3 : 1;
  return params;
}

// A valid call, an invalid one, or one with work for several threads.
std::unique_ptr<Call> callOf(const Play& play) {
  Choices choices(play.seed);
  if (play.seed % 8 == 5) choices.enlarge(choices.between(1, 4));
  auto call = makeCallOf(play.kind, choices);
  if (play.seed % 4 == 1 && !choices.hasLarge()) spoil(*call, choices);
  return call;
}

// A rounding mode of the calling thread. On x86-64 the thread also treats subnormals as 0.
class Rounding : public Counting {
 public:
  explicit Rounding(int mode) : mode_(mode) {}

 private:
  void surround(int entry, const Prepared& prepared) override {
    const support::OddFloats odd(mode_);
    prepared();
    if (!odd.still()) blame(entry, "changes how its caller's thread rounds");
  }

  int mode_;
};

class ThreadLocale : public Counting {
 public:
  explicit ThreadLocale(locale_t locale) : locale_(locale) {}

 private:
  void surround(int entry, const Prepared& prepared) override {
    const locale_t before = uselocale(locale_);
    prepared();
    if (uselocale(before) != locale_) blame(entry, "changes its caller's locale");
  }

  locale_t locale_;
};

class ProcessLocale : public Counting {
 public:
  ProcessLocale() { set_ = setlocale(LC_NUMERIC, "comma") != nullptr; }
  ~ProcessLocale() override { setlocale(LC_NUMERIC, "C"); }
  bool isSet() const { return set_; }

 private:
  void surround(int entry, const Prepared& prepared) override {
    prepared();
    if (*localeconv()->decimal_point != ',') blame(entry, "changes the locale of the process");
  }

  bool set_ = false;
};

// Prints the report and counts the defects.
class Report {
 public:
  void defect(const std::string& what) {
    std::fprintf(stderr, "%s\n", what.c_str());
    ++defects_;
  }
  // Prints the counts per function. A count of 0 is a defect.
  template <class Counts>
  void line(const std::string& what, const Counts& counts, const char* unit, int64_t ms) {
    const auto least = std::min_element(counts.begin(), counts.end());
    int64_t sum = 0;
    int called = 0;
    for (const int64_t count : counts) {
      sum += count;
      called += count > 0 ? 1 : 0;
    }
    std::printf("%-22s %2d of %d functions, %8lld %s, fewest %lld of %s, %lld ms\n", what.c_str(),
                called, kNumEntries, static_cast<long long>(sum), unit,
                static_cast<long long>(*least), kEntryNames[least - counts.begin()],
                static_cast<long long>(ms));
    for (int entry = 0; entry < kNumEntries; ++entry) {
      if (counts[static_cast<size_t>(entry)] == 0) {
        defect(what + ": " + kEntryNames[entry] + " has no " + unit);
      }
    }
  }
  int defects() const { return defects_; }

 private:
  int defects_ = 0;
};

int64_t msSince(std::chrono::steady_clock::time_point begin) {
  const auto passed = std::chrono::steady_clock::now() - begin;
  return std::chrono::duration_cast<std::chrono::milliseconds>(passed).count();
}

// Runs the plays of the seeds 0 .. cases - 1 without a condition.
std::vector<Expected> expectedOf(uint64_t cases, Memory& memory, Report& report) {
  std::vector<Expected> plays;
  for (uint64_t seed = 0; seed < cases; ++seed) {
    for (int kind = 0; kind < numKinds(); ++kind) {
      Expected expected = {{kind, seed}, {}, {}};
      Counting counting;
      const Under under(counting);
      try {
        expected.transcript = transcriptOf(expected.play, memory);
      } catch (const Defect& defect) {
        report.defect(nameOf(expected.play) + ": " + defect.what());
        continue;
      }
      std::copy(counting.counts().begin(), counting.counts().end(), expected.counts.begin());
      plays.push_back(std::move(expected));
    }
  }
  return plays;
}

void hold(const std::string& what, Counting& surrounding, const std::vector<Expected>& plays,
          Memory& memory, Report& report) {
  const auto begin = std::chrono::steady_clock::now();
  for (const Expected& expected : plays) {
    const std::string where = what + ", " + nameOf(expected.play) + ": ";
    try {
      std::string got;
      {
        const Under under(surrounding);
        got = transcriptOf(expected.play, memory);
      }
      if (got != expected.transcript && !isUnspecified(expected.play, memory)) {
        report.defect(where + "gave\n" + got + "\ninstead of\n" + expected.transcript);
      }
    } catch (const Defect& defect) {
      report.defect(where + defect.what());
    }
    if (!surrounding.defect().empty()) {
      report.defect(where + surrounding.defect());
      return;
    }
  }
  report.line(what, surrounding.counts(), "calls", msSince(begin));
}

void holdLocales(const std::vector<Expected>& plays, Memory& memory, Report& report) {
  if (support::kSanitized) {
    std::printf("Locales are not tested: LeakSanitizer reports memory that glibc keeps for them\n");
    return;
  }
  const support::CommaLocale comma;
  if (comma.get() == nullptr) {
    std::printf("Locales are not tested: localedef is not installed\n");
    return;
  }
  ThreadLocale of_thread(comma.get());
  hold("locale of the thread", of_thread, plays, memory, report);
  ProcessLocale of_process;
  if (!of_process.isSet()) return report.defect("setlocale() does not find the locale \"comma\"");
  hold("locale of the process", of_process, plays, memory, report);
}

void holdStack(const std::vector<Expected>& plays, Memory& memory, Report& report) {
  if (support::kSanitized) {
    std::printf("Small stacks are not tested: instrumented code uses more stack\n");
    return;
  }
  SmallStack small;
  hold("64 KiB of stack", small, plays, memory, report);
  std::printf("%-22s %zu bytes by %s\n", "the most stack", small.deepest(),
              kEntryNames[small.deepestEntry()]);
}

void holdForks(const std::vector<Expected>& plays, int forks_each, Report& report) {
#if defined(__x86_64__)
  if (support::kSanitized) {
    std::printf("Forks are not tested: the sanitizer's threads and locks do not survive them\n");
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  try {
    const auto counts = forkInCalls(plays, forks_each);
    report.line("fork in a call", counts, "forks", msSince(begin));
  } catch (const Defect& defect) {
    report.defect(std::string("fork in a call: ") + defect.what());
  }
#else
  (void)plays, (void)forks_each, (void)report;
  std::printf("Forks are not tested: the test steps through calls, which needs x86-64\n");
#endif
}

}  // namespace

int numKinds() { return numOperations() + static_cast<int>(std::size(kPrograms)); }

bool isProgram(const Play& play) { return play.kind >= numOperations(); }

std::string nameOf(const Play& play) {
  const int program = play.kind - numOperations();
  const std::string kind =
      program < 0 ? "operation " + std::to_string(play.kind) : kProgramNames[program];
  return kind + " of seed " + std::to_string(play.seed);
}

std::string transcriptOf(const Play& play, Machine& machine) {
  Transcript transcript;
  if (!isProgram(play)) {
    transcript.outcome(run(machine, *callOf(play), 0xA5));
  } else {
    kPrograms[play.kind - numOperations()](machine, Choices(play.seed), transcript);
  }
  machine.memory().place({});  // frees the blocks of the play
  return transcript.text();
}

std::string transcriptOf(const Play& play, Memory& memory) {
  Machine machine(nameOf(play), paramsOf(play), memory, 0);
  return transcriptOf(play, machine);
}

bool isUnspecified(const Play& play, Memory& memory) {
  if (isProgram(play)) return false;
  Machine machine(nameOf(play), paramsOf(play), memory, 0);
  return !isSpecified(machine, *callOf(play));
}

}  // namespace fuzz

int main(int argc, char** argv) {
  const uint64_t cases = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 12;
  const int forks_each = argc > 2 ? std::atoi(argv[2]) : 1;
  setenv("CUDA_VISIBLE_DEVICES", "", 1);  // only the CPU backend is tested here
  mallopt(M_MMAP_THRESHOLD, 32 << 20);    // keeps freed pages for the next call
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  const auto memory = fuzz::hostMemory();
  fuzz::Report report;
  const auto plays = fuzz::expectedOf(cases, *memory, report);
  for (const auto& [mode, name] : {std::pair{FE_TONEAREST, "to nearest"},
                                   {FE_UPWARD, "upward"},
                                   {FE_DOWNWARD, "downward"},
                                   {FE_TOWARDZERO, "toward zero"}}) {
    fuzz::Rounding rounding(mode);
    fuzz::hold(std::string("rounding ") + name, rounding, plays, *memory, report);
  }
  fuzz::holdLocales(plays, *memory, report);
  fuzz::holdStack(plays, *memory, report);
  fuzz::holdForks(plays, forks_each, report);
  std::printf("%zu plays, defects: %d\n", plays.size(), report.defects());
  return report.defects() > 0 || plays.empty() ? 1 : 0;
}
