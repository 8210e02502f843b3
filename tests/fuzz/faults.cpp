// Exhausted memory: the n-th allocation of the caller's allocator, and of the library's own code,
// fails, for every n of every operation and of programs of calls. Each call must end with a clear
// status, write nothing, leak nothing, and leave a context that works. Every exported function is
// called, and every one that allocates sees a failed allocation.
//
//   robocache_faults [CASES]    per operation and program; default 12
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "abi/malloc_counter.h"
#include "fuzz/calls.h"
#include "fuzz/machines.h"
#include "fuzz/programs.h"

namespace {

using fuzz::Choices;
using fuzz::Defect;
using fuzz::Machine;

struct Tally {
  int64_t calls = 0;
  int64_t failed = 0;  // number of them that failed with exhausted memory
};

// Counts the allocations of each function, from the caller's allocator and from the host, and the
// failed ones.
class Allocating : public fuzz::Condition {
 public:
  void call(int entry, const fuzz::Prepared& prepared) override {
    const malloc_counter::Counts host = malloc_counter::counts();
    const int64_t requests = Machine::allocationsOfAll();
    const int64_t refused = Machine::refusalsOfAll();
    {
      const malloc_counter::InLibrary inside;
      prepared();
    }
    const malloc_counter::Counts after = malloc_counter::counts();
    Function& function = functions_[static_cast<size_t>(entry)];
    ++function.calls;
    function.allocations += after.library - host.library + Machine::allocationsOfAll() - requests;
    function.failures += after.failed - host.failed + Machine::refusalsOfAll() - refused;
  }

  // Prints the counts and returns the number of defects.
  int report() const {
    int defects = 0;
    int allocating = 0;
    int64_t calls = 0;
    int64_t failures = 0;
    for (size_t i = 0; i < functions_.size(); ++i) {
      const Function& function = functions_[i];
      calls += function.calls;
      failures += function.failures;
      allocating += function.allocations > 0 ? 1 : 0;
      // Under a sanitizer, allocations of the host do not fail.
      const bool lacks_failure =
          RBC_TEST_COUNTS_MALLOC && function.allocations > 0 && function.failures == 0;
      if (function.calls > 0 && !lacks_failure) continue;
      ++defects;
      std::fprintf(
          stderr, "%s: %s\n", fuzz::kEntryNames[i],
          function.calls == 0 ? "was not called" : "allocates, but none of its allocations failed");
    }
    std::printf("%d functions, %d allocate: %lld calls, %lld failed allocations\n",
                fuzz::kNumEntries, allocating, static_cast<long long>(calls),
                static_cast<long long>(failures));
    return defects;
  }

