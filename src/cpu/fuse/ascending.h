// Whether times ascend, a vector at a time.
#pragma once

#include <cstdint>

#include "runtime/simd.h"

namespace rbc::cpu {

// Whether times[0] is a number and no step to times[1 .. n-1] is a badStep(). n > 0.
template <class Time>
bool ascends(SimdLevel level, const Time* times, int64_t n);

}  // namespace rbc::cpu
