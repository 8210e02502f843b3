#include "voxel_data.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "data_arrays.h"
#include "voxel_expected.h"

namespace bench {
namespace {

using Kind = VoxelCase::Kind;

constexpr double kLeastInRange = 0.99;
// More is answered by voxel_expected.h, which can count alone.
constexpr int64_t kMostAnswered = 20'000'000;

}  // namespace

VoxelData::VoxelData(const VoxelCase& c) : case_(c), cloud_(cloudOf(c)) {
  sensor_ = makeArray(support::kF64, {3});
  std::copy(cloud_->sensor.begin(), cloud_->sensor.end(), elements<double>(sensor_));
  std::vector<int64_t> grid(c.shape.begin(), c.shape.end());
  switch (c.kind) {
    case Kind::kDense: {
      if (c.clouds > 1) grid.insert(grid.begin(), c.clouds);
      if (c.reducesFeatures()) grid.push_back(c.channels());
      const rbcDType dtype = c.reducesFeatures()             ? support::kF32
                             : c.mode == RBC_VOXEL_OCCUPANCY ? support::kU8
                                                             : support::kI32;
      answer_.push_back(makeArray(dtype, grid));
      break;
    }
    case Kind::kSparse:
      // As many rows as there are points are enough for any cloud.
      answer_.push_back(makeArray(support::kI32, {c.total(), 4}));
      answer_.push_back(makeArray(support::kI64, {}));
      answer_.push_back(makeArray(support::kF32, {c.total(), c.channels()}));
      break;
    case Kind::kTsdf:
      for (int i = 0; i < 2; ++i) {
        answer_.push_back(makeArray(support::kF32, grid));
        std::fill_n(elements<float>(answer_.back()), answer_.back().count(), 0.0f);
      }
      break;
  }
  if (c.total() <= kMostAnswered) makeAnswer();
  check();
  if (in_range_ < kLeastInRange) {
    throw std::runtime_error("only " + std::to_string(in_range_) + " of the points are in range");
  }
}

std::vector<const support::Array*> VoxelData::outputs() const {
  std::vector<const support::Array*> outputs;
  for (const support::Array& array : answer_) outputs.push_back(&array);
  return outputs;
}

void VoxelData::makeAnswer() {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.simd = RBC_SIMD_PORTABLE;
  const robocache::Context context(params);
  const VoxelCall call(
      *this, [](const support::Array& array) { return robocache::Tensor(array.tensor()); });
  call(context);
}

void VoxelData::check() {
  VoxelTruth truth;
  if (case_.kind == Kind::kTsdf) {
    truth = checkTsdf(case_, *cloud_, answer_[0], answer_[1]);
  } else if (case_.kind == Kind::kSparse) {
    truth = checkSparseMean(case_, *cloud_, answer_[0], answer_[1], answer_[2]);
  } else if (case_.reducesFeatures()) {
    truth = checkDenseMean(case_, *cloud_, answer_[0]);
  } else {
    const std::vector<std::atomic<int32_t>> counts = countPoints(case_, *cloud_);
    truth = truthOf(counts);
    if (case_.total() <= kMostAnswered) {
      checkCounts(case_, counts, answer_[0]);
    } else if (case_.mode == RBC_VOXEL_OCCUPANCY) {
      std::transform(counts.begin(), counts.end(), elements<uint8_t>(answer_[0]),
                     [](const auto& count) { return count > 0 ? 1 : 0; });
    } else {
      std::copy(counts.begin(), counts.end(), elements<int32_t>(answer_[0]));
    }
  }
  voxels_ = truth.voxels;
  in_range_ = static_cast<double>(truth.in_range) / static_cast<double>(case_.total());
}

int64_t VoxelData::bytes() const {
  constexpr int64_t kElement = sizeof(float);
  const int64_t read = case_.total() * (case_.columns + case_.features) * kElement;
  switch (case_.kind) {
    case Kind::kDense: return read + static_cast<int64_t>(answer_[0].memory().bytes());
    case Kind::kSparse: return read + voxels_ * (4 + case_.channels()) * kElement;
    case Kind::kTsdf: return read + voxels_ * 2 * 2 * kElement;
  }
  return 0;
}

// ---- calls --------------------------------------------------------------------------------------

rbcVoxelGrid gridOf(const VoxelCase& c) {
  rbcVoxelGrid grid;
  for (int axis = 0; axis < 3; ++axis) {
    grid.origin[axis] = c.origin(axis);
    grid.voxel_size[axis] = c.voxel_size;
    grid.shape[axis] = c.shape[static_cast<size_t>(axis)];
  }
  return grid;
}

void VoxelCall::describe(const VoxelCase& c, const rbcTensor* offsets) {
  dense_.grid = sparse_.grid = tsdf_.grid = gridOf(c);
  dense_.offsets = sparse_.offsets = tsdf_.offsets = offsets;
  dense_.mode = sparse_.reduce = c.mode;
  tsdf_.truncation = kTsdfTruncation;
  if (kind_ == Kind::kSparse) {
    voxels_.coords = outputs_[0];
    voxels_.num_voxels = outputs_[1];
    voxels_.features = outputs_[2];
  }
}

void VoxelCall::operator()(const robocache::Context& context) const {
  rbcContext_t c = context.get();
  switch (kind_) {
    case Kind::kDense:
      robocache::check(rbcVoxelize(c, points_, features_, outputs_[0], nullptr, &dense_));
      break;
    case Kind::kSparse:
      robocache::check(rbcVoxelizeSparse(c, points_, features_, &voxels_, &sparse_));
      break;
    case Kind::kTsdf:
      robocache::check(
          rbcVoxelizeTsdf(c, points_, sensor_, outputs_[0], outputs_[1], nullptr, &tsdf_));
      break;
  }
}

void VoxelCall::reserve(robocache::Context& context) const {
  rbcContext_t c = context.get();
  size_t bytes = 0;
  switch (kind_) {
    case Kind::kDense:
      robocache::check(
          rbcVoxelizeWorkspaceSize(c, points_, features_, outputs_[0], nullptr, &dense_, &bytes));
      break;
    case Kind::kSparse:
      robocache::check(
          rbcVoxelizeSparseWorkspaceSize(c, points_, features_, &voxels_, &sparse_, &bytes));
      break;
    case Kind::kTsdf:
      robocache::check(rbcVoxelizeTsdfWorkspaceSize(c, points_, sensor_, outputs_[0], outputs_[1],
                                                    nullptr, &tsdf_, &bytes));
      break;
  }
  context.reserve(bytes);
}

}  // namespace bench
