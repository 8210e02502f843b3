// Changes valid calls as an attacker would.
#pragma once

#include "fuzz/call.h"

namespace fuzz {

// Changes one thing, such as an extent, a stride, a pointer, a constant, a size, or the contents of
// an array. Memory fits the result, unless no memory could: then the library must refuse it.
void spoil(Call& call, Choices& choices);

// Makes structs inconsistent: an input too many or too few, elements of several sizes, an
// accumulator for two streams. Call once, after all other changes.
void mismatch(Call& call, Choices& choices);

}  // namespace fuzz
