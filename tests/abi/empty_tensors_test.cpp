// Tensors without elements: their data may be null, and their strides may be any numbers. Every
// operation accepts them, and writes the outputs that have elements.
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "abi/error_table.h"

namespace {

using support::kF32;
using support::kF64;
using support::kI32;
using support::kI64;
using support::kU8;

constexpr int64_t kStrides[] = {1, std::numeric_limits<int64_t>::min(),
                                std::numeric_limits<int64_t>::max(), int64_t{1} << 62,
                                -(int64_t{1} << 62)};
using Shape = std::vector<int64_t>;

const support::Context& context() { return support::refusingContext(); }

// An array, or, without elements, null data with equal strides.
class Tensor {
 public:
  Tensor(rbcDType dtype, const Shape& shape, int64_t stride) : argument_(dtype, shape) {
    if (argument_.array.count() != 0) return;
    argument_.restride(Shape(shape.size(), stride));
    argument_.raw.data = nullptr;
    argument_.raw.byte_offset = std::numeric_limits<uint64_t>::max();
  }

  operator const rbcTensor*() const { return &argument_.raw; }
  template <class T>
  void fill(std::initializer_list<T> elements) {
    argument_.fill(elements);
  }
  // Fills all elements with one value.
  template <class T>
  void fillWith(T element) {
    argument_.array.each([&](std::byte* p) { std::memcpy(p, &element, sizeof element); });
  }
  template <class T>
  std::vector<T> elements() const {
    std::vector<T> all;
    argument_.array.each([&](const std::byte* p) {
      T element;
      std::memcpy(&element, p, sizeof element);
      all.push_back(element);
    });
    return all;
  }

 private:
  support::Argument argument_;
};

int64_t countOf(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}
template <class T>
std::vector<T> all(const Shape& shape, T element) {
  return std::vector<T>(static_cast<size_t>(countOf(shape)), element);
}

struct Extents {
  int64_t batch, samples, queries, channels;
};
constexpr Extents kExtents[] = {{0, 3, 2, 4}, {2, 0, 2, 4}, {2, 3, 0, 4},
                                {2, 3, 2, 0}, {0, 0, 0, 0}, {2, 0, 2, 0}};

std::string textOf(const Extents& e, int64_t stride) {
  return "[" + std::to_string(e.batch) + "," + std::to_string(e.samples) + "," +
         std::to_string(e.queries) + "," + std::to_string(e.channels) + "] by " +
         std::to_string(stride);
}

constexpr rbcVoxelGrid kGrid = {{0, 0, 0}, {1, 1, 1}, {2, 3, 4}};

// Clouds with features; no point is in the grid.
struct Clouds {
  int64_t clouds, points, features;
};
constexpr Clouds kClouds[] = {{0, 2, 3}, {2, 0, 3}, {2, 2, 0}, {0, 0, 0}};

struct CloudTensors {
  Tensor points;
  Tensor features;
  Tensor indexes;  // lengths, or offsets

  CloudTensors(const Clouds& c, bool packed, int64_t stride)
      : points(kF32, packed ? Shape{c.clouds * c.points, 3} : Shape{c.clouds, c.points, 3}, stride),
        features(
            kF32,
            packed ? Shape{c.clouds * c.points, c.features} : Shape{c.clouds, c.points, c.features},
            stride),
        indexes(kI64, {c.clouds + (packed ? 1 : 0)}, stride) {
    points.fillWith(-1.0f);
    features.fillWith(7.0f);
    if (packed) {
      indexes.fillWith(int64_t{0});
      if (c.clouds == 2) indexes.fill<int64_t>({0, c.points, 2 * c.points});
    } else {
      indexes.fillWith(c.points);
    }
  }
};

// Calls visit(clouds, packed, stride) for all kinds of them.
template <class Visitor>
void visitClouds(Visitor&& visit) {
  for (const Clouds& c : kClouds) {
    for (const bool packed : {false, true}) {
      for (const int64_t stride : kStrides) {
        INFO(c.clouds, " clouds, ", c.points, " points, ", c.features, " features, by ", stride);
        visit(c, packed, stride);
      }
    }
  }
}

}  // namespace

