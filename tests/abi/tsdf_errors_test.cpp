// Everything that rbcVoxelizeTsdf must refuse.
#include <limits>

#include "abi/refusal.h"

namespace {

using support::Argument;
using support::kF32;
using support::kF64;
using support::kI32;
using support::kI64;
using support::Seen;

const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInfinity = std::numeric_limits<double>::infinity();

// A good call: B = 2, N = 2, C = 4; a grid of 4 x 2 x 1. Each cloud has one point that is seen along
// x, from either side; the first one a NaN as well, and the second one's other point is not valid.
struct Call {
  Argument points{kF32, {2, 2, 4}};
  Argument sensors{kF64, {2, 3}};
  Argument lengths{kI32, {2}};
  Argument offsets{kI64, {3}};  // not in use: see pack()
  Argument tsdf{kF32, {4, 2, 1}};
  Argument weight{kF32, {4, 2, 1}};
  Argument dropped{kI64, {2}};
  const rbcTensor* used[5] = {&points.raw, &sensors.raw, &tsdf.raw, &weight.raw, &dropped.raw};
  rbcTsdfParams params = rbcTsdfParamsInit();
  const rbcTsdfParams* used_params = &params;

  Call() {
    const auto nan = static_cast<float>(kNaN);
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
  Call(const Call&) = delete;

  // The same as packed points.
  void pack() {
    points.reshape({4, 4});
    params.lengths = nullptr;
    params.offsets = &offsets.raw;
  }

  rbcStatus_t run() const {
    return rbcVoxelizeTsdf(support::refusingContext().get(), used[0], used[1], used[2], used[3],
                           used[4], used_params);
  }
  rbcStatus_t workspace() const {
    size_t bytes = 0;
    return rbcVoxelizeTsdfWorkspaceSize(support::refusingContext().get(), used[0], used[1], used[2],
                                        used[3], used[4], used_params, &bytes);
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
  static void checkGood() {
    const Call good;
    CHECK_SUCCEEDS(good.run());
    good.checkOutputs();
  }

 private:
  std::vector<uint64_t> tsdf_before_;
  std::vector<uint64_t> weight_before_;
};

template <class Spoil>
void refused(rbcStatus_t status, std::initializer_list<const char*> words, Spoil&& spoil,
             Seen seen = Seen::kByBoth) {
  support::checkRefused<Call>(status, words, spoil, seen);
}

struct Named {
  const char* name;
  Argument Call::*member;
};
constexpr Named kInputs[] = {
    {"points", &Call::points}, {"sensors", &Call::sensors}, {"lengths", &Call::lengths}};
// In the order in which they are looked at.
constexpr Named kOutputs[] = {
    {"tsdf", &Call::tsdf}, {"weight", &Call::weight}, {"dropped", &Call::dropped}};

std::vector<Named> everyTensor() {
  std::vector<Named> all(std::begin(kInputs), std::end(kInputs));
  all.insert(all.end(), std::begin(kOutputs), std::end(kOutputs));
  return all;
}

}  // namespace

TEST_CASE("tsdf errors: the good call is good, however it is made") {
  Call::checkGood();
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
  for (const int32_t type : {RBC_DEVICE_CUDA_HOST, RBC_DEVICE_CUDA_MANAGED}) {
    Call reachable;
    for (const Named& tensor : everyTensor()) (reachable.*tensor.member).raw.device = {type, 0};
    CHECK_SUCCEEDS(reachable.run());
    reachable.checkOutputs();
  }
}

TEST_CASE("tsdf errors: null pointers") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  const Call c;
  const auto& context = support::refusingContext();
  size_t bytes = 0;
  CHECK_FAILS(
      rbcVoxelizeTsdf(nullptr, c.used[0], c.used[1], c.used[2], c.used[3], c.used[4], &c.params),
      kStatus, "context: is null");
  CHECK_FAILS(rbcVoxelizeTsdfWorkspaceSize(nullptr, c.used[0], c.used[1], c.used[2], c.used[3],
                                           c.used[4], &c.params, &bytes),
              kStatus, "context: is null");
  CHECK_FAILS(rbcVoxelizeTsdfWorkspaceSize(context.get(), c.used[0], c.used[1], c.used[2],
                                           c.used[3], c.used[4], &c.params, nullptr),
              kStatus, "bytes: is null");
  const char* const names[] = {"points: is null", "sensors: is null", "tsdf: is null",
                               "weight: is null"};
  for (int i = 0; i < 4; ++i) {
    refused(kStatus, {names[i]}, [&](Call& call) { call.used[i] = nullptr; });
  }
  refused(kStatus, {"params: is null, expected a grid and a truncation"},
          [](Call& call) { call.used_params = nullptr; });
}

TEST_CASE("tsdf errors: descriptors that no tensor can have, and memory out of reach") {
  for (const Named& tensor : everyTensor()) {
    const std::string name = std::string(tensor.name) + ":";
    const auto wrong = [&](rbcStatus_t status, const char* word, auto&& spoil) {
      refused(status, {name.c_str(), word}, [&](Call& c) { spoil(c.*tensor.member); });
    };
    wrong(RBC_STATUS_INVALID_ARGUMENT, "data is null", [](Argument& a) { a.raw.data = nullptr; });
    wrong(RBC_STATUS_INVALID_ARGUMENT, "shape is null", [](Argument& a) { a.raw.shape = nullptr; });
    wrong(RBC_STATUS_INVALID_ARGUMENT, "not aligned", [](Argument& a) { a.raw.byte_offset = 1; });
    wrong(RBC_STATUS_SHAPE_MISMATCH, "rank is 9",
          [](Argument& a) { a.raw.ndim = RBC_MAX_NDIM + 1; });
    wrong(RBC_STATUS_SHAPE_MISMATCH, "extent 0 is -2", [](Argument& a) { a.shape[0] = -2; });
    wrong(RBC_STATUS_SHAPE_MISMATCH, "overflow",
          [](Argument& a) { a.shape[0] = std::numeric_limits<int64_t>::max(); });
    wrong(RBC_STATUS_DTYPE_MISMATCH, "2 lanes", [](Argument& a) { a.raw.dtype.lanes = 2; });
    wrong(RBC_STATUS_DEVICE_MISMATCH, "device",
          [](Argument& a) { a.raw.device.type = RBC_DEVICE_CUDA; });
  }
}

TEST_CASE("tsdf errors: parameters") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  for (const uint32_t size : {0u, 4u, 144u, 0xffffffffu}) {
    const std::string told = "params: struct_size is " + std::to_string(size);
    refused(kStatus, {told.c_str()}, [&](Call& c) { c.params.struct_size = size; });
  }
  refused(kStatus, {"flags: 0x3 has unknown bits, expected RBC_TSDF_CARVE or 0"},
          [](Call& c) { c.params.flags = 3; });
  for (const int32_t weighting : {-1, 2}) {
    const std::string told = "weighting: is " + std::to_string(weighting) +
                             ", expected RBC_TSDF_WEIGHT_CONSTANT or _INVERSE_SQUARE";
    refused(kStatus, {told.c_str()}, [&](Call& c) { c.params.weighting = weighting; });
  }
  refused(kStatus, {"params: reserved is not 0"}, [](Call& c) { c.params.reserved0 = 1; });
  for (int i = 0; i < 4; ++i) {
    refused(kStatus, {"params: reserved is not 0"}, [&](Call& c) { c.params.reserved[i] = 1; });
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
      {1e-60, "is 1e-60, expected one that is a finite float32, as is its inverse"},
      {1e-40, "is 1e-40, expected one that is a finite float32, as is its inverse"},
      {1e39, "is 1e+39, expected one that is a finite float32, as is its inverse"}};
  for (const Truncation& truncation : truncations) {
    refused(kStatus, {"truncation: ", truncation.words},
            [&](Call& c) { c.params.truncation = truncation.given; });
    refused(kStatus, {"truncation: ", truncation.words}, [&](Call& c) {  // for f64 points alike
      c.points.raw.dtype = kF64;
      c.points.reshape({2, 1, 4});
      c.params.lengths = nullptr;
      c.params.truncation = truncation.given;
    });
  }
  for (const double weight : {0.0, -1.0, kNaN, -kInfinity, 1e-60}) {
    refused(kStatus, {"max_weight: is ", "expected a float32 of more than 0"},
            [&](Call& c) { c.params.max_weight = weight; });
  }
}

