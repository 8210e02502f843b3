// Calls of each kind of voxelization on random clouds, where a context wants them.
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "support/random.h"
#include "support/run.h"

namespace voxelize_kinds {

using support::Array;
using support::Context;
using support::Placed;

constexpr int64_t kClouds = 2;
constexpr int64_t kPoints = 20000;  // of a cloud: enough to be shared out among threads
constexpr int64_t kSide = 16;
constexpr int64_t kCapacity = 3000;
constexpr int64_t kMaxPoints = 3;
constexpr rbcVoxelGrid kGrid = {{0, 0, 0}, {0.25, 0.25, 0.25}, {kSide, kSide, kSide}};

enum class Operation { kDense, kSparse, kTsdf };

struct Kind {
  const char* name;
  Operation operation;
  int32_t mode;      // of sparse: reduce
  rbcDType out;      // of dense
  bool features;     // of its own
  int32_t order;     // of sparse
  bool lengths;      // else packed
  uint32_t carving;  // of TSDF: flags
};
constexpr Kind kKinds[] = {
    {"occupancy", Operation::kDense, RBC_REDUCE_OCCUPANCY, support::kU8, false, 0, true, 0},
    {"count", Operation::kDense, RBC_REDUCE_COUNT, support::kI32, false, 0, false, 0},
    {"mean of columns", Operation::kDense, RBC_REDUCE_MEAN, support::kF32, false, 0, true, 0},
    {"sum of f64", Operation::kDense, RBC_REDUCE_SUM, support::kF64, true, 0, false, 0},
    {"max", Operation::kDense, RBC_REDUCE_MAX, support::kBF16, true, 0, true, 0},
    {"sparse, lexicographic", Operation::kSparse, RBC_REDUCE_MEAN, support::kF32, true,
     RBC_VOXELIZE_SPARSE_ORDER_LEXICOGRAPHIC, true, 0},
    {"sparse, by first points", Operation::kSparse, RBC_REDUCE_MIN, support::kF32, false,
     RBC_VOXELIZE_SPARSE_ORDER_FIRST_POINT, false, 0},
    {"TSDF", Operation::kTsdf, 0, support::kF32, false, 0, true, 0},
    {"TSDF, carving", Operation::kTsdf, 0, support::kF32, false, 0, false,
     RBC_VOXELIZE_TSDF_FLAG_CARVE}};

inline void fill(Array& array, support::Random& random, double low, double high) {
  array.each([&](std::byte* p) {
    const uint64_t bits = support::encode(array.dtype(), random.uniform(low, high));
    std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(array.dtype())));
  });
}

struct Inputs {
  Array points, features, lengths, offsets;
  Array sensors{support::kF32, {kClouds, 3}};

  explicit Inputs(const Kind& kind, uint64_t seed = 1) {
    const auto rows = [&](int64_t columns) {
      return kind.lengths ? std::vector<int64_t>{kClouds, kPoints, columns}
                          : std::vector<int64_t>{kClouds * kPoints, columns};
    };
    points = Array(support::kF32, rows(4));
    features = Array(support::kF64, rows(2));
    lengths = Array(support::kI64, {kClouds});
    offsets = Array(support::kI32, {kClouds + 1});
    support::Random random(seed);
    fill(points, random, -0.1, 4.1);
    fill(features, random, -1, 1);
    fill(sensors, random, 1, 3);
    lengths.set({0}, kPoints);
    lengths.set({1}, kPoints / 2);
    for (int64_t i = 0; i <= kClouds; ++i) offsets.set({i}, static_cast<uint64_t>(i * kPoints));
  }
};

class Call {
 public:
  Call(const Context& context, const Inputs& in, const Kind& kind) : kind_(kind) {
    const bool cuda = support::infoOf(context).backend == RBC_BACKEND_CUDA;
    for (const Array* array :
         {&in.points, &in.features, &in.sensors, kind.lengths ? &in.lengths : &in.offsets}) {
      inputs_.emplace_back(context, *array, cuda);
    }
    for (auto& [dtype, shape] : outputShapes(in)) outputs_.emplace_back(dtype, shape);
    if (kind.operation == Operation::kTsdf) {  // a new volume
      for (const int i : {0, 1}) {
        outputs_[static_cast<size_t>(i)].each([](std::byte* p) { std::memset(p, 0, 4); });
      }
    }
    for (const Array& array : outputs_) placed_.emplace_back(context, array, cuda);
  }
  Call(const Call&) = delete;

