#include "fuzz/session.h"

#include "fuzz/calls.h"
#include "fuzz/programs.h"

namespace fuzz {
namespace {

using Program = void (*)(Machine&, Choices, Transcript&);
constexpr Program kPrograms[] = {accumulatorProgram, tensorProgram, liveProgram, contextProgram};
constexpr const char* kNames[] = {"accumulators", "tensors", "live", "contexts"};

}  // namespace

Session::Session(Machines machines) : machines_(std::move(machines)) {}

void Session::play(Choices choices) {
  std::vector<Machine*> others;
  for (size_t i = 1; i < machines_.all.size(); ++i) others.push_back(machines_.all[i].get());
  Machine& first = *machines_.all[0];
  const int64_t kind = choices.below(64);
  if (kind >= 12) {
    const auto call = makeCall(choices);
    const Outcome outcome = Comparison(first, others).check(*call, choices);
    ++tally_[call->name() + " " + rbcStatusName(outcome.status)];
    return;
  }
  const auto which = static_cast<size_t>(kind < 6 ? 0 : kind < 8 ? 1 : kind < 11 ? 2 : 3);
  const int64_t last = static_cast<int64_t>(others.size());
  Machine& other = others.empty() ? first : *others[static_cast<size_t>(choices.below(last))];
  Transcript expected;
  Transcript got;
  kPrograms[which](first, choices, expected);
  kPrograms[which](other, choices, got);
  ++tally_[kNames[which]];
  // Where memory gives out, what follows is another story on each machine.
  const auto lacks_memory = [](const Transcript& t) {
    return t.text().find(rbcStatusName(RBC_STATUS_OUT_OF_MEMORY)) != std::string::npos;
  };
  if (expected.text() != got.text() && !lacks_memory(expected) && !lacks_memory(got)) {
    throw Defect(other.name() + ": " + kNames[which] + " gave\n" + got.text() + "\n" +
                 first.name() + " gave\n" + expected.text());
  }
}

}  // namespace fuzz
