// The clouds of a case of voxelization, always the same ones: points and features from its seed.
#pragma once

#include <cstdint>

#include "arrays.h"
#include "inputs.h"
#include "random.h"
#include "voxel_case.h"

namespace support {

// Arrays that a case does not have are of rank 0.
struct CloudInputs {
  Array points;
  Array features;
  Array lengths;
  Array offsets;

  // The points of a cloud are rows first(b) .. first(b) + count(b) - 1 of all rows.
  int64_t rows() const {
    return points.ndim() == 3 ? points.extent(0) * points.extent(1) : points.extent(0);
  }
  int64_t first(int64_t b) const {
    if (offsets.ndim() != 0) return StreamInputs::indexAt(offsets, b);
    return points.ndim() == 3 ? b * points.extent(1) : 0;
  }
  int64_t count(int64_t b) const {
    if (offsets.ndim() != 0) return StreamInputs::indexAt(offsets, b + 1) - first(b);
    return lengths.ndim() != 0 ? StreamInputs::indexAt(lengths, b)
                               : points.extent(points.ndim() - 2);
  }

  // The values to reduce.
  const Array& values() const { return features.ndim() != 0 ? features : points; }

  static uint64_t get(const Array& array, int64_t row, int64_t column) {
    if (array.ndim() == 2) return array.get({row, column});
    return array.get({row / array.extent(1), row % array.extent(1), column});
  }
  static void set(Array& array, int64_t row, int64_t column, uint64_t bits) {
    if (array.ndim() == 2) return array.set({row, column}, bits);
    array.set({row / array.extent(1), row % array.extent(1), column}, bits);
  }
};

namespace detail {

// Rows that belong to no cloud contain valid points: reading them would be visible.
CloudInputs makeCloud(const CloudCase& c, Random& random);

}  // namespace detail
}  // namespace support
