// Errors of rbcVoxelize and rbcVoxelizeSparse in their outputs.
#include <cmath>
#include <cstddef>
#include <limits>

#include "abi/voxelize_call.h"

namespace {

using namespace voxelize_call;
using support::checkDTypes;
using support::checkError;
using support::checkErrors;
using support::checkShapes;

const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("voxelize errors: a dense output of a wrong shape or dtype") {
  constexpr auto kShape = RBC_STATUS_SHAPE_MISMATCH;
  checkShapes<Dense>({{"out", {2, 2, 2, 1, 3}, "shape is [2,2,2,1,3], expected [2,2,2,1,2]"},
                      {"out", {2, 2, 2, 1}, "shape is [2,2,2,1], expected [2,2,2,1,2]"},
                      {"out", {1, 2, 2, 1, 2}, "shape is [1,2,2,1,2], expected [2,2,2,1,2]"},
                      {"out", {2, 2, 1, 2, 2}, "shape is [2,2,1,2,2], expected [2,2,2,1,2]"},
                      {"out", {16}, "shape is [16], expected [2,2,2,1,2]"}});
  checkErrors<Dense>({{kShape, "out: shape is [2,2,2,1,2], expected [2,2,2,1,4]",
                       [](Dense& c) { c.used_features = nullptr; }},  // the columns of points
                      {kShape, "out: shape is [2,2,2,1,1], expected [2,2,2,1]",
                       [](Dense& c) {
                         c.tell(RBC_REDUCE_COUNT, kI32);
                         c.out.reshape({2, 2, 2, 1, 1});
                       }},
                      {kShape, "out: shape is [1,2,2,1,2], expected [2,2,1,2]", [](Dense& c) {
                         c.points.reshape({4, 4});  // without a batch
                         c.features.reshape({4, 2});
                         c.params.lengths = nullptr;
                         c.out.reshape({1, 2, 2, 1, 2});
                       }}});
  checkShapes<Dense>({{"num_points_outside", {1}, "shape is [1], expected [2]"},
                      {"num_points_outside", {}, "shape is [], expected [2]"},
                      {"num_points_outside", {2, 1}, "shape is [2,1], expected [2]"}});
  checkError<Dense>({RBC_STATUS_DTYPE_MISMATCH,
                     "num_points_outside: dtype is int32, expected int64",
                     [](Dense& c) { c.dropped.raw.dtype = kI32; }});

  const auto dtype = [&](int32_t mode, rbcDType given, const char* told) {
    checkError<Dense>({RBC_STATUS_DTYPE_MISMATCH, told, [&](Dense& c) {
                         if (mode >= RBC_REDUCE_SUM) {
                           c.params.reduction = mode;
                           c.out.raw.dtype = given;
                         } else {
                           c.tell(mode, given);
                         }
                       }});
  };
  using namespace support;
  dtype(RBC_REDUCE_OCCUPANCY, kI8,
        "out: dtype is int8, expected bool, uint8, int32 or a float for occupancy");
  dtype(RBC_REDUCE_OCCUPANCY, kI64,
        "out: dtype is int64, expected bool, uint8, int32 or a float for occupancy");
  dtype(RBC_REDUCE_COUNT, kU8, "out: dtype is uint8, expected int32, int64 or a float for count");
  dtype(RBC_REDUCE_COUNT, kBool, "out: dtype is bool, expected int32, int64 or a float for count");
  dtype(RBC_REDUCE_COUNT, kU64, "out: dtype is uint64, expected int32, int64 or a float for count");
  for (const int32_t mode : {RBC_REDUCE_SUM, RBC_REDUCE_MEAN, RBC_REDUCE_MAX, RBC_REDUCE_MIN}) {
    dtype(mode, kI32, "out: dtype is int32, expected a float for features");
    dtype(mode, kBool, "out: dtype is bool, expected a float for features");
  }
}

TEST_CASE("voxelize errors: sparse outputs of a wrong shape or dtype") {
  constexpr auto kShape = RBC_STATUS_SHAPE_MISMATCH;
  checkShapes<Sparse>(
      {{"coords", {0, 4}, "shape is [0,4], expected a capacity of 1 or more"},
       {"coords", {2, 3}, "shape is [2,3], expected [2,4]"},
       {"coords", {8}, "rank is 1 (shape [8]), expected 2"},
       {"coords", {1, 2, 4}, "rank is 3 (shape [1,2,4]), expected 2"},
       {"num_voxels", {1}, "shape is [1], expected []"},
       {"points_per_voxel", {1}, "shape is [1], expected [2]"},
       {"points_per_voxel", {2, 1}, "shape is [2,1], expected [2]"},
       {"outputs.voxel_features", {2, 1}, "shape is [2,1], expected [2,2]"},
       {"outputs.voxel_features", {1, 2}, "shape is [1,2], expected [2,2]"},
       {"outputs.voxel_features", {4}, "shape is [4], expected [2,2]"},
       {"grouped", {2, 0, 2}, "shape is [2,0,2], expected room for 1 point or more"},
       {"grouped", {2, 2}, "rank is 2 (shape [2,2]), expected 3"},
       {"grouped", {1, 1, 2}, "shape is [1,1,2], expected [2,1,2]"},
       {"grouped", {2, 1, 1}, "shape is [2,1,1], expected [2,1,2]"},
       {"point_to_voxel", {8}, "shape is [8], expected [2,4]"},
       {"point_to_voxel", {2, 3}, "shape is [2,3], expected [2,4]"},
       {"num_points_outside", {1}, "shape is [1], expected [2]"},
       {"num_voxels_over_capacity", {3}, "shape is [3], expected []"},
       {"num_points_over_capacity", {1}, "shape is [1], expected []"},
       {"num_points_over_group", {1, 1}, "shape is [1,1], expected []"}});
  checkErrors<Sparse>(
      {{kShape, "point_to_voxel: shape is [2,4], expected [8]",
        [](Sparse& c) {
          c.pack();
          c.point_to_voxel.reshape({2, 4});
        }},
       {kShape, "num_points_outside: shape is [1], expected []",
        [](Sparse& c) {
          c.points.reshape({4, 4});  // without a batch
          c.features.reshape({4, 2});
          c.params.lengths = nullptr;
          c.point_to_voxel.reshape({4});
          c.dropped.reshape({1});
        }},
       {kShape, "points: got 4294967296 clouds, expected at most 2^31 - 1", [](Sparse& c) {
          c.params.lengths = nullptr;
          c.points.reshape({int64_t{1} << 32, 0, 4});
          c.features.reshape({int64_t{1} << 32, 0, 2});
        }}});

  checkDTypes<Sparse>(
      {{"coords", kI64, "dtype is int64, expected int32"},
       {"num_voxels", kI32, "dtype is int32, expected int64"},
       {"points_per_voxel", kI64, "dtype is int64, expected int32"},
       {"outputs.voxel_features", kI32, "dtype is int32, expected a float"},
       {"grouped", kI64, "dtype is int64, expected a float"},
       {"point_to_voxel", kF32, "dtype is float32, expected int32"},
       {"point_to_voxel", support::kI16, "dtype is int16, expected int32"},
       {"num_points_outside", kF64, "dtype is float64, expected int64"},
       {"num_voxels_over_capacity", support::kU64, "dtype is uint64, expected int64"},
       {"num_points_over_capacity", kF64, "dtype is float64, expected int64"},
       {"num_points_over_group", support::kI32, "dtype is int32, expected int64"}});
}

TEST_CASE("voxelize errors: outputs that overlap by an element") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  checkErrors<Dense>({{kStatus, "points: overlaps out",
                       [](Dense& c) {  // by its last element
                         c.out.raw.data = static_cast<std::byte*>(c.points.raw.data) + 124;
                       }},
                      {kStatus, "points: overlaps out",
                       [](Dense& c) {  // by its first
                         c.out.raw.data = static_cast<std::byte*>(c.points.raw.data) - 60;
                       }},
                      {kStatus, "out: elements share memory", [](Dense& c) {
                         c.out.restride({7, 4, 2, 2, 1});
                       }}});
  checkBoth(kStatus, "batch_offsets: overlaps num_points_outside, expected memory of its own",
            [](auto& c) {
              c.pack();
              c.dropped.raw.data = static_cast<std::byte*>(c.offsets.raw.data) + 16;
            });
}

