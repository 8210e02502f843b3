// Errors of rbcVoxelizeTsdf.
#include <limits>
#include <string>
#include <vector>

#include "abi/ragged_errors.h"
#include "abi/struct_calls.h"
#include "abi/tsdf_call.h"
#include "abi/wrapper_size.h"

namespace {

using namespace tsdf_call;
using support::checkDTypes;
using support::checkError;
using support::checkErrors;
using support::checkShapes;

const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInfinity = std::numeric_limits<double>::infinity();

const support::StructCallsOf kTsdfStructs([](support::StructCalls& calls) {
  const rbcVoxelGrid grid = {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}};
  const rbcTensor* points = calls.in(support::kF32, {2, 3}, {1.5, 0.5, 0.5, 0.5, 0.5, 0.25});
  const rbcTensor* sensor = calls.in(support::kF32, {3}, {-0.5, 0.5, 0.5});
  const rbcTensor* distance = calls.out(support::kF32, {2, 2, 2});
  const rbcTensor* weight = calls.out(support::kF32, {2, 2, 2});
  rbcVoxelizeTsdfParams tsdf = rbcVoxelizeTsdfParamsInit();
  tsdf.truncation = 1;
  tsdf.grid = grid;
  calls.add("rbcVoxelizeTsdfParams", rbcVoxelizeTsdfParamsInit(), {tsdf}, "params",
            [=, c = calls.context()](const rbcVoxelizeTsdfParams* object) {
              std::memset(distance->data, 0, 8 * sizeof(float));
              std::memset(weight->data, 0, 8 * sizeof(float));
              return rbcVoxelizeTsdf(c, points, sensor, distance, weight, nullptr, object);
            });
});

}  // namespace

COMMON_ERROR_TESTS("tsdf", Call)
STRUCT_ERROR_TESTS("tsdf", Call)

TEST_CASE("tsdf errors: the good call succeeds in every form") {
  Call packed;
  packed.pack();
  CHECK_SUCCEEDS(packed.workspace());
  CHECK_SUCCEEDS(packed.run());
  packed.checkOutputs();
  Call bare;
  bare.used[4] = nullptr;
  CHECK_SUCCEEDS(bare.run());
  CHECK(bare.tsdf.array.elements() == packed.tsdf.array.elements());
  CHECK(bare.dropped.array.untouched());
  // One sensor for all clouds, and one cloud without a batch.
  Call shared;
  shared.sensors.reshape({3});
  CHECK_SUCCEEDS(shared.run());
  Call alone;
  alone.points.reshape({2, 4});
  alone.sensors.reshape({3});
  alone.dropped.reshape({});
  alone.params.lengths = nullptr;
  CHECK_SUCCEEDS(alone.run());
  CHECK(alone.dropped.array.get({0}) == 1);
}

TEST_CASE("tsdf errors: parameters") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  checkError<Call>({kStatus,
                    "flags: 0x3 has unknown bits, expected RBC_VOXELIZE_TSDF_FLAG_CARVE or 0",
                    [](Call& c) { c.params.flags = 3; }});
  for (const int32_t weighting : {-1, 2}) {
    const std::string told = "weighting: is " + std::to_string(weighting) +
                             ", expected RBC_VOXELIZE_TSDF_WEIGHTING_CONSTANT or _INVERSE_SQUARE";
    checkError<Call>({kStatus, told, [&](Call& c) { c.params.weighting = weighting; }});
  }
  struct Truncation {
    double given;
    const char* words;
  };
  const Truncation truncations[] = {
      {0, "is 0, expected more than 0"},
      {-1, "is -1, expected more than 0"},
      {kNaN, "nan, expected more than 0"},
      {kInfinity, "is inf, expected more than 0"},
      {1e-60, "is 1e-60, expected a finite float32 with a finite inverse"},
      {1e-40, "is 1e-40, expected a finite float32 with a finite inverse"},
      {1e39, "is 1e+39, expected a finite float32 with a finite inverse"}};
  for (const Truncation& truncation : truncations) {
    checkErrors<Call>({{kStatus, std::string("truncation: ...") + truncation.words,
                        [&](Call& c) { c.params.truncation = truncation.given; }},
                       {kStatus, std::string("truncation: ...") + truncation.words,
                        [&](Call& c) {  // also for f64 points
                          c.points.raw.dtype = kF64;
                          c.points.reshape({2, 1, 4});
                          c.params.lengths = nullptr;
                          c.params.truncation = truncation.given;
                        }}});
  }
  for (const double weight : {0.0, -1.0, kNaN, -kInfinity, 1e-60}) {
    checkError<Call>({kStatus, "max_weight: is ...expected a float32 above 0",
                      [&](Call& c) { c.params.max_weight = weight; }});
  }
}

TEST_CASE("tsdf errors: the grid") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  for (int axis = 0; axis < 3; ++axis) {
    const auto wrong = [&](const std::string& field, const std::string& message, auto&& spoil) {
      const std::string name = field + "[" + std::to_string(axis) + "]: ";
      checkError<Call>({kStatus, name + "..." + message, [&](Call& c) { spoil(c.params.grid); }});
    };
    for (const double origin : {kNaN, kInfinity, 1e39}) {
      wrong("origin", "expected a finite float32",
            [&](rbcVoxelGrid& g) { g.origin[axis] = origin; });
    }
    for (const double size : {0.0, -0.5, kNaN, kInfinity}) {
      wrong("voxel_size", "expected more than 0",
            [&](rbcVoxelGrid& g) { g.voxel_size[axis] = size; });
    }
    for (const double size : {1e-39, 1e60}) {
      wrong("voxel_size", "expected one whose inverse is a finite float32",
            [&](rbcVoxelGrid& g) { g.voxel_size[axis] = size; });
    }
    for (const int64_t extent : {int64_t{0}, int64_t{-1}, int64_t{1} << 31}) {
      wrong("shape", "expected 1 to 2^31 - 1", [&](rbcVoxelGrid& g) { g.shape[axis] = extent; });
    }
  }
}

