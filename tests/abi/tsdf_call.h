// A good call of rbcVoxelizeTsdf for tests to spoil.
#pragma once

#include <limits>
#include <vector>

#include "abi/common_errors.h"
#include "abi/operation_call.h"

namespace tsdf_call {

using support::Argument;
using support::kF32;
using support::kF64;
using support::kI32;
using support::kI64;

// A good call: B = 2, N = 2, C = 4; a grid of 4 x 2 x 1. Each cloud has one point that is seen along
// x, from either side; the first one a NaN as well, and the second one's other point is not valid.
struct Call : support::OperationCall<Call, rbcVoxelizeTsdf, rbcVoxelizeTsdfWorkspaceSize> {
  Argument points{kF32, {2, 2, 4}};
  Argument sensors{kF64, {2, 3}};
  Argument lengths{kI32, {2}};
  Argument offsets{kI64, {3}};  // not in use: see pack()
  Argument tsdf{kF32, {4, 2, 1}};
  Argument weight{kF32, {4, 2, 1}};
  Argument dropped{kI64, {2}};
  const rbcTensor* used[5] = {&points.raw, &sensors.raw, &tsdf.raw, &weight.raw, &dropped.raw};
  rbcVoxelizeTsdfParams params = rbcVoxelizeTsdfParamsInit();
  const rbcVoxelizeTsdfParams* used_params = &params;

  Call() {
    const auto nan = std::numeric_limits<float>::quiet_NaN();
    points.fill<float>({2.5f, 0.5f, 0.5f, 9, nan, 0.5f, 0.5f, 9,  //
                        1, 1.5f, 0.5f, 9, 2, 0.5f, 0.5f, 9});
    sensors.fill<double>({-10, 0.5, 0.5, 10, 1.5, 0.5});
    lengths.fill<int32_t>({2, 1});
    offsets.fill<int64_t>({0, 2, 3});
    tsdf.fill<float>({9, 9, 0, 9, 9, 9, 9, 9});
    weight.fill<float>({0, 0, 1, 0, 0, 0, 0, 0});
    tsdf_before_ = tsdf.array.elements();
    weight_before_ = weight.array.elements();
    params.truncation = 1.5;
    params.grid = {{0, 0, 0}, {1, 1, 1}, {4, 2, 1}};
    params.lengths = &lengths.raw;
  }

  // The same as packed points.
  void pack() {
    points.reshape({4, 4});
    params.lengths = nullptr;
    params.batch_offsets = &offsets.raw;
  }

  auto arguments() const {
    return std::make_tuple(used[0], used[1], used[2], used[3], used[4], used_params);
  }
  bool untouched() const {
    return tsdf.array.elements() == tsdf_before_ && weight.array.elements() == weight_before_ &&
           dropped.array.untouched();
  }
  void checkOutputs() const {
    const float distances[] = {9, -0.5f, 0.5f, 0.5f, 0, 1.5f, -1, 9};
    const float weights[] = {0, 1, 2, 1, 1, 1, 1, 0};
    const auto check = [](const Argument& output, const float* expected) {
      for (const uint64_t bits : output.array.elements()) {
        CHECK(support::decodeFloat(kF32, bits) == static_cast<long double>(*expected++));
      }
    };
    check(tsdf, distances);
    check(weight, weights);
    CHECK(dropped.array.elements() == std::vector<uint64_t>{1, 0});
  }

  // Outputs in the order in which they are looked at.
  static std::vector<support::TensorOf<Call>> tensors() {
    using support::Access;
    return {
        {"points", [](Call& c) -> Argument& { return c.points; }},
        {"sensors", [](Call& c) -> Argument& { return c.sensors; }},
        {"lengths", [](Call& c) -> Argument& { return c.lengths; }},
        {"batch_offsets", [](Call& c) -> Argument& { return c.offsets; }, Access::kRead,
         [](Call& c) { c.pack(); }},
        {"tsdf", [](Call& c) -> Argument& { return c.tsdf; }, Access::kWritten},
        {"weight", [](Call& c) -> Argument& { return c.weight; }, Access::kWritten},
        {"num_points_unused", [](Call& c) -> Argument& { return c.dropped; }, Access::kWritten}};
  }
  static std::vector<support::StructOf<Call>> structs() {
    return {support::structOf("params", &Call::params, &Call::used_params,
                              RBC_VOXELIZE_TSDF_FLAG_CARVE)};
  }
  static std::vector<support::PointerOf<Call>> pointers() {
    return {{"points: is null", [](Call& c) { c.used[0] = nullptr; }},
            {"sensors: is null", [](Call& c) { c.used[1] = nullptr; }},
            {"tsdf: is null", [](Call& c) { c.used[2] = nullptr; }},
            {"weight: is null", [](Call& c) { c.used[3] = nullptr; }},
            {"params: is null, expected a grid and a truncation",
             [](Call& c) { c.used_params = nullptr; }}};
  }

 private:
  std::vector<uint64_t> tsdf_before_;
  std::vector<uint64_t> weight_before_;
};

}  // namespace tsdf_call
