// rbcUnproject, rbcFarthestPoints and rbcTakeRows: errors, and the wrappers.
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "abi/common_errors.h"
#include "abi/operation_call.h"
#include "abi/ragged_errors.h"
#include "abi/struct_calls.h"
#include "abi/wrapper_size.h"
#include "robocache/robocache.hpp"

namespace {

using support::Access;
using support::Argument;
using support::Array;
using support::checkDTypes;
using support::checkErrors;
using support::checkShapes;
using support::kF32;
using support::kF64;
using support::kI32;
using support::kI64;
using support::kU16;
using support::kU8;
using support::Seen;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

void checkFloats(const Argument& output, const std::vector<double>& expected) {
  const std::vector<uint64_t> bits = output.array.elements();
  REQUIRE(bits.size() == expected.size());
  for (size_t i = 0; i < bits.size(); ++i) {
    CHECK(support::decodeFloat(kF32, bits[i]) == static_cast<long double>(expected[i]));
  }
}

// ---- unproject ----------------------------------------------------------------------------------

// Two images of 1 x 2 pixels, one without depth, moved by 1 along x.
struct Unproject : support::OperationCall<Unproject, rbcUnproject, rbcUnprojectWorkspaceSize> {
  Argument depth{kU16, {2, 1, 2}};
  Argument intrinsics{kF64, {2, 4}};
  Argument pose{kF32, {4, 4}};
  Argument colors{kU8, {2, 1, 2, 1}};
  Argument points{kF32, {2, 2, 4}};
  Argument counts{kI64, {2}};
  Argument overflow{kI64, {2}};
  Argument pixels{kI32, {2, 2}};
  const rbcTensor* used[8] = {&depth.raw,  &intrinsics.raw, &pose.raw,     &colors.raw,
                              &points.raw, &counts.raw,     &overflow.raw, &pixels.raw};
  rbcUnprojectParams params = rbcUnprojectParamsInit();
  const rbcUnprojectParams* used_params = &params;

