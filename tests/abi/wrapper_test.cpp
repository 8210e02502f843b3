// The C++ wrapper as a program uses it.
#include <array>
#include <cmath>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "robocache/robocache.hpp"
#include "support/expect.h"
#include "without_exceptions.h"

using robocache::Context;
using robocache::OwnedTensor;
using robocache::ResampleOptions;
using robocache::Tensor;

static_assert(!std::is_copy_constructible_v<Context> &&
              std::is_nothrow_move_constructible_v<Context>);
static_assert(!std::is_copy_constructible_v<OwnedTensor> &&
              std::is_nothrow_move_constructible_v<OwnedTensor>);

namespace {

template <class Body>
robocache::Error errorOf(Body&& body) {
  try {
    body();
  } catch (const robocache::Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  return {RBC_STATUS_SUCCESS, ""};
}

// As std::span of C++20: its elements are no more const than it says.
template <class T>
struct Span {
  T* first;
  size_t count;
  T* data() const { return first; }
  size_t size() const { return count; }
};

bool is(rbcDType dtype, uint8_t code, uint8_t bits) {
  return dtype.code == code && dtype.bits == bits && dtype.lanes == 1;
}

}  // namespace

TEST_CASE("wrapper: element types") {
  CHECK(is(robocache::dtypeOf<float>(), RBC_DTYPE_FLOAT, 32));
  CHECK(is(robocache::dtypeOf<double>(), RBC_DTYPE_FLOAT, 64));
  CHECK(is(robocache::dtypeOf<bool>(), RBC_DTYPE_BOOL, 8));
  CHECK(is(robocache::dtypeOf<int8_t>(), RBC_DTYPE_INT, 8));
  CHECK(is(robocache::dtypeOf<uint16_t>(), RBC_DTYPE_UINT, 16));
  CHECK(is(robocache::dtypeOf<int64_t>(), RBC_DTYPE_INT, 64));
  CHECK(is(robocache::dtypeOf<long long>(), RBC_DTYPE_INT, 64));
  CHECK(is(robocache::kBFloat16, RBC_DTYPE_BFLOAT, 16));
}

TEST_CASE("wrapper: versions and names of statuses") {
  CHECK(robocache::version() ==
        RBC_VERSION_MAJOR * 10000 + RBC_VERSION_MINOR * 100 + RBC_VERSION_PATCH);
  CHECK(robocache::abiVersion() == RBC_ABI_VERSION);
  CHECK(robocache::statusName(RBC_STATUS_DAMAGED) == std::string("RBC_STATUS_DAMAGED"));
}

TEST_CASE("wrapper: a tensor describes memory, and its copies are independent") {
  float data[12] = {};
  auto first = std::make_unique<Tensor>(data, std::initializer_list<int64_t>{3, 2},
                                        std::initializer_list<int64_t>{4, 2});
  Tensor copy = *first;
  Tensor assigned(data, {1});
  assigned = *first;
  first.reset();
  for (const Tensor& tensor : {copy, assigned}) {
    const rbcTensor& raw = *tensor.get();
    CHECK(raw.data == data);
    CHECK(raw.ndim == 2);
    CHECK(raw.shape[0] == 3);
    CHECK(raw.shape[1] == 2);
    REQUIRE(raw.strides != nullptr);
    CHECK(raw.strides[0] == 4);
    CHECK(raw.strides[1] == 2);
    CHECK(raw.device.type == RBC_DEVICE_CPU);
    CHECK(tensor.writable());
  }
  CHECK(Tensor(data, {12}).get()->strides == nullptr);
  CHECK_FALSE(Tensor(static_cast<const float*>(data), {12}).writable());
  CHECK(
      is(Tensor(static_cast<void*>(data), robocache::kFloat16, {12}).dtype(), RBC_DTYPE_FLOAT, 16));
}

TEST_CASE("wrapper: a tensor is memory of any kind, and a shape of any integers") {
  const auto is_row = [](const Tensor& tensor, const void* data, int64_t size, bool writable) {
    return tensor.defect() == nullptr && tensor.data() == data && tensor.ndim() == 1 &&
           tensor.shape(0) == size && tensor.writable() == writable;
  };
  std::vector<float> vector(6);
  const std::array<double, 4> array = {};
  int64_t numbers[3] = {};
  const uint8_t bytes[5] = {};
  CHECK(is_row(vector, vector.data(), 6, true));
  CHECK(is_row(std::as_const(vector), vector.data(), 6, false));
  CHECK(is_row(array, array.data(), 4, false));
  CHECK(is_row(numbers, numbers, 3, true));
  CHECK(is_row(bytes, bytes, 5, false));
  const Span<float> span{vector.data(), 5};
  CHECK(is_row(span, vector.data(), 5, true));
  CHECK(is_row(Span<const float>{vector.data(), 5}, vector.data(), 5, false));
  CHECK(is(Tensor(array).dtype(), RBC_DTYPE_FLOAT, 64));
  CHECK(is(Tensor(numbers).dtype(), RBC_DTYPE_INT, 64));

  const size_t rows = 2;
  const int columns = 3;
  const Tensor matrix(vector, {rows, columns});
  CHECK(matrix.ndim() == 2);
  CHECK(matrix.shape(0) == 2);
  CHECK(matrix.shape(1) == 3);
  CHECK(matrix.shape(7) == 0);
  CHECK(Tensor(numbers, {}).ndim() == 0);
  const std::vector<int64_t> extents = {1, 2, 3};
  CHECK(Tensor(vector, extents).ndim() == 3);
  CHECK(Tensor(vector, extents).shape(2) == 3);
}

TEST_CASE("wrapper: a tensor that cannot be is refused where it is used") {
  const Context context = Context::cpu(1);
  float data[6] = {};
  CHECK(Tensor(data, {2, 3}).defect() == nullptr);
  CHECK(Tensor(data, {3, 2}, {1, 3}).defect() == nullptr);
  CHECK(Tensor(data, {9, 6}, {0, 1}).defect() == nullptr);
  CHECK(Tensor(data, {0, 1000}).defect() == nullptr);
  CHECK(Tensor(data + 0, {1000}).defect() == nullptr);  // a pointer: who knows
  const std::vector<int64_t> many(9, 1);
  const int64_t huge = INT64_MAX;
  float out[3] = {7, 7, 7};
  rbcTensor shapeless = {};
  shapeless.ndim = 2;
  for (const Tensor& tensor :
       {Tensor(data, {7}), Tensor(data, {3}, {3}), Tensor(data, {2}, {-1}),
        Tensor(data, {1, 2}, {1}), Tensor(data, many), Tensor(data, {huge, huge}),
        Tensor(data, {3, 3}, {2, 1}), Tensor(shapeless)}) {
    CHECK(tensor.defect() != nullptr);
    CHECK(tensor.ndim() == -1);
    const Tensor copy = tensor;
    const robocache::Error error = errorOf([&] {
      robocache::resample(context, {data, {3, 1}}, data, copy, {out, {3, 1}});
    });
    CHECK(error.status() == RBC_STATUS_SHAPE_MISMATCH);
    CHECK(support::tells(error.what(), {"query_times: has "}));
    CHECK_FAILS(rbcTensorCopy(context.get(), copy.get(), copy.get()), RBC_STATUS_SHAPE_MISMATCH,
                "source");
  }
  const robocache::FuseStream good({data, {3, 1}}, {data, {3}});
  robocache::FuseStream bad = good;
  bad.lengths = Tensor(data, {7});
  CHECK(support::tells(errorOf([&] {
                         robocache::fuse(context, {good, bad}, data, {out, {3, 1}});
                       }).what(),
                       {"streams[1].lengths: has "}));
  CHECK(support::tells(errorOf([&] { OwnedTensor(context, robocache::kFloat16, many); }).what(),
                       {"9"}));
  CHECK(out[0] == 7);
}

TEST_CASE("wrapper: results instead of exceptions") {
  using robocache::Expect;
  using robocache::Result;
  Result<Context> context = Context::cpu<Expect>(1);
  REQUIRE(context);
  CHECK(context->info<Expect>()->num_threads == 1);
  CHECK(context->cudaStream<Expect>().value() == nullptr);
  CHECK(context->reserve<Expect>(100).has_value());
  const std::vector<float> values = {0, 10, 20};
  const std::vector<double> times = {0, 1, 2};
  const double query[] = {0.5};
  float out[1] = {7};
  const Result<void> wrong = robocache::resample<Expect>(*context, values, times, query, out);
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().status() == RBC_STATUS_SHAPE_MISMATCH);
  CHECK(support::tells(wrong.error().what(), {"values:"}));
  CHECK(errorOf([&] { wrong.value(); }).what() == std::string(wrong.error().what()));
  CHECK(out[0] == 7);
  CHECK(robocache::resample<Expect>(*context, {values, {3, 1}}, times, query, {out, {1, 1}}));
  CHECK(out[0] == 5);

