// What rbcVoxelize and rbcVoxelizeSparse must refuse of their outputs.
#include <cmath>
#include <limits>

#include "abi/voxelize_call.h"

namespace {

using namespace voxelize_call;

const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInfinity = std::numeric_limits<double>::infinity();

// Every output, and every input, apart from every other output.
template <class Call>
void checkOverlaps() {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  const auto wrong = [&](const Named<Call>& told, const Named<Call>& moved, const Named<Call>& onto,
                         const char* first) {
    const std::string message =
        std::string(told.name) + ": overlaps " + first + ", expected memory of its own";
    refused<Call>(kStatus, {message.c_str()},
                  [&](Call& c) { moved.of(c).raw.data = onto.of(c).raw.data; });
  };
  const std::vector<Named<Call>>& outputs = kOutputs<Call>;
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (const Named<Call>& input : kInputs<Call>) {
      wrong(input, outputs[i], input, outputs[i].name);
    }
    for (size_t j = i + 1; j < outputs.size(); ++j) {
      wrong(outputs[j], outputs[j], outputs[i], outputs[i].name);
    }
    Call good;
    const Argument& a = outputs[i].of(good);
    if (a.array.count() < 2) continue;
    const std::string message = std::string(outputs[i].name) + ": elements share memory (shape ";
    refused<Call>(kStatus, {message.c_str(), "expected distinct ones"}, [&](Call& c) {
      outputs[i].of(c).restride(std::vector<int64_t>(a.shape.size(), 0));
    });
  }
}

}  // namespace

TEST_CASE("voxelize errors: a dense output of a wrong shape or dtype") {
  constexpr auto kShape = RBC_STATUS_SHAPE_MISMATCH;
  const auto wrong = [&](const char* told, std::vector<int64_t> shape) {
    refused<Dense>(kShape, {told}, [&](Dense& c) { c.out.reshape(shape); });
  };
  wrong("out: shape is [2,2,2,1,3], expected [2,2,2,1,2]", {2, 2, 2, 1, 3});
  wrong("out: shape is [2,2,2,1], expected [2,2,2,1,2]", {2, 2, 2, 1});
  wrong("out: shape is [1,2,2,1,2], expected [2,2,2,1,2]", {1, 2, 2, 1, 2});
  wrong("out: shape is [2,2,1,2,2], expected [2,2,2,1,2]", {2, 2, 1, 2, 2});
  wrong("out: shape is [16], expected [2,2,2,1,2]", {16});
  refused<Dense>(kShape, {"out: shape is [2,2,2,1,2], expected [2,2,2,1,4]"},
                 [](Dense& c) { c.used_features = nullptr; });  // the columns of points
  refused<Dense>(kShape, {"out: shape is [2,2,2,1,1], expected [2,2,2,1]"}, [](Dense& c) {
    c.tell(RBC_VOXEL_COUNT, kI32);
    c.out.reshape({2, 2, 2, 1, 1});
  });
  refused<Dense>(kShape, {"out: shape is [1,2,2,1,2], expected [2,2,1,2]"}, [](Dense& c) {
    c.points.reshape({4, 4});  // without a batch
    c.features.reshape({4, 2});
    c.params.lengths = nullptr;
    c.out.reshape({1, 2, 2, 1, 2});
  });
  const auto dropped = [&](const char* told, std::vector<int64_t> shape) {
    refused<Dense>(kShape, {told}, [&](Dense& c) { c.dropped.reshape(shape); });
  };
  dropped("dropped: shape is [1], expected [2]", {1});
  dropped("dropped: shape is [], expected [2]", {});
  dropped("dropped: shape is [2,1], expected [2]", {2, 1});
  refused<Dense>(RBC_STATUS_DTYPE_MISMATCH, {"dropped: dtype is int32, expected int64"},
                 [](Dense& c) { c.dropped.raw.dtype = kI32; });

  const auto dtype = [&](int32_t mode, rbcDType given, const char* told) {
    refused<Dense>(RBC_STATUS_DTYPE_MISMATCH, {told}, [&](Dense& c) {
      if (mode >= RBC_VOXEL_SUM) {
        c.params.mode = mode;
        c.out.raw.dtype = given;
      } else {
        c.tell(mode, given);
      }
    });
  };
  using namespace support;
  dtype(RBC_VOXEL_OCCUPANCY, kI8,
        "out: dtype is int8, expected bool, uint8, int32 or a float for occupancy");
  dtype(RBC_VOXEL_OCCUPANCY, kI64,
        "out: dtype is int64, expected bool, uint8, int32 or a float for occupancy");
  dtype(RBC_VOXEL_COUNT, kU8, "out: dtype is uint8, expected int32, int64 or a float for count");
  dtype(RBC_VOXEL_COUNT, kBool, "out: dtype is bool, expected int32, int64 or a float for count");
  dtype(RBC_VOXEL_COUNT, kU64, "out: dtype is uint64, expected int32, int64 or a float for count");
  for (const int32_t mode : {RBC_VOXEL_SUM, RBC_VOXEL_MEAN, RBC_VOXEL_MAX, RBC_VOXEL_MIN}) {
    dtype(mode, kI32, "out: dtype is int32, expected a float for features");
    dtype(mode, kBool, "out: dtype is bool, expected a float for features");
  }
}

