// The kinds of contexts that have to agree.
#pragma once

#include <memory>
#include <vector>

#include "fuzz/machine.h"

namespace fuzz {

struct Machines {
  std::vector<std::unique_ptr<Memory>> memories;
  std::vector<std::unique_ptr<Machine>> all;  // the first one is what the others are held to
};

// Those of this program: the CPU alone, or CUDA too.
Machines machinesHere();

// How much memory of the GPU is in use, whoever uses it; 0 without one.
int64_t deviceBytesInUse();

// One thread without vectors, and every SIMD level that is here with 1, 2 and 5 threads.
Machines cpuMachines();

// Adds contexts of a GPU.
void addCuda(Machines& machines, std::unique_ptr<Memory> memory, int contexts);

}  // namespace fuzz
