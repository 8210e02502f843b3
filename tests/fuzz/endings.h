// What is ended, refused or shared while it runs.
#pragma once

#include "fuzz/programs.h"

namespace fuzz {

// Ends the call by its context's interrupt, at some place: it fails with CANCELLED, and the next one on
// that context gives what it always gives. Throws a Defect if not.
void endHalfWay(Machine& machine, Call& call, Choices& choices);

// An accumulator of a context of its own: more samples than it takes, a call that is ended and leaves it
// half way, and other contexts that are to use it.
void endAccumulator(Choices& choices);

// A context that is called once more by its own allocator, while it serves a call.
void callFromAllocator();

// Threads that push to one stream and fuse at once: each call is made, or it is refused.
void shareLive(Choices& choices);

}  // namespace fuzz
