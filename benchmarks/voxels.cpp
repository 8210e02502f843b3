#include "voxels.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {
namespace {

constexpr double kTsdfTruncation = 0.4;  // metres on both sides of a surface

class VoxelCall : public Call {
 public:
  VoxelCall(const VoxelCase& c, const Tensors& tensors) : sparse_(c.sparse()), tsdf_(c.tsdf()) {
    auto next = tensors.inputs.begin();
    points_ = next++->get();
    if (tsdf_) sensor_ = next++->get();
    if (c.features > 0) features_ = next++->get();
    const rbcTensor* offsets = c.clouds > 1 ? next++->get() : nullptr;
    dense_params_.grid = sparse_params_.grid = tsdf_params_.grid = c.grid();
    dense_params_.batch_offsets = sparse_params_.batch_offsets = tsdf_params_.batch_offsets =
        offsets;
    dense_params_.reduction = c.result == "occupancy" ? RBC_REDUCE_OCCUPANCY
                              : c.result == "count"   ? RBC_REDUCE_COUNT
                                                      : RBC_REDUCE_MEAN;
    sparse_params_.reduction = RBC_REDUCE_MEAN;
    tsdf_params_.truncation = kTsdfTruncation;
    out_ = tensors.outputs[0].get();
    if (tsdf_) weight_ = tensors.outputs[1].get();
    if (sparse_) {
      voxels_.coords = out_;
      voxels_.num_voxels = tensors.outputs[1].get();
      voxels_.voxel_features = tensors.outputs[2].get();
    }
  }

  void operator()(const robocache::Context& context) const override {
    call(context.get(), rbcVoxelize, rbcVoxelizeSparse, rbcVoxelizeTsdf);
  }

  void reserve(robocache::Context& context) const override {
    size_t bytes = 0;
    call(context.get(), rbcVoxelizeWorkspaceSize, rbcVoxelizeSparseWorkspaceSize,
         rbcVoxelizeTsdfWorkspaceSize, &bytes);
    context.reserve(bytes);
  }

 private:
  // Calls the function of the three for this case; `more` follows the common arguments.
  template <class Dense, class Sparse, class Tsdf, class... More>
  void call(rbcContext_t c, Dense dense, Sparse sparse, Tsdf tsdf, More... more) const {
    if (sparse_) {
      robocache::check(sparse(c, points_, features_, &voxels_, &sparse_params_, more...));
    } else if (tsdf_) {
      robocache::check(tsdf(c, points_, sensor_, out_, weight_, nullptr, &tsdf_params_, more...));
    } else {
      robocache::check(dense(c, points_, features_, out_, nullptr, &dense_params_, more...));
    }
  }

  bool sparse_, tsdf_;
  const rbcTensor* points_ = nullptr;
  const rbcTensor* features_ = nullptr;
  const rbcTensor* sensor_ = nullptr;
  const rbcTensor* out_ = nullptr;
  const rbcTensor* weight_ = nullptr;
  rbcVoxelizeParams dense_params_ = rbcVoxelizeParamsInit();
  rbcVoxelizeSparseParams sparse_params_ = rbcVoxelizeSparseParamsInit();
  rbcVoxelizeSparseOutputs voxels_ = rbcVoxelizeSparseOutputsInit();
  rbcVoxelizeTsdfParams tsdf_params_ = rbcVoxelizeTsdfParamsInit();
};

class VoxelData : public Data {
 public:
  explicit VoxelData(const VoxelCase& c) : c_(c) {
    points = c.total();
    accumulates = c.tsdf();
    addCloud();
    std::vector<int64_t> grid(c.shape.begin(), c.shape.end());
    if (c.sparse()) {
      // As many rows as points are enough for any cloud.
      addOutput(support::kI32, {c.total(), 4});
      addOutput(support::kI64, {});
      addOutput(support::kF32, {c.total(), c.channels()});
    } else {
      if (c.clouds > 1) grid.insert(grid.begin(), c.clouds);
      if (c.result == "mean") grid.push_back(c.channels());
      addOutput(c.dtype(), grid);
      if (c.tsdf()) addOutput(c.dtype(), grid);
    }
    answer();
    rows = countVoxels();
    in_range = static_cast<double>(countInside()) / static_cast<double>(c.total());
    // Each point and each feature once; a dense grid; for sparse voxels a row for each; for a tsdf
    // each observed voxel, read and written.
    constexpr int64_t kElement = sizeof(float);
    bytes = c.total() * (c.columns() + c.features) * kElement;
    if (c.sparse()) {
      bytes += rows * (4 + c.channels()) * kElement;
    } else {
      bytes +=
          c.tsdf() ? rows * 2 * 2 * kElement : static_cast<int64_t>(outputs[0].memory().bytes());
    }
  }

  std::unique_ptr<Call> callOn(const Tensors& tensors) const override {
    return std::make_unique<VoxelCall>(c_, tensors);
  }

 private:
  void addCloud() {
    fillPoints(c_, elements<float>(addInput("points", support::kF32, {c_.total(), c_.columns()})));
    if (c_.tsdf()) {
      const std::array<double, 3> sensor = firstEye(c_);
      std::copy(sensor.begin(), sensor.end(),
                elements<double>(addInput("sensor", support::kF64, {3})));
    }
    if (c_.features > 0) {
      const std::vector<int64_t> shape = {c_.total(), c_.features};
      fillFeatures(c_, elements<float>(addInput("features", support::kF32, shape)));
    }
    if (c_.clouds > 1) {
      int64_t* offsets = elements<int64_t>(addInput("offsets", support::kI64, {c_.clouds + 1}));
      for (int64_t b = 0; b <= c_.clouds; ++b) offsets[b] = b * c_.points;
    }
  }