  Result<OwnedTensor> owned =
      OwnedTensor::create<Expect>(*context, robocache::dtypeOf<float>(), {3});
  REQUIRE(owned);
  CHECK(robocache::copy<Expect>(*context, values, *owned->view<Expect>()));
  OwnedTensor taken = std::move(owned).value();
  CHECK(static_cast<float*>(taken.view().data())[2] == 20);

  rbcContextParams params = rbcContextParamsInit();
  params.backend = 42;
  const Result<Context> none = Context::create<Expect>(params);
  CHECK_FALSE(none.has_value());
  CHECK(support::tells(none.error().what(), {"backend", "42"}));
  CHECK(errorOf([&] { none.value(); }).status() == RBC_STATUS_INVALID_ARGUMENT);
}

TEST_CASE("wrapper: without exceptions") { CHECK(support::resampledWithoutExceptions() == ""); }

TEST_CASE("wrapper: resample, with every option") {
  const Context context = Context::cpu(2);
  CHECK(context.info().num_threads == 2);
  const std::vector<double> times = {0, 1, 2, 9};
  const std::vector<double> queries = {0.5, 1, 5, 10};
  const std::vector<float> values = {0, 10, 20, 90};
  std::vector<float> out(4);
  robocache::resample(context, {values.data(), {4, 1}}, {times.data(), {4}}, {queries.data(), {4}},
                      {out.data(), {4, 1}});
  CHECK(out == std::vector<float>{5, 10, 50, 90});

  std::vector<uint8_t> mask(4);
  const int64_t lengths[] = {3};
  ResampleOptions options;
  options.method = robocache::Method::kNearest;
  options.outside = robocache::Outside::kFill;
  options.fill_value = -1;
  options.tolerance = 0.5;
  options.check_times = true;
  options.lengths = Tensor(lengths, {1});
  options.valid = Tensor(mask.data(), {4});
  robocache::resample(context, {values.data(), {4, 1}}, {times.data(), {4}}, {queries.data(), {4}},
                      {out.data(), {4, 1}}, options);
  CHECK(out == std::vector<float>{0, 10, -1, -1});
  CHECK(mask == std::vector<uint8_t>{1, 1, 0, 0});

  const bool there[] = {true, false, true, true};
  ResampleOptions held;
  held.method = robocache::Method::kPrevious;
  held.sample_mask = Tensor(there, {4});
  robocache::resample(context, {values.data(), {4, 1}}, {times.data(), {4}}, {queries.data(), {4}},
                      {out.data(), {4, 1}}, held);
  CHECK(out == std::vector<float>{0, 0, 20, 90});
}

