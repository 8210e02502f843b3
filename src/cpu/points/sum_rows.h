// Sums rows of f32 in one pass, if a double holds the sums exactly.
#pragma once

#include "points/point_rows.h"
#include "runtime/simd.h"

namespace rbc::cpu {

// The rows of some points; their features are contiguous.
struct SummedRows {
  const float* data;
  const PointRows& offsets;
  const int32_t* points;
  int64_t count;     // number of points, 1 .. kMaxSummedRows
  int64_t features;  // per row
};
// This many rows take so little time that the call need not be interruptible.
inline constexpr int64_t kMaxSummedRows = 4096;

// Writes each feature's sum, or mean, with the bits of FixedSum. Returns false if the bits may
// differ; the output is then invalid. Null at the portable level.
using SumRows = bool (*)(const SummedRows& rows, bool mean, float* out);
SumRows sumRowsFor(SimdLevel level);

}  // namespace rbc::cpu
