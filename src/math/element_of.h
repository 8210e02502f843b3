// Reads an element of a tensor from its bits.
#pragma once

#include <cstdint>
#include <cstring>

#include "platform.h"

namespace rbc {

// The element in the low bytes: problems store fill values and empty values like this, for all
// dtypes.
template <class Element>
RBC_HD Element elementOf(const uint64_t& bits) {
  Element element;
  memcpy(&element, &bits, sizeof element);
  return element;
}

}  // namespace rbc
