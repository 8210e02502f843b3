// Times as arguments: limits and offsets in their dtype, and the verification of times, lengths and
// offsets of samples.
#pragma once

#include <type_traits>

#include "context.h"
#include "fuse_problem.h"
#include "times.h"

namespace rbc {

// ---- limits and offsets -------------------------------------------------------------------------

// `name` is for error messages; infinity means no limit.
TimeLimit timeLimitOf(double limit, DType time_dtype, const char* name);

// Returns whether two times are further apart than a limit allows.
template <class Time>
bool isFurther(Time a, Time b, TimeLimit limit) {
  if (!limit.set) return false;
  const auto span = a > b ? TimeMath<Time>::span(a, b) : TimeMath<Time>::span(b, a);
  if constexpr (std::is_same_v<Time, int64_t>) return span > limit.ticks;
  return static_cast<double>(span) > limit.real;
}

// Returns the offset from the field that fits the times; fails if the other field is set. The
// fields are `name` and `name`_ticks.
TimeOffset timeOffsetOf(double offset, int64_t ticks, DType time_dtype, const char* name);

// ---- verification -------------------------------------------------------------------------------

// Fails if a length, offset or query length is out of range; for arrays that the host can read.
// `array` is the name of the array of streams in errors, or null.
void verifySampleIndexes(const FuseProblem& problem, const char* array);

// Fails if `samples` times or the offsets of their rows have a defect.
void reportDefect(const TimesDefect& defect, DType time_dtype, int64_t samples,
                  const char* offsets = "batch_offsets", const char* row = "row",
                  const char* noun = "samples");

// Returns the workspace of checkTimes(), in bytes.
size_t checkTimesBytes(const rbcContext& context);

// Fails with UNSUPPORTED if the check of times cannot wait for the context's stream.
void requireCheckable(const rbcContext& context);

// Verifies the times of all streams, and for a device also their lengths and offsets. Waits for the
// context's stream.
void checkTimes(rbcContext& context, const FuseProblem& problem, Scratch scratch,
                const char* array);

}  // namespace rbc
