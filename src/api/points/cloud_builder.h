// The common part of the operations on point clouds: verifies their tensors, clouds and grid.
#pragma once

#include "robocache/voxelize.h"
#include "runtime/call.h"
#include "voxel_problem.h"

namespace rbc {

// Builds the problem of a call.
class CloudBuilder : public CallBase {
 public:
  bool empty() const { return points_.clouds == 0; }
  template <class Visitor>
  void visitIndexes(Visitor&& visit) {
    if (points_.lengths.data != nullptr) visit(points_.lengths, points_.clouds);
    if (points_.offsets.data != nullptr) visit(points_.offsets, points_.clouds + 1);
  }
  void verifyIndexes() const {
    requireRagged(points_.lengths, points_.offsets, points_.clouds, points_.rows, "points");
  }

 protected:
  // `points` belongs to the problem.
  CloudBuilder(const rbcContext& context, PointClouds& points)
      : CallBase(context), points_(points) {}

  void addPoints(const rbcTensor* points, const rbcTensor* lengths, const rbcTensor* batch_offsets);
  // Call after addPoints(); null: the columns of points.
  Features features(const rbcTensor* tensor);
  // Call after addPoints(): the grid is rounded to the compute dtype of the points.
  VoxelGrid grid(const rbcVoxelGrid& grid) const;

  // Points without a batch dimension are one cloud; the outputs then have no batch dimension
  // either.
  bool batched() const { return batched_; }

  // An output of `shape`. Its first extent is the batch, which is omitted if points have none.
  template <int Rank>
  Output<Rank> batchOutput(const View& view, const char* argument,
                           const int64_t (&shape)[Rank]) const {
    requireShape(view, argument, Rank - (batched_ ? 0 : 1), shape + (batched_ ? 0 : 1));
    Output<Rank> out = {view.data, {}, view.dtype};
    for (int i = batched_ ? 0 : 1; i < Rank; ++i) {
      out.stride[i] = view.strides[batched_ ? i : i - 1];
    }
    return out;
  }

  // An optional count of points per cloud; null: not written.
  Output<1> countOutput(const View* view, const char* argument) const;

 private:
  PointClouds& points_;
  const View* points_view_ = nullptr;
  bool batched_ = false;
};

}  // namespace rbc
