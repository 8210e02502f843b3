// A number as an element of a tensor.
#pragma once

#include "dtype.h"

namespace rbc {

// The element's bits, in the low bytes. Floats round; for bool and integers the number must be one
// of theirs, or the call fails with INVALID_ARGUMENT.
uint64_t elementBits(double value, DType dtype, const char* argument);

}  // namespace rbc
