// Tensors of a few bytes, whose extents or strides of 0 make them huge: calls refuse them, or end
// at once.
#include <climits>
#include <cstdint>

#include "robocache/robocache.h"
#include "support/expect.h"
#include "support/run.h"

namespace {

using support::Context;

constexpr int64_t kHuge = int64_t{1} << 58;

rbcTensor tensorOf(const void* data, rbcDType dtype, int32_t ndim, const int64_t* shape,
                   const int64_t* strides) {
  return {const_cast<void*>(data),     {RBC_DEVICE_CPU, 0},           ndim, dtype,
          const_cast<int64_t*>(shape), const_cast<int64_t*>(strides), 0};
}

}  // namespace

TEST_CASE("huge extents: more groups of channels than statistics may have") {
  const Context context = support::cpuContext(4);
  const uint8_t value = 7;
  const int32_t ends[18] = {};
  const int64_t shape[] = {1, int64_t{1} << 60};
  const int64_t strides[] = {0, 0};
  const int64_t count = 18;
  const rbcTensor values = tensorOf(&value, support::kU8, 2, shape, strides);
  const rbcTensor offsets = tensorOf(ends, support::kI32, 1, &count, nullptr);
  rbcStatisticsParams params = rbcStatisticsParamsInit();
  params.flags = RBC_STATISTICS_FLAG_PER_ROW;
  params.batch_offsets = &offsets;
  const rbcStatisticsOutputs result = rbcStatisticsOutputsInit();
  size_t bytes = 0;
  CHECK_FAILS(rbcStatistics(context.get(), &values, &result, &params), RBC_STATUS_SHAPE_MISMATCH,
              "values: 17 groups of 1152921504606846976 channels");
  CHECK_FAILS(rbcStatisticsWorkspaceSize(context.get(), &values, &result, &params, &bytes),
              RBC_STATUS_SHAPE_MISMATCH, "values: 17 groups");
}

TEST_CASE("huge extents: channels that a pose makes more than can be counted") {
  const Context context = support::cpuContext(1);
  const int32_t zeros[2] = {};
  const int64_t anchor = 0;
  uint8_t valid = 0;
  const int64_t shape[] = {0, INT64_MAX};
  const int64_t one = 1;
  const int64_t two = 2;
  const int64_t one_by_one[] = {1, 1};
  const rbcTensor values = tensorOf(nullptr, support::kU8, 2, shape, nullptr);
  const rbcTensor ends = tensorOf(zeros, support::kI32, 1, &two, nullptr);
  const rbcTensor offsets = tensorOf(zeros, support::kI32, 1, &one, nullptr);
  const rbcTensor episodes = tensorOf(zeros, support::kI32, 1, &one, nullptr);
  const rbcTensor anchors = tensorOf(&anchor, support::kI64, 1, &one, nullptr);
  const rbcTensor mask = tensorOf(&valid, support::kU8, 2, one_by_one, nullptr);
  rbcWindowsTransform transform = {};
  transform.count = 7;
  transform.kind = RBC_WINDOWS_TRANSFORM_SE3_RELATIVE;
  transform.rotation = transform.reference_rotation = RBC_ROTATION_QUAT_XYZW;
  transform.out_rotation = RBC_ROTATION_MATRIX;
  rbcWindowsStream stream = rbcWindowsStreamInit();
  stream.values = &values;
  stream.episode_offsets = &ends;
  stream.offsets = &offsets;
  rbcWindowsOutputs outputs = rbcWindowsOutputsInit();
  outputs.valid = &mask;
  stream.transforms = &transform;
  stream.num_transforms = 1;
  CHECK_FAILS(rbcWindows(context.get(), &stream, 1, &episodes, &anchors, &outputs, nullptr),
              RBC_STATUS_SHAPE_MISMATCH, "values: 9223372036854775807 channels become more");
}

TEST_CASE("huge extents: rows that are not taken, in a batch") {
  const Context context = support::cpuContext(1);
  const int64_t none[] = {kHuge, 0};
  const int64_t out_shape[] = {kHuge, 0, 3};
  const int64_t row[] = {1, 3};
  const float numbers[3] = {};
  const rbcTensor values = tensorOf(numbers, support::kF32, 2, row, nullptr);
  const rbcTensor indices = tensorOf(nullptr, support::kI64, 2, none, nullptr);
  const rbcTensor out = tensorOf(nullptr, support::kF32, 3, out_shape, nullptr);
  CHECK_SUCCEEDS(rbcTakeRows(context.get(), &values, &indices, &out, nullptr));
}

TEST_CASE("huge extents: offsets with stride 0") {
  const Context context = support::cpuContext(1);
  const int64_t zero = 0;
  const double times[2] = {0, 1};
  const int64_t count = (int64_t{1} << 40) + 1;
  const int64_t stride = 0;
  const int64_t values_shape[] = {2, 0};
  const int64_t out_shape[] = {count - 1, 1, 0};
  const int64_t two = 2;
  const int64_t one = 1;
  const rbcTensor values = tensorOf(nullptr, support::kF32, 2, values_shape, nullptr);
  const rbcTensor samples = tensorOf(times, support::kF64, 1, &two, nullptr);
  const rbcTensor queries = tensorOf(times, support::kF64, 1, &one, nullptr);
  const rbcTensor offsets = tensorOf(&zero, support::kI64, 1, &count, &stride);
  const rbcTensor out = tensorOf(nullptr, support::kF32, 3, out_shape, nullptr);
  rbcResampleParams params = rbcResampleParamsInit();
  params.batch_offsets = &offsets;
  size_t bytes = 0;
  CHECK_SUCCEEDS(rbcResampleWorkspaceSize(context.get(), &values, &samples, &queries, &out, nullptr,
                                          &params, &bytes));
  CHECK(bytes >= size_t{8} << 40);
}
