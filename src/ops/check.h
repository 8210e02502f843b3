// Verification of times, lengths and offsets, and the words for what was found.
#pragma once

#include "context.h"
#include "fuse_problem.h"

namespace rbc {

// The first offset, length or query length out of range, in this order; true if there is one. For
// arrays that the host can read.
bool findIndexDefect(const FuseProblem& problem, const FuseStream& stream, TimesDefect* defect);

// Fails with INVALID_ARGUMENT if the defect is one.
void reportDefect(const FuseProblem& problem, const FuseStream& stream, const TimesDefect& defect);

// Fails with UNSUPPORTED where the check of times cannot wait for the context's stream.
void requireCheckable(const rbcContext& context);

// Verifies a stream: its times too if asked to, which waits for the stream of the context; else
// what the host can read. `array` is the name of the array of streams in errors, or null.
void checkStream(rbcContext& context, const FuseProblem& problem, int stream, bool times,
                 const char* array);

// The workspace that this takes.
size_t checkBytes(const rbcContext& context, bool times);

}  // namespace rbc
