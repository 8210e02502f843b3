// The bisection of all searches.
#pragma once

#include "platform.h"

namespace rbc {

// The last i of low .. high - 1 with before(i). That low is before, and high is not, is taken for
// granted.
template <class Index, class Before>
RBC_HD Index bisect(Index low, Index high, Before&& before) {
  while (high - low > 1) {
    const Index middle = low + (high - low) / 2;
    (before(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace rbc
