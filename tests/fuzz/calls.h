// Good calls of every operation, with any arguments that it takes.
#pragma once

#include <memory>

#include "fuzz/call.h"

namespace fuzz {

// One of any operation, with any arguments, spoilt now and then.
std::unique_ptr<Call> makeCall(Choices& choices);
// A good one with an extent so large that threads share the work, and that it can be ended half way.
std::unique_ptr<Call> makeLargeCall(Choices& choices);
// A good one of operation `index`, 0 .. numOperations() - 1.
std::unique_ptr<Call> makeCallOf(int index, Choices& choices);
int numOperations();

// An extent: 0 now and then, small mostly, sometimes enough work for several threads.
int64_t anyExtent(Choices& choices, int64_t usual);

}  // namespace fuzz
