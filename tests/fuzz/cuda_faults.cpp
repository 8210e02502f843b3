// Makes calls of the CUDA runtime fail: the n-th one, for every n of every operation, of a
// context's small functions and of its creation. Each call must return a status for it, or give the
// right bits; nothing leaks, and the context keeps working.
//
//   robocache_cuda_faults [CASES]    per operation; default 12
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "fuzz/calls.h"
#include "fuzz/check.h"
#include "fuzz/cuda_memory.h"
#include "fuzz/cuda_shim.h"
#include "fuzz/machines.h"

namespace {

using fuzz::Choices;
using fuzz::Defect;
using fuzz::Machine;

constexpr int64_t kMaxCalls = 100000;  // no call makes this many calls of the runtime

struct Tally {
  int64_t noticed = 0;
  int64_t unnoticed = 0;  // succeeded anyway, for example when memory was freed
};
std::map<std::string, Tally> tally;  // by the function that failed

rbcContextParams cuda() {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CUDA;
  return params;
}

// Functions that may fail unnoticed: no result depends on them.
bool mayFailUnnoticed(const char* function) {
  for (const char* const name :
       {"cudaFreeAsync", "cudaEventDestroy", "cudaStreamDestroy", "cudaGetDevice", "cudaSetDevice",
        "cudaGetDriverEntryPointByVersion"}) {
    if (std::strcmp(function, name) == 0) return true;
  }
  return false;
}

// Records how a call ended in which a runtime call failed; returns false if none did.
bool note(rbcStatus_t status, const std::string& what) {
  const char* const function = cuda_shim::failed();
  if (function == nullptr) {
    if (status != RBC_STATUS_SUCCESS)
      throw Defect(what + " failed by itself: " + rbcGetLastError());
    return false;
  }
  const std::string report_text =
      what + ", " + function + " failing, gave " + rbcStatusName(status);
  Tally& counts = tally[function];
  if (status == RBC_STATUS_SUCCESS) {
    ++counts.unnoticed;
    if (!mayFailUnnoticed(function)) throw Defect(report_text);
    return true;
  }
  ++counts.noticed;
  const std::string message = rbcGetLastError();
  if (status != RBC_STATUS_CUDA_ERROR && status != RBC_STATUS_OUT_OF_MEMORY &&
      status != RBC_STATUS_NOT_AVAILABLE) {
    throw Defect(report_text + " \"" + message + "\"");
  }
  if (message.empty()) throw Defect(report_text + " without a message");
  return true;
}

// Runs an operation, or its workspace size, with its n-th runtime call failing; then again without
// a failure.
void failOperation(fuzz::Memory& memory, int operation, uint64_t seed) {
  Choices choices(seed);
  const auto call = fuzz::makeCallOf(operation, choices);
  Machine machine("CUDA", cuda(), memory);
  const fuzz::Outcome expected = fuzz::run(machine, *call, 0xA5);
  if (expected.status != RBC_STATUS_SUCCESS) return;
  const auto run = call->run;
  const auto size = call->size;
  const bool repeats = call->accumulators.empty();  // accumulators keep the first call's effects
  for (int64_t n = 1; n < kMaxCalls; ++n) {
    bool failed = false;
    const auto once = [&](auto&& function) {
      cuda_shim::failAt(n);
      const rbcStatus_t status = function();
      const bool did = note(status, call->name());
      cuda_shim::failAt(0);
      failed = failed || did;
      return status != RBC_STATUS_SUCCESS && repeats ? function() : RBC_STATUS_SUCCESS;
    };
    call->run = [&](rbcContext_t context, const fuzz::Handles& handles) {
      return once([&] { return run(context, handles); });
    };
    if (size) {
      call->size = [&](rbcContext_t context, const fuzz::Handles& handles, size_t* bytes) {
        const rbcStatus_t status = once([&] { return size(context, handles, bytes); });
        return repeats ? status : size(context, handles, bytes);
      };
    }
    const size_t blocks = machine.liveBlocks();
    const fuzz::Outcome outcome = fuzz::run(machine, *call, 0xA5);
    call->run = run;
    call->size = size;
    if (outcome.status != RBC_STATUS_SUCCESS) {
      fuzz::report(machine, *call, "does not work again: " + outcome.message);
    }
    if (repeats && outcome.output != expected.output) {
      fuzz::report(machine, *call, "gives other bits after it");
    }
    if (machine.liveBlocks() > blocks) fuzz::report(machine, *call, "keeps memory");
    if (!failed) break;
  }
  const fuzz::Outcome after = fuzz::run(machine, *call, 0xA5);
  if (after.output != expected.output) fuzz::report(machine, *call, "gives other bits at the end");
}

// The same for a function without results to compare.
template <class Function>
void failEach(const std::string& what, Function&& function) {
  for (int64_t n = 1; n < kMaxCalls; ++n) {
    cuda_shim::failAt(n);
    const rbcStatus_t status = function();
    const bool failed = note(status, what);
    cuda_shim::failAt(0);
    if (!failed) return;
  }
}

void failContexts() {
  failEach("rbcContextCreate", [] {
    rbcContextParams params = cuda();
    rbcContext_t context = nullptr;
    const rbcStatus_t status = rbcContextCreate(&params, &context);
    if (status != RBC_STATUS_SUCCESS && context != nullptr)
      throw Defect("a handle after a failure");
    if (status == RBC_STATUS_SUCCESS) rbcContextDestroy(context);
    return status;
  });
  rbcContextParams params = cuda();  // the library's own allocator
  rbcContext_t context = nullptr;
  if (rbcContextCreate(&params, &context) != RBC_STATUS_SUCCESS) throw Defect(rbcGetLastError());
  failEach("rbcContextWarmUp", [&] { return rbcContextWarmUp(context); });
  size_t bytes = size_t{1} << 20;
  failEach("rbcContextReserve", [&] { return rbcContextReserve(context, bytes += 4096); });
  failEach("rbcContextSynchronize", [&] { return rbcContextSynchronize(context); });
  rbcContextDestroy(context);
}

}  // namespace

int main(int argc, char** argv) {
  if (!fuzz::hasDevice()) {
    std::printf("SKIPPED: no CUDA device\n");
    return 0;
  }
  const uint64_t cases = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 12;
  const auto memory = fuzz::deviceMemory();
  int defects = 0;
  const auto guarded = [&](const std::string& what, auto&& body) {
    try {
      body();
    } catch (const Defect& defect) {
      cuda_shim::failAt(0);
      std::fprintf(stderr, "%s: %s\n", what.c_str(), defect.what());
      ++defects;
    }
  };
  guarded("contexts", failContexts);
  for (uint64_t seed = 0; seed < cases; ++seed) {
    for (int operation = 0; operation < fuzz::numOperations(); ++operation) {
      guarded("operation " + std::to_string(operation) + " seed " + std::to_string(seed),
              [&] { failOperation(*memory, operation, seed); });
    }
  }
  for (const auto& [function, counts] : tally) {
    std::printf("%-50s failed %6lld times, unnoticed %lld\n", function.c_str(),
                static_cast<long long>(counts.noticed + counts.unnoticed),
                static_cast<long long>(counts.unnoticed));
  }
  std::printf("defects: %d\n", defects);
  if (tally.empty()) {
    std::fprintf(stderr, "nothing failed\n");
    return 1;
  }
  return defects > 0 ? 1 : 0;
}