TEST_CASE("voxelize errors: sparse outputs of a wrong shape or dtype") {
  constexpr auto kShape = RBC_STATUS_SHAPE_MISMATCH;
  const auto shape = [&](const char* told, Argument Sparse::*output, std::vector<int64_t> extents) {
    refused<Sparse>(kShape, {told}, [&](Sparse& c) { (c.*output).reshape(extents); });
  };
  shape("coords: shape is [0,4], expected a capacity of 1 or more", &Sparse::coords, {0, 4});
  shape("coords: shape is [2,3], expected [2,4]", &Sparse::coords, {2, 3});
  shape("coords: rank is 1 (shape [8]), expected 2", &Sparse::coords, {8});
  shape("coords: rank is 3 (shape [1,2,4]), expected 2", &Sparse::coords, {1, 2, 4});
  shape("num_voxels: shape is [1], expected []", &Sparse::num_voxels, {1});
  shape("counts: shape is [1], expected [2]", &Sparse::counts, {1});
  shape("counts: shape is [2,1], expected [2]", &Sparse::counts, {2, 1});
  shape("voxels.features: shape is [2,1], expected [2,2]", &Sparse::reduced, {2, 1});
  shape("voxels.features: shape is [1,2], expected [2,2]", &Sparse::reduced, {1, 2});
  shape("voxels.features: shape is [4], expected [2,2]", &Sparse::reduced, {4});
  shape("grouped: shape is [2,0,2], expected room for 1 point or more", &Sparse::grouped,
        {2, 0, 2});
  shape("grouped: rank is 2 (shape [2,2]), expected 3", &Sparse::grouped, {2, 2});
  shape("grouped: shape is [1,1,2], expected [2,1,2]", &Sparse::grouped, {1, 1, 2});
  shape("grouped: shape is [2,1,1], expected [2,1,2]", &Sparse::grouped, {2, 1, 1});
  shape("point_to_voxel: shape is [8], expected [2,4]", &Sparse::point_to_voxel, {8});
  shape("point_to_voxel: shape is [2,3], expected [2,4]", &Sparse::point_to_voxel, {2, 3});
  shape("dropped: shape is [1], expected [2]", &Sparse::dropped, {1});
  shape("overflow: shape is [2], expected [3]", &Sparse::overflow, {2});
  shape("overflow: shape is [1,3], expected [3]", &Sparse::overflow, {1, 3});
  refused<Sparse>(kShape, {"point_to_voxel: shape is [2,4], expected [8]"}, [](Sparse& c) {
    c.pack();
    c.point_to_voxel.reshape({2, 4});
  });
  refused<Sparse>(kShape, {"dropped: shape is [1], expected []"}, [](Sparse& c) {
    c.points.reshape({4, 4});  // without a batch
    c.features.reshape({4, 2});
    c.params.lengths = nullptr;
    c.point_to_voxel.reshape({4});
    c.dropped.reshape({1});
  });
  refused<Sparse>(kShape, {"points: clouds are 4294967296, expected at most 2^31 - 1"},
                  [](Sparse& c) {
                    c.params.lengths = nullptr;
                    c.points.reshape({int64_t{1} << 32, 0, 4});
                    c.features.reshape({int64_t{1} << 32, 0, 2});
                  });

  const auto dtype = [&](const char* told, Argument Sparse::*output, rbcDType given) {
    refused<Sparse>(RBC_STATUS_DTYPE_MISMATCH, {told},
                    [&](Sparse& c) { (c.*output).raw.dtype = given; });
  };
  dtype("coords: dtype is int64, expected int32", &Sparse::coords, kI64);
  dtype("num_voxels: dtype is int32, expected int64", &Sparse::num_voxels, kI32);
  dtype("counts: dtype is int64, expected int32", &Sparse::counts, kI64);
  dtype("voxels.features: dtype is int32, expected a float", &Sparse::reduced, kI32);
  dtype("grouped: dtype is int64, expected a float", &Sparse::grouped, kI64);
  dtype("point_to_voxel: dtype is float32, expected int32", &Sparse::point_to_voxel, kF32);
  dtype("point_to_voxel: dtype is int16, expected int32", &Sparse::point_to_voxel, support::kI16);
  dtype("dropped: dtype is float64, expected int64", &Sparse::dropped, kF64);
  dtype("overflow: dtype is uint64, expected int64", &Sparse::overflow, support::kU64);
}

