// The formulas that make a value out of samples.
#pragma once

#include <cmath>

#include "platform.h"

namespace rbc {

// v0 + w (v1 - v0), rounded once at the end; w = 0 gives v0 whatever v1 is. All in the compute
// type.
RBC_HD float lerp(float v0, float v1, float w) { return w == 0 ? v0 : fmaf(w, v1 - v0, v0); }
RBC_HD double lerp(double v0, double v1, double w) { return w == 0 ? v0 : fma(w, v1 - v0, v0); }

}  // namespace rbc
