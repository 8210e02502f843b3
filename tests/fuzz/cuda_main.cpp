// The machines of robocache_fuzz_cuda: the CPU as the reference, and a CUDA context.
#include "fuzz/cuda_memory.h"
#include "fuzz/machines.h"

fuzz::Machines fuzz::machinesHere() {
  Machines machines;
  machines.memories.push_back(hostMemory());
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = 1;
  machines.all.push_back(std::make_unique<Machine>("CPU", params, *machines.memories[0]));
  addCuda(machines, deviceMemory(), 1);
  return machines;
}
