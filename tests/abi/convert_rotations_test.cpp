// rbcConvertRotations: edge cases and errors; the same bits on CUDA, also in a graph.
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "abi/common_errors.h"
#include "abi/operation_call.h"
#include "abi/struct_calls.h"
#include "abi/wrapper_size.h"
#include "robocache/robocache.hpp"
#include "support/random.h"
#if RBC_WITH_CUDA
#include "abi/cuda_support.h"
#endif

namespace {

using support::Argument;
using support::Array;
using support::checkDTypes;
using support::checkErrors;
using support::checkShapes;
using support::Context;
using support::kF32;
using support::kF64;
using support::Layout;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

std::vector<uint64_t> bitsOf(rbcDType dtype, std::initializer_list<long double> numbers) {
  std::vector<uint64_t> bits;
  for (const long double x : numbers) bits.push_back(support::encodeFloat(dtype, x));
  return bits;
}

rbcConvertRotationsParams paramsOf(int32_t source, int32_t target) {
  rbcConvertRotationsParams params = rbcConvertRotationsParamsInit();
  params.source = source;
  params.target = target;
  return params;
}

// Half a turn about x, and about y, as [2,1,4] to [2,1,9].
struct Call : support::OperationCall<Call, rbcConvertRotations, rbcConvertRotationsWorkspaceSize> {
  Argument rotations{kF32, {2, 1, 4}};
  Argument out{kF32, {2, 1, 9}};
  const rbcTensor* used_rotations = &rotations.raw;
  const rbcTensor* used_out = &out.raw;
  rbcConvertRotationsParams params = paramsOf(RBC_ROTATION_QUAT_XYZW, RBC_ROTATION_MATRIX);
  const rbcConvertRotationsParams* used_params = &params;

  Call() { rotations.fill<float>({0, 0, 0, 5, 3, 3, 3, 3}); }

  auto arguments() const { return std::make_tuple(used_rotations, used_out, used_params); }
  void checkOutputs() const {
    CHECK(out.array.elements() ==
          bitsOf(kF32, {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 0}));
  }

  static std::vector<support::TensorOf<Call>> tensors() {
    return {{"rotations", [](Call& c) -> Argument& { return c.rotations; }},
            {"out", [](Call& c) -> Argument& { return c.out; }, support::Access::kWritten}};
  }
  static std::vector<support::PointerOf<Call>> pointers() {
    return {{"rotations: is null", [](Call& c) { c.used_rotations = nullptr; }},
            {"out: is null", [](Call& c) { c.used_out = nullptr; }},
            {"params: is null, expected a source", [](Call& c) { c.used_params = nullptr; }}};
  }
};

const support::StructCallsOf kRotationStructs([](support::StructCalls& calls) {
  const rbcTensor* quaternions = calls.in(kF32, {1, 4}, {0, 0, 1, 0});
  const rbcTensor* vectors = calls.out(kF32, {1, 4});
  rbcConvertRotationsParams params = rbcConvertRotationsParamsInit();
  params.target = RBC_ROTATION_QUAT_WXYZ;
  calls.add("rbcConvertRotationsParams", rbcConvertRotationsParamsInit(), {params}, "params",
            [=, c = calls.context()](const rbcConvertRotationsParams* object) {
              return rbcConvertRotations(c, quaternions, vectors, object);
            });
});

}  // namespace

COMMON_ERROR_TESTS("convert rotations", Call)

TEST_CASE("convert rotations errors: unknown representations") {
  for (const int32_t value : {-1, 7, 15, 28, 31, 44, 1 << 30}) {
    const std::string is = "is " + std::to_string(value) + ", expected one of RBC_ROTATION_";
    checkErrors<Call>(
        {{RBC_STATUS_INVALID_ARGUMENT, "source: " + is, [&](Call& c) { c.params.source = value; }},
         {RBC_STATUS_INVALID_ARGUMENT, "target: " + is,
          [&](Call& c) { c.params.target = value; }}});
  }
}