TEST_CASE("wrapper: channel groups and an affine part") {
  using robocache::channels;
  using robocache::Method;
  const Context context = Context::cpu(1);
  const double times[] = {0, 1};
  const double query[] = {0.5};
  // A position, a quaternion that turns by a right angle about z, an angle across pi, a gripper.
  const double half = std::sqrt(0.5);
  const double values[] = {1, 2, 3, 0, 0, 0, 1, 3, 0.25, 2, 4, 6, 0, 0, half, half, -3, 0.75};
  double out[9] = {};
  const double shift[] = {1, 0, 0, 0, 0, 0, 0, 0, 0};
  const float scale[] = {2, 1, 1, 1, 1, 1, 1, 1, 4};
  ResampleOptions options;
  options.groups = {channels(7, 1, Method::kAngle), channels(0, 2, Method::kCubic),
                    channels(2, 1, Method::kPchip), channels(3, 4, Method::kSlerp),
                    channels(8, 1, Method::kPrevious)};
  options.shift = Tensor(shift, {9});
  options.scale = Tensor(scale, {9});
  robocache::resample(context, {values, {2, 9}}, {times, {2}}, {query, {1}}, {out, {1, 9}},
                      options);
  const double pi = std::acos(-1.0);
  const double expected[] = {1, 3, 4.5, 0, 0, std::sin(pi / 8), std::cos(pi / 8), pi, 1};
  for (int i = 0; i < 9; ++i) CHECK(std::abs(out[i]) == doctest::Approx(expected[i]));
}

