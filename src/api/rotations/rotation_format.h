// RBC_ROTATION_... as arguments.
#pragma once

#include "rotation_kind.h"

namespace rbc {

// Fails if the constant is none; `argument` is the name to tell.
RotationFormat rotationFormatOf(int32_t value, const char* argument);

// What rotations of the format are called.
const char* textOf(const RotationFormat& format);

}  // namespace rbc
