// Which voxel a point lies in.
#pragma once

#include <cstdint>

#include "number.h"
#include "platform.h"

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

// x / size to the bit, for |x| of size / 2 and more whose quotient does not overflow, and for sizes
// within kMaxByProducts of 1, either way: no step but the last rounds where that matters, nor
// underflows. `reciprocal` is 1 / size, rounded to nearest.
//
// A quotient that is one of the two numbers around the true one becomes the rounded one by a step with
// its exact remainder (P. Markstein, "Computation of elementary functions on the IBM RISC System/6000
// processor", 1990; Muller et al., "Handbook of Floating-Point Arithmetic", on division by FMA). The
// product with the reciprocal may be 1.5 units in the last place off (Brisebarre, Muller and Raina,
// "Accelerating correctly rounded floating-point division when the divisor is known in advance", 2004),
// so it takes a first step to get there. In f32 one step is enough. Its result is rounded from a number
// that is off by less than 2^-22 units: the product is off by two units at most where the quotient
// is next to a power of two, and remainder and reciprocal by 2^-24 of themselves. So it is another than
// the quotient only if that lies so close to the middle of two numbers. With 24 bits of x and size as
// integers X and S, and the middle as M of 25 bits, that is |X 2^24 - S M| or |X 2^25 - S M| of 8 at
// most, and there are 46,517,418 such X for all S. All of them come out right: voxel_division_test.cpp
// has them, of which it takes some.
template <class Number>
RBC_HD Number quotientByProducts(Number x, Number size, Number reciprocal) {
  const Number about = x * reciprocal;
  const Number near = mulAdd(mulAdd(-size, about, x), reciprocal, about);
  if constexpr (sizeof(Number) == sizeof(float)) return near;
  return mulAdd(mulAdd(-size, near, x), reciprocal, near);
}

// 2^100 for f32, 2^900 for f64: a remainder is a multiple of the size times 2^-48, or 2^-106.
template <class Number>
inline constexpr int kMaxByProducts = sizeof(Number) == sizeof(float) ? 100 : 900;

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
