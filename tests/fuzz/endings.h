// Objects that are cancelled, refused or shared during a call.
#pragma once

#include "fuzz/programs.h"

namespace fuzz {

// Cancels the call through its context's interrupt, at some point: it fails with CANCELLED, and the
// next call on that context gives the usual results. Throws a Defect if not.
void endHalfWay(Machine& machine, Call& call, Choices& choices);

// An accumulator with its own context: more samples than allowed, a call that is cancelled halfway,
// and other contexts that try to use it.
void endAccumulator(Choices& choices);

// A context that is called again by its own allocator, during a call.
void callFromAllocator();

// Threads that push to one stream and fuse at once: each call succeeds, or it is refused.
void shareLive(Choices& choices);

}  // namespace fuzz
