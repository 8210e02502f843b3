// Tells whether the process was forked since some moment.
#pragma once

#include <cstdint>

namespace rbc {

// How many forks lie between the first caller's process and this one. Costs a load.
uint64_t forkGeneration() noexcept;

}  // namespace rbc
