#include "fuzz/machines.h"

namespace fuzz {
namespace {

int never(void*) { return 0; }

}  // namespace

Machines cpuMachines() {
  Machines machines;
  const char* const levels[] = {"auto", "portable", "AVX2", "AVX-512", "NEON"};
  machines.memories.push_back(hostMemory());
  for (int32_t simd = RBC_SIMD_PORTABLE; simd <= RBC_SIMD_NEON; ++simd) {
    for (const int32_t threads : {1, 2, 5}) {
      rbcContextParams params = rbcContextParamsInit();
      params.backend = RBC_BACKEND_CPU;
      params.simd = simd;
      params.num_threads = threads;
      rbcContext_t probe = nullptr;
      if (rbcContextCreate(&params, &probe) != RBC_STATUS_SUCCESS)
        continue;  // not supported by this machine
      rbcContextDestroy(probe);
      machines.all.push_back(std::make_unique<Machine>(
          std::string(levels[simd]) + " with threads: " + std::to_string(threads), params,
          *machines.memories[0]));
      // Some have a cancel callback, which never cancels.
      if (threads == 2) rbcContextSetCancelCallback(machines.all.back()->context(), never, nullptr);
    }
  }
  return machines;
}

void addCuda(Machines& machines, std::unique_ptr<Memory> memory, int contexts) {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CUDA;
  for (int i = 0; i < contexts; ++i) {
    machines.all.push_back(std::make_unique<Machine>("CUDA", params, *memory));
  }
  machines.memories.push_back(std::move(memory));
}

}  // namespace fuzz
