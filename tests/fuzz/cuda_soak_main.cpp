// The machines of robocache_soak in a build with CUDA: all of the CPU, and contexts of a GPU if there is one.
#include "fuzz/cuda_memory.h"
#include "fuzz/machines.h"

fuzz::Machines fuzz::machinesHere() {
  Machines machines = cpuMachines();
  // As many as make about half of the calls.
  if (hasDevice()) addCuda(machines, deviceMemory(), 4);
  return machines;
}