TEST_CASE("wrapper: angles by their period") {
  const Context context = Context::cpu(1);
  const double times[] = {0, 1};
  const double query[] = {0.5};
  const float values[] = {350, 0.875f, 20, 0.25f};
  float out[2] = {};
  ResampleOptions options;
  options.groups = {channels(0, 1, robocache::Method::kAngle, robocache::Period::kDegreesPositive),
                    channels(1, 1, robocache::Method::kAngle, robocache::Period::kTurns)};
  robocache::resample(context, {values, {2, 2}}, {times, {2}}, {query, {1}}, {out, {1, 2}},
                      options);
  CHECK(out[0] == 5);
  CHECK(out[1] == 0.0625f);
}

TEST_CASE("wrapper: fuse, with every option") {
  const Context context = Context::cpu(2);
  const std::vector<double> joint_times = {0, 1, 2, 9};
  const std::vector<float> joints = {0, 1, 10, 11, 20, 21, 90, 91};
  const std::vector<double> gripper_times = {0, 1, 5};
  const std::vector<int32_t> gripper = {7, 8, 9};
  const std::vector<double> queries = {0.5, 1, 5};
  std::vector<float> out(9);

  const robocache::FuseStream plain({joints.data(), {4, 2}}, {joint_times.data(), {4}});
  robocache::FuseStream held({gripper.data(), {3, 1}}, {gripper_times.data(), {3}});
  held.method = robocache::Method::kPrevious;
  robocache::fuse(context, {plain, held}, {queries.data(), {3}}, {out.data(), {3, 3}});
  CHECK(out == std::vector<float>{5, 6, 7, 10, 11, 8, 50, 51, 9});
  const std::vector<uint8_t> there = {1, 0, 1};
  held.sample_mask = Tensor(there.data(), {3});
  robocache::fuse(context, {plain, held}, {queries.data(), {3}}, {out.data(), {3, 3}});
  CHECK(out == std::vector<float>{5, 6, 7, 10, 11, 7, 50, 51, 9});

  std::vector<uint8_t> mask(6);
  const std::vector<int64_t> lengths = {3};
  const std::vector<int32_t> query_lengths = {2};
  robocache::FuseStream gaps({joints.data(), {1, 4, 2}}, {joint_times.data(), {1, 4}});
  gaps.lengths = Tensor(lengths.data(), {1});
  gaps.outside = robocache::Outside::kFill;
  gaps.fill_value = -1;
  gaps.max_gap = 0.5;
  robocache::FuseStream late({gripper.data(), {3, 1}}, {gripper_times.data(), {3}});
  const std::vector<int64_t> offsets = {0, 3};
  late.batch_offsets = Tensor(offsets.data(), {2});
  late.method = robocache::Method::kNearest;
  late.tolerance = 0.25;
  late.clock_offset = 0.5;
  robocache::FuseOptions options;
  options.check_times = true;
  options.query_lengths = Tensor(query_lengths.data(), {1});
  options.valid = Tensor(mask.data(), {1, 3, 2});
  robocache::fuse(context, {gaps, late}, {queries.data(), {3}}, {out.data(), {1, 3, 3}}, options);
  CHECK(out == std::vector<float>{-1, -1, 7, 10, 11, 0, -1, -1, 0});
  CHECK(mask == std::vector<uint8_t>{0, 1, 1, 0, 0, 0});

  // Ticks have their own offset.
  const std::vector<int64_t> ticks = {0, 10, 20};
  const std::vector<int64_t> at = {13};
  robocache::FuseStream counted({gripper.data(), {3, 1}}, {ticks.data(), {3}});
  counted.method = robocache::Method::kNext;
  counted.clock_offset_ticks = 3;
  robocache::fuse(context, {counted}, {at.data(), {1}}, {out.data(), {1, 1}});
  CHECK(out[0] == 8);
}

