// How work is cut into blocks, and that of copying rows into units.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ceil_div.h"

namespace rbc::cuda {

// Blocks for a number of items: at least one, at most `most`, which then take several turns.
inline int64_t blocksFor(int64_t items, int64_t per_block, int64_t most) {
  return std::clamp<int64_t>(ceilDiv(items, per_block), 1, most);
}

// A unit is one group of queries times one range of a row's vectors of channels.
struct Tiling {
  int group;        // queries: a power of two
  int64_t groups;   // ceil(queries / group)
  int64_t vectors;  // of a row
  int64_t range;    // vectors of a range; the last range of a row may hold fewer
  int64_t ranges;   // of a row: 1 at least
};

// What suits those who do a unit together.
struct TilingLimits {
  int most_queries;  // of a unit: a power of two
  int few_queries;   // no fewer, as long as there are enough units
  int64_t vectors;   // of a unit: no more, as long as it has more than few queries
  int64_t units;     // wanted above all, so that every multiprocessor has work
};

// `queries` counts those of the whole batch.
inline Tiling tilingOf(int64_t queries, int64_t vectors, const TilingLimits& limits) {
  constexpr int kWarp = 32;
  int group = limits.most_queries;
  while (group > limits.few_queries && group * vectors > limits.vectors) group /= 2;
  while (group > 1 && queries / group < limits.units) group /= 2;
  const int64_t groups = ceilDiv(queries, group);
  int64_t range = vectors > 0 ? vectors : 1;
  while (range > kWarp &&
         (range > 4 * limits.vectors || groups * ceilDiv(vectors, range) < limits.units)) {
    range = (range + 1) / 2;
  }
  const int64_t ranges = vectors > 0 ? ceilDiv(vectors, range) : 1;
  return {group, groups, vectors, range, ranges};
}

}  // namespace rbc::cuda
