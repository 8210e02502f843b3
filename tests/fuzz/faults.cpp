// Memory that is not there: the n-th allocation of the caller's allocator, and of the library's own code,
// fails, for every n of every operation and of programs of calls. Each ends with a clear status, writes
// nothing, leaks nothing, and leaves a context that works.
//
//   robocache_faults [CASES]    of each operation and program; 12 if none are told
#include <chrono>
#include <cstdio>
#include <cstdlib>
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
  int64_t failed = 0;  // of them, for want of memory
};

rbcContextParams cpu(int32_t threads) {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = threads;
  return params;
}

// The allocator's n-th allocation: a workspace that cannot grow, for a call that has not reserved it.
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
    // Accumulators are made before what this is about.
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

// CUDA's runtime is linked into the library, and can do without some of what it allocates.
bool runsCuda() {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CUDA;
  rbcContext_t context = nullptr;
  const bool runs = rbcContextCreate(&params, &context) == RBC_STATUS_SUCCESS;
  rbcContextDestroy(context);
  return runs;
}

// What the library's code itself allocates: handles, for the most part.
void failHost(fuzz::Memory& memory, Program program, uint64_t seed, Tally* tally) {
  static const bool has_runtime = runsCuda();
  Machine machine("host memory fails", cpu(1), memory);
  const auto play = [&] {
    fuzz::Transcript transcript;
    program(machine, Choices(seed), transcript);
    memory.place({});  // and holds on to nothing of the program
    return transcript.text().find("RBC_STATUS_OUT_OF_MEMORY") != std::string::npos;
  };
  play();  // what is made once is made
  const int64_t before = malloc_counter::counts().library;
  play();
  const int64_t allocations = malloc_counter::counts().library - before;
  for (int64_t n = 1; n <= allocations; ++n) {
    const int64_t live = held();
    malloc_counter::failLibraryAt(n);
    const bool told = play();
    malloc_counter::failLibraryAt(0);
    ++tally->calls;
    tally->failed += told ? 1 : 0;
    // Threads of CUDA's runtime allocate and give back when they like.
    for (int ms = 0; has_runtime && held() != live && ms < 100; ++ms) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (held() != live) {
      throw Defect("allocation " + std::to_string(n) + " of the host fails, and " +
                   std::to_string(held() - live) + " others are never given back");
    }
    if (!told && !has_runtime)
      throw Defect("allocation " + std::to_string(n) + " of the host fails unnoticed");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t cases = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 12;
  const auto memory = fuzz::hostMemory();
  Tally allocator;
  Tally host;
  int defects = 0;
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
    }
    int number = 0;
    for (const Program program :
         {fuzz::accumulatorProgram, fuzz::tensorProgram, fuzz::liveProgram, fuzz::contextProgram}) {
      guarded("program " + std::to_string(number++) + " seed " + std::to_string(seed),
              [&] { failHost(*memory, program, seed, &host); });
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
  return defects > 0 ? 1 : 0;
}