TEST_CASE("wrapper: errors of fuse") {
  const Context context = Context::cpu(1);
  const float times[] = {0, 2, 1};
  const float values[3] = {};
  float out[3] = {7, 7, 7};
  const Tensor time(times, {3});
  const robocache::FuseStream stream({values, {3, 1}}, time);
  robocache::FuseOptions options;
  options.check_times = true;
  const robocache::Error error = errorOf([&] {
    robocache::fuse(context, {stream}, time, {out, {3, 1}}, options);
  });
  CHECK(error.status() == RBC_STATUS_INVALID_ARGUMENT);
  CHECK(support::tells(error.what(), {"streams[0].times:", "row 0", "index 2"}));
  for (const size_t count : {size_t{0}, size_t{65}, size_t{1000}}) {
    const std::string told = "num_streams: is " + std::to_string(count);
    const std::vector<robocache::FuseStream> streams(count, stream);
    CHECK(support::tells(errorOf([&] {
                           robocache::fuse(context, streams, time, {out, {3, 1}});
                         }).what(),
                         {told.c_str()}));
  }
  options.valid = Tensor(static_cast<const float*>(out), {3, 1});
  CHECK(support::tells(errorOf([&] {
                         robocache::fuse(context, {stream}, time, {out, {3, 1}}, options);
                       }).what(),
                       {"valid:", "read-only"}));
  CHECK(out[0] == 7);
}

TEST_CASE("wrapper: voxelize, with every option") {
  const Context context = Context::cpu(2);
  const rbcVoxelGrid grid = {{0, 0, 0}, {1, 1, 1}, {2, 2, 1}};
  // x y z and an intensity; the last one lies outside.
  const std::vector<float> points = {0.5f, 0.5f, 0.5f, 4, 1.5f, 0.5f, 0.5f,  1,
                                     0.5f, 0.5f, 0.5f, 2, 2.5f, 0.5f, 0.25f, 9};
  std::vector<uint8_t> occupied(4, 7);
  robocache::voxelize(context, {points.data(), {4, 4}}, grid, {occupied.data(), {2, 2, 1}});
  CHECK(occupied == std::vector<uint8_t>{1, 0, 1, 0});

  const std::vector<double> features = {-3, -4, -5, -6};
  const int64_t lengths[] = {3};
  std::vector<float> largest(4);
  int64_t dropped = -1;
  robocache::VoxelizeOptions options;
  options.reduction = robocache::Reduction::kMax;
  options.fill_value = -INFINITY;
  options.features = Tensor(features.data(), {1, 4, 1});
  options.lengths = Tensor(lengths, {1});
  options.num_points_outside = Tensor(&dropped, {1});
  robocache::voxelize(context, {points.data(), {1, 4, 4}}, grid, {largest.data(), {1, 2, 2, 1, 1}},
                      options);
  CHECK(largest == std::vector<float>{-3, -INFINITY, -4, -INFINITY});
  CHECK(dropped == 0);

  const std::vector<int32_t> offsets = {0, 1, 4};
  std::vector<int32_t> counts(8);
  std::vector<int64_t> packed_dropped(2);
  robocache::VoxelizeOptions packed;
  packed.reduction = robocache::Reduction::kCount;
  packed.batch_offsets = Tensor(offsets.data(), {3});
  packed.num_points_outside = Tensor(packed_dropped.data(), {2});
  robocache::voxelize(context, {points.data(), {4, 4}}, grid, {counts.data(), {2, 2, 2, 1}},
                      packed);
  CHECK(counts == std::vector<int32_t>{1, 0, 0, 0, 1, 0, 1, 0});
  CHECK(packed_dropped == std::vector<int64_t>{0, 1});
}

