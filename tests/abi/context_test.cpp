// Contexts: creation, info, streams, workspace.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "abi/struct_calls.h"
#include "support/expect.h"
#include "support/run.h"

namespace {

using support::Context;

rbcContextParams cpuParams() {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  return params;
}

// A failed creation writes null.
#define CHECK_REFUSED(given, status, ...)                                    \
  do {                                                                       \
    const rbcContextParams params_ = given;                                  \
    rbcContext_t context_ = reinterpret_cast<rbcContext_t>(1);               \
    CHECK_FAILS(rbcContextCreate(&params_, &context_), status, __VA_ARGS__); \
    CHECK(context_ == nullptr);                                              \
  } while (false)

const support::StructCallsOf kContextStructs([](support::StructCalls& calls) {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = 1;
  calls.add("rbcContextParams", rbcContextParamsInit(), {params}, "params",
            [](const rbcContextParams* object) {
              rbcContext_t made = nullptr;
              const rbcStatus_t status = rbcContextCreate(object, &made);
              rbcContextDestroy(made);
              return status;
            });
  calls.addFilled<rbcContextInfo>("rbcContextInfo", [c = calls.context()](rbcContextInfo* info) {
    return rbcContextGetInfo(c, info);
  });
});

}  // namespace

TEST_CASE("context: info of a CPU context") {
  for (const int32_t threads : {1, 2, 5}) {
    for (const int32_t level : support::simdLevels()) {
      const rbcContextInfo info = support::infoOf(support::cpuContext(threads, level));
      CHECK(info.struct_size == sizeof info);
      CHECK(info.backend == RBC_BACKEND_CPU);
      CHECK(info.device_id == 0);
      CHECK(info.num_threads == threads);
      CHECK(info.simd == level);
      CHECK(info.compute_capability == 0);
      CHECK(info.num_multiprocessors == 0);
      CHECK(info.built_with_cuda == RBC_WITH_CUDA);
      CHECK(info.total_memory_bytes > uint64_t{1} << 28);
      CHECK(std::string(info.device_name) != "");
      CHECK(std::string(info.cuda_unavailable) == "");
    }
  }
  const rbcContextInfo by_default = support::infoOf(support::cpuContext());
  CHECK(by_default.num_threads >= 1);
  CHECK(by_default.num_threads <= static_cast<int32_t>(std::thread::hardware_concurrency()));
  CHECK(by_default.simd >= RBC_SIMD_PORTABLE);
}

TEST_CASE("context: auto is CUDA if it is usable, else the CPU with the reason") {
  rbcContext_t handle = nullptr;
  CHECK_SUCCEEDS(rbcContextCreate(nullptr, &handle));
  const Context context(handle);
  const rbcContextInfo info = support::infoOf(context);
  if (support::cudaContext() != nullptr) {
    CHECK(info.backend == RBC_BACKEND_CUDA);
    CHECK(std::string(info.cuda_unavailable) == "");
    CHECK(info.compute_capability >= 50);
    CHECK(info.num_multiprocessors > 0);
    CHECK(std::string(info.device_name) != "");
  } else {
    CHECK(info.backend == RBC_BACKEND_CPU);
    CHECK(support::tells(info.cuda_unavailable, {"CUDA"}));
  }
}

TEST_CASE("context: falling back to the CPU succeeds and does not change the last error") {
  CHECK(rbcContextCreate(nullptr, nullptr) == RBC_STATUS_INVALID_ARGUMENT);
  const std::string before = rbcGetLastError();
  CHECK(before != "");
  rbcContext_t handle = nullptr;
  CHECK_SUCCEEDS(rbcContextCreate(nullptr, &handle));
  CHECK(before == rbcGetLastError());
  CHECK_SUCCEEDS(rbcContextDestroy(handle));
}

TEST_CASE("context: CUDA requested but not available") {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CUDA;
#if RBC_WITH_CUDA
  params.device_id = 4711;
  CHECK_REFUSED(params, RBC_STATUS_NOT_AVAILABLE, "CUDA");
  if (support::cudaContext() == nullptr) {
    params.device_id = 0;
    CHECK_REFUSED(params, RBC_STATUS_NOT_AVAILABLE, "CUDA");
  }
#else
  CHECK_REFUSED(params, RBC_STATUS_UNSUPPORTED, "CUDA");
#endif
}

