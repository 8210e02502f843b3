#include "fuzz/session.h"

#include "fuzz/calls.h"
#include "fuzz/endings.h"
#include "fuzz/programs.h"

namespace fuzz {
namespace {

using Program = void (*)(Machine&, Choices, Transcript&);
constexpr Program kPrograms[] = {accumulatorProgram, tensorProgram, liveProgram, contextProgram,
                                 storeProgram};
constexpr const char* kNames[] = {"accumulators", "tensors", "live", "contexts", "stores"};

// Tests that need more than a program on one machine.
void endings(size_t program, Choices& choices) {
  if (program == 0) endAccumulator(choices);
  if (program == 2) shareLive(choices);
  if (program == 3) callFromAllocator();
}

}  // namespace

Session::Session(Machines machines) : machines_(std::move(machines)) {}

void Session::play(Choices choices) {
  std::vector<Machine*> others;
  for (size_t i = 1; i < machines_.all.size(); ++i) others.push_back(machines_.all[i].get());
  Machine& first = *machines_.all[0];
  const int64_t kind = choices.below(64);
  constexpr int64_t kStore = 62;
  if (kind >= 12 && kind != kStore) {
    const bool large = kind == 63 && choices.chance(6);
    const auto call = large ? makeLargeCall(choices) : makeCall(choices);
    const Outcome outcome = Comparison(first, others).check(*call, choices);
    ++tally_[call->name() + " " + rbcStatusName(outcome.status)];
    if (large && !first.onCuda()) endHalfWay(first, *call, choices);
    return;
  }
  const auto program = static_cast<size_t>(kind < 6         ? 0
                                           : kind < 8       ? 1
                                           : kind < 11      ? 2
                                           : kind != kStore ? 3
                                                            : 4);
  const int64_t last = static_cast<int64_t>(others.size());
  Machine& other = others.empty() ? first : *others[static_cast<size_t>(choices.below(last))];
  Transcript expected;
  Transcript got;
  kPrograms[program](first, choices, expected);
  kPrograms[program](other, choices, got);
  program_calls_ += expected.calls() + got.calls();
  ++tally_[kNames[program]];
  if (choices.chance(10)) endings(program, choices);
  // Once memory is exhausted, the rest of a program differs between machines. It also differs on
  // another device if that, or the contents of arrays, is refused there.
  const auto has = [&](rbcStatus_t status) {
    const char* const name = rbcStatusName(status);
    return expected.text().find(name) != std::string::npos ||
           got.text().find(name) != std::string::npos;
  };
  const bool may_differ =
      has(RBC_STATUS_OUT_OF_MEMORY) ||
      (other.onCuda() && (has(RBC_STATUS_DEVICE_MISMATCH) || has(RBC_STATUS_INVALID_ARGUMENT)));
  if (expected.text() != got.text() && !may_differ) {
    throw Defect(other.name() + ": " + kNames[program] + " gave\n" + got.text() + "\n" +
                 first.name() + " gave\n" + expected.text());
  }
}

}  // namespace fuzz