TEST_CASE("wrapper: sparse voxels, with every option") {
  using robocache::VoxelizeSparseOutputs;
  const Context context = Context::cpu(2);
  const rbcVoxelGrid grid = {{0, 0, 0}, {1, 1, 1}, {2, 2, 1}};
  const std::vector<float> points = {1.5f, 0.5f, 0.5f, 1, 0.5f, 0.5f, 0.5f,  4,
                                     1.5f, 0.5f, 0.5f, 2, 2.5f, 0.5f, 0.25f, 9};
  std::vector<int32_t> coords(12);
  int64_t count = -1;
  const VoxelizeSparseOutputs bare({coords.data(), {3, 4}}, {&count, {}});
  robocache::voxelizeSparse(context, {points.data(), {4, 4}}, grid, bare);
  CHECK(count == 2);
  CHECK(coords == std::vector<int32_t>{0, 0, 0, 0, 0, 1, 0, 0, -1, -1, -1, -1});

  const std::vector<float> features = {10, 20, 40, 80};
  const std::vector<int64_t> lengths = {4};
  std::vector<int32_t> counts(1);
  std::vector<float> sums(1);
  std::vector<float> grouped(1);
  std::vector<int64_t> rows(4);
  int64_t dropped = -1;
  int64_t voxels_over = 0;
  int64_t points_over = 0;
  int64_t group_over = 0;
  VoxelizeSparseOutputs voxels({coords.data(), {1, 4}}, {&count, {}});
  voxels.points_per_voxel = Tensor(counts.data(), {1});
  voxels.voxel_features = Tensor(sums.data(), {1, 1});
  voxels.grouped = Tensor(grouped.data(), {1, 1, 1});
  voxels.point_to_voxel = Tensor(rows.data(), {1, 4});
  voxels.num_points_outside = Tensor(&dropped, {1});
  voxels.num_voxels_over_capacity = Tensor(&voxels_over, {});
  voxels.num_points_over_capacity = Tensor(&points_over, {});
  voxels.num_points_over_group = Tensor(&group_over, {});
  robocache::VoxelizeSparseOptions options;
  options.reduction = robocache::Reduction::kSum;
  options.order = robocache::VoxelOrder::kFirstPoint;
  options.features = Tensor(features.data(), {1, 4, 1});
  options.lengths = Tensor(lengths.data(), {1});
  robocache::voxelizeSparse(context, {points.data(), {1, 4, 4}}, grid, voxels, options);
  CHECK(count == 1);
  CHECK(std::vector<int32_t>(coords.begin(), coords.begin() + 4) ==
        std::vector<int32_t>{0, 1, 0, 0});
  CHECK(counts[0] == 1);
  CHECK(sums[0] == 50);
  CHECK(grouped[0] == 10);
  CHECK(rows == std::vector<int64_t>{0, -1, 0, -1});
  CHECK(dropped == 1);
  CHECK(voxels_over == 1);
  CHECK(points_over == 1);
  CHECK(group_over == 1);

  const std::vector<int64_t> offsets = {0, 1, 2};
  robocache::VoxelizeSparseOptions packed;
  packed.batch_offsets = Tensor(offsets.data(), {3});
  robocache::voxelizeSparse(context, {points.data(), {4, 4}}, grid, bare, packed);
  CHECK(coords == std::vector<int32_t>{0, 1, 0, 0, 1, 0, 0, 0, -1, -1, -1, -1});
}

