// Limits and offsets of times as arguments, in the dtype of times.
#pragma once

#include "fuse_problem.h"

namespace rbc {

// `name` is the name to tell; infinity is no limit.
TimeLimit timeLimitOf(double limit, DType time_dtype, const char* name);

// Of the two fields the one that suits the times; fails if the other one is set.
TimeOffset clockOffsetOf(double clock_offset, int64_t clock_offset_ticks, DType time_dtype);

}  // namespace rbc
