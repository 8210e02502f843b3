// RBC_ROTATION_... as arguments.
#pragma once

#include "rotation_kind.h"

namespace rbc {

// Fails if the constant is unknown; `argument` is for error messages.
RotationFormat rotationFormatOf(int32_t value, const char* argument);

// Returns the name of a representation, for error messages.
const char* textOf(const RotationFormat& format);

}  // namespace rbc