  rbcStatus_t run(const Context& context) const { return make(context, nullptr); }
  size_t workspace(const Context& context) const {
    size_t bytes = std::numeric_limits<size_t>::max();
    support::require(make(context, &bytes));
    return bytes;
  }
  // Copies the outputs back. Returns false if memory around them was written.
  bool fetch(const Context& context) {
    bool clean = true;
    for (size_t i = 0; i < outputs_.size(); ++i) clean &= placed_[i].fetch(context, outputs_[i]);
    return clean;
  }
  std::vector<std::vector<uint64_t>> results() const {
    std::vector<std::vector<uint64_t>> all;
    for (const Array& output : outputs_) all.push_back(output.elements());
    return all;
  }
  const std::vector<Array>& outputs() const { return outputs_; }
  const rbcTensor* placedOutput(size_t i) const { return placed_[i].get(); }
  const rbcTensor* placedPoints() const { return inputs_[0].get(); }
  const rbcTensor* placedSensors() const { return inputs_[2].get(); }

 private:
  struct Shape {
    rbcDType dtype;
    std::vector<int64_t> extents;
  };
  std::vector<Shape> outputShapes(const Inputs& in) const {
    const int64_t columns = kind_.features ? 2 : 4;
    const std::vector<int64_t> rows = kind_.lengths ? std::vector<int64_t>{kClouds, kPoints}
                                                    : std::vector<int64_t>{in.points.extent(0)};
    switch (kind_.operation) {
      case Operation::kDense: {
        std::vector<int64_t> grid = {kClouds, kSide, kSide, kSide};
        if (kind_.mode >= RBC_REDUCE_SUM) grid.push_back(columns);
        return {{kind_.out, grid}, {support::kI64, {kClouds}}};
      }
      case Operation::kSparse:
        return {{support::kI32, {kCapacity, 4}},
                {support::kI64, {}},
                {support::kI32, {kCapacity}},
                {support::kF32, {kCapacity, columns}},
                {support::kF32, {kCapacity, kMaxPoints, columns}},
                {support::kI32, rows},
                {support::kI64, {kClouds}},
                {support::kI64, {}},
                {support::kI64, {}},
                {support::kI64, {}}};
      case Operation::kTsdf:
        return {{support::kF32, {kSide, kSide, kSide}},
                {support::kF32, {kSide, kSide, kSide}},
                {support::kI64, {kClouds}}};
    }
    return {};
  }

  // With bytes, asks for the workspace instead.
  rbcStatus_t make(const Context& context, size_t* bytes) const {
    rbcContext_t c = context.get();
    const rbcTensor* points = inputs_[0].get();
    const rbcTensor* features = kind_.features ? inputs_[1].get() : nullptr;
    const rbcTensor* lengths = kind_.lengths ? inputs_[3].get() : nullptr;
    const rbcTensor* offsets = kind_.lengths ? nullptr : inputs_[3].get();
    const auto out = [&](size_t i) { return placed_[i].get(); };
    switch (kind_.operation) {
      case Operation::kDense: {
        rbcVoxelizeParams params = rbcVoxelizeParamsInit();
        params.reduction = kind_.mode;
        params.grid = kGrid;
        params.lengths = lengths;
        params.batch_offsets = offsets;
        return bytes != nullptr
                   ? rbcVoxelizeWorkspaceSize(c, points, features, out(0), out(1), &params, bytes)
                   : rbcVoxelize(c, points, features, out(0), out(1), &params);
      }
      case Operation::kSparse: {
        rbcVoxelizeSparseOutputs voxels = rbcVoxelizeSparseOutputsInit();
        voxels.coords = out(0);
        voxels.num_voxels = out(1);
        voxels.points_per_voxel = out(2);
        voxels.voxel_features = out(3);
        voxels.grouped = out(4);
        voxels.point_to_voxel = out(5);
        voxels.num_points_outside = out(6);
        voxels.num_voxels_over_capacity = out(7);
        voxels.num_points_over_capacity = out(8);
        voxels.num_points_over_group = out(9);
        rbcVoxelizeSparseParams params = rbcVoxelizeSparseParamsInit();
        params.reduction = kind_.mode;
        params.order = kind_.order;
        params.grid = kGrid;
        params.lengths = lengths;
        params.batch_offsets = offsets;
        return bytes != nullptr
                   ? rbcVoxelizeSparseWorkspaceSize(c, points, features, &voxels, &params, bytes)
                   : rbcVoxelizeSparse(c, points, features, &voxels, &params);
      }
      case Operation::kTsdf: {
        rbcVoxelizeTsdfParams params = rbcVoxelizeTsdfParamsInit();
        params.flags = kind_.carving;
        params.truncation = 0.5;
        params.grid = kGrid;
        params.lengths = lengths;
        params.batch_offsets = offsets;
        const rbcTensor* sensors = inputs_[2].get();
        return bytes != nullptr
                   ? rbcVoxelizeTsdfWorkspaceSize(c, points, sensors, out(0), out(1), out(2),
                                                  &params, bytes)
                   : rbcVoxelizeTsdf(c, points, sensors, out(0), out(1), out(2), &params);
      }
    }
    return RBC_STATUS_INTERNAL;
  }

  Kind kind_;
  std::vector<Placed> inputs_;
  std::vector<Array> outputs_;
  std::vector<Placed> placed_;
};

}  // namespace voxelize_kinds
