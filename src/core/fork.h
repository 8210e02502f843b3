// Detects whether the process was forked.
#pragma once

#include <cstdint>

namespace rbc {

// Number of forks between the first caller's process and this one. Costs one load.
uint64_t forkGeneration() noexcept;

}  // namespace rbc