TEST_CASE("voxelize errors: a fill value that the output cannot represent") {
  struct Row {
    int32_t mode;
    rbcDType dtype;
    double bad[4];
    double good[3];
  };
  const Row rows[] = {
      {RBC_REDUCE_OCCUPANCY, support::kBool, {2, -1, 0.5, kNaN}, {0, 1, -0.0}},
      {RBC_REDUCE_OCCUPANCY, support::kU8, {-1, 256, 0.5, kInfinity}, {0, 255, 7}},
      {RBC_REDUCE_COUNT, kI32, {0x1p31, -0x1p31 - 1, 1e300, kNaN}, {0x1p31 - 1, -0x1p31, 0}},
      {RBC_REDUCE_COUNT, kI64, {0x1p63, -0x1.8p63, -kInfinity, kNaN}, {-0x1p63, 0x1p62, 0}},
  };
  for (const Row& row : rows) {
    for (const double empty : row.bad) {
      checkError<Dense>(
          {RBC_STATUS_INVALID_ARGUMENT, "fill_value: ... cannot be written as ", [&](Dense& c) {
             c.tell(row.mode, row.dtype);
             c.params.fill_value = empty;
           }});
    }
    for (const double empty : row.good) {
      Dense call;
      call.tell(row.mode, row.dtype);
      call.params.fill_value = empty;
      CHECK_SUCCEEDS(call.run());
      CHECK(call.out.array.get({0, 0, 1, 0}) == support::encodeInteger(row.dtype, empty));
    }
  }
  checkError<Dense>(
      {RBC_STATUS_INVALID_ARGUMENT, "fill_value: 0.5 cannot be written as uint8", [](Dense& c) {
         c.tell(RBC_REDUCE_OCCUPANCY, support::kU8);
         c.params.fill_value = 0.5;
       }});
  // A float accepts any value, rounded.
  for (const double empty : {kNaN, -kInfinity, 1e300, -0.0, 1.0 / 3}) {
    Dense call;
    call.params.fill_value = empty;
    CHECK_SUCCEEDS(call.run());
    CHECK(call.out.array.get({0, 0, 1, 0, 0}) == support::encodeFloat(kF32, empty));
  }
}
