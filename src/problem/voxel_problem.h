// Voxelization as plain numbers, after validation: the input of a backend.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "dtype.h"
#include "output.h"
#include "ragged.h"
#include "real.h"
#include "voxel.h"

namespace rbc {

// Values as in voxelize.h.
enum class Reduction : int32_t { kOccupancy, kCount, kSum, kMean, kMax, kMin };
enum class VoxelOrder : int32_t { kLexicographic, kFirstPoint };

// Whether a mode needs features, not only positions.
RBC_HD bool reducesFeatures(Reduction mode) { return mode >= Reduction::kSum; }

// The index of a point fits in i32.
inline constexpr int64_t kMaxPoints = INT32_MAX;

// Strides are in elements throughout; the cloud stride is 0 if there is no batch, or the clouds are
// packed.
struct PointClouds {
  const void* data;
  int64_t stride[3];  // cloud, point, coordinate
  int64_t columns;    // at least 3
  DType dtype;
  int64_t clouds;
  int64_t rows;  // points of a padded cloud, or of all packed ones
  IndexArray lengths;
  IndexArray offsets;

  RBC_HD bool packed() const { return offsets.data != nullptr; }
  // Rows of points, valid or not: the number of rows of point_to_voxel.
  RBC_HD int64_t total() const { return packed() ? rows : clouds * rows; }
  // Whether rows with these strides, one row per point, are spaced as if all clouds were one.
  bool inOneLine(int64_t cloud_stride, int64_t point_stride) const {
    return packed() || clouds <= 1 || cloud_stride == point_stride * rows;
  }
};

RBC_HD RowRange pointsOf(const PointClouds& c, int64_t cloud) {
  return rangeOf(c.lengths, c.offsets, c.rows, cloud);
}

// The rows of features, one per point.
struct Features {
  const void* data;
  int64_t stride[3];  // cloud, point, feature
  DType dtype;
  int64_t count;
};

struct VoxelGrid {
  double origin[3];
  double voxel_size[3];
  int64_t shape[3];

  RBC_HD int64_t volume() const { return shape[0] * shape[1] * shape[2]; }
};

template <class Number>
GridOf<Number> gridAs(const VoxelGrid& grid) {
  GridOf<Number> result;
  result.by_products = true;
  for (int axis = 0; axis < 3; ++axis) {
    const auto extent = static_cast<double>(grid.shape[axis]);
    auto limit = static_cast<Number>(extent);
    if (static_cast<double>(limit) < extent) limit = std::nextafter(limit, Number(INFINITY));
    result.origin[axis] = static_cast<Number>(grid.origin[axis]);
    result.voxel_size[axis] = static_cast<Number>(grid.voxel_size[axis]);
    result.limit[axis] = limit;
    const Number size = result.voxel_size[axis];
    result.reciprocal[axis] = 1 / size;
    // Half of the smallest number rounds to 0; anything larger does not.
    result.lowest[axis] = std::floor(size / 2) * -std::numeric_limits<Number>::denorm_min();
    const Number most = std::ldexp(Number(1), kMaxByProducts<Number>);
    result.by_products = result.by_products && size >= 1 / most && size <= most;
  }
  return result;
}

// The voxel's place in lexicographic order; Key must hold the place of every voxel.
template <class Key = int64_t>
RBC_HD Key voxelKey(const VoxelGrid& grid, int64_t cloud, const VoxelIndex& v) {
  const Key row = static_cast<Key>(cloud) * static_cast<Key>(grid.shape[0]) + v.x;
  return (row * static_cast<Key>(grid.shape[1]) + v.y) * static_cast<Key>(grid.shape[2]) + v.z;
}

struct VoxelCoords {
  int64_t cloud, x, y, z;
};

template <class Key>
RBC_HD VoxelCoords coordsOf(const Key (&shape)[3], Key key) {
  const Key column = key / shape[2];
  const Key row = column / shape[1];
  const Key cloud = row / shape[0];
  return {cloud, row - cloud * shape[0], column - row * shape[1], key - column * shape[2]};
}

// Extents fit into 32 bits, where divisions are faster.
RBC_HD VoxelCoords coordsOf(const VoxelGrid& grid, int64_t key) {
  if (key >> 32 != 0) return coordsOf<int64_t>(grid.shape, key);
  const uint32_t shape[] = {static_cast<uint32_t>(grid.shape[0]),
                            static_cast<uint32_t>(grid.shape[1]),
                            static_cast<uint32_t>(grid.shape[2])};
  return coordsOf<uint32_t>(shape, static_cast<uint32_t>(key));
}

// A count as an element, with one rounding.
template <class Element>
RBC_HD Element countAs(uint32_t count) {
  if constexpr (std::is_integral_v<Element>) {
    return static_cast<Element>(count);
  } else {
    return narrow<Element>(static_cast<double>(count));
  }
}

struct VoxelizeProblem {
  PointClouds points;
  VoxelGrid grid;
  Reduction mode;
  Features features;    // count is 1 for occupancy and count
  Output<5> out;        // cloud, x, y, z, feature
  uint64_t empty_bits;  // the empty value as an element of out, in the low bytes
  Output<1> dropped;    // cloud; i64
};

struct SparseProblem {
  PointClouds points;
  VoxelGrid grid;
  Reduction reduce;
  VoxelOrder order;
  Features features;
  int64_t capacity;
  int64_t max_points;        // per voxel in `grouped` and `counts`; INT64_MAX without `grouped`
  Output<2> coords;          // i32; never null
  Output<1> num_voxels;      // i64; never null, one element
  Output<1> counts;          // i32
  Output<2> reduced;         // voxel, feature
  Output<3> grouped;         // voxel, point, feature
  Output<2> point_to_voxel;  // cloud, point; i32 or i64
  Output<1> dropped;         // cloud; i64
  int64_t* voxels_over_capacity;  // each of these three may be null
  int64_t* points_over_capacity;
  int64_t* points_over_group;
};

// Calls visitor(Tag<Number>) for the type that a dtype of points is computed in.
template <class Visitor>
decltype(auto) visitNumber(DType points, Visitor&& visitor) {
  return computesInDouble(points) ? visitor(Tag<double>{}) : visitor(Tag<float>{});
}

}  // namespace rbc
