// The kinds of contexts that must agree.
#pragma once

#include <memory>
#include <vector>

#include "fuzz/machine.h"

namespace fuzz {

struct Machines {
  std::vector<std::unique_ptr<Memory>> memories;
  std::vector<std::unique_ptr<Machine>> all;  // the first one is the reference for the others
};

// The machines of this program: only the CPU, or CUDA too.
Machines machinesHere();

// Bytes of GPU memory in use, by any process; 0 without a GPU.
int64_t deviceBytesInUse();

// One thread without vectors, and every available SIMD level with 1, 2 and 5 threads.
Machines cpuMachines();

// Adds contexts of a GPU.
void addCuda(Machines& machines, std::unique_ptr<Memory> memory, int contexts);

}  // namespace fuzz
