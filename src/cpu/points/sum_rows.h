// Sums of rows of f32 in one pass, where a double holds them exactly.
#pragma once

#include "points/point_rows.h"
#include "runtime/simd.h"

namespace rbc::cpu {

// The rows of some points, whose features adjoin.
struct SummedRows {
  const float* data;
  const PointRows& offsets;
  const int32_t* points;
  int64_t count;     // of points, 1 .. kMaxSummedRows
  int64_t features;  // of a row
};
// As many take so little time that no call need be interrupted within.
inline constexpr int64_t kMaxSummedRows = 4096;

// Writes each feature's sum, or mean, to the bits of FixedSum; false if those may be others, and then
// what it wrote is void. Null at the portable level.
using SumRows = bool (*)(const SummedRows& rows, bool mean, float* out);
SumRows sumRowsFor(SimdLevel level);

}  // namespace rbc::cpu
