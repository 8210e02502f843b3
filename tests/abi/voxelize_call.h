// Good calls of rbcVoxelize and of rbcVoxelizeSparse for tests to spoil, on the same two clouds.
#pragma once

#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "abi/common_errors.h"
#include "abi/operation_call.h"

namespace voxelize_call {

using support::Argument;
using support::kF32;
using support::kF64;
using support::kI32;
using support::kI64;
using support::Seen;

// B = 2, N = 4, C = 4, F = 2; a grid of 2 x 2 x 1. The first cloud has two points in voxel 0,0,0,
// one in 1,1,0 and one past the grid; the second, of two points, one in 1,1,0 and a NaN.
struct Clouds {
  Argument points{kF32, {2, 4, 4}};
  Argument features{kF32, {2, 4, 2}};
  Argument lengths{kI32, {2}};
  Argument offsets{kI64, {3}};  // not in use: see pack()
  const rbcTensor* used_points = &points.raw;
  const rbcTensor* used_features = &features.raw;

  Clouds() {
    constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
    points.fill<float>({-1, 0, 0.5f,  9, -0.5f, 1.5f, 0.75f, 9, 0.5f, 3, 0.5f, 9, 1, 0, 0.5f, 9,
                        0,  2, 0.75f, 9, kNaN,  0,    0.5f,  9, -1,   0, 0.5f, 9, 0, 0, 0.5f, 9});
    features.fill<float>({1, 10, 4, -20, -2, 5, 6, 7, 8, 0.5f, 3, 3, 100, 100, 100, 100});
    lengths.fill<int32_t>({4, 2});
    offsets.fill<int64_t>({0, 4, 6});
  }
  Clouds(const Clouds&) = delete;

  static constexpr rbcVoxelGrid kGrid = {{-1, 0, 0.5}, {1, 2, 0.5}, {2, 2, 1}};
};

inline std::vector<uint64_t> bitsOf(std::initializer_list<float> numbers) {
  std::vector<uint64_t> bits;
  for (const float number : numbers) bits.push_back(support::encodeFloat(kF32, number));
  return bits;
}
inline std::vector<uint64_t> bitsOf(rbcDType dtype, std::initializer_list<int64_t> numbers) {
  std::vector<uint64_t> bits;
  for (const int64_t number : numbers) bits.push_back(support::encodeInteger(dtype, number));
  return bits;
}

inline std::vector<uint64_t> elements(const Argument& argument) {
  return argument.array.elements();
}

// A tensor without elements needs no memory.
inline void empty(Argument& argument, std::vector<int64_t> shape) {
  argument.reshape(std::move(shape));
  argument.raw.data = nullptr;
}

// Means, and -1 for empty voxels.
struct Dense : Clouds, support::OperationCall<Dense, rbcVoxelize, rbcVoxelizeWorkspaceSize> {
  Argument out{kF32, {2, 2, 2, 1, 2}};
  Argument dropped{kI64, {2}};
  const rbcTensor* used_out = &out.raw;
  const rbcTensor* used_dropped = &dropped.raw;
  rbcVoxelizeParams params = rbcVoxelizeParamsInit();
  const rbcVoxelizeParams* used_params = &params;

  Dense() {
    params.reduction = RBC_REDUCE_MEAN;
    params.fill_value = -1;
    params.grid = kGrid;
    params.lengths = &lengths.raw;
  }

  // The same as packed points.
  void pack() {
    points.reshape({8, 4});
    features.reshape({8, 2});
    params.lengths = nullptr;
    params.batch_offsets = &offsets.raw;
  }
  // Without features, into an output of another dtype; 0 where there is no point.
  void tell(int32_t mode, rbcDType dtype) {
    params.reduction = mode;
    params.fill_value = 0;
    used_features = nullptr;
    out.shape = {2, 2, 2, 1};
    out.array = support::Array(dtype, out.shape);
    out.restore();
  }

