// Tables of the conditions of a kernel; finds the first condition that a call does not meet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "launch_choice.h"

namespace rbc::cuda {

// A row of a table. `text` names the operand, what was found and what is expected: see Refusal.
template <class... Subject>
struct Condition {
  bool (*holds)(const Subject&... subject);
  const char* text;
  int64_t (*found)(const Subject&... subject);  // null: the text has no number
};

namespace conditions {

template <const auto& kTable, size_t... kRows, class... Subject>
int firstUnmet(std::index_sequence<kRows...>, const Subject&... subject) {
  int row = 0;
  static_cast<void>(((kTable[kRows].holds(subject...) && (++row, true)) && ...));
  return row;
}

}  // namespace conditions

// Whether all rows of the table hold, checked in order. If not, `refusal` gets the first that does
// not. The rows are unrolled: each is a direct call, which the compiler inlines.
template <const auto& kTable, class... Subject>
bool meets(Refusal* refusal, const Subject&... subject) {
  constexpr size_t kRows = std::size(kTable);
  const int row = conditions::firstUnmet<kTable>(std::make_index_sequence<kRows>(), subject...);
  if (row == static_cast<int>(kRows)) return true;
  const auto& unmet = kTable[row];
  refusal->text = unmet.text;
  refusal->found = unmet.found != nullptr ? unmet.found(subject...) : 0;
  return false;
}

// The same for each of `count` items: all rows for the first, then for the next one.
// `meetsItem(refusal, i)` checks one item.
template <class MeetsItem>
bool meetsAll(Refusal* refusal, const char* operand, int32_t count, const MeetsItem& meetsItem) {
  for (int32_t i = 0; i < count; ++i) {
    if (meetsItem(refusal, i)) continue;
    refusal->operand = operand;
    refusal->index = i;
    return false;
  }
  return true;
}

// For conditions that are found while planning.
inline bool refuse(Refusal* refusal, const char* text, int64_t found) {
  refusal->text = text;
  refusal->found = found;
  return false;
}

}  // namespace rbc::cuda
