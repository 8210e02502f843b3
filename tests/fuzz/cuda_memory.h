// GPU memory for machines.
#pragma once

#include <memory>

#include "fuzz/machine.h"

namespace fuzz {

bool hasDevice();
std::unique_ptr<Memory> deviceMemory();

}  // namespace fuzz