TEST_CASE("convert rotations errors: shapes and dtypes") {
  checkShapes<Call>({{"rotations", {}, "rank is 0, expected 1 to 8"},
                     {"out", {1, 2, 9}, "shape is [1,2,9], expected [2,1,9]"},
                     {"out", {2, 9}, "shape is [2,9], expected [2,1,9]"}});
  checkErrors<Call>(
      {{RBC_STATUS_SHAPE_MISMATCH, "rotations: shape is [2,1,4], expected [...,3] of Euler angles",
        [](Call& c) { c.params.source = RBC_ROTATION_EULER_INTRINSIC_ZYX; }},
       {RBC_STATUS_SHAPE_MISMATCH, "out: shape is [2,1,9], expected [...,6] of 6-D",
        [](Call& c) { c.params.target = RBC_ROTATION_ROT6D_COLUMNS; }}});
  checkDTypes<Call>({{"rotations", support::kI32, "dtype is int32, expected a float"},
                     {"out", support::kI32, "dtype is int32, expected a float"}});
}

TEST_CASE("convert rotations errors: in place, and an output with shared elements") {
  checkErrors<Call>({{RBC_STATUS_INVALID_ARGUMENT, "rotations: overlaps out",
                      [](Call& c) {
                        c.params.target = RBC_ROTATION_QUAT_WXYZ;
                        c.used_out = c.used_rotations;
                      }},
                     {RBC_STATUS_INVALID_ARGUMENT, "out: elements share memory", [](Call& c) {
                        c.out.restride({0, 9, 1});
                      }}});
}

TEST_CASE("convert rotations: no workspace") {
  size_t bytes = 12345;
  CHECK_SUCCEEDS(Call().workspace(support::refusingContext().get(), &bytes));
  CHECK(bytes == 0);
}

TEST_CASE("convert rotations: without rotations") {
  for (const std::vector<int64_t>& leading :
       {std::vector<int64_t>{0}, {0, kMost / 128}, {3, 0, 5}, {1, 1, 1, 1, 1, 1, 0}}) {
    std::vector<int64_t> in = leading;
    std::vector<int64_t> out = leading;
    in.push_back(3);
    out.push_back(6);
    const auto ndim = static_cast<int32_t>(in.size());
    const rbcTensor rotations = {nullptr, {RBC_DEVICE_CPU, 0}, ndim, kF64, in.data(), nullptr, 0};
    const rbcTensor result = {nullptr, {RBC_DEVICE_CPU, 0}, ndim, kF32, out.data(), nullptr, 0};
    const auto params = paramsOf(RBC_ROTATION_EULER_EXTRINSIC_XYZ, RBC_ROTATION_ROT6D_ROWS);
    CHECK_SUCCEEDS(
        rbcConvertRotations(support::refusingContext().get(), &rotations, &result, &params));
  }
}

TEST_CASE("convert rotations: inputs that are not rotations give the same NaN in every channel") {
  const float inf = std::numeric_limits<float>::infinity();
  for (const rbcDType dtype : support::kFloatDTypes) {
    for (const float bad : {0.0f, inf, -inf, std::nanf("7"), -std::nanf("")}) {
      Call call;
      call.rotations.fill<float>({0, 0, 0, bad, 3, 3, 3, 3});
      const Argument out(dtype, {2, 1, 9});
      call.used_out = &out.raw;
      CHECK_SUCCEEDS(call.run());
      const std::vector<uint64_t> bits = out.array.elements();
      for (size_t i = 0; i < 9; ++i) CHECK(bits[i] == support::formatOf(dtype).nan());
      for (size_t i = 9; i < 18; ++i) CHECK(bits[i] != support::formatOf(dtype).nan());
    }
  }
}

