// The voxels of points as integer keys.
#pragma once

#include <cstdint>

#include "runtime/simd.h"
#include "voxel_problem.h"

namespace rbc::cpu {

// The positions of points, with the axes of the grid in any order: keys ascend by cloud, then by
// axis 0 of `grid`, 1 and 2.
struct KeySpace {
  PointClouds points;
  VoxelGrid grid;
  int columns[3];  // columns of points with the coordinates along the grid's axes

  int64_t voxels() const { return points.clouds * grid.volume(); }
};

// The key of a point without a voxel.
template <class Key>
inline constexpr Key kNoKey = static_cast<Key>(-1);

// The keys of points begin .. end - 1 of the line; keys[0] belongs to `begin`. Adds each cloud's
// points without a voxel to `dropped` (i64; data may be null). Key is uint32_t or uint64_t.
template <class Key>
void findKeys(SimdLevel level, const KeySpace& space, int64_t begin, int64_t end, Key* keys,
              const Output<1>& dropped);

}  // namespace rbc::cpu
