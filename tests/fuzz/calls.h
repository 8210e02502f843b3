// Valid calls of every operation, with any arguments.
#pragma once

#include <memory>

#include "fuzz/call.h"

namespace fuzz {

// Adds the function that makes valid calls of an operation, in the file of that function. Inputs,
// such as those of regressions.hex, choose an operation by its number: a new one takes the next.
class Maker {
 public:
  Maker(int number, std::unique_ptr<Call> (*make)(Choices&));
};

// A call of any operation, with any arguments, sometimes spoiled.
std::unique_ptr<Call> makeCall(Choices& choices);
// A valid call with an extent so large that threads divide the work, and that it can be cancelled
// halfway.
std::unique_ptr<Call> makeLargeCall(Choices& choices);
// A valid call of operation `index`, 0 .. numOperations() - 1.
std::unique_ptr<Call> makeCallOf(int index, Choices& choices);
int numOperations();

// An extent: sometimes 0, mostly small, sometimes enough work for several threads.
int64_t anyExtent(Choices& choices, int64_t usual);

}  // namespace fuzz