  // Voxels with points, or observed: where the last output is not 0.
  int64_t countVoxels() const {
    if (c_.sparse()) return *elements<int64_t>(outputs[1]);
    const auto bytes_each = static_cast<size_t>(c_.channels() * support::sizeOf(c_.dtype()));
    const std::byte* data = outputs.back().memory().data();
    int64_t count = 0;
    for (const std::byte* end = data + outputs.back().memory().bytes(); data < end;
         data += bytes_each) {
      count += std::any_of(data, data + bytes_each, [](std::byte b) { return b != std::byte{0}; });
    }
    return count;
  }

  int64_t countInside() const {
    const float* p = elements<float>(inputs[0].second);
    int64_t count = 0;
    for (const float* end = p + c_.total() * c_.columns(); p < end; p += c_.columns()) {
      bool inside = true;
      for (size_t axis = 0; axis < 3; ++axis) {
        const double voxel = (p[axis] - c_.origin(axis)) / c_.voxel_size;
        inside = inside && voxel >= 0 && voxel < static_cast<double>(c_.shape[axis]);
      }
      count += inside;
    }
    return count;
  }

  const VoxelCase c_;
};

std::shared_ptr<Case> parseVoxels(const std::string& name) {
  auto c = std::make_shared<VoxelCase>();
  const size_t slash = name.find('/');
  c->result = name.substr(0, slash);
  std::string text = name.substr(slash + 1);
  long long clouds = 1, points = 0, x = 0, y = 0, z = 0, features = 0;
  char unit = 0;
  int read = 0;
  if (std::sscanf(text.c_str(), "%lldx%lld%c %n", &clouds, &points, &unit, &read) != 3) {
    clouds = 1;
    std::sscanf(text.c_str(), "%lld%c %n", &points, &unit, &read);
  }
  text.erase(0, static_cast<size_t>(read));
  if (std::sscanf(text.c_str(), "%lldx%lldx%lld %n", &x, &y, &z, &read) != 3) {
    std::sscanf(text.c_str(), "%lld^3 %n", &x, &read);
    y = z = x;
  }
  text.erase(0, static_cast<size_t>(read));
  if (std::sscanf(text.c_str(), "%lld features %n", &features, &read) == 1) {
    text.erase(0, static_cast<size_t>(read));
    // Features in addition to points that could be averaged themselves.
    c->variant = text.rfind("beside ", 0) == 0;
    if (c->variant) text.erase(0, sizeof "beside");
  }
  constexpr const char* kResults[] = {"occupancy", "count", "mean", "sparse mean", "tsdf"};
  const bool known =
      std::find(std::begin(kResults), std::end(kResults), c->result) != std::end(kResults);
  const bool uniform = text == "uniform";
  const bool right = known && clouds > 0 && points > 0 && (unit == 'k' || unit == 'M') && x > 0 &&
                     y > 0 && z > 0 && (uniform || text == "sweeps") &&
                     (features > 0) >= (c->result == "mean");
  if (!right) {
    throw std::runtime_error("'" + name +
                             "' is not of the form 'sparse mean/32x100k 352x400x20 sweeps' "
                             "or 'mean/1M 200^3 16 features uniform'");
  }
  c->clouds = clouds;
  c->points = points * (unit == 'k' ? 1'000 : 1'000'000);
  c->shape = {x, y, z};
  c->features = features;
  c->sweeps = !uniform;
  c->variant = c->variant || c->sweeps;
  if (x == 352) c->voxel_size = 0.2;
  if (x == 2000) c->voxel_size = 0.05;
  c->kernels = 20;
  c->has_plain = clouds == 1 && (c->result == "occupancy" || c->result == "count");
  return c;
}

const CaseKind kVoxels("/", parseVoxels);

}  // namespace

int64_t VoxelCase::channels() const {
  if (!sparse() && result != "mean") return 1;
  return features > 0 ? features : columns();
}

double VoxelCase::origin(size_t axis) const {
  return axis == 2 ? -1 : -0.5 * static_cast<double>(shape[axis]) * voxel_size;
}

rbcVoxelGrid VoxelCase::grid() const {
  rbcVoxelGrid grid;
  for (size_t axis = 0; axis < 3; ++axis) {
    grid.origin[axis] = origin(axis);
    grid.voxel_size[axis] = voxel_size;
    grid.shape[axis] = shape[axis];
  }
  return grid;
}

rbcDType VoxelCase::dtype() const {
  if (result == "occupancy") return support::kU8;
  return result == "count" ? support::kI32 : support::kF32;
}

int64_t VoxelCase::roughBytes() const {
  constexpr int64_t kElement = sizeof(float);
  const int64_t read = total() * (columns() + features) * kElement;
  if (tsdf()) return read + volume() * 2 * kElement;
  // For sparse voxels if each point has a separate one.
  if (sparse()) return read + total() * (4 + channels()) * kElement;
  return read + clouds * volume() * channels() * support::sizeOf(dtype());
}

std::string VoxelCase::facts() const {
  const auto list = [](auto x, auto y, auto z) {
    return "[" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + "]";
  };
  return "\"result\": \"" + result + "\", \"clouds\": " + std::to_string(clouds) +
         ", \"points\": " + std::to_string(points) + ", \"columns\": " + std::to_string(columns()) +
         ", \"features\": " + std::to_string(features) +
         ", \"voxel_size\": " + std::to_string(voxel_size) +
         ", \"shape\": " + list(shape[0], shape[1], shape[2]) +
         ", \"origin\": " + list(origin(0), origin(1), origin(2));
}

std::unique_ptr<const Data> VoxelCase::load() const { return std::make_unique<VoxelData>(*this); }

}  // namespace bench
