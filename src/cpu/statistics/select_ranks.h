// Several order statistics at once.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rbc::cpu {

// Brings to values[r] what would stand there were they sorted, for each of some ascending ranks r of
// `first` and more, which is the rank of values[0].
template <class Number>
void selectRanks(Number* values, int64_t count, const int64_t* ranks, int num_ranks,
                 int64_t first = 0) {
  if (num_ranks == 0 || count < 2) return;
  const int middle = num_ranks / 2;
  const int64_t place = ranks[middle] - first;
  std::nth_element(values, values + place, values + count);
  int before = middle;
  while (before > 0 && ranks[before - 1] == ranks[middle]) --before;
  int after = middle + 1;
  while (after < num_ranks && ranks[after] == ranks[middle]) ++after;
  selectRanks(values, place, ranks, before, first);
  selectRanks(values + place + 1, count - place - 1, ranks + after, num_ranks - after,
              first + place + 1);
}

}  // namespace rbc::cpu
