// What rbcWindows must write, worked out from the rules of its header one element after the other.
//
// Interpolated rows are those of rbcResample, as the header has it. Poses are worked out with 113
// bits, and held against the result with a bound; everything else to the bit.
#pragma once

#include <string>

#include "support/window_call.h"

namespace support {

// "" if what a call wrote is right, else the first element that is not.
std::string firstError(const WindowCall& call, const WindowResult& result);

}  // namespace support
