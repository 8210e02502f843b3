// Finds the voxel of a point.
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
  Number limit[3];       // the smallest Number that is at least the extent
  Number reciprocal[3];  // 1 / size, rounded
  Number lowest[3];      // the least number whose quotient by the size is at least 0
  bool by_products;      // quotientByProducts() holds for all sizes
};

// The index along an axis: floor((p - origin) / voxel_size), Returns whether it is in 0 .. extent -
// 1. NaN is outside. Truncation is floor where x >= 0, -0 too; and for an integer n and its
// `limit`, floor(x) < n just if x < limit.
template <class Number>
RBC_HD bool axisIndex(const GridOf<Number>& grid, int axis, Number p, int32_t* index) {
  const Number x = (p - grid.origin[axis]) / grid.voxel_size[axis];
  const bool inside = (x >= 0) & (x < grid.limit[axis]);
#if defined(__CUDA_ARCH__)
  *index = static_cast<int32_t>(x);  // a GPU's conversion saturates
#else
  *index = static_cast<int32_t>(inside ? x : Number(0));  // no branch, so that loops are vectorized
#endif
  return inside;
}

// axisIndex() if grid.by_products. For numbers below size / 2 the quotient is less than 1 in both;
// of negative numbers only those whose quotient underflows to -0 are inside. An overflow is
// outside, as an infinity or NaN.
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
  // Not short-circuited: the axes are computed side by side.
#if defined(__CUDA_ARCH__)
  // A division takes a GPU about ten instructions and a branch, a CPU one instruction.
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
