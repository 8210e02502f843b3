// Which voxel a point lies in.
#pragma once

#include <cstdint>

#include "platform.h"

namespace rbc {

// A grid in the type that a cloud is computed in, float or double.
template <class Number>
struct GridOf {
  Number origin[3];
  Number voxel_size[3];
  Number limit[3];  // the smallest Number that is no less than the extent
};

// The index along an axis: floor((p - origin) / voxel_size), for an index in 0 .. extent - 1, which is
// what is told. NaN is outside. Truncation is floor where x >= 0, -0 too; and for an integer n and
// its `limit`, floor(x) < n just if x < limit.
template <class Number>
RBC_HD bool axisIndex(const GridOf<Number>& grid, int axis, Number p, int32_t* index) {
  const Number x = (p - grid.origin[axis]) / grid.voxel_size[axis];
  const bool inside = (x >= 0) & (x < grid.limit[axis]);
#if defined(__CUDA_ARCH__)
  *index = static_cast<int32_t>(x);  // a GPU's conversion saturates
#else
  *index = static_cast<int32_t>(inside ? x : Number(0));  // no branch: loops become vectors
#endif
  return inside;
}

struct VoxelIndex {
  int32_t x, y, z;
};

template <class Number>
RBC_HD bool voxelOf(const GridOf<Number>& grid, const Number (&p)[3], VoxelIndex* voxel) {
  // Without short circuits: the axes are computed side by side.
  const bool x = axisIndex(grid, 0, p[0], &voxel->x);
  const bool y = axisIndex(grid, 1, p[1], &voxel->y);
  const bool z = axisIndex(grid, 2, p[2], &voxel->z);
  return x & y & z;
}

}  // namespace rbc
