// Checks that an output can be written without changing another tensor or one of its elements
// twice.
#pragma once

#include "view.h"

namespace rbc {

// Fails if two elements of an output share memory (a stride of 0, say).
void requireDistinctElements(const View& output, const char* argument);

// Fails if an output shares memory with another tensor. Tensors interleaved in one buffer, such as
// two column ranges of one matrix, are recognized as disjoint.
void requireDisjoint(const View& output, const char* argument, const View& other,
                     const char* other_argument);

}  // namespace rbc
