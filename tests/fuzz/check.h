// Runs a call and checks the guarantees that the library gives for every call, valid or not.
#pragma once

#include <string>
#include <vector>

#include "fuzz/call.h"
#include "fuzz/machine.h"

namespace fuzz {

struct Outcome {
  rbcStatus_t status = RBC_STATUS_SUCCESS;
  std::string message;          // of an error
  std::vector<uint8_t> output;  // the elements of all outputs, and exported accumulators
  size_t workspace = 0;
};

// Throws a Defect unless the following holds.
// An error wrote nothing (except outputs, if it is CANCELLED), is not INTERNAL, and its message
// names an argument.
// A success wrote only the elements of outputs, stayed within the workspace that it requested, and
// allocated nothing.
// The workspace, the outputs and the gaps between elements are filled with `poison` before.
Outcome run(Machine& machine, Call& call, uint8_t poison);

// Whether all inputs of the call are as its operation expects, so that its result is defined.
bool isSpecified(Machine& machine, Call& call);

// Runs a call on one machine, and again on others: throws a Defect unless they agree bit for bit.
class Comparison {
 public:
  Comparison(Machine& first, std::vector<Machine*> others)
      : first_(first), others_(std::move(others)) {}
  Outcome check(Call& call, Choices& choices);

 private:
  Machine& first_;
  std::vector<Machine*> others_;
};

// Throws a Defect with the call's description.
[[noreturn]] void report(const Machine& machine, const Call& call, const std::string& what);

// Throws a Defect unless an error of a function with these arguments has a proper message.
void checkMessage(rbcStatus_t status, const std::string& message,
                  const std::vector<std::string>& arguments, const std::string& function);

}  // namespace fuzz
