// The expected output of rbcResample and rbcFuse, computed only from the rules in their headers.
//
// The rules are applied by scanning the times one by one. Every element is then compared with the
// exact result in long double, within the bound that the stated arithmetic allows. Samples, lines
// and the steps after them are compared with that arithmetic itself, bit by bit.
#pragma once

#include <string>
#include <vector>

#include "cases.h"
#include "fuse_cases.h"

namespace support {

// The output of a call: elements in row-major order.
struct Output {
  std::vector<uint64_t> out;
  std::vector<uint64_t> mask;  // empty if the case has none

  bool operator==(const Output& other) const { return out == other.out && mask == other.mask; }
  bool operator!=(const Output& other) const { return !(*this == other); }
};
using ResampleOutput = Output;

// "" if the output is right, else the first wrong element and its expected value.
std::string firstError(const ResampleInputs& inputs, const Output& output);
std::string firstError(const FuseInputs& inputs, const Output& output);

}  // namespace support