TEST_CASE("empty tensors: resample fills the outputs that have elements") {
  constexpr int32_t kMethods[] = {RBC_METHOD_LINEAR, RBC_METHOD_NEAREST, RBC_METHOD_CUBIC,
                                  RBC_METHOD_SLERP, RBC_METHOD_ANGLE};
  for (const Extents& e : kExtents) {
    for (const int64_t stride : kStrides) {
      for (const bool packed : {false, true}) {
        for (const int32_t method : kMethods) {
          INFO(textOf(e, stride), packed ? ", packed" : "", ", method ", method);
          const int64_t rows = e.batch * e.samples;
          Tensor values(kF32,
                        packed ? Shape{rows, e.channels} : Shape{e.batch, e.samples, e.channels},
                        stride);
          Tensor times(kF64, packed ? Shape{rows} : Shape{e.batch, e.samples}, stride);
          Tensor queries(kF64, {e.batch, e.queries}, stride);
          const Shape out_shape = {e.batch, e.queries, e.channels};
          const Tensor out(kF32, out_shape, stride);
          const Tensor mask(kU8, {e.batch, e.queries}, stride);
          Tensor lengths(kI32, {e.batch}, stride);
          Tensor offsets(kI32, {e.batch + 1}, stride);
          Tensor mean(kF32, {e.channels}, stride);
          if (countOf({rows}) != 0) times.fill<double>({0, 1, 2, 0, 1, 2});
          if (e.queries != 0 && e.batch != 0) queries.fill<double>({0.5, 1, 1.5, 9});
          lengths.fillWith(static_cast<int32_t>(e.samples));
          offsets.fillWith(0);
          if (e.batch == 2) {
            offsets.fill<int32_t>(
                {0, static_cast<int32_t>(e.samples), 2 * static_cast<int32_t>(e.samples)});
          }
          mean.fillWith(0.0f);
          rbcResampleParams params = rbcResampleParamsInit();
          params.method = method;
          params.flags = RBC_FLAG_CHECK_TIMES;
          params.fill_value = 5;
          params.shift = mean;
          params.outside = RBC_OUTSIDE_FILL;
          (packed ? params.batch_offsets : params.lengths) = packed ? offsets : lengths;
          CHECK_SUCCEEDS(rbcResample(context().get(), values, times, queries, out, mask, &params));
          CHECK(out.elements<float>() == all(out_shape, 5.0f));
          if (e.batch != 0 && e.queries != 0) {
            const bool found = e.samples != 0;
            CHECK(mask.elements<uint8_t>() ==
                  std::vector<uint8_t>{found, found, found, 0});  // 9 is past the times
          }
          size_t bytes = 1;
          CHECK_SUCCEEDS(rbcResampleWorkspaceSize(context().get(), values, times, queries, out,
                                                  mask, &params, &bytes));
          CHECK(bytes <= 64);  // copies of lengths and offsets
        }
      }
    }
  }
}

TEST_CASE("empty tensors: a batch may have up to 2^63 - 1 rows") {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const int64_t shape[] = {kMost, 0, 1};
  const int64_t none = 0;
  const rbcDevice cpu = {RBC_DEVICE_CPU, 0};
  const rbcTensor rows = {nullptr, cpu, 3, kU8, const_cast<int64_t*>(shape), nullptr, 0};
  const rbcTensor times = {nullptr, cpu, 1, kF64, const_cast<int64_t*>(&none), nullptr, 0};
  rbcResampleParams params = rbcResampleParamsInit();
  params.method = RBC_METHOD_NEAREST;
  CHECK_SUCCEEDS(rbcResample(context().get(), &rows, &times, &times, &rows, nullptr, &params));
}

TEST_CASE("empty tensors: fuse skips streams without samples or channels") {
  for (const int64_t stride : kStrides) {
    for (const int64_t batch : {0, 2}) {
      for (const int64_t queries_count : {0, 2}) {
        INFO(batch, " rows, ", queries_count, " queries, by ", stride);
        const int64_t channels[] = {0, 2, 1};
        const int64_t samples[] = {3, 0, 2};
        std::vector<std::unique_ptr<Tensor>> tensors;
        rbcFuseStream streams[3];
        rbcResampleParams params[3];
        for (int n = 0; n < 3; ++n) {
          auto values =
              std::make_unique<Tensor>(kF32, Shape{batch, samples[n], channels[n]}, stride);
          auto times = std::make_unique<Tensor>(kI64, Shape{samples[n]}, stride);
          values->fillWith(4.0f);
          if (n == 0) times->fill<int64_t>({10, 20, 30});
          if (n == 2) times->fill<int64_t>({10, 20});
          params[n] = rbcResampleParamsInit();
          params[n].fill_value = 5;
          streams[n] = rbcFuseStreamInit();
          streams[n].values = *values;
          streams[n].times = *times;
          streams[n].params = &params[n];
          tensors.push_back(std::move(values));
          tensors.push_back(std::move(times));
        }
        Tensor queries(kI64, {queries_count}, stride);
        if (queries_count != 0) queries.fill<int64_t>({15, 25});
        const Tensor out(kF32, {batch, queries_count, 3}, stride);
        const Tensor mask(kU8, {batch, queries_count, 3}, stride);
        CHECK_SUCCEEDS(rbcFuse(context().get(), streams, 3, queries, out, mask, nullptr));
        if (batch == 0 || queries_count == 0) continue;
        CHECK(out.elements<float>() == std::vector<float>{5, 5, 4, 5, 5, 4, 5, 5, 4, 5, 5, 4});
        CHECK(mask.elements<uint8_t>() == std::vector<uint8_t>{1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 0});
      }
    }
  }
}