TEST_CASE("convert rotations: the wrapper") {
  using robocache::Rotation;
  const auto context = robocache::Context::cpu(1);
  const std::vector<double> quarter = {0, 0, 3, 3};
  std::vector<double> angles(3);
  robocache::convertRotations(context, {quarter, {1, 4}}, {angles, {1, 3}}, Rotation::kQuatXyzw,
                              Rotation::kEulerIntrinsicZyx);
  CHECK(angles[0] == doctest::Approx(1.5707963267948966));
  CHECK(angles[1] == 0);
  CHECK(angles[2] == 0);
  const auto refused = robocache::convertRotations<robocache::Expect>(
      context, {quarter, {1, 4}}, {angles, {1, 3}}, Rotation::kMatrix, Rotation::kRotvec);
  REQUIRE(!refused);
  CHECK(support::tells(refused.error().what(), {"rotations: shape is [1,4], expected [...,9]"}));
  const auto read_only = robocache::convertRotations<robocache::Expect>(
      context, {quarter, {1, 4}}, {static_cast<const double*>(angles.data()), {1, 3}},
      Rotation::kQuatXyzw, Rotation::kRotvec);
  REQUIRE(!read_only);
  CHECK(support::tells(read_only.error().what(), {"out: is read-only"}));
}

TEST_CASE("wrapper: the workspace of rotations has the size of its size function") {
  const std::vector<float> quaternions(4 * 100, 0.5f);
  std::vector<float> written(3 * 100);
  CHECK(CHECKED_WRAPPER_SIZE(convertRotations, {quaternions, {100, 4}}, {written, {100, 3}},
                             robocache::Rotation::kQuatXyzw, robocache::Rotation::kRotvec) == 0);
}

#if RBC_WITH_CUDA

namespace {

constexpr int32_t kSome[] = {RBC_ROTATION_QUAT_XYZW,
                             RBC_ROTATION_QUAT_WXYZ,
                             RBC_ROTATION_ROTVEC,
                             RBC_ROTATION_MATRIX,
                             RBC_ROTATION_ROT6D_ROWS,
                             RBC_ROTATION_ROT6D_COLUMNS,
                             RBC_ROTATION_ROT6D_INTERLEAVED,
                             RBC_ROTATION_EULER_EXTRINSIC_XYZ,
                             RBC_ROTATION_EULER_INTRINSIC_YXZ,
                             RBC_ROTATION_EULER_EXTRINSIC_ZXZ,
                             RBC_ROTATION_EULER_INTRINSIC_XYX};

int64_t channelsOf(int32_t value) {
  if (value <= RBC_ROTATION_QUAT_WXYZ) return 4;
  if (value == RBC_ROTATION_MATRIX) return 9;
  return value >= RBC_ROTATION_ROT6D_ROWS && value <= RBC_ROTATION_ROT6D_INTERLEAVED ? 6 : 3;
}

// Numbers of every size, including zeros, NaN and infinities; angles of many turns.
void fill(const Array& array, uint64_t seed) {
  support::Random random(seed);
  array.each([&](std::byte* p) {
    double x = random.uniform(-2, 2);
    if (random.chance(0.05)) x *= std::ldexp(1.0, static_cast<int>(random.below(160)) - 80);
    if (random.chance(0.01)) x = random.chance(0.5) ? 0 : std::nan("");
    const uint64_t bits = support::encodeFloat(array.dtype(), x);
    std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(array.dtype())));
  });
}

struct Case {
  int32_t source, target;
  rbcDType in, out;
  std::vector<int64_t> shape;
  Layout in_layout = Layout::kContiguous;
  Layout out_layout = Layout::kContiguous;
};

void checkSame(const Context& cuda, const Case& c, uint64_t seed) {
  static const Context cpu = support::cpuContext(2);
  std::vector<int64_t> in_shape = c.shape;
  std::vector<int64_t> out_shape = c.shape;
  in_shape.push_back(channelsOf(c.source));
  out_shape.push_back(channelsOf(c.target));
  const Array in(c.in, in_shape, c.in_layout);
  fill(in, seed);
  Array expected(c.out, out_shape, c.out_layout);
  Array got(c.out, out_shape, c.out_layout);
  const rbcTensor from = in.tensor();
  const rbcTensor to = expected.tensor();
  const rbcConvertRotationsParams params = paramsOf(c.source, c.target);
  CHECK_SUCCEEDS(rbcConvertRotations(cpu.get(), &from, &to, &params));
  const support::Placed placed_in(cuda, in, true);
  const support::Placed placed_out(cuda, got, true);
  CHECK_SUCCEEDS(rbcConvertRotations(cuda.get(), placed_in.get(), placed_out.get(), &params));
  CHECK(placed_out.fetch(cuda, got));
  CHECK(got.gapsArePoison());
  const bool same = got.elements() == expected.elements();
  CHECK_MESSAGE(same, c.source, " to ", c.target, ", ", support::nameOf(c.in), " to ",
                support::nameOf(c.out), ", ", support::nameOf(c.in_layout), " to ",
                support::nameOf(c.out_layout));
}

}  // namespace

