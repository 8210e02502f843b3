// Verification of lengths and offsets that the host can read, and the words for what was found.
#pragma once

#include "resample_problem.h"

namespace rbc {

// The first offset, length or query length out of range, in this order; true if there is one.
bool findIndexDefect(const ResampleProblem& problem, ResampleDefect* defect);

// Fails with INVALID_ARGUMENT if the defect is one.
void reportDefect(const ResampleProblem& problem, const ResampleDefect& defect);

}  // namespace rbc
