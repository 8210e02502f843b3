// The expected output of rbcWindows, computed by the rules of its header, element by element.
//
// Interpolated rows come from rbcResample, as in the header. Poses are computed with 113 bits, and
// compared with the result within a bound; everything else is compared bit by bit.
#pragma once

#include <string>

#include "support/window_call.h"

namespace support {

// "" if the output of a call is right, else the first wrong element.
std::string firstError(const WindowCall& call, const WindowResult& result);

}  // namespace support
