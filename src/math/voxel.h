// Which voxel a point lies in.
#pragma once

#include <cstdint>

#include "number.h"
#include "platform.h"
#include "quotient.h"

namespace rbc {

// A grid in the type that a cloud is computed in, float or double.
template <class Number>
struct GridOf {
  Number origin[3];
  Number voxel_size[3];
  Number limit[3];       // the smallest Number that is no less than the extent
  Number reciprocal[3];  // of the size, rounded
  Number lowest[3];      // the least number whose quotient by the size is no less than 0
  bool by_products;      // quotientByProducts() holds for all sizes
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

// axisIndex() where grid.by_products. Of numbers below size / 2 the quotient is less than 1 either way;
// of those below 0 only the lowest ones, whose quotient underflows to -0, are inside. What overflows
// is outside, as an infinity or NaN.
template <class Number>
RBC_HD bool axisIndexByProducts(const GridOf<Number>& grid, int axis, Number p, int32_t* index) {
  const Number from = p - grid.origin[axis];
  const Number x = quotientByProducts(from, grid.voxel_size[axis], grid.reciprocal[axis]);
  const bool inside = (from >= grid.lowest[axis]) & (x < grid.limit[axis]);
#if defined(__CUDA_ARCH__)
  *index = static_cast<int32_t>(x);
#else
  *index = static_cast<int32_t>(inside ? x : Number(0));
#endif
  return inside;
}

struct VoxelIndex {
  int32_t x, y, z;
};

template <class Number>
RBC_HD bool voxelOf(const GridOf<Number>& grid, const Number (&p)[3], VoxelIndex* voxel) {
  // Without short circuits: the axes are computed side by side.
#if defined(__CUDA_ARCH__)
  // A GPU divides by some ten instructions and a branch; a CPU by one.
  if (grid.by_products) {
    const bool x = axisIndexByProducts(grid, 0, p[0], &voxel->x);
    const bool y = axisIndexByProducts(grid, 1, p[1], &voxel->y);
    const bool z = axisIndexByProducts(grid, 2, p[2], &voxel->z);
    return x & y & z;
  }
#endif
  const bool x = axisIndex(grid, 0, p[0], &voxel->x);
  const bool y = axisIndex(grid, 1, p[1], &voxel->y);
  const bool z = axisIndex(grid, 2, p[2], &voxel->z);
  return x & y & z;
}

}  // namespace rbc
