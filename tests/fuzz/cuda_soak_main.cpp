// The machines of robocache_soak in a build with CUDA: all machines of the CPU, and contexts of a
// GPU, if any.
#include "fuzz/cuda_memory.h"
#include "fuzz/machines.h"

fuzz::Machines fuzz::machinesHere() {
  Machines machines = cpuMachines();
  // Enough that they make about half of the calls.
  if (hasDevice()) addCuda(machines, deviceMemory(), 4);
  return machines;
}
