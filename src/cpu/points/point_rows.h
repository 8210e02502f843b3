// Rows that belong to points, addressed by a point's index in the line of all clouds.
#pragma once

#include <cstdint>

#include "runtime/row_line.h"
#include "voxel_problem.h"

namespace rbc::cpu {

// Offsets in elements of the rows of a tensor [B,N,...], or [N,...].
class PointRows {
 public:
  PointRows(const PointClouds& points, int64_t cloud_stride, int64_t point_stride)
      : cloud_stride_(cloud_stride),
        point_stride_(point_stride),
        rows_(static_cast<uint32_t>(points.rows)),
        even_(points.inOneLine(cloud_stride, point_stride)) {}

  int64_t operator[](int32_t point) const {
    if (even_) return point * point_stride_;
    const uint32_t cloud = static_cast<uint32_t>(point) / rows_;
    return cloud * cloud_stride_ + (static_cast<uint32_t>(point) - cloud * rows_) * point_stride_;
  }

 private:
  int64_t cloud_stride_;
  int64_t point_stride_;
  uint32_t rows_;
  bool even_;  // the clouds' rows are spaced like one cloud
};

// Calls visit(cloud, begin, end), in order, for the pieces of clouds among the points begin .. end
// - 1 of the line. Points between pieces are in no cloud.
template <class Visitor>
void visitClouds(const PointClouds& points, int64_t begin, int64_t end, Visitor&& visit) {
  const RowLine line = {points.lengths, points.offsets, points.rows, points.clouds};
  visitPieces(line, begin, end, [&](const RowPiece& piece) {
    const int64_t first = line.begin(piece.member);
    visit(piece.member, first + piece.begin, first + piece.end);
    return false;
  });
}

}  // namespace rbc::cpu
