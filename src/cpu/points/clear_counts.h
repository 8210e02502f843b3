// Clears counts by cloud, before anything is added to them.
#pragma once

#include "voxel_problem.h"

namespace rbc::cpu {

// i64; data may be null.
inline void clearCounts(const Output<1>& counts, int64_t count) {
  if (counts.data == nullptr) return;
  for (int64_t i = 0; i < count; ++i) {
    static_cast<int64_t*>(counts.data)[i * counts.stride[0]] = 0;
  }
}

}  // namespace rbc::cpu