TEST_CASE("convert rotations cuda: the same bits as on the CPU, every pair and dtype") {
  REQUIRE_CUDA();
  uint64_t seed = 1;
  for (const int32_t source : kSome) {
    for (const int32_t target : kSome) {
      checkSame(cuda, {source, target, kF64, kF64, {20'011}},
                ++seed);  // the last tile is partial
      checkSame(cuda, {source, target, kF32, kF32, {500}}, ++seed);
    }
    for (const rbcDType in : support::kFloatDTypes) {
      for (const rbcDType out : support::kFloatDTypes) {
        checkSame(cuda, {source, RBC_ROTATION_ROT6D_ROWS, in, out, {129}}, ++seed);
        checkSame(cuda, {source, RBC_ROTATION_EULER_EXTRINSIC_ZYX, in, out, {129}}, ++seed);
      }
    }
  }
}

TEST_CASE("convert rotations cuda: any strides and ranks") {
  REQUIRE_CUDA();
  const std::vector<int64_t> kShapes[] = {{},         {1},          {64},
                                          {3, 1, 50}, {4, 3, 2, 5}, {2, 1, 3, 1, 2, 1, 2}};
  uint64_t seed = 1;
  for (const std::vector<int64_t>& shape : kShapes) {
    for (const Layout in : support::kLayouts) {
      for (const Layout out : support::kLayouts) {
        if (out == Layout::kBroadcast) continue;
        checkSame(cuda, {RBC_ROTATION_QUAT_WXYZ, RBC_ROTATION_MATRIX, kF32, kF64, shape, in, out},
                  ++seed);
        checkSame(cuda, {RBC_ROTATION_ROTVEC, RBC_ROTATION_QUAT_XYZW, kF64, kF32, shape, in, out},
                  ++seed);
      }
    }
  }
}

TEST_CASE("convert rotations cuda: captured without a warm-up, and replayed on other rotations") {
  REQUIRE_CUDA();
  const cuda_support::Stream stream;
  const auto params = paramsOf(RBC_ROTATION_QUAT_XYZW, RBC_ROTATION_ROT6D_ROWS);
  const Array in(kF32, {1000, 4});
  const Array zeros(kF32, {1000, 4});
  zeros.each([](std::byte* p) { std::memset(p, 0, 4); });
  fill(in, 5);
  Array out(kF32, {1000, 6});
  const support::Placed placed_in(cuda, zeros, true);
  const support::Placed placed_out(cuda, out, true);
  CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
  const cuda_support::OnStream on_stream(cuda, stream);
  cuda_support::beginCapture(stream);
  CHECK_SUCCEEDS(rbcConvertRotations(cuda.get(), placed_in.get(), placed_out.get(), &params));
  cuda_support::Graph graph(stream);
  CHECK(graph.nodes() == 1);
  cuda_support::upload(in, placed_in.get(), stream);
  graph.launch(stream);
  cuda_support::check(cudaStreamSynchronize(stream.get()));
  CHECK(placed_out.fetch(cuda, out));
  Array expected(kF32, {1000, 6});
  const rbcTensor from = in.tensor();
  const rbcTensor to = expected.tensor();
  CHECK_SUCCEEDS(rbcConvertRotations(support::refusingContext().get(), &from, &to, &params));
  CHECK(out.elements() == expected.elements());
}

#endif
