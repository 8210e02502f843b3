// What rbcResample must write, worked out from the rules in resample.h and from nothing else.
//
// The rules are applied by scanning the times one by one. Every element is then held against two
// answers: the exact result in long double, with the bound that the stated arithmetic allows, and
// that arithmetic itself, to the bit.
#pragma once

#include <string>
#include <vector>

#include "cases.h"

namespace support {

// An output as a call left it: elements in row-major order.
struct ResampleOutput {
  std::vector<uint64_t> out;
  std::vector<uint64_t> mask;  // empty if the case has none

  bool operator==(const ResampleOutput& other) const {
    return out == other.out && mask == other.mask;
  }
  bool operator!=(const ResampleOutput& other) const { return !(*this == other); }
};

// "" if the output is right, else the first element that is not, and what it should be.
std::string firstError(const ResampleInputs& inputs, const ResampleOutput& output);

}  // namespace support
