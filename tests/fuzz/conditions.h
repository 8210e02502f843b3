// Calls of the exported functions under a condition of the calling thread. The results have to
// equal the results of the same calls without the condition.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/entries.h"
#include "fuzz/machine.h"

namespace fuzz {

// One call of an operation, or a program of several calls. The kind and the seed determine it.
struct Play {
  int kind;
  uint64_t seed;
};

int numKinds();
bool isProgram(const Play& play);
std::string nameOf(const Play& play);

// Makes the calls of a play and returns their statuses, messages and results as text. Without a
// machine the play creates a context and destroys it.
std::string transcriptOf(const Play& play, Memory& memory);
std::string transcriptOf(const Play& play, Machine& machine);

// Whether the results may differ from run to run: times do not ascend and RBC_FLAG_CHECK_TIMES is
// not set.
bool isUnspecified(const Play& play, Memory& memory);

// Counts the calls of each function.
class Counting : public Condition {
 public:
  using Counts = std::array<std::atomic<int64_t>, kNumEntries>;

  void call(int entry, const Prepared& prepared) override {
    ++counts_[static_cast<size_t>(entry)];
    surround(entry, prepared);
  }
  const Counts& counts() const { return counts_; }
  // The first fault that the condition has found, or an empty text.
  const std::string& defect() const { return defect_; }

 protected:
  // Keeps the fault instead of throwing it, because destructors make calls too.
  void blame(int entry, const std::string& what) {
    if (defect_.empty()) defect_ = std::string(kEntryNames[entry]) + " " + what;
  }

 private:
  virtual void surround(int, const Prepared& prepared) { prepared(); }

  Counts counts_ = {};
  std::string defect_;
};

// The condition of all calls while it lives.
class Under {
 public:
  explicit Under(Condition& surrounding) { condition = &surrounding; }
  ~Under() { condition = nullptr; }
  Under(const Under&) = delete;
};

// Calls in a thread with 64 KiB of stack. A call may use half of it, as docs/abi.md promises.
class SmallStack : public Counting {
 public:
  SmallStack();
  ~SmallStack() override;
  // The function that uses the most stack, and how many bytes that is.
  int deepestEntry() const;
  size_t deepest() const;

 private:
  struct Worker;
  void surround(int entry, const Prepared& prepared) override;

  std::unique_ptr<Worker> worker_;
};

struct Expected {
  Play play;
  std::string transcript;
  std::array<int64_t, kNumEntries> counts;
};

// For every function, forks while another thread is at some instruction inside a call of it. The
// child repeats a play that calls the function, on a new context and on one of the parent, which it
// destroys. Returns the number of forks per function. Throws a Defect if a child hangs, crashes or
// gets other results.
std::array<int64_t, kNumEntries> forkInCalls(const std::vector<Expected>& plays, int forks_each);

}  // namespace fuzz