TEST_CASE("empty tensors: voxelize clears the grid in every mode") {
  visitClouds([](const Clouds& c, bool packed, int64_t stride) {
    for (int32_t mode = RBC_REDUCE_OCCUPANCY; mode <= RBC_REDUCE_MIN; ++mode) {
      INFO("mode ", mode);
      const CloudTensors given(c, packed, stride);
      Shape shape = {c.clouds, 2, 3, 4};
      if (mode >= RBC_REDUCE_SUM) shape.push_back(c.features);
      const Tensor out(kF32, shape, stride);
      const Tensor dropped(kI64, {c.clouds}, stride);
      rbcVoxelizeParams params = rbcVoxelizeParamsInit();
      params.reduction = mode;
      params.fill_value = 5;
      params.grid = kGrid;
      (packed ? params.batch_offsets : params.lengths) = given.indexes;
      const rbcTensor* features =
          mode >= RBC_REDUCE_SUM ? static_cast<const rbcTensor*>(given.features) : nullptr;
      CHECK_SUCCEEDS(rbcVoxelize(context().get(), given.points, features, out, dropped, &params));
      CHECK(out.elements<float>() == all(shape, 5.0f));
      CHECK(dropped.elements<int64_t>() == all(Shape{c.clouds}, c.points));
      size_t bytes = 0;
      CHECK_SUCCEEDS(rbcVoxelizeWorkspaceSize(context().get(), given.points, features, out, dropped,
                                              &params, &bytes));
    }
  });
}

TEST_CASE("empty tensors: voxelize_sparse counts 0 voxels") {
  visitClouds([](const Clouds& c, bool packed, int64_t stride) {
    for (const int32_t order :
         {RBC_VOXELIZE_SPARSE_ORDER_LEXICOGRAPHIC, RBC_VOXELIZE_SPARSE_ORDER_FIRST_POINT}) {
      const CloudTensors given(c, packed, stride);
      const Tensor coords(kI32, {2, 4}, stride);
      const Tensor num_voxels(kI64, {}, stride);
      const Tensor counts(kI32, {2}, stride);
      const Tensor reduced(kF32, {2, c.features}, stride);
      const Tensor grouped(kF32, {2, 1, c.features}, stride);
      const Shape rows = packed ? Shape{c.clouds * c.points} : Shape{c.clouds, c.points};
      const Tensor point_to_voxel(kI32, rows, stride);
      const Tensor dropped(kI64, {c.clouds}, stride);
      const Tensor voxels_over(kI64, {}, stride);
      const Tensor points_over(kI64, {}, stride);
      const Tensor group_over(kI64, {}, stride);
      rbcVoxelizeSparseOutputs voxels = rbcVoxelizeSparseOutputsInit();
      voxels.coords = coords;
      voxels.num_voxels = num_voxels;
      voxels.points_per_voxel = counts;
      voxels.voxel_features = reduced;
      voxels.grouped = grouped;
      voxels.point_to_voxel = point_to_voxel;
      voxels.num_points_outside = dropped;
      voxels.num_voxels_over_capacity = voxels_over;
      voxels.num_points_over_capacity = points_over;
      voxels.num_points_over_group = group_over;
      rbcVoxelizeSparseParams params = rbcVoxelizeSparseParamsInit();
      params.order = order;
      params.grid = kGrid;
      (packed ? params.batch_offsets : params.lengths) = given.indexes;
      CHECK_SUCCEEDS(
          rbcVoxelizeSparse(context().get(), given.points, given.features, &voxels, &params));
      CHECK(num_voxels.elements<int64_t>() == std::vector<int64_t>{0});
      CHECK(coords.elements<int32_t>() == std::vector<int32_t>(8, -1));
      CHECK(counts.elements<int32_t>() == std::vector<int32_t>(2, 0));
      CHECK(reduced.elements<float>() == all(Shape{2, c.features}, 0.0f));
      CHECK(grouped.elements<float>() == all(Shape{2, 1, c.features}, 0.0f));
      CHECK(point_to_voxel.elements<int32_t>() == all(rows, -1));
      CHECK(dropped.elements<int64_t>() == all(Shape{c.clouds}, c.points));
      for (const Tensor* over : {&voxels_over, &points_over, &group_over}) {
        CHECK(over->elements<int64_t>() == std::vector<int64_t>{0});
      }
      size_t bytes = 0;
      CHECK_SUCCEEDS(rbcVoxelizeSparseWorkspaceSize(context().get(), given.points, given.features,
                                                    &voxels, &params, &bytes));
    }
  });
}