  auto arguments() const {
    return std::make_tuple(used_points, used_features, used_out, used_dropped, used_params);
  }
  void checkOutputs() const {
    CHECK(out.array.elements() ==
          bitsOf({2.5f, -5, -1, -1, -1, -1, -2, 5, -1, -1, -1, -1, -1, -1, 8, 0.5f}));
    CHECK(dropped.array.elements() == bitsOf(kI64, {1, 1}));
  }

  // Outputs in the order in which they are looked at.
  static std::vector<support::TensorOf<Dense>> tensors() {
    using support::Access;
    return {
        {"points", [](Dense& c) -> Argument& { return c.points; }},
        {"features", [](Dense& c) -> Argument& { return c.features; }},
        {"lengths", [](Dense& c) -> Argument& { return c.lengths; }},
        {"batch_offsets", [](Dense& c) -> Argument& { return c.offsets; }, Access::kRead,
         [](Dense& c) { c.pack(); }},
        {"out", [](Dense& c) -> Argument& { return c.out; }, Access::kWritten},
        {"num_points_outside", [](Dense& c) -> Argument& { return c.dropped; }, Access::kWritten}};
  }
  static std::vector<support::StructOf<Dense>> structs() {
    return {support::structOf("params", &Dense::params, &Dense::used_params)};
  }
  static std::vector<support::PointerOf<Dense>> pointers() {
    return {{"points: is null", [](Dense& c) { c.used_points = nullptr; }},
            {"out: is null", [](Dense& c) { c.used_out = nullptr; }},
            {"params: is null, expected a grid", [](Dense& c) { c.used_params = nullptr; }}};
  }
};

// Room for two of the three voxels, and for one of the first one's points.
struct Sparse : Clouds,
                support::OperationCall<Sparse, rbcVoxelizeSparse, rbcVoxelizeSparseWorkspaceSize> {
  Argument coords{kI32, {2, 4}};
  Argument num_voxels{kI64, {}};
  Argument counts{kI32, {2}};
  Argument reduced{kF32, {2, 2}};
  Argument grouped{kF32, {2, 1, 2}};
  Argument point_to_voxel{kI32, {2, 4}};
  Argument dropped{kI64, {2}};
  Argument voxels_over{kI64, {}};
  Argument points_over{kI64, {}};
  Argument group_over{kI64, {}};
  rbcVoxelizeSparseOutputs voxels = rbcVoxelizeSparseOutputsInit();
  rbcVoxelizeSparseParams params = rbcVoxelizeSparseParamsInit();
  const rbcVoxelizeSparseOutputs* used_voxels = &voxels;
  const rbcVoxelizeSparseParams* used_params = &params;

  Sparse() {
    voxels.coords = &coords.raw;
    voxels.num_voxels = &num_voxels.raw;
    voxels.points_per_voxel = &counts.raw;
    voxels.voxel_features = &reduced.raw;
    voxels.grouped = &grouped.raw;
    voxels.point_to_voxel = &point_to_voxel.raw;
    voxels.num_points_outside = &dropped.raw;
    voxels.num_voxels_over_capacity = &voxels_over.raw;
    voxels.num_points_over_capacity = &points_over.raw;
    voxels.num_points_over_group = &group_over.raw;
    params.grid = kGrid;
    params.lengths = &lengths.raw;
  }

  void pack() {
    points.reshape({8, 4});
    features.reshape({8, 2});
    point_to_voxel.reshape({8});
    params.lengths = nullptr;
    params.batch_offsets = &offsets.raw;
  }

  auto arguments() const {
    return std::make_tuple(used_points, used_features, used_voxels, used_params);
  }
  void checkOutputs() const {
    CHECK(coords.array.elements() == bitsOf(kI32, {0, 0, 0, 0, 0, 1, 1, 0}));
    CHECK(num_voxels.array.elements() == bitsOf(kI64, {2}));
    CHECK(counts.array.elements() == bitsOf(kI32, {1, 1}));
    CHECK(reduced.array.elements() == bitsOf({2.5f, -5, -2, 5}));
    CHECK(grouped.array.elements() == bitsOf({1, 10, -2, 5}));
    CHECK(point_to_voxel.array.elements() == bitsOf(kI32, {0, 0, 1, -1, -1, -1, -1, -1}));
    CHECK(dropped.array.elements() == bitsOf(kI64, {1, 1}));
    for (const Argument* over : {&voxels_over, &points_over, &group_over}) {
      CHECK(over->array.elements() == bitsOf(kI64, {1}));
    }
  }

  // Outputs in the order in which they are looked at.
  static std::vector<support::TensorOf<Sparse>> tensors() {
    using support::Access;
    return {
        {"points", [](Sparse& c) -> Argument& { return c.points; }},
        {"features", [](Sparse& c) -> Argument& { return c.features; }},
        {"lengths", [](Sparse& c) -> Argument& { return c.lengths; }},
        {"batch_offsets", [](Sparse& c) -> Argument& { return c.offsets; }, Access::kRead,
         [](Sparse& c) { c.pack(); }},
        {"coords", [](Sparse& c) -> Argument& { return c.coords; }, Access::kWritten},
        {"num_voxels", [](Sparse& c) -> Argument& { return c.num_voxels; }, Access::kWritten},
        {"points_per_voxel", [](Sparse& c) -> Argument& { return c.counts; }, Access::kWritten},
        {"outputs.voxel_features", [](Sparse& c) -> Argument& { return c.reduced; },
         Access::kWritten},
        {"grouped", [](Sparse& c) -> Argument& { return c.grouped; }, Access::kWritten},
        {"point_to_voxel", [](Sparse& c) -> Argument& { return c.point_to_voxel; },
         Access::kWritten},
        {"num_points_outside", [](Sparse& c) -> Argument& { return c.dropped; }, Access::kWritten},
        {"num_voxels_over_capacity", [](Sparse& c) -> Argument& { return c.voxels_over; },
         Access::kWritten},
        {"num_points_over_capacity", [](Sparse& c) -> Argument& { return c.points_over; },
         Access::kWritten},
        {"num_points_over_group", [](Sparse& c) -> Argument& { return c.group_over; },
         Access::kWritten}};
  }
  static std::vector<support::StructOf<Sparse>> structs() {
    return {support::structOf("params", &Sparse::params, &Sparse::used_params),
            support::structOf("outputs", &Sparse::voxels, &Sparse::used_voxels)};
  }
  static std::vector<support::PointerOf<Sparse>> pointers() {
    return {{"points: is null", [](Sparse& c) { c.used_points = nullptr; }},
            {"outputs: is null", [](Sparse& c) { c.used_voxels = nullptr; }},
            {"coords: is null", [](Sparse& c) { c.voxels.coords = nullptr; }},
            {"num_voxels: is null", [](Sparse& c) { c.voxels.num_voxels = nullptr; }},
            {"params: is null, expected a grid", [](Sparse& c) { c.used_params = nullptr; }}};
  }
};

// Points (x, 0.5, 0.5) in a grid from 0 on, by default with voxels of size 1.
struct Line {
  Argument points;
  rbcVoxelGrid grid;

  Line(rbcDType dtype, const std::vector<double>& xs, int64_t voxels)
      : points(dtype, {static_cast<int64_t>(xs.size()), 3}),
        grid{{0, 0, 0}, {1, 1, 1}, {voxels, 1, 1}} {
    int64_t i = 0;
    for (const double x : xs) {
      points.array.set({i, 0}, support::encodeFloat(dtype, static_cast<long double>(x)));
      points.array.set({i, 1}, support::encodeFloat(dtype, 0.5L));
      points.array.set({i++, 2}, support::encodeFloat(dtype, 0.5L));
    }
  }
};

// A row that both functions have; `spoil` takes auto&.
template <class Spoil>
void checkBoth(rbcStatus_t status, const support::ErrorText& message, Spoil spoil) {
  support::checkError<Dense>({status, message, spoil});
  support::checkError<Sparse>({status, message, spoil});
}
inline void checkBothShapes(const std::vector<support::ShapeRow>& table) {
  support::checkShapes<Dense>(table);
  support::checkShapes<Sparse>(table);
}

}  // namespace voxelize_call