TEST_CASE("wrapper: a signed distance field, with every option") {
  const Context context = Context::cpu(2);
  // Seen along x from 0: a surface at 2.5.
  const rbcVoxelGrid grid = {{0, 0, 0}, {1, 1, 1}, {5, 1, 1}};
  const std::vector<float> points = {2.5f, 0.5f, 0.5f};
  const std::vector<float> sensor = {0, 0.5f, 0.5f};
  std::vector<float> tsdf(5);
  std::vector<float> weight(5);
  robocache::voxelizeTsdf(context, {points.data(), {1, 3}}, {sensor.data(), {3}}, grid, 1,
                          {tsdf.data(), {5, 1, 1}}, {weight.data(), {5, 1, 1}});
  CHECK(weight == std::vector<float>{0, 1, 1, 1, 0});
  CHECK(std::vector<float>(tsdf.begin() + 1, tsdf.end() - 1) == std::vector<float>{1, 0, -1});

  const std::vector<int64_t> lengths = {1};
  int64_t dropped = -1;
  robocache::VoxelizeTsdfOptions options;
  options.weighting = robocache::TsdfWeighting::kInverseSquare;
  options.carve = true;
  options.max_weight = 1;
  options.lengths = Tensor(lengths.data(), {1});
  options.num_points_unused = Tensor(&dropped, {1});
  robocache::voxelizeTsdf(context, {points.data(), {1, 1, 3}}, {sensor.data(), {1, 3}}, grid, 1,
                          {tsdf.data(), {5, 1, 1}}, {weight.data(), {5, 1, 1}}, options);
  CHECK(dropped == 0);
  CHECK(weight[0] == doctest::Approx(1 / 6.25));
  CHECK(tsdf[0] == 1);
  for (int i = 1; i < 4; ++i) CHECK(weight[static_cast<size_t>(i)] == 1);
  CHECK(weight[4] == 0);

  const std::vector<int32_t> offsets = {0, 0, 1};
  std::vector<int64_t> packed_dropped(2);
  robocache::VoxelizeTsdfOptions packed;
  packed.batch_offsets = Tensor(offsets.data(), {3});
  packed.num_points_unused = Tensor(packed_dropped.data(), {2});
  const std::vector<double> sensors = {9, 9, 9, 2.5, 0.5, 0.5};  // the point's own place
  robocache::voxelizeTsdf(context, {points.data(), {1, 3}}, {sensors.data(), {2, 3}}, grid, 1,
                          {tsdf.data(), {5, 1, 1}}, {weight.data(), {5, 1, 1}}, packed);
  CHECK(packed_dropped == std::vector<int64_t>{0, 1});
}

