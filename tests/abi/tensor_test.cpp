// Owned tensors and copies.
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "abi/struct_calls.h"
#include "support/expect.h"
#include "support/run.h"
#include "support/sanitizers.h"

namespace {

using support::Array;
using support::Context;
using support::kF32;
using support::Layout;
using support::OwnedTensor;

OwnedTensor created(const Context& context, rbcDType dtype, std::vector<int64_t> shape) {
  rbcOwnedTensor_t tensor = nullptr;
  REQUIRE(rbcOwnedTensorCreate(context.get(), dtype, static_cast<int32_t>(shape.size()),
                               shape.data(), nullptr, &tensor) == RBC_STATUS_SUCCESS);
  return OwnedTensor(tensor);
}

Array filled(rbcDType dtype, std::vector<int64_t> shape, Layout layout) {
  Array array(dtype, std::move(shape), layout);
  uint8_t next = 1;
  array.each([&](std::byte* p) {
    for (int64_t i = 0; i < support::sizeOf(dtype); ++i) p[i] = static_cast<std::byte>(next++);
  });
  return array;
}

const support::StructCallsOf kTensorStructs([](support::StructCalls& calls) {
  calls.addFilled<rbcTensorInfo>(
      "rbcTensorInfo", [=, values = calls.in(kF32, {2, 3}, {1, 2, 3, 4, 5, 6})](
                           rbcTensorInfo* info) { return rbcTensorGetInfo(values, info); });
  calls.add("rbcOwnedTensorParams", rbcOwnedTensorParamsInit(), {rbcOwnedTensorParamsInit()},
            "params", [=, c = calls.context()](const rbcOwnedTensorParams* object) {
              const int64_t shape[] = {2, 3};
              rbcOwnedTensor_t made = nullptr;
              const rbcStatus_t status = rbcOwnedTensorCreate(c, kF32, 2, shape, object, &made);
              rbcOwnedTensorDestroy(made);
              return status;
            });
});

}  // namespace

TEST_CASE("tensor: a created tensor is compact, aligned and writable, in every dtype") {
  const Context context = support::cpuContext(1);
  const auto check = [&](rbcDType dtype) {
    const OwnedTensor tensor = created(context, dtype, {3, 1, 5});
    rbcTensor view = {};
    CHECK_SUCCEEDS(rbcOwnedTensorGetView(tensor.get(), 1, &view));
    CHECK(reinterpret_cast<uintptr_t>(view.data) % 256 == 0);
    CHECK(view.device.type == RBC_DEVICE_CPU);
    CHECK(support::same(view.dtype, dtype));
    rbcTensorInfo info = rbcTensorInfoInit();
    CHECK_SUCCEEDS(rbcTensorGetInfo(&view, &info));
    CHECK(info.is_contiguous == 1);
    CHECK(info.num_elements == 15);
    std::memset(view.data, 1, static_cast<size_t>(info.num_bytes));
  };
  for (const rbcDType dtype : support::kFloatDTypes) check(dtype);
  for (const rbcDType dtype : support::kIntegerDTypes) check(dtype);
}

TEST_CASE("tensor: scalars and empty tensors can be created") {
  const Context context = support::cpuContext(1);
  rbcTensor view = {};
  CHECK_SUCCEEDS(rbcOwnedTensorGetView(created(context, kF32, {4, 0, 2}).get(), 1, &view));
  const OwnedTensor scalar = created(context, kF32, {});
  CHECK_SUCCEEDS(rbcOwnedTensorGetView(scalar.get(), 1, &view));
  *static_cast<float*>(view.data) = 1;
}

TEST_CASE("tensor: creation refuses invalid arguments") {
  const Context context = support::cpuContext(1);
  const int64_t shape[] = {2, -3};
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  rbcOwnedTensor_t tensor = reinterpret_cast<rbcOwnedTensor_t>(1);
  const auto refused = [&](rbcStatus_t status, const char* word, rbcStatus_t got) {
    CHECK_FAILS(got, status, word);
    CHECK(tensor == nullptr);
    tensor = reinterpret_cast<rbcOwnedTensor_t>(1);
  };
  refused(RBC_STATUS_SHAPE_MISMATCH, "extent 1 is -3",
          rbcOwnedTensorCreate(context.get(), kF32, 2, shape, nullptr, &tensor));
  refused(RBC_STATUS_SHAPE_MISMATCH, "overflow",
          rbcOwnedTensorCreate(context.get(), kF32, 2, huge, nullptr, &tensor));
  refused(RBC_STATUS_SHAPE_MISMATCH, "rank",
          rbcOwnedTensorCreate(context.get(), kF32, 9, shape, nullptr, &tensor));
  refused(RBC_STATUS_SHAPE_MISMATCH, "rank",
          rbcOwnedTensorCreate(context.get(), kF32, -1, shape, nullptr, &tensor));
  refused(RBC_STATUS_INVALID_ARGUMENT, "shape is null",
          rbcOwnedTensorCreate(context.get(), kF32, 2, nullptr, nullptr, &tensor));
  refused(RBC_STATUS_DTYPE_MISMATCH, "dtype",
          rbcOwnedTensorCreate(context.get(), {RBC_DTYPE_FLOAT, 8, 1}, 1, shape, nullptr, &tensor));
  refused(
      RBC_STATUS_DTYPE_MISMATCH, "lanes",
      rbcOwnedTensorCreate(context.get(), {RBC_DTYPE_FLOAT, 32, 4}, 1, shape, nullptr, &tensor));
  refused(RBC_STATUS_INVALID_ARGUMENT,
          "context:", rbcOwnedTensorCreate(nullptr, kF32, 1, shape, nullptr, &tensor));
  const int64_t too_much[] = {int64_t{1} << 58};
  refused(RBC_STATUS_OUT_OF_MEMORY, "memory",
          rbcOwnedTensorCreate(context.get(), kF32, 1, too_much, nullptr, &tensor));
  CHECK_FAILS(rbcOwnedTensorCreate(context.get(), kF32, 1, shape, nullptr, nullptr),
              RBC_STATUS_INVALID_ARGUMENT, "tensor:");
}

