// Makes calls of rbcVoxelizeTsdf: scenes as tensors, and their outputs.
#include "support/tsdf_scene.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace support {
namespace {

void setReal(Array& array, std::initializer_list<int64_t> index, double value) {
  array.set(index, encodeFloat(array.dtype(), static_cast<long double>(value)));
}

// Rows beyond a length contain points in the middle of the grid: reading them would be detected.
Array pointsOf(const TsdfScene& scene) {
  size_t most = 0;
  size_t all = 0;
  for (const auto& cloud : scene.clouds) {
    most = std::max(most, cloud.size());
    all += cloud.size();
  }
  const bool packed = scene.form == CloudForm::kPacked;
  const bool batched = !packed && scene.form != CloudForm::kUnbatched;
  const size_t rows = packed ? all + 2 : most + (scene.form == CloudForm::kLengths ? 1 : 0);
  std::vector<int64_t> shape = {static_cast<int64_t>(rows), scene.columns};
  if (batched) shape.insert(shape.begin(), static_cast<int64_t>(scene.clouds.size()));
  Array points(scene.points_dtype, shape, scene.points_layout, scene.flush);
  const auto set = [&](int64_t cloud, int64_t row, int64_t column, double value) {
    if (batched) {
      setReal(points, {cloud, row, column}, value);
    } else {
      setReal(points, {row, column}, value);
    }
  };
  const int64_t clouds = batched ? shape[0] : 1;
  for (int64_t b = 0; b < clouds; ++b) {
    for (size_t i = 0; i < rows; ++i) {
      for (int64_t k = 0; k < scene.columns; ++k) {
        const int axis = static_cast<int>(k % 3);
        const double extent = scene.grid.voxel_size[axis] * double(scene.grid.shape[axis]);
        set(b, static_cast<int64_t>(i), k, scene.grid.origin[axis] + extent / 2);
      }
    }
  }
  int64_t packed_row = 1;  // the first belongs to no cloud, as does the last
  for (size_t b = 0; b < scene.clouds.size(); ++b) {
    for (size_t i = 0; i < scene.clouds[b].size(); ++i) {
      const int64_t row = packed ? packed_row++ : static_cast<int64_t>(i);
      for (int k = 0; k < 3; ++k) {
        set(static_cast<int64_t>(b), row, k, scene.clouds[b][i][static_cast<size_t>(k)]);
      }
    }
  }
  return points;
}

Array sensorsOf(const TsdfScene& scene) {
  const bool one = scene.sensors.size() == 1 &&
                   (scene.form == CloudForm::kUnbatched || scene.clouds.size() != 1);
  std::vector<int64_t> shape = {3};
  if (!one) shape.insert(shape.begin(), static_cast<int64_t>(scene.sensors.size()));
  Array sensors(scene.sensors_dtype, shape, scene.sensors_layout, scene.flush);
  for (size_t b = 0; b < scene.sensors.size(); ++b) {
    for (int64_t k = 0; k < 3; ++k) {
      const double value = scene.sensors[b][static_cast<size_t>(k)];
      if (one) {
        setReal(sensors, {k}, value);
      } else {
        setReal(sensors, {static_cast<int64_t>(b), k}, value);
      }
    }
  }
  return sensors;
}

Array indexesOf(const TsdfScene& scene) {
  const bool packed = scene.form == CloudForm::kPacked;
  const auto count = static_cast<int64_t>(scene.clouds.size());
  Array array(scene.index_dtype, {count + (packed ? 1 : 0)}, Layout::kContiguous, scene.flush);
  int64_t end = 1;
  if (packed) array.set({0}, 1);
  for (int64_t b = 0; b < count; ++b) {
    const auto length = static_cast<int64_t>(scene.clouds[static_cast<size_t>(b)].size());
    end += length;
    array.set({packed ? b + 1 : b}, static_cast<uint64_t>(packed ? end : length));
  }
  return array;
}

Array volumeArray(const TsdfScene& scene, Layout layout, const std::vector<float>& values) {
  const int64_t* shape = scene.grid.shape;
  Array array(kF32, {shape[0], shape[1], shape[2]}, layout, scene.flush);
  size_t next = 0;
  array.each([&](std::byte* p) { std::memcpy(p, &values[next++], sizeof(float)); });
  return array;
}

std::vector<float> valuesOf(const Array& array) {
  std::vector<float> values;
  array.each([&](const std::byte* p) {
    float value = 0;
    std::memcpy(&value, p, sizeof value);
    values.push_back(value);
  });
  return values;
}

rbcVoxelizeTsdfParams paramsOf(const TsdfScene& scene) {
  rbcVoxelizeTsdfParams params = rbcVoxelizeTsdfParamsInit();
  params.grid = scene.grid;
  params.truncation = scene.truncation;
  params.max_weight = scene.max_weight;
  params.weighting = scene.weighting;
  params.flags = scene.carve ? RBC_VOXELIZE_TSDF_FLAG_CARVE : 0;
  return params;
}

}  // namespace

