// Verification of times, lengths and offsets of samples, and the words for what was found.
#pragma once

#include "context.h"
#include "fuse_problem.h"

namespace rbc {

// Fails for a length, offset or query length out of range; for arrays that the host can read.
// `array` is the name of the array of streams in errors, or null.
void verifySampleIndexes(const FuseProblem& problem, const char* array);

// Fails for a defect of `samples` times, or of the offsets of their rows.
void reportDefect(const TimesDefect& defect, DType time_dtype, int64_t samples,
                  const char* offsets = "offsets", const char* row = "row",
                  const char* noun = "samples");

// The workspace of checkTimes().
size_t checkTimesBytes(const rbcContext& context);

// Fails with UNSUPPORTED where the check of times cannot wait for the context's stream.
void requireCheckable(const rbcContext& context);

// Verifies the times of all streams, on the device their lengths and offsets as well. Waits for the
// context's stream.
void checkTimes(rbcContext& context, const FuseProblem& problem, Scratch scratch,
                const char* array);

}  // namespace rbc