TEST_CASE("tensor: null handles") {
  rbcTensor view = {};
  CHECK_SUCCEEDS(rbcOwnedTensorDestroy(nullptr));
  CHECK_FAILS(rbcOwnedTensorGetView(nullptr, 0, &view), RBC_STATUS_INVALID_ARGUMENT, "tensor:");
  const Context context = support::cpuContext(1);
  const OwnedTensor tensor = created(context, kF32, {2});
  CHECK_FAILS(rbcOwnedTensorGetView(tensor.get(), 0, nullptr), RBC_STATUS_INVALID_ARGUMENT,
              "view:");
}

TEST_CASE("tensor: it outlives its context") {
  Context context = support::cpuContext(2);
  const OwnedTensor tensor = created(context, kF32, {1000});
  context.reset();
  rbcTensor view = {};
  CHECK_SUCCEEDS(rbcOwnedTensorGetView(tensor.get(), 1, &view));
  std::memset(view.data, 1, 4000);
}

TEST_CASE("copy: from every layout to every layout, with every element size") {
  const Context context = support::cpuContext(1);
  for (const rbcDType dtype : {support::kU8, support::kBF16, support::kF32, support::kI64}) {
    for (const Layout from : support::kLayouts) {
      for (const Layout to : support::kLayouts) {
        if (to == Layout::kBroadcast) continue;
        for (const auto& shape :
             std::vector<std::vector<int64_t>>{{3, 4, 5}, {2, 1, 17}, {7}, {0, 3}, {}}) {
          const Array source = filled(dtype, shape, from);
          Array destination(dtype, shape, to);
          const rbcTensor a = source.tensor();
          const rbcTensor b = destination.tensor();
          CHECK_SUCCEEDS(rbcTensorCopy(context.get(), &a, &b));
          CHECK(source.elements() == destination.elements());
          CHECK(destination.gapsArePoison());
        }
      }
    }
  }
}

TEST_CASE("copy: large tensors, by several threads") {
  const Context context = support::cpuContext(3);
  for (const auto& shape : std::vector<std::vector<int64_t>>{{5000001}, {3, 1000, 701}}) {
    if (support::kThreadSanitizer && shape.size() == 1) continue;  // takes 30 seconds
    for (const Layout to : {Layout::kContiguous, Layout::kPaddedRows}) {
      const Array source = filled(kF32, shape, Layout::kContiguous);
      Array destination(kF32, shape, to);
      const rbcTensor a = source.tensor();
      const rbcTensor b = destination.tensor();
      CHECK_SUCCEEDS(rbcTensorCopy(context.get(), &a, &b));
      const bool same = source.elements() == destination.elements();
      CHECK(same);
      CHECK(destination.gapsArePoison());
    }
  }
}

TEST_CASE("copy: bad arguments are refused and nothing is written") {
  const Context context = support::cpuContext(1);
  const Array source = filled(kF32, {2, 3}, Layout::kContiguous);
  Array destination(kF32, {2, 3});
  const rbcTensor from = source.tensor();
  const auto refused = [&](rbcStatus_t status, const char* word, const rbcTensor* a,
                           const rbcTensor* b) {
    CHECK_FAILS(rbcTensorCopy(context.get(), a, b), status, word);
    CHECK(destination.untouched());
  };
  rbcTensor to = destination.tensor();
  CHECK_FAILS(rbcTensorCopy(nullptr, &from, &to), RBC_STATUS_INVALID_ARGUMENT, "context:");
  refused(RBC_STATUS_INVALID_ARGUMENT, "source:", nullptr, &to);
  refused(RBC_STATUS_INVALID_ARGUMENT, "destination:", &from, nullptr);
  int64_t shape[] = {3, 2};
  to.shape = shape;
  refused(RBC_STATUS_SHAPE_MISMATCH, "destination:", &from, &to);
  to = destination.tensor();
  to.ndim = 1;
  refused(RBC_STATUS_SHAPE_MISMATCH, "destination:", &from, &to);
  to = destination.tensor();
  to.dtype = support::kI32;
  refused(RBC_STATUS_DTYPE_MISMATCH, "destination:", &from, &to);
  to = destination.tensor();
  int64_t strides[] = {0, 1};
  to.strides = strides;
  refused(RBC_STATUS_INVALID_ARGUMENT, "destination:", &from, &to);
  to = destination.tensor();
  to.device = {RBC_DEVICE_CUDA, 0};
  refused(RBC_STATUS_DEVICE_MISMATCH, "destination:", &from, &to);
  to = destination.tensor();
  rbcTensor elsewhere = from;
  elsewhere.device = {RBC_DEVICE_CUDA, 0};
  refused(RBC_STATUS_DEVICE_MISMATCH, "source:", &elsewhere, &to);
  refused(RBC_STATUS_INVALID_ARGUMENT, "destination:", &to, &to);
}
