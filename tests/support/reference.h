// What rbcResample and rbcFuse must write, worked out from the rules in their headers and from
// nothing else.
//
// The rules are applied by scanning the times one by one. Every element is then held against the
// exact result in long double, with the bound that the stated arithmetic allows; and, for samples,
// lines and what comes after them, against that arithmetic itself, to the bit.
#pragma once

#include <string>
#include <vector>

#include "cases.h"
#include "fuse_cases.h"

namespace support {

// An output as a call left it: elements in row-major order.
struct Output {
  std::vector<uint64_t> out;
  std::vector<uint64_t> mask;  // empty if the case has none

  bool operator==(const Output& other) const { return out == other.out && mask == other.mask; }
  bool operator!=(const Output& other) const { return !(*this == other); }
};
using ResampleOutput = Output;

// "" if the output is right, else the first element that is not, and what it should be.
std::string firstError(const ResampleInputs& inputs, const Output& output);
std::string firstError(const FuseInputs& inputs, const Output& output);

}  // namespace support