  Unproject() {
    depth.fill<uint16_t>({2000, 1000, 0, 4000});
    intrinsics.fill<double>({2, 2, 0, 0, 4, 4, 0, 0});
    pose.fill<float>({1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
    colors.fill<uint8_t>({10, 20, 30, 40});
  }

  auto arguments() const {
    return std::make_tuple(used[0], used[1], used[2], used[3], used[4], used[5], used[6], used[7],
                           used_params);
  }
  void checkOutputs() const {
    checkFloats(points, {1, 0, 2, 10, 1.5, 0, 1, 20, 2, 0, 4, 40, 0, 0, 0, 0});
    CHECK(counts.array.elements() == std::vector<uint64_t>{2, 1});
    CHECK(overflow.array.elements() == std::vector<uint64_t>{0, 0});
    CHECK(pixels.array.elements() == std::vector<uint64_t>{0, 1, 1, 0xffffffff});
  }

  static std::vector<support::TensorOf<Unproject>> tensors() {
    using C = Unproject;
    return {{"depth", [](C& c) -> Argument& { return c.depth; }},
            {"intrinsics", [](C& c) -> Argument& { return c.intrinsics; }},
            {"pose", [](C& c) -> Argument& { return c.pose; }},
            {"colors", [](C& c) -> Argument& { return c.colors; }},
            {"points", [](C& c) -> Argument& { return c.points; }, Access::kWritten},
            {"num_points", [](C& c) -> Argument& { return c.counts; }, Access::kWritten},
            {"num_points_over_capacity", [](C& c) -> Argument& { return c.overflow; },
             Access::kWritten},
            {"pixels", [](C& c) -> Argument& { return c.pixels; }, Access::kWritten}};
  }
  static std::vector<support::StructOf<Unproject>> structs() {
    return {support::structOf("params", &Unproject::params, &Unproject::used_params)};
  }
  static std::vector<support::PointerOf<Unproject>> pointers() {
    return {{"depth: is null", [](Unproject& c) { c.used[0] = nullptr; }},
            {"intrinsics: is null", [](Unproject& c) { c.used[1] = nullptr; }},
            {"points: is null", [](Unproject& c) { c.used[4] = nullptr; }},
            {"num_points: is null", [](Unproject& c) { c.used[5] = nullptr; }}};
  }
};

// ---- farthest points ----------------------------------------------------------------------------

// Two clouds of up to three points; two points of each are chosen.
struct Farthest
    : support::OperationCall<Farthest, rbcFarthestPoints, rbcFarthestPointsWorkspaceSize> {
  Argument points{kF32, {2, 3, 3}};
  Argument starts{kI32, {2}};
  Argument lengths{kI32, {2}};
  Argument offsets{kI64, {3}};  // not in use: see pack()
  Argument indices{kI64, {2, 2}};
  Argument distances{kF32, {2, 2}};
  const rbcTensor* used[3] = {&points.raw, &indices.raw, &distances.raw};
  rbcFarthestPointsParams params = rbcFarthestPointsParamsInit();
  const rbcFarthestPointsParams* used_params = &params;

  Farthest() {
    points.fill<float>({0, 0, 0, 1, 0, 0, 3, 0, 0, 9, 9, 9, 0, 0, 0, 0, 0, 0});
    starts.fill<int32_t>({1, 0});
    lengths.fill<int32_t>({3, 1});
    offsets.fill<int64_t>({0, 3, 4});
    params.start_indices = &starts.raw;
    params.lengths = &lengths.raw;
  }

  void pack() {
    points.reshape({6, 3});
    params.lengths = nullptr;
    params.batch_offsets = &offsets.raw;
  }
  auto arguments() const { return std::make_tuple(used[0], used[1], used[2], used_params); }
  void checkOutputs() const {
    const bool packed = params.batch_offsets != nullptr;
    CHECK(indices.array.elements() == std::vector<uint64_t>{1, 2, packed ? 3u : 0u, ~uint64_t{0}});
    checkFloats(distances, {INFINITY, 4, INFINITY, 0});
  }

  static std::vector<support::TensorOf<Farthest>> tensors() {
    using C = Farthest;
    return {{"points", [](C& c) -> Argument& { return c.points; }},
            {"start_indices", [](C& c) -> Argument& { return c.starts; }},
            {"lengths", [](C& c) -> Argument& { return c.lengths; }},
            {"batch_offsets", [](C& c) -> Argument& { return c.offsets; }, Access::kRead,
             [](C& c) { c.pack(); }},
            {"indices", [](C& c) -> Argument& { return c.indices; }, Access::kWritten},
            {"distances", [](C& c) -> Argument& { return c.distances; }, Access::kWritten}};
  }
  static std::vector<support::StructOf<Farthest>> structs() {
    return {support::structOf("params", &Farthest::params, &Farthest::used_params)};
  }
  static std::vector<support::PointerOf<Farthest>> pointers() {
    return {{"points: is null", [](Farthest& c) { c.used[0] = nullptr; }},
            {"indices: is null", [](Farthest& c) { c.used[1] = nullptr; }}};
  }
};

// ---- rows by index ------------------------------------------------------------------------------

struct TakeRows : support::OperationCall<TakeRows, rbcTakeRows, rbcTakeRowsWorkspaceSize> {
  Argument values{kF32, {1, 3, 2}};
  Argument indices{kI64, {1, 3}};
  Argument out{kF32, {1, 3, 2}};
  const rbcTensor* used[3] = {&values.raw, &indices.raw, &out.raw};
  rbcTakeRowsParams params = rbcTakeRowsParamsInit();
  const rbcTakeRowsParams* used_params = &params;

  TakeRows() {
    values.fill<float>({1, 2, 3, 4, 5, 6});
    indices.fill<int64_t>({2, -1, 0});
    params.fill_value = 9;
  }

  auto arguments() const { return std::make_tuple(used[0], used[1], used[2], used_params); }
  void checkOutputs() const { checkFloats(out, {5, 6, 9, 9, 1, 2}); }

  static std::vector<support::TensorOf<TakeRows>> tensors() {
    using C = TakeRows;
    return {{"values", [](C& c) -> Argument& { return c.values; }},
            {"indices", [](C& c) -> Argument& { return c.indices; }},
            {"out", [](C& c) -> Argument& { return c.out; }, Access::kWritten}};
  }
  static std::vector<support::StructOf<TakeRows>> structs() {
    return {support::structOf("params", &TakeRows::params, &TakeRows::used_params)};
  }
  static std::vector<support::PointerOf<TakeRows>> pointers() {
    return {{"values: is null", [](TakeRows& c) { c.used[0] = nullptr; }},
            {"indices: is null", [](TakeRows& c) { c.used[1] = nullptr; }},
            {"out: is null", [](TakeRows& c) { c.used[2] = nullptr; }}};
  }
};

const support::StructCallsOf kCloudStructs([](support::StructCalls& calls) {
  const rbcTensor* depth = calls.in(kF32, {1, 2}, {1, 2});
  const rbcTensor* camera = calls.in(kF32, {4}, {1, 2, 0, 0});
  const rbcTensor* cloud = calls.out(kF32, {2, 3});
  const rbcTensor* count = calls.out(kI64, {});
  rbcUnprojectParams unproject = rbcUnprojectParamsInit();
  unproject.depth_scale = 0.5;
  calls.add("rbcUnprojectParams", rbcUnprojectParamsInit(), {unproject}, "params",
            [=, c = calls.context()](const rbcUnprojectParams* object) {
              return rbcUnproject(c, depth, camera, nullptr, nullptr, cloud, count, nullptr,
                                  nullptr, object);
            });
  const rbcTensor* corners = calls.in(kF32, {3, 3}, {0, 0, 0, 1, 0, 0, 0, 3, 0});
  const rbcTensor* farthest = calls.out(kI64, {2});
  rbcFarthestPointsParams from = rbcFarthestPointsParamsInit();
  from.start_index = 1;
  calls.add("rbcFarthestPointsParams", rbcFarthestPointsParamsInit(), {from}, "params",
            [=, c = calls.context()](const rbcFarthestPointsParams* object) {
              return rbcFarthestPoints(c, corners, farthest, nullptr, object);
            });
  const rbcTensor* rows = calls.in(kI64, {2}, {2, -1});
  const rbcTensor* taken = calls.out(kF32, {2, 3});
  rbcTakeRowsParams take = rbcTakeRowsParamsInit();
  take.fill_value = 7;
  calls.add("rbcTakeRowsParams", rbcTakeRowsParamsInit(), {take}, "params",
            [=, c = calls.context()](const rbcTakeRowsParams* object) {
              return rbcTakeRows(c, corners, rows, taken, object);
            });
});

}  // namespace

COMMON_ERROR_TESTS("unproject", Unproject)
STRUCT_ERROR_TESTS("unproject", Unproject)
COMMON_ERROR_TESTS("farthest points", Farthest)
STRUCT_ERROR_TESTS("farthest points", Farthest)
COMMON_ERROR_TESTS("take rows", TakeRows)
STRUCT_ERROR_TESTS("take rows", TakeRows)

TEST_CASE("unproject errors: invalid params") {
  using C = Unproject;
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  checkErrors<C>({
      {kStatus, "depth_scale: is -1, expected more than 0",
       [](C& c) { c.params.depth_scale = -1; }},
      {kStatus, "depth_scale: is 1e-60, expected", [](C& c) { c.params.depth_scale = 1e-60; }},
      {kStatus, "color_divisor: is 0, expected", [](C& c) { c.params.color_divisor = 0; }},
      {kStatus, "min_depth: is -1, expected 0 or more", [](C& c) { c.params.min_depth = -1; }},
      {kStatus, "min_depth: is nan", [](C& c) { c.params.min_depth = std::nan(""); }},
      {kStatus, "min_depth: is 0, expected less than max_depth, which is 0",
       [](C& c) { c.params.max_depth = 0; }},
      {kStatus, "crop_min[0]: is 1, expected less than crop_max[0], which is 1",
       [](C& c) { c.params.crop_min[0] = c.params.crop_max[0] = 1; }},
      {kStatus, "crop_min[1]: is nan", [](C& c) { c.params.crop_min[1] = std::nan(""); }},
      {kStatus, "crop_min[2]: is -inf, expected less than crop_max[2], which is -inf",
       [](C& c) { c.params.crop_max[2] = -INFINITY; }},
      {kStatus, "pixel_offset: is 1, expected 0 or 0.5", [](C& c) { c.params.pixel_offset = 1; }},
      {kStatus, "pixel_stride: is 0, expected 1 or more", [](C& c) { c.params.pixel_stride = 0; }},
  });
}

TEST_CASE("unproject errors: invalid cameras") {
  using C = Unproject;
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  checkErrors<C>({
      {kStatus, "intrinsics: fx of image 1 is 0",
       [](C& c) {
         c.intrinsics.fill<double>({2, 2, 0, 0, 0, 4, 0, 0});
       },
       Seen::kByTheCallAlone},
      {kStatus, "intrinsics: cy of image 0 is nan",
       [](C& c) {
         c.intrinsics.fill<double>({2, 2, 0, static_cast<double>(kNaN), 4, 4, 0, 0});
       },
       Seen::kByTheCallAlone},
      {kStatus, "pose: [1,3] of image 0 is nan, expected finite",
       [](C& c) {
         c.pose.fill<float>({1, 0, 0, 1, 0, 1, 0, kNaN, 0, 0, 1, 0, 0, 0, 0, 1});
       },
       Seen::kByTheCallAlone},
  });
}

TEST_CASE("unproject errors: shapes and dtypes") {
  checkShapes<Unproject>({{"depth", {4}, "rank is 1 (shape [4]), expected 2 or 3"},
                          {"intrinsics", {2, 3}, "shape is [2,3], expected [2,4]"},
                          {"intrinsics", {3, 4}, "shape is [3,4], expected [2,4]"},
                          {"pose", {3, 4}, "shape is [3,4], expected [4,4]"},
                          {"colors", {2, 2, 1, 1}, "shape is [2,2,1,1], expected [2,1,2,1]"},
                          {"points", {2, 2, 3}, "shape is [2,2,3], expected [2,2,4]"},
                          {"num_points", {1}, "shape is [1], expected [2]"},
                          {"num_points_over_capacity", {2, 1}, "shape is [2,1], expected [2]"},
                          {"pixels", {2, 1}, "shape is [2,1], expected [2,2]"}});
  checkDTypes<Unproject>({{"depth", kF64, "dtype is float64, expected uint16, float16 or float32"},
                          {"intrinsics", kI64, "dtype is int64, expected float32 or float64"},
                          {"pose", kI32, "dtype is int32, expected float32 or float64"},
                          {"points", kI32, "dtype is int32, expected a float"},
                          {"num_points", kF64, "dtype is float64, expected int64"},
                          {"num_points_over_capacity", kF64, "dtype is float64, expected int64"},
                          {"pixels", kF32, "dtype is float32, expected int32 or int64"}});
}

TEST_CASE(
    "unproject errors: more channels of images without pixels than a count of columns holds") {
  const int64_t depth_shape[] = {1, 0, 1};
  const int64_t colors_shape[] = {1, 0, 1, INT64_MAX};
  const int64_t points_shape[] = {1, 0, 3};
  const int64_t camera_shape[] = {4};
  Unproject call;
  call.intrinsics.raw.ndim = 1;
  call.intrinsics.raw.shape = const_cast<int64_t*>(camera_shape);
  call.depth.raw.shape = const_cast<int64_t*>(depth_shape);
  call.colors.raw.ndim = 4;
  call.colors.raw.shape = const_cast<int64_t*>(colors_shape);
  call.points.raw.shape = const_cast<int64_t*>(points_shape);
  for (Argument* a : {&call.depth, &call.intrinsics, &call.colors, &call.points}) {
    a->raw.strides = nullptr;
  }
  CHECK_FAILS(call.run(), RBC_STATUS_SHAPE_MISMATCH,
              "colors: has 9223372036854775807 channels, expected at most 2^31 - 4");
}

TEST_CASE("unproject: points that do not fit are counted") {
  Unproject call;
  call.points.reshape({2, 1, 4});
  call.pixels.reshape({2, 1});
  CHECK_SUCCEEDS(call.run());
  CHECK(call.counts.array.elements() == std::vector<uint64_t>{1, 1});
  CHECK(call.overflow.array.elements() == std::vector<uint64_t>{1, 0});
}

TEST_CASE("farthest points errors: shapes, dtypes and starts") {
  using C = Farthest;
  checkShapes<C>({{"points", {2, 3, 2}, "shape is [2,3,2], expected 3 columns or more"},
                  {"start_indices", {3}, "shape is [3], expected [2]"},
                  {"indices", {2}, "rank is 1 (shape [2]), expected 2"},
                  {"indices", {2, 0}, "shape is [2,0], expected room for 1 point or more"},
                  {"indices", {3, 2}, "shape is [3,2], expected [2,2]"},
                  {"distances", {2, 1}, "shape is [2,1], expected [2,2]"}});
  checkDTypes<C>({{"points", kI32, "dtype is int32, expected a float"},
                  {"indices", kF64, "dtype is float64, expected int32 or int64"},
                  {"distances", kI32, "dtype is int32, expected a float"}});
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  checkErrors<C>({
      {kStatus, "start_index: is 1, expected 0 with start_indices",
       [](C& c) { c.params.start_index = 1; }},
      {kStatus, "start_index: is -1, expected 0 or more", [](C& c) { c.params.start_index = -1; }},
      {kStatus, "start_indices: is 1 for cloud 1, expected 0 to 0",
       [](C& c) {
         c.starts.fill<int32_t>({0, 1});
       },
       Seen::kByTheCallAlone},
      {kStatus, "start_indices: is -1 for cloud 0, expected 0 to 2",
       [](C& c) {
         c.starts.fill<int32_t>({-1, 0});
       },
       Seen::kByTheCallAlone},
  });
}

TEST_CASE("farthest points errors: lengths and offsets") {
  support::checkRaggedRows<Farthest>("points");
}

TEST_CASE("take rows errors: shapes, dtypes, indices and fill values") {
  using C = TakeRows;
  checkShapes<C>({{"values", {6}, "rank is 1 (shape [6]), expected 2 or 3"},
                  {"indices", {3}, "rank is 1 (shape [3]), expected 2"},
                  {"indices", {3, 1}, "shape is [3,1], expected [1,K]"},
                  {"out", {1, 2, 3}, "shape is [1,2,3], expected [1,3,2]"}});
  checkDTypes<C>({{"indices", kF64, "dtype is float64, expected int32 or int64"},
                  {"out", kI32, "dtype is int32, expected float32, as values"}});
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  checkErrors<C>({
      {kStatus, "indices: is 3 at [0,1], expected -1, or one of the 3 rows",
       [](C& c) {
         c.indices.fill<int64_t>({0, 3, 0});
       },
       Seen::kByTheCallAlone},
      {kStatus, "indices: is -2 at [0,2]",
       [](C& c) {
         c.indices.fill<int64_t>({0, 1, -2});
       },
       Seen::kByTheCallAlone},
      {kStatus, "fill_value: 0.5 cannot be written as int32",
       [](C& c) {
         c.values.raw.dtype = c.out.raw.dtype = kI32;
         c.params.fill_value = 0.5;
       }},
  });
}

TEST_CASE("clouds: the wrappers, from a depth image to a few of its points") {
  const auto context = robocache::Context::cpu(1);
  const std::vector<float> depth = {1, 2, 0, 4};
  const std::vector<double> camera = {1, 1, 0, 0};
  std::vector<float> points(12);
  int64_t count = 0;
  robocache::unproject(context, {depth, {2, 2}}, {camera, {4}}, {points, {4, 3}},
                       {&count, robocache::dtypeOf<int64_t>(), {}});
  CHECK(count == 3);
  CHECK(points == std::vector<float>{0, 0, 1, 2, 0, 2, 4, 4, 4, 0, 0, 0});
  std::vector<int32_t> indices(2);
  const robocache::Tensor kept(points, {3, 3});
  robocache::farthestPoints(context, kept, {indices, {2}});
  CHECK(indices == std::vector<int32_t>{0, 2});
  std::vector<float> few(9);
  indices.push_back(-1);
  robocache::takeRows(context, kept, {indices, {3}}, {few, {3, 3}}, 7);
  CHECK(few == std::vector<float>{0, 0, 1, 4, 4, 4, 7, 7, 7});
  const auto refused =
      robocache::takeRows<robocache::Expect>(context, kept, {indices, {2}}, {few, {3, 3}});
  REQUIRE(!refused);
  CHECK(support::tells(refused.error().what(), {"out: shape is [3,3], expected [2,3]"}));
}

TEST_CASE("wrapper: the workspaces of points have the sizes of their size functions") {
  constexpr int64_t kRows = 20000;
  std::vector<float> ramp(3 * kRows);
  std::iota(ramp.begin(), ramp.end(), 0.0f);
  const robocache::Tensor rows(ramp, {kRows, 3});
  std::vector<float> written(3 * kRows);
  std::vector<int64_t> numbers(kRows);
  CHECK(CHECKED_WRAPPER_SIZE(takeRows, rows, {numbers, {kRows}}, {written, {kRows, 3}}) == 0);
  CHECK(CHECKED_WRAPPER_SIZE(farthestPoints, rows, {numbers.data(), {100}}) > 0);
  const std::vector<float> depth(100 * 100, 1.0f);
  const double camera[] = {60, 60, 50, 50};
  int64_t number = 0;
  const robocache::Tensor one(&number, {});
  CHECK(CHECKED_WRAPPER_SIZE(unproject, {depth, {100, 100}}, {camera, {4}},
                             {written.data(), {10000, 3}}, one) > 0);
}

TEST_CASE("wrapper: a size function fails as the call does") {
  const auto context = robocache::Context::cpu(1);
  const float values[] = {1, 2, 3};
  const int64_t indices[] = {0};
  float out[2];
  const auto size = robocache::takeRowsWorkspaceSize<robocache::Expect>(
      context, {values, {3, 1}}, {indices, {1}}, {out, {2, 1}});
  const auto done = robocache::takeRows<robocache::Expect>(context, {values, {3, 1}},
                                                           {indices, {1}}, {out, {2, 1}});
  REQUIRE(!size);
  REQUIRE(!done);
  CHECK(size.error().status() == done.error().status());
  CHECK(std::string(size.error().what()) == done.error().what());
  const auto read_only = robocache::takeRowsWorkspaceSize<robocache::Expect>(
      context, {values, {3, 1}}, {indices, {1}}, {values, {1, 1}});
  CHECK(read_only.error().status() == RBC_STATUS_INVALID_ARGUMENT);
}
