// Plays calls and programs of calls on machines that must agree.
#pragma once

#include <map>
#include <string>

#include "fuzz/check.h"
#include "fuzz/machines.h"

namespace fuzz {

class Session {
 public:
  explicit Session(Machines machines);

  // Throws a Defect if one was found.
  void play(Choices choices);

  // From the n-th allocation of a machine's allocator on memory is exhausted; 0: never.
  void failNext(int64_t n) {
    for (const auto& machine : machines_.all) machine->failFrom(n);
  }

  // The bytes of all contexts' workspaces, which only grow.
  size_t workspaceBytes() const {
    size_t bytes = 0;
    for (const auto& machine : machines_.all) bytes += machine->bytesOfContext();
    return bytes;
  }

  // Number of library functions called.
  int64_t calls() const {
    int64_t calls = program_calls_;
    for (const auto& machine : machines_.all) calls += machine->calls();
    return calls;
  }

  // The number of plays by function and status.
  const std::map<std::string, int64_t>& tally() const { return tally_; }

 private:
  Machines machines_;
  int64_t program_calls_ = 0;
  std::map<std::string, int64_t> tally_;
};

}  // namespace fuzz