TsdfVolume newVolume(const TsdfScene& scene) {
  const auto count = static_cast<size_t>(scene.voxels());
  return {std::vector<float>(count, std::numeric_limits<float>::quiet_NaN()),
          std::vector<float>(count, 0.0f)};
}

PlacedTsdf::PlacedTsdf(const Context& context, const TsdfScene& scene, const TsdfVolume& before,
                       bool cuda)
    : has_dropped_(scene.dropped), params_(paramsOf(scene)) {
  const bool packed = scene.form == CloudForm::kPacked;
  sources_.push_back(pointsOf(scene));
  sources_.push_back(sensorsOf(scene));
  if (packed || scene.form == CloudForm::kLengths) sources_.push_back(indexesOf(scene));
  inputs_.reserve(sources_.size());  // the parameters point into it
  for (Array& source : sources_) {
    source.memory().forbidWrites();
    inputs_.emplace_back(context, source, cuda);
  }
  if (inputs_.size() == 3) (packed ? params_.batch_offsets : params_.lengths) = inputs_[2].get();

  arrays_.push_back(volumeArray(scene, scene.tsdf_layout, before.tsdf));
  arrays_.push_back(volumeArray(scene, scene.weight_layout, before.weight));
  std::vector<int64_t> batch;
  if (scene.form != CloudForm::kUnbatched)
    batch.push_back(static_cast<int64_t>(scene.clouds.size()));
  arrays_.emplace_back(kI64, batch);
  for (const Array& array : arrays_) outputs_.emplace_back(context, array, cuda);
}

size_t PlacedTsdf::workspaceSize(const Context& context) const {
  size_t bytes = 0;
  require(rbcVoxelizeTsdfWorkspaceSize(
      context.get(), inputs_[0].get(), inputs_[1].get(), outputs_[0].get(), outputs_[1].get(),
      has_dropped_ ? outputs_[2].get() : nullptr, &params_, &bytes));
  return bytes;
}

TsdfOutput PlacedTsdf::fetch(const Context& context, bool* stray_writes) {
  *stray_writes = false;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const bool guards = outputs_[i].fetch(context, arrays_[i]);
    const bool unused = i == 2 && !has_dropped_;
    const bool clean = unused ? arrays_[i].untouched() : arrays_[i].gapsArePoison();
    *stray_writes = *stray_writes || !guards || !clean;
  }
  TsdfOutput output = {{valuesOf(arrays_[0]), valuesOf(arrays_[1])}, {}};
  if (has_dropped_) {
    for (const uint64_t count : arrays_[2].elements())
      output.dropped.push_back(static_cast<int64_t>(count));
  }
  return output;
}

TsdfRun runTsdf(const Context& context, const TsdfScene& scene, const TsdfVolume& before) {
  PlacedTsdf placed(context, scene, before);
  auto result = detail::finish(
      context, placed, [](auto&& call) { return call(); }, [&] { return placed.call(context); });
  return {result.status, result.message, std::move(result.output.volume),
          std::move(result.output.dropped), result.stray_writes};
}

TsdfRun integrate(const Context& context, const TsdfScene& scene, const TsdfVolume& before) {
  TsdfRun result = runTsdf(context, scene, before);
  require(result.status);
  if (result.stray_writes) throw std::runtime_error("wrote outside its elements");
  return result;
}

}  // namespace support