TEST_CASE("tsdf errors: shapes") {
  constexpr auto kStatus = RBC_STATUS_SHAPE_MISMATCH;
  checkShapes<Call>({{"points", {16}, "rank is 1 (shape [16]), expected 2 or 3"},
                     {"points", {2, 4, 2}, "shape is [2,4,2], expected 3 columns or more: x, y, z"},
                     {"sensors", {2, 3, 1}, "rank is 3 (shape [2,3,1]), expected 1 or 2"},
                     {"sensors", {1, 3}, "shape is [1,3], expected [2,3]"},
                     {"sensors", {3, 2}, "shape is [3,2], expected [2,3]"},
                     {"sensors", {6}, "shape is [6], expected [3]"}});
  for (const char* volume : {"tsdf", "weight"}) {
    checkShapes<Call>({{volume, {8}, "shape is [8], expected [4,2,1]"},
                       {volume, {4, 2}, "shape is [4,2], expected [4,2,1]"},
                       {volume, {2, 4, 1}, "shape is [2,4,1], expected [4,2,1]"},
                       {volume, {1, 4, 2, 1}, "shape is [1,4,2,1], expected [4,2,1]"}});
  }
  checkShapes<Call>({{"num_points_unused", {1}, "shape is [1], expected [2]"}});
  checkErrors<Call>({{kStatus, "sensors: rank is 2 (shape [2,3]), expected 1",
                      [](Call& c) {
                        c.points.reshape({4, 4});
                        c.params.lengths = nullptr;
                      }},
                     {kStatus, "num_points_unused: shape is [2], expected []",
                      [](Call& c) {
                        c.points.reshape({4, 4});
                        c.sensors.reshape({3});
                        c.params.lengths = nullptr;
                      }},
                     {kStatus, "points: rank is 3...expected 2",
                      [](Call& c) {
                        c.pack();
                        c.points.reshape({2, 2, 4});
                      }},
                     {kStatus, "sensors: shape is [2,3], expected [1,3]",
                      [](Call& c) {
                        c.pack();
                        c.offsets.reshape({2});
                      }},
                     {kStatus, "points: got 4294967296, expected at most 2^31 - 1", [](Call& c) {
                        c.points.reshape({2, int64_t{1} << 31, 4});
                        c.points.restride({0, 0, 1});
                      }}});
}

TEST_CASE("tsdf errors: dtypes") {
  checkDTypes<Call>({{"points", kI32, "dtype is int32, expected a float"},
                     {"sensors", support::kF16, "dtype is float16, expected float32 or float64"},
                     {"sensors", support::kBF16, "dtype is bfloat16, expected float32 or float64"},
                     {"sensors", kI64, "dtype is int64, expected float32 or float64"},
                     {"tsdf", support::kF16, "dtype is float16, expected float32"},
                     {"tsdf", kI32, "dtype is int32, expected float32"},
                     {"weight", support::kBF16, "dtype is bfloat16, expected float32"},
                     {"num_points_unused", kF64, "dtype is float64, expected int64"}});
}

TEST_CASE("tsdf errors: outputs that share memory") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  checkErrors<Call>({{kStatus, "tsdf: elements share memory",
                      [](Call& c) {
                        c.tsdf.restride({0, 1, 1});
                      }},
                     {kStatus, "weight: elements share memory",
                      [](Call& c) {
                        c.weight.restride({1, 1, 1});
                      }},
                     {kStatus, "num_points_unused: elements share memory",
                      [](Call& c) { c.dropped.restride({0}); }}});
  // Interleaved, they share nothing.
  Call apart;
  Argument pairs(kF32, {4, 2, 2});
  pairs.fill<float>({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  for (Argument* volume : {&apart.tsdf, &apart.weight}) {
    volume->raw.data = static_cast<float*>(pairs.raw.data) + (volume == &apart.weight ? 1 : 0);
    volume->restride({4, 2, 1});
  }
  CHECK_SUCCEEDS(apart.run());
  CHECK(support::decodeFloat(kF32, pairs.array.get({2, 1, 0})) == 1.5L);
  CHECK(support::decodeFloat(kF32, pairs.array.get({2, 1, 1})) == 1.0L);
}

TEST_CASE("tsdf errors: lengths and offsets") { support::checkRaggedRows<Call>("points"); }

TEST_CASE("wrapper: the workspace of a tsdf has the size of its size function") {
  support::WrapperCloud cloud;
  std::vector<float> weight(8000);
  const float sensor[] = {0, 0, 0};
  CHECK(CHECKED_WRAPPER_SIZE(voxelizeTsdf, cloud.points, {sensor, {3}}, cloud.grid, 10000.0,
                             {cloud.volume, {20, 20, 20}}, {weight, {20, 20, 20}}) > 0);
}
