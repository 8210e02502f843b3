// The program that scripts/profile.sh runs under ncu: one call per case, after a call that is not
// profiled. Together the cases cover every kind of kernel.

#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <exception>
#include <string>

#include "backends.h"
#include "device.h"

namespace bench {
namespace {

// Each call is a range whose name gives its case to the table of profiles.
template <class Call>
void profileCall(const std::string& name, const Stream& stream, Call&& call) {
  call();
  stream.synchronize();
  checkCuda(cudaProfilerStart(), "cudaProfilerStart");
  nvtxRangePushA(("case=" + name + ";").c_str());
  call();
  stream.synchronize();
  nvtxRangePop();
  checkCuda(cudaProfilerStop(), "cudaProfilerStop");
  std::printf("%s\n", name.c_str());
  std::fflush(stdout);
}

// Kernels without a case: the check of times, and a copy between strides.
void profileOthers() {
  constexpr int64_t kBatch = 1024, kSamples = 4096;
  const Stream stream;
  robocache::Context context = contextOn(stream);
  const rbcDevice device = {RBC_DEVICE_CUDA, 0};
  DeviceMemory memory(size_t{4} * kBatch * kSamples), copied(memory.bytes()), out(4 * kBatch);
  memory.clear();  // times that do not decrease, and values
  const robocache::Tensor times(memory.data(), support::kF32, {kBatch, kSamples}, {}, device);
  const robocache::Tensor values(memory.data(), support::kF32, {kBatch, kSamples, 1}, {}, device);
  const robocache::Tensor query(memory.data(), support::kF32, {kBatch, 1}, {}, device);
  const robocache::Tensor result(out.data(), support::kF32, {kBatch, 1, 1}, {}, device);
  rbcResampleParams params = rbcResampleParamsInit();
  params.flags = RBC_FLAG_CHECK_TIMES;
  context.reserve(1 << 16);
  profileCall("resample, times checked", stream, [&] {
    robocache::check(rbcResample(context.get(), values.get(), times.get(), query.get(),
                                 result.get(), nullptr, &params));
  });
  const robocache::Tensor turned(copied.data(), support::kF32, {kBatch, kSamples}, {1, kBatch},
                                 device);
  profileCall("copy, transposed", stream,
              [&] { robocache::check(rbcTensorCopy(context.get(), times.get(), turned.get())); });
}

}  // namespace

int profileCuda() try {
  for (const CasePtr& c : casesOf("profile")) {
    const Worker worker(dataOf(c));
    profileCall(c->table + " " + c->name, worker.stream, [&] { worker.call(); });
  }
  profileOthers();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "robocache_bench --profile: %s\n", error.what());
  return 1;
}

}  // namespace bench
