#include "operands.h"

#include <cstddef>
#include <cstdio>
#include <new>

#include "overlap.h"
#include "status.h"

namespace rbc {

const View& Operands::add(const rbcTensor* tensor, const char* name, bool written, Reach reach) {
  if (count_ == kMax) fail(RBC_STATUS_INTERNAL, "%s: too many operands", name);
  // Constructed in place: copying what has just been stored stalls the processor.
  auto* operand =
      new (operands_ + count_) Operand{normalize(tensor, name), name, stream_, array_, written};
  const rbcDevice device = operand->view.device;
  if (device.type != device_.type || device.id != device_.id) {
    if (reach == Reach::kNow) requireReachable(context_, operand->view, name);
    reach_is_open_ |= reach == Reach::kInTheEnd;
  }
  ++count_;
  return operand->view;
}

const View& Operands::out(const rbcTensor* tensor, const char* name, Reach reach) {
  if (num_outputs_ == kMaxOutputs) fail(RBC_STATUS_INTERNAL, "%s: too many outputs", name);
  outputs_[num_outputs_++] = count_;
  return add(tensor, name, true, reach);
}

Operands::Name::Name(const Operand& operand) {
  if (operand.stream < 0) {
    std::snprintf(text, sizeof text, "%s", operand.name);
  } else {
    std::snprintf(text, sizeof text, "%s[%d].%s", operand.array, operand.stream, operand.name);
  }
}

template <class Check>
void Operands::check(const Operand& operand, Check&& check) const {
  try {
    check(operand.view, operand.name);
  } catch (const Error&) {
    if (operand.stream >= 0) prefixLastError("%s[%d].", operand.array, operand.stream);
    throw;
  }
}

void Operands::requireApart() const {
  for (int i = 0; i < count_ && reach_is_open_; ++i) {
    check(operands_[i],
          [&](const View& view, const char* name) { requireReachable(context_, view, name); });
  }
  for (int k = 0; k < num_outputs_; ++k) {
    const Operand& output = operands_[outputs_[k]];
    check(output, requireDistinctElements);
    const std::byte* const begin = output.view.begin;
    const std::byte* const end = output.view.end;
    for (int i = 0; i < count_; ++i) {
      const Operand& other = operands_[i];
      if (other.view.end <= begin || end <= other.view.begin) continue;  // true for most operands
      if (other.written && i <= outputs_[k]) continue;                   // report each pair once
      requireDisjoint(other.view, Name(other).text, output.view, Name(output).text);
    }
  }
}

}  // namespace rbc
