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

// One thread without vectors, and every SIMD level that is here with 1, 2 and 5 threads.
Machines cpuMachines();

}  // namespace fuzz
