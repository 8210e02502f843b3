// What the operations on point clouds have in common: their tensors, clouds and grid, verified.
#pragma once

#include "context.h"
#include "robocache/voxelize.h"
#include "view.h"
#include "voxel_problem.h"

namespace rbc {

// One call. Outputs are added first: they overlap neither each other nor an input.
class CloudCall {
 public:
  explicit CloudCall(const rbcContext& context) : context_(context) {}
  CloudCall(const CloudCall&) = delete;
  CloudCall& operator=(const CloudCall&) = delete;

  View addOutput(const rbcTensor* tensor, const char* argument);
  View addInput(const rbcTensor* tensor, const char* argument) const;

  // Reads points, lengths and offsets, on the CPU the entries of these too.
  void addPoints(const rbcTensor* points, const rbcTensor* lengths, const rbcTensor* offsets);
  // After the points; null: the columns of points.
  Features features(const rbcTensor* tensor) const;
  // For the dtype of the points.
  VoxelGrid grid(const rbcVoxelGrid& grid) const;

  const PointClouds& points() const { return points_; }
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

  // The optional count of dropped points.
  Output<1> dropped(const View& view, const char* argument) const;

 private:
  static constexpr int kMostOutputs = 8;

  const rbcContext& context_;
  View outputs_[kMostOutputs];
  const char* names_[kMostOutputs];
  int num_outputs_ = 0;
  PointClouds points_ = {};
  View points_view_ = {};
  bool batched_ = false;
};

// The workspace of an operation that takes `bytes` itself: on the CPU, copies of lengths and offsets
// come on top.
size_t workspaceBytes(const rbcContext& context, const PointClouds& points, size_t bytes);

// What is left of it for the operation, once `points` has its lengths and offsets there, verified.
Scratch workspaceFor(rbcContext& context, PointClouds* points, size_t bytes);

// Fails unless the dtype is a float.
void requireFloat(const View& view, const char* argument);

// Fails unless the reserved words of params are 0.
template <int Words>
void requireReserved(const uint64_t (&reserved)[Words]) {
  for (const uint64_t word : reserved) {
    if (word != 0) fail(RBC_STATUS_INVALID_ARGUMENT, "params: reserved is not 0");
  }
}

}  // namespace rbc
