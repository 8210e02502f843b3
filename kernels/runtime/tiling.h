// Divides work into blocks, and the copying of rows into units.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ceil_div.h"

namespace rbc::cuda {

// Number of blocks for some items: at least one, at most `most`; these then process several items
// each.
inline int64_t blocksFor(int64_t items, int64_t per_block, int64_t most) {
  return std::clamp<int64_t>(ceilDiv(items, per_block), 1, most);
}

// A unit is one group of queries times one range of a row's vectors of channels.
struct Tiling {
  int group;        // queries per unit: a power of two
  int64_t groups;   // ceil(queries / group)
  int64_t vectors;  // per row
  int64_t range;    // vectors per range; the last range of a row may have fewer
  int64_t ranges;   // per row: at least 1
};

// The limits for threads that process a unit together.
struct TilingLimits {
  int most_queries;  // per unit: a power of two
  int few_queries;   // not fewer, as long as there are enough units
  int64_t vectors;   // per unit: not more, as long as it has more than few queries
  int64_t units;     // the goal that comes first: every multiprocessor has work
};

// `queries` is the number of queries in the whole batch.
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
