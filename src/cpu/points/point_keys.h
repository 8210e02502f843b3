// The voxels of points as numbers: keys.
#pragma once

#include <cstdint>

#include "runtime/simd.h"
#include "voxel_problem.h"

namespace rbc::cpu {

// Where points lie, with the axes of the grid in any order: keys ascend by cloud, then by axis 0 of
// `grid`, 1 and 2.
struct KeySpace {
  PointClouds points;
  VoxelGrid grid;
  int columns[3];  // of points: the coordinates along the grid's axes

  int64_t voxels() const { return points.clouds * grid.volume(); }
};

// The key of a point in no voxel.
template <class Key>
inline constexpr Key kNoKey = static_cast<Key>(-1);

// Of the points begin .. end - 1 of the line, keys[0] being that of `begin`. Adds to `dropped` (i64;
// data may be null) what each cloud has there of points in no voxel. Key is uint32_t or uint64_t.
template <class Key>
void findKeys(SimdLevel level, const KeySpace& space, int64_t begin, int64_t end, Key* keys,
              const Output<1>& dropped);

}  // namespace rbc::cpu
