// The number of parts.
#pragma once

#include <cstdint>

#include "platform.h"

namespace rbc {

// a / b rounded up, for a >= 0 and b > 0; a + b may overflow.
RBC_HD int64_t ceilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace rbc
