// What an attacker does to a call that was good.
#pragma once

#include "fuzz/call.h"

namespace fuzz {

// Changes one thing, such as an extent, a stride, a pointer, a constant, a size, what an array holds.
// Memory fits what comes out, unless no memory could: then the library has to refuse it.
void spoil(Call& call, Choices& choices);

// Gives structs what does not go together: an input too many or too few, elements of several sizes, an
// accumulator for two streams. To be called once, after what else is spoilt.
void mismatch(Call& call, Choices& choices);

}  // namespace fuzz