TEST_CASE("tsdf errors: the grid") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  for (int axis = 0; axis < 3; ++axis) {
    const auto wrong = [&](const std::string& field, const char* words, auto&& spoil) {
      const std::string name = field + "[" + std::to_string(axis) + "]: ";
      refused(kStatus, {name.c_str(), words}, [&](Call& c) { spoil(c.params.grid); });
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
  const auto wrong = [&](std::initializer_list<const char*> words, Argument Call::*member,
                         std::vector<int64_t> shape) {
    refused(kStatus, words, [&](Call& c) { (c.*member).reshape(shape); });
  };
  wrong({"points: rank is 1 (shape [16]), expected 2 or 3"}, &Call::points, {16});
  wrong({"points: shape is [2,4,2], expected 3 columns or more: x, y, z"}, &Call::points,
        {2, 4, 2});
  wrong({"sensors: rank is 3 (shape [2,3,1]), expected 1 or 2"}, &Call::sensors, {2, 3, 1});
  wrong({"sensors: shape is [1,3], expected [2,3]"}, &Call::sensors, {1, 3});
  wrong({"sensors: shape is [3,2], expected [2,3]"}, &Call::sensors, {3, 2});
  wrong({"sensors: shape is [6], expected [3]"}, &Call::sensors, {6});
  for (const auto& [name, member] : {Named{"tsdf", &Call::tsdf}, Named{"weight", &Call::weight}}) {
    for (const std::vector<int64_t>& shape :
         std::initializer_list<std::vector<int64_t>>{{8}, {4, 2}, {2, 4, 1}, {1, 4, 2, 1}}) {
      const std::string told = std::string(name) + ": shape is ";
      wrong({told.c_str(), "expected [4,2,1]"}, member, shape);
    }
  }
  wrong({"dropped: shape is [1], expected [2]"}, &Call::dropped, {1});
  wrong({"lengths: shape is [1], expected [2]"}, &Call::lengths, {1});
  refused(kStatus, {"sensors: rank is 2 (shape [2,3]), expected 1"}, [](Call& c) {
    c.points.reshape({4, 4});
    c.params.lengths = nullptr;
  });
  refused(kStatus, {"dropped: shape is [2], expected []"}, [](Call& c) {
    c.points.reshape({4, 4});
    c.sensors.reshape({3});
    c.params.lengths = nullptr;
  });
  refused(kStatus, {"points: rank is 3", "expected 2"}, [](Call& c) {
    c.pack();
    c.points.reshape({2, 2, 4});
  });
  refused(kStatus, {"sensors: shape is [2,3], expected [1,3]"}, [](Call& c) {
    c.pack();
    c.offsets.reshape({2});
  });
  refused(kStatus, {"points: are 4294967296, expected at most 2^31 - 1"}, [](Call& c) {
    c.points.reshape({2, int64_t{1} << 31, 4});
    c.points.restride({0, 0, 1});
  });
}

TEST_CASE("tsdf errors: dtypes") {
  constexpr auto kStatus = RBC_STATUS_DTYPE_MISMATCH;
  const auto wrong = [&](const char* words, Argument Call::*member, rbcDType dtype) {
    refused(kStatus, {words}, [&](Call& c) { (c.*member).raw.dtype = dtype; });
  };
  wrong("points: dtype is int32, expected a float", &Call::points, kI32);
  for (const rbcDType dtype : {support::kF16, support::kBF16}) {
    const std::string told =
        std::string("sensors: dtype is ") + (dtype.code == RBC_DTYPE_BFLOAT ? "b" : "") + "float16";
    refused(kStatus, {told.c_str(), "expected float32 or float64"},
            [&](Call& c) { c.sensors.raw.dtype = dtype; });
  }
  wrong("sensors: dtype is int64, expected float32 or float64", &Call::sensors, kI64);
  wrong("tsdf: dtype is float16, expected float32", &Call::tsdf, support::kF16);
  wrong("tsdf: dtype is int32, expected float32", &Call::tsdf, kI32);
  wrong("weight: dtype is bfloat16, expected float32", &Call::weight, support::kBF16);
  wrong("dropped: dtype is float64, expected int64", &Call::dropped, kF64);
  wrong("lengths: dtype is float32, expected int32 or int64", &Call::lengths, kF32);
}

TEST_CASE("tsdf errors: outputs that share memory") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  for (size_t i = 0; i < std::size(kOutputs); ++i) {
    const Named& output = kOutputs[i];
    const auto overlap = [&](const Named& told, const Named& onto) {
      const std::string message =
          std::string(told.name) + ": overlaps " + output.name + ", expected memory of its own";
      refused(kStatus, {message.c_str()},
              [&](Call& c) { (c.*output.member).raw.data = (c.*onto.member).raw.data; });
    };
    for (const Named& input : kInputs) overlap(input, input);
    for (size_t j = i + 1; j < std::size(kOutputs); ++j) overlap(kOutputs[j], kOutputs[j]);
  }
  refused(kStatus, {"tsdf: elements share memory"}, [](Call& c) { c.tsdf.restride({0, 1, 1}); });
  refused(kStatus, {"weight: elements share memory"}, [](Call& c) {
    c.weight.restride({1, 1, 1});
  });
  refused(kStatus, {"dropped: elements share memory"}, [](Call& c) { c.dropped.restride({0}); });
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

TEST_CASE("tsdf errors: lengths and offsets") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  refused(kStatus, {"lengths: are for padded points, expected null beside offsets"}, [](Call& c) {
    c.pack();
    c.params.lengths = &c.lengths.raw;
  });
  refused(kStatus, {"lengths: row 1 is 3, expected 0 to 2"}, [](Call& c) {
    c.lengths.fill<int32_t>({2, 3});
  });
  refused(kStatus, {"lengths: row 0 is -1, expected 0 to 2"}, [](Call& c) {
    c.lengths.fill<int32_t>({-1, 3});
  });
  const auto offsets = [&](const char* words, std::initializer_list<int64_t> values) {
    refused(kStatus, {words}, [&](Call& c) {
      c.pack();
      c.offsets.fill<int64_t>(values);
    });
  };
  offsets("offsets: index 2 is 5, past the 4 points", {0, 2, 5});
  offsets("offsets: index 0 is -1, expected 0 or more", {-1, 2, 3});
  offsets("offsets: decrease at index 2 (3 -> 2)", {0, 3, 2});
}

TEST_CASE("tsdf errors: a newer caller") {
  struct Newer {
    rbcTsdfParams known;
    unsigned char more[24];
  };
  Call call;
  Newer newer = {call.params, {}};
  newer.known.struct_size = sizeof newer;
  call.used_params = &newer.known;
  newer.more[23] = 1;
  const std::string byte = "byte " + std::to_string(sizeof newer - 1) + " is set";
  CHECK_FAILS(call.run(), RBC_STATUS_INVALID_ARGUMENT, "params: ", byte.c_str());
  CHECK(call.untouched());
  newer.more[23] = 0;
  CHECK_SUCCEEDS(call.run());
  call.checkOutputs();
}
