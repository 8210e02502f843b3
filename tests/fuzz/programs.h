// Sequences of calls on handles: their results are recorded, so that machines can be compared.
#pragma once

#include <string>
#include <vector>

#include "fuzz/check.h"

namespace fuzz {

// The record of a program: statuses, messages and bytes, in order.
class Transcript {
 public:
  // Records the result of a function; throws a Defect if its message is wrong. Messages with paths
  // differ from run to run, and are only checked.
  rbcStatus_t ended(rbcStatus_t status, const std::string& function,
                    const std::vector<std::string>& arguments, bool has_path = false);
  void bytes(const void* data, size_t size);
  void outcome(const Outcome& outcome);

  const std::string& text() const { return text_; }
  // Number of functions called.
  int64_t calls() const { return calls_; }

 private:
  std::string text_;
  int64_t calls_ = 0;
};

// Each makes the same calls on every machine, for the same choices.
void accumulatorProgram(Machine& machine, Choices choices, Transcript& transcript);
void tensorProgram(Machine& machine, Choices choices, Transcript& transcript);
void liveProgram(Machine& machine, Choices choices, Transcript& transcript);
void contextProgram(Machine& machine, Choices choices, Transcript& transcript);
void storeProgram(Machine& machine, Choices choices, Transcript& transcript);

}  // namespace fuzz
