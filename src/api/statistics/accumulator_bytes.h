// An accumulator's state as bytes, and back: words of 64 bits, the least significant byte first. The
// same state is the same bytes.
#pragma once

#include <cstddef>
#include <vector>

#include "statistics/accumulator_state.h"

namespace rbc {

std::vector<uint64_t> toWords(const AccumulatorData& data);

// Fails with INVALID_ARGUMENT or UNSUPPORTED for what toWords() has not made, unless somebody has made
// it up with the right checksum: then all that is used as a place or a size is in range.
AccumulatorData fromWords(const uint64_t* words, size_t count);

// A number for what later passes have to agree in: all but what the pass itself has counted.
uint64_t digestOf(const AccumulatorData& data);

}  // namespace rbc
