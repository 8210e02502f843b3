// A case of voxelization with its data, the bytes that it must move, and the answer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "robocache/robocache.hpp"
#include "voxel_cloud.h"

namespace bench {

class VoxelData {
 public:
  using Case = VoxelCase;

  explicit VoxelData(const VoxelCase& c);

  const VoxelCase& whole() const { return case_; }
  const support::Array& points() const { return cloud_->points; }
  const support::Array& offsets() const { return cloud_->offsets; }
  const support::Array& features() const { return cloud_->features; }
  const support::Array& sensor() const { return sensor_; }

  // By the portable CPU code, and all of it as voxel_expected.h wants it; the constructor throws if
  // it is not. Of clouds so large that this takes too long, what voxel_expected.h says.
  // dense: the grid; sparse: coords, num_voxels and features; tsdf: tsdf and weight.
  const std::vector<support::Array>& answer() const { return answer_; }
  std::vector<const support::Array*> outputs() const;
  // A call adds to what its outputs hold, which is 0 at first.
  bool accumulates() const { return case_.kind == VoxelCase::Kind::kTsdf; }

  // Each point and each feature once; a dense grid; of sparse voxels a row for each that was found;
  // of a tsdf each voxel that is observed, read and written.
  int64_t bytes() const;
  // Voxels that hold a point, or are observed.
  int64_t rows() const { return voxels_; }
  double inRange() const { return in_range_; }

  std::vector<int64_t> wholeShape(const support::Array& array) const {
    return array.placement().shape;
  }

 private:
  void makeAnswer();
  void check();

  VoxelCase case_;
  std::shared_ptr<const VoxelCloud> cloud_;
  support::Array sensor_;
  std::vector<support::Array> answer_;
  int64_t voxels_ = 0;
  double in_range_ = 0;
};

inline void reportData(benchmark::State& state, const VoxelData& data) {
  state.counters["in_range"] = data.inRange();
  state.counters["rows"] = static_cast<double>(data.rows());
  state.counters["points"] = static_cast<double>(data.whole().total());
}

// One call, ready to go, on the tensors that tensorOf(array) gives for the arrays of the data.
class VoxelCall {
 public:
  using Data = VoxelData;
  static constexpr int kMostLaunches = 20;  // of a call on CUDA

  template <class TensorOf>
  VoxelCall(const VoxelData& data, TensorOf&& tensorOf) : kind_(data.whole().kind) {
    const auto place = [&](const support::Array& array) {
      tensors_.push_back(std::make_unique<robocache::Tensor>(tensorOf(array)));
      return tensors_.back()->get();
    };
    points_ = place(data.points());
    if (data.whole().features > 0) features_ = place(data.features());
    if (kind_ == VoxelCase::Kind::kTsdf) sensor_ = place(data.sensor());
    for (const support::Array& array : data.answer()) outputs_.push_back(place(array));
    describe(data.whole(), data.whole().clouds > 1 ? place(data.offsets()) : nullptr);
  }
  VoxelCall(const VoxelCall&) = delete;

  void operator()(const robocache::Context& context) const;
  // So that the call allocates nothing.
  void reserve(robocache::Context& context) const;

  const rbcTensor& points() const { return *points_; }
  const rbcTensor& output() const { return *outputs_[0]; }

 private:
  void describe(const VoxelCase& c, const rbcTensor* offsets);

  VoxelCase::Kind kind_;
  std::vector<std::unique_ptr<robocache::Tensor>> tensors_;
  const rbcTensor* points_ = nullptr;
  const rbcTensor* features_ = nullptr;
  const rbcTensor* sensor_ = nullptr;
  std::vector<const rbcTensor*> outputs_;
  rbcVoxelizeParams dense_ = rbcVoxelizeParamsInit();
  rbcVoxelizeSparseParams sparse_ = rbcVoxelizeSparseParamsInit();
  rbcSparseVoxels voxels_ = rbcSparseVoxelsInit();
  rbcTsdfParams tsdf_ = rbcTsdfParamsInit();
};

rbcVoxelGrid gridOf(const VoxelCase& c);

}  // namespace bench