// A voxel with points but without features.
TEST_CASE("empty tensors: voxels are found if points have no features") {
  for (const int64_t stride : kStrides) {
    INFO("by ", stride);
    Tensor points(kF32, {2, 3}, stride);
    points.fill<float>({1.5f, 2.5f, 3.5f, 1.5f, 2.5f, 3.5f});
    const Tensor features(kF32, {2, 0}, stride);
    const Tensor coords(kI32, {1, 4}, stride);
    const Tensor num_voxels(kI64, {}, stride);
    const Tensor counts(kI32, {1}, stride);
    const Tensor reduced(kF32, {1, 0}, stride);
    const Tensor grouped(kF32, {1, int64_t{1} << 60, 0}, stride);  // too many rows to visit
    rbcVoxelizeSparseOutputs voxels = rbcVoxelizeSparseOutputsInit();
    voxels.coords = coords;
    voxels.num_voxels = num_voxels;
    voxels.points_per_voxel = counts;
    voxels.voxel_features = reduced;
    voxels.grouped = grouped;
    rbcVoxelizeSparseParams params = rbcVoxelizeSparseParamsInit();
    params.grid = kGrid;
    for (const int32_t reduce : {RBC_REDUCE_SUM, RBC_REDUCE_MEAN, RBC_REDUCE_MAX, RBC_REDUCE_MIN}) {
      params.reduction = reduce;
      CHECK_SUCCEEDS(rbcVoxelizeSparse(context().get(), points, features, &voxels, &params));
      CHECK(coords.elements<int32_t>() == std::vector<int32_t>{0, 1, 2, 3});
      CHECK(counts.elements<int32_t>() == std::vector<int32_t>{2});
    }
  }
}

TEST_CASE("empty tensors: voxelize_tsdf does not change the volume") {
  visitClouds([](const Clouds& c, bool packed, int64_t stride) {
    const CloudTensors given(c, packed, stride);
    Tensor sensors(kF64, {c.clouds, 3}, stride);
    sensors.fillWith(-9.0);
    Tensor tsdf(kF32, {2, 3, 4}, stride);
    Tensor weight(kF32, {2, 3, 4}, stride);
    tsdf.fillWith(0.25f);
    weight.fillWith(2.0f);
    const Tensor dropped(kI64, {c.clouds}, stride);
    rbcVoxelizeTsdfParams params = rbcVoxelizeTsdfParamsInit();
    params.truncation = 0.5;
    params.grid = kGrid;
    (packed ? params.batch_offsets : params.lengths) = given.indexes;
    CHECK_SUCCEEDS(
        rbcVoxelizeTsdf(context().get(), given.points, sensors, tsdf, weight, dropped, &params));
    CHECK(tsdf.elements<float>() == std::vector<float>(24, 0.25f));
    CHECK(weight.elements<float>() == std::vector<float>(24, 2.0f));
    CHECK(dropped.elements<int64_t>() == all(Shape{c.clouds}, c.points));
  });
}

TEST_CASE("empty tensors: copies do nothing") {
  for (const int64_t from : kStrides) {
    for (const int64_t to : kStrides) {
      const Tensor source(kF32, {4, 0, 3}, from);
      const Tensor destination(kF32, {4, 0, 3}, to);
      CHECK_SUCCEEDS(rbcTensorCopy(context().get(), source, destination));
    }
  }
}

TEST_CASE("empty tensors: callers get the strides that they passed") {
  for (const int64_t stride : kStrides) {
    const Tensor given(kF32, {4, 0, 3, 1}, stride);
    rbcTensorInfo info = rbcTensorInfoInit();
    CHECK_SUCCEEDS(rbcTensorGetInfo(given, &info));
    CHECK(Shape(info.strides, info.strides + 4) == Shape{stride, 3, stride, 1});
    CHECK(info.num_elements == 0);
    CHECK(info.num_bytes == 0);
  }
  const int64_t shape[] = {4, 0, 3};
  rbcOwnedTensor_t owned = nullptr;
  CHECK_SUCCEEDS(rbcOwnedTensorCreate(context().get(), kF32, 3, shape, nullptr, &owned));
  const support::OwnedTensor holder(owned);
  rbcTensor view = {};
  CHECK_SUCCEEDS(rbcOwnedTensorGetView(owned, 1, &view));
  CHECK(Shape(view.strides, view.strides + 3) == Shape{3, 3, 1});
}