TEST_CASE("context: bad parameters") {
  const auto with = [](auto&& edit) {
    rbcContextParams params = cpuParams();
    edit(params);
    return params;
  };
  for (const int32_t backend : {-1, 3, 1000}) {
    CHECK_REFUSED(with([&](auto& p) { p.backend = backend; }), RBC_STATUS_INVALID_ARGUMENT,
                  "params:", "backend", std::to_string(backend).c_str());
  }
  for (const int32_t simd : {-1, 5}) {
    CHECK_REFUSED(with([&](auto& p) { p.simd = simd; }), RBC_STATUS_INVALID_ARGUMENT,
                  "params:", "simd");
  }
  CHECK_REFUSED(with([](auto& p) { p.device_id = -1; }), RBC_STATUS_INVALID_ARGUMENT,
                "params:", "device_id");
  CHECK_REFUSED(with([](auto& p) { p.num_threads = -1; }), RBC_STATUS_INVALID_ARGUMENT,
                "params:", "num_threads");
  CHECK_REFUSED(with([](auto& p) { p.reserved0 = 1; }), RBC_STATUS_INVALID_ARGUMENT,
                "params:", "reserved");
  CHECK_REFUSED(with([](auto& p) { p.cuda_stream = &p; }), RBC_STATUS_INVALID_ARGUMENT, "stream");
  CHECK_REFUSED(with([](auto& p) {
                  p.allocator.alloc = [](void*, size_t, size_t, void*) -> void* { return nullptr; };
                }),
                RBC_STATUS_INVALID_ARGUMENT, "params:", "allocator");
  CHECK_REFUSED(with([](auto& p) { p.allocator.free = [](void*, void*, size_t, void*) {}; }),
                RBC_STATUS_INVALID_ARGUMENT, "params:", "allocator");
  for (const uint32_t size : {0u, 4u, 55u}) {
    CHECK_REFUSED(with([&](auto& p) { p.struct_size = size; }), RBC_STATUS_INVALID_ARGUMENT,
                  "params:", "struct_size");
  }
  // No machine has the instructions of two architectures.
  const std::vector<int32_t> levels = support::simdLevels();
  const bool arm = std::find(levels.begin(), levels.end(), RBC_SIMD_NEON) != levels.end();
  const int32_t missing = arm ? RBC_SIMD_AVX2 : RBC_SIMD_NEON;
  CHECK_REFUSED(with([&](auto& p) { p.simd = missing; }), RBC_STATUS_NOT_AVAILABLE,
                arm ? "RBC_SIMD_AVX2" : "RBC_SIMD_NEON");
}

TEST_CASE("context: info that is null or has size 0 is refused") {
  const Context context = support::cpuContext(2);
  rbcContextInfo none = {};
  CHECK_FAILS(rbcContextGetInfo(context.get(), &none), RBC_STATUS_INVALID_ARGUMENT,
              "info:", "struct_size");
  CHECK_FAILS(rbcContextGetInfo(context.get(), nullptr), RBC_STATUS_INVALID_ARGUMENT, "info:");
  CHECK_FAILS(rbcContextGetInfo(nullptr, &none), RBC_STATUS_INVALID_ARGUMENT, "context:");
}

TEST_CASE("context: the CPU has only the null stream") {
  const Context context = support::cpuContext(1);
  int somewhere = 0;
  void* stream = &somewhere;
  CHECK_SUCCEEDS(rbcContextGetCudaStream(context.get(), &stream));
  CHECK(stream == nullptr);
  CHECK_SUCCEEDS(rbcContextSetCudaStream(context.get(), nullptr));
  CHECK_FAILS(rbcContextSetCudaStream(context.get(), &somewhere), RBC_STATUS_INVALID_ARGUMENT,
              "stream:");
  CHECK_FAILS(rbcContextGetCudaStream(context.get(), nullptr), RBC_STATUS_INVALID_ARGUMENT,
              "stream:");
  CHECK_SUCCEEDS(rbcContextSynchronize(context.get()));
}

TEST_CASE("context: workspace grows when reserved and never shrinks") {
  const Context context = support::cpuContext(1);
  CHECK(support::infoOf(context).workspace_bytes == 0);
  CHECK_SUCCEEDS(rbcContextReserve(context.get(), 0));
  CHECK_SUCCEEDS(rbcContextReserve(context.get(), 100000));
  const uint64_t held = support::infoOf(context).workspace_bytes;
  CHECK(held >= 100000);
  CHECK_SUCCEEDS(rbcContextReserve(context.get(), 10));
  CHECK(support::infoOf(context).workspace_bytes == held);
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX / 2, size_t{1} << 60}) {
    CHECK_FAILS(rbcContextReserve(context.get(), bytes), RBC_STATUS_OUT_OF_MEMORY,
                std::to_string(bytes).substr(0, 8).c_str());
    CHECK(support::infoOf(context).workspace_bytes == held);
  }
  CHECK_SUCCEEDS(rbcContextReserve(context.get(), held + 1));
  CHECK(support::infoOf(context).workspace_bytes > held);
}

TEST_CASE("context: null handles") {
  CHECK_SUCCEEDS(rbcContextDestroy(nullptr));
  CHECK_FAILS(rbcContextCreate(nullptr, nullptr), RBC_STATUS_INVALID_ARGUMENT, "context:");
  CHECK_FAILS(rbcContextSetCudaStream(nullptr, nullptr), RBC_STATUS_INVALID_ARGUMENT, "context:");
  void* stream = nullptr;
  CHECK_FAILS(rbcContextGetCudaStream(nullptr, &stream), RBC_STATUS_INVALID_ARGUMENT, "context:");
  CHECK_FAILS(rbcContextSynchronize(nullptr), RBC_STATUS_INVALID_ARGUMENT, "context:");
  CHECK_FAILS(rbcContextReserve(nullptr, 1), RBC_STATUS_INVALID_ARGUMENT, "context:");
  CHECK_FAILS(rbcContextWarmUp(nullptr), RBC_STATUS_INVALID_ARGUMENT, "context:");
}

TEST_CASE("context: warming up twice is fine") {
  const Context context = support::cpuContext(3);
  CHECK_SUCCEEDS(rbcContextWarmUp(context.get()));
  CHECK_SUCCEEDS(rbcContextWarmUp(context.get()));
}