TEST_CASE("wrapper: errors of voxelization") {
  const Context context = Context::cpu(1);
  const float points[] = {0, 0, 0};
  float out[2] = {7, 7};
  int32_t coords[4] = {7, 7, 7, 7};
  int64_t count = 7;
  const rbcVoxelGrid grid = {{0, 0, 0}, {1, 1, 1}, {2, 1, 1}};
  const Tensor cloud(points, {1, 3});
  const Tensor written(out, {2, 1, 1});
  const Tensor read_only(static_cast<const float*>(out), {2, 1, 1});
  const auto refused = [&](rbcStatus_t status, std::initializer_list<const char*> words,
                           auto&& call) {
    const robocache::Error error = errorOf(call);
    CHECK(error.status() == status);
    CHECK_MESSAGE(support::tells(error.what(), words), std::string(error.what()));
  };
  rbcVoxelGrid flat = grid;
  flat.voxel_size[1] = 0;
  refused(RBC_STATUS_INVALID_ARGUMENT, {"voxel_size[1]: is 0"},
          [&] { robocache::voxelize(context, cloud, flat, written); });
  refused(RBC_STATUS_INVALID_ARGUMENT, {"out:", "read-only"},
          [&] { robocache::voxelize(context, cloud, grid, read_only); });
  refused(RBC_STATUS_INVALID_ARGUMENT, {"voxel_size[1]: is 0"}, [&] {
    robocache::voxelizeSparse(context, cloud, flat, {{coords, {1, 4}}, {&count, {}}});
  });
  refused(RBC_STATUS_INVALID_ARGUMENT, {"outputs.voxel_features:", "read-only"}, [&] {
    robocache::VoxelizeSparseOutputs voxels({coords, {1, 4}}, {&count, {}});
    voxels.voxel_features = read_only;
    robocache::voxelizeSparse(context, cloud, grid, voxels);
  });
  refused(RBC_STATUS_INVALID_ARGUMENT, {"truncation:"}, [&] {
    float weight[2] = {};
    robocache::voxelizeTsdf(context, cloud, {points, {3}}, grid, 0, written, {weight, {2, 1, 1}});
  });
  refused(RBC_STATUS_INVALID_ARGUMENT, {"weight:", "read-only"}, [&] {
    robocache::voxelizeTsdf(context, cloud, {points, {3}}, grid, 1, written, read_only);
  });
  CHECK(out[0] == 7);
  CHECK(coords[0] == 7);
  CHECK(count == 7);
}

TEST_CASE("wrapper: errors carry the status and the message of the library") {
  const Context context = Context::cpu(1);
  const float times[] = {0, 2, 1};
  float values[3] = {};
  float out[3] = {7, 7, 7};
  ResampleOptions options;
  options.check_times = true;
  const robocache::Error error = errorOf([&] {
    robocache::resample(context, {values, {3, 1}}, {times, {3}}, {times, {3}}, {out, {3, 1}},
                        options);
  });
  CHECK(error.status() == RBC_STATUS_INVALID_ARGUMENT);
  CHECK(support::tells(error.what(), {"times:", "row 0", "index 2"}));
  CHECK(out[0] == 7);
  const float* constant = out;
  const robocache::Error read_only = errorOf([&] {
    robocache::resample(context, {values, {3, 1}}, {times, {3}}, {times, {3}}, {constant, {3, 1}});
  });
  CHECK(read_only.status() == RBC_STATUS_INVALID_ARGUMENT);
  CHECK(support::tells(read_only.what(), {"out:", "read-only"}));
  rbcContextParams params = rbcContextParamsInit();
  params.backend = 42;
  CHECK(support::tells(errorOf([&] { Context made(params); }).what(), {"backend", "42"}));
}

TEST_CASE("wrapper: owned tensors are copied into, moved, and given to DLPack") {
  Context context = Context::cpu(1);
  OwnedTensor tensor(context, robocache::dtypeOf<float>(), {2, 3});
  const float source[] = {1, 2, 3, 4, 5, 6};
  robocache::copy(context, {source, {2, 3}}, tensor.view());
  CHECK(static_cast<float*>(tensor.view().data())[5] == 6);
  CHECK_FALSE(std::as_const(tensor).view().writable());
  CHECK(errorOf([&] {
          robocache::copy(context, {source, {2, 3}}, std::as_const(tensor).view());
        }).status() == RBC_STATUS_INVALID_ARGUMENT);

  OwnedTensor moved = std::move(tensor);
  CHECK(tensor.get() == nullptr);
  DLManagedTensorVersioned* managed = moved.toDLPack();
  OwnedTensor again = OwnedTensor::fromDLPack(managed);
  CHECK(again.view().data() == moved.view().data());
  Context other = std::move(context);
  CHECK(context.get() == nullptr);
  other.synchronize();
  other.warmUp();
  other.setCancelCallback([](void*) -> int32_t { return 0; });
  other.reserve(100);
  CHECK(other.cudaStream() == nullptr);
  CHECK(other.info().workspace_bytes >= 100);
}