 private:
  struct Function {
    int64_t calls = 0;
    int64_t allocations = 0;
    int64_t failures = 0;
  };
  std::array<Function, fuzz::kNumEntries> functions_ = {};
};

rbcContextParams cpu(int32_t threads) {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = threads;
  return params;
}

// The allocator's n-th allocation: a workspace that cannot grow, for a call that has not reserved
// it.
void failAllocator(fuzz::Memory& memory, int operation, uint64_t seed, Tally* tally) {
  const auto make = [&](Choices& choices) { return fuzz::makeCallOf(operation, choices); };
  Choices choices(seed);
  const auto call = make(choices);
  Machine reserved("reserved", cpu(1), memory);
  const fuzz::Outcome expected = fuzz::run(reserved, *call, 0xA5);
  if (expected.status != RBC_STATUS_SUCCESS) return;
  const auto size = call->size;
  for (int64_t n = 1; n < 100; ++n) {
    Machine machine("the allocator fails at " + std::to_string(n), cpu(1), memory, 0);
    call->size = nullptr;  // nothing is reserved
    // Accumulators are made before the calls under test.
    const int64_t before = machine.allocations();
    machine.failFrom(n);
    const fuzz::Outcome outcome = fuzz::run(machine, *call, 0xA5);
    machine.failFrom(0);
    ++tally->calls;
    const bool failed = machine.allocations() - before >= n;
    if (failed && call->accumulators.empty()) {
      ++tally->failed;
      if (outcome.status != RBC_STATUS_OUT_OF_MEMORY) fuzz::report(machine, *call, "did not fail");
    }
    const fuzz::Outcome again = fuzz::run(machine, *call, 0xA5);
    if (again.status != RBC_STATUS_SUCCESS || again.output != expected.output) {
      fuzz::report(machine, *call, "does not work after it: " + again.message);
    }
    if (!failed) break;
  }
  call->size = size;
}

using Program = void (*)(Machine&, Choices, fuzz::Transcript&);

int64_t held() {
  const malloc_counter::Counts counts = malloc_counter::counts();
  return counts.process - counts.freed;
}

// Whether the CUDA runtime runs: it is linked into the library, can do without some of its
// allocations, and its threads allocate during any call.
bool runsCuda() {
  static const bool runs = [] {
    rbcContextParams params = rbcContextParamsInit();
    params.backend = RBC_BACKEND_CUDA;
    rbcContext_t context = nullptr;
    const rbcStatus_t status = rbcContextCreate(&params, &context);
    rbcContextDestroy(context);
    return status == RBC_STATUS_SUCCESS;
  }();
  return runs;
}

// Fails each allocation that the library's code makes in play(), one at a time. play() returns
// whether a call gave OUT_OF_MEMORY. With several threads that is not required: calls work without
// the threads.
template <class Play>
void failHost(Play&& play, int32_t threads, Tally* tally) {
  const bool has_runtime = runsCuda();
  play();  // allocations that are made only once are made here
  const int64_t before = malloc_counter::counts().library;
  play();
  const int64_t allocations = malloc_counter::counts().library - before;
  for (int64_t n = 1; n <= allocations; ++n) {
    bool out_of_memory = false;
    int64_t kept = 1;
    // The CUDA runtime also allocates what it keeps; but only a leak of a call comes each time.
    for (int attempt = 0; kept != 0 && attempt < (has_runtime ? 5 : 1); ++attempt) {
      const int64_t live = held();
      malloc_counter::failLibraryAt(n);
      out_of_memory = play();
      malloc_counter::failLibraryAt(0);
      ++tally->calls;
      tally->failed += out_of_memory ? 1 : 0;
      // Threads of the CUDA runtime allocate and free at any time.
      for (int ms = 0; has_runtime && held() != live && ms < 100; ++ms) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      kept = held() - live;
    }
    if (kept != 0) {
      throw Defect("allocation " + std::to_string(n) + " of the host fails, and " +
                   std::to_string(kept) + " others are never freed");
    }
    if (!out_of_memory && !has_runtime && threads == 1)
      throw Defect("allocation " + std::to_string(n) + " of the host fails unnoticed");
  }
}

// The programs mostly allocate handles.
void failProgram(fuzz::Memory& memory, Program program, uint64_t seed, Tally* tally) {
  Machine machine("host memory fails", cpu(1), memory);
  failHost(
      [&] {
        fuzz::Transcript transcript;
        program(machine, Choices(seed), transcript);
        memory.place({});  // and frees the memory of the program
        return transcript.text().find("RBC_STATUS_OUT_OF_MEMORY") != std::string::npos;
      },
      1, tally);
}

// A context without an allocator, whose workspace grows during the call.
void failWorkspace(fuzz::Memory& memory, int operation, uint64_t seed, Tally* tally) {
  Choices choices(seed);
  const auto call = fuzz::makeCallOf(operation, choices);
  call->size = nullptr;  // so that run() reserves nothing
  const int32_t threads = seed % 3 == 2 ? 3 : 1;
  fuzz::Outcome expected;
  const auto play = [&] {
    std::unique_ptr<Machine> machine;
    try {
      machine = std::make_unique<Machine>("host memory fails", cpu(threads), memory, 0,
                                          fuzz::Allocator::kLibrary);
    } catch (const Defect& defect) {  // rbcContextCreate failed
      if (std::strstr(defect.what(), "host memory is exhausted") == nullptr) throw;
      return true;
    }
    const fuzz::Outcome outcome = fuzz::run(*machine, *call, 0xA5);
    const bool lacks_memory = outcome.status == RBC_STATUS_OUT_OF_MEMORY;
    const fuzz::Outcome again = lacks_memory ? fuzz::run(*machine, *call, 0xA5) : outcome;
    if (expected.output.empty()) expected = again;
    const bool equal = again.status == expected.status && again.output == expected.output;
    if (!equal && fuzz::isSpecified(*machine, *call)) {
      fuzz::report(*machine, *call, "does not work after it: " + again.message);
    }
    memory.place({});
    return lacks_memory;
  };
  failHost(play, threads, tally);
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t cases = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 12;
  const auto memory = fuzz::hostMemory();
  Tally allocator;
  Tally host;
  int defects = 0;
  Allocating allocating;
  fuzz::condition = &allocating;
  const auto guarded = [&](const std::string& what, auto&& body) {
    try {
      body();
    } catch (const Defect& defect) {
      std::fprintf(stderr, "%s: %s\n", what.c_str(), defect.what());
      ++defects;
    }
  };
  for (uint64_t seed = 0; seed < cases; ++seed) {
    for (int operation = 0; operation < fuzz::numOperations(); ++operation) {
      guarded("operation " + std::to_string(operation) + " seed " + std::to_string(seed),
              [&] { failAllocator(*memory, operation, seed, &allocator); });
      guarded(
          "workspace of operation " + std::to_string(operation) + " seed " + std::to_string(seed),
          [&] { failWorkspace(*memory, operation, seed, &host); });
    }
    int number = 0;
    for (const Program program : {fuzz::accumulatorProgram, fuzz::tensorProgram, fuzz::liveProgram,
                                  fuzz::contextProgram, fuzz::storeProgram}) {
      guarded("program " + std::to_string(number++) + " seed " + std::to_string(seed),
              [&] { failProgram(*memory, program, seed, &host); });
    }
  }
  std::printf(
      "allocator: %lld calls, %lld without memory; host: %lld programs, %lld without memory\n",
      static_cast<long long>(allocator.calls), static_cast<long long>(allocator.failed),
      static_cast<long long>(host.calls), static_cast<long long>(host.failed));
  const bool counted = RBC_TEST_COUNTS_MALLOC == 0 || host.failed > 0;
  if (allocator.failed == 0 || !counted) {
    std::fprintf(stderr, "nothing failed\n");
    ++defects;
  }
  const int unfailed = allocating.report();
  if (!runsCuda()) defects += unfailed;
  return defects > 0 ? 1 : 0;
}