TEST_CASE("voxelize errors: outputs that overlap an input, each other or themselves") {
  checkOverlaps<Dense>();
  checkOverlaps<Sparse>();
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  refused<Dense>(kStatus, {"points: overlaps out"}, [](Dense& c) {  // by its last element
    c.out.raw.data = static_cast<std::byte*>(c.points.raw.data) + 124;
  });
  refused<Dense>(kStatus, {"points: overlaps out"}, [](Dense& c) {  // by its first
    c.out.raw.data = static_cast<std::byte*>(c.points.raw.data) - 60;
  });
  refused<Dense>(kStatus, {"out: elements share memory"}, [](Dense& c) {
    c.out.restride({7, 4, 2, 2, 1});
  });
  bothRefuse(kStatus, {"offsets: overlaps dropped, expected memory of its own"}, [](auto& c) {
    c.pack();
    c.dropped.raw.data = static_cast<std::byte*>(c.offsets.raw.data) + 16;
  });
}

TEST_CASE("voxelize errors: an empty value that the output cannot hold") {
  struct Row {
    int32_t mode;
    rbcDType dtype;
    double bad[4];
    double good[3];
  };
  const Row rows[] = {
      {RBC_VOXEL_OCCUPANCY, support::kBool, {2, -1, 0.5, kNaN}, {0, 1, -0.0}},
      {RBC_VOXEL_OCCUPANCY, support::kU8, {-1, 256, 0.5, kInfinity}, {0, 255, 7}},
      {RBC_VOXEL_COUNT, kI32, {0x1p31, -0x1p31 - 1, 1e300, kNaN}, {0x1p31 - 1, -0x1p31, 0}},
      {RBC_VOXEL_COUNT, kI64, {0x1p63, -0x1.8p63, -kInfinity, kNaN}, {-0x1p63, 0x1p62, 0}},
  };
  for (const Row& row : rows) {
    for (const double empty : row.bad) {
      refused<Dense>(RBC_STATUS_INVALID_ARGUMENT, {"empty_value: ", " cannot be written as "},
                     [&](Dense& c) {
                       c.tell(row.mode, row.dtype);
                       c.params.empty_value = empty;
                     });
    }
    for (const double empty : row.good) {
      Dense call;
      call.tell(row.mode, row.dtype);
      call.params.empty_value = empty;
      CHECK_SUCCEEDS(call.run());
      CHECK(call.out.array.get({0, 0, 1, 0}) == support::encodeInteger(row.dtype, empty));
    }
  }
  refused<Dense>(RBC_STATUS_INVALID_ARGUMENT, {"empty_value: 0.5 cannot be written as uint8"},
                 [](Dense& c) {
                   c.tell(RBC_VOXEL_OCCUPANCY, support::kU8);
                   c.params.empty_value = 0.5;
                 });
  // A float takes any, rounded.
  for (const double empty : {kNaN, -kInfinity, 1e300, -0.0, 1.0 / 3}) {
    Dense call;
    call.params.empty_value = empty;
    CHECK_SUCCEEDS(call.run());
    CHECK(call.out.array.get({0, 0, 1, 0, 0}) == support::encodeFloat(kF32, empty));
  }
}
