// What the operations on point clouds have in common: their tensors, clouds and grid, verified.
#pragma once

#include "robocache/voxelize.h"
#include "runtime/call.h"
#include "voxel_problem.h"

namespace rbc {

// A call on its way to become a problem.
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
  // `points` is the problem's.
  CloudBuilder(const rbcContext& context, PointClouds& points)
      : CallBase(context), points_(points) {}

  void addPoints(const rbcTensor* points, const rbcTensor* lengths, const rbcTensor* batch_offsets);
  // After the points; null: the columns of points.
  Features features(const rbcTensor* tensor);
  // For the dtype of the points.
  VoxelGrid grid(const rbcVoxelGrid& grid) const;

  // Points come as one cloud without the dimension of a batch, and so does what is made of it.
  bool batched() const { return batched_; }

  // An output of `shape`, which begins with the batch: left out where there is none.
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

  // An optional count of points per cloud; null: it is not wanted.
  Output<1> countOutput(const View* view, const char* argument) const;

 private:
  PointClouds& points_;
  const View* points_view_ = nullptr;
  bool batched_ = false;
};

}  // namespace rbc
