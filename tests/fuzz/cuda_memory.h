// Memory of a GPU, for machines of it.
#pragma once

#include <memory>

#include "fuzz/machine.h"

namespace fuzz {

bool hasDevice();
std::unique_ptr<Memory> deviceMemory();

}  // namespace fuzz
