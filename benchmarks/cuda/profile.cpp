// What scripts/profile.sh runs under ncu: one call a case, after one that is not looked at.
// Together the cases reach every kind of kernel.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>

#include "../backends.h"
#include "../case_data.h"
#include "../last_data.h"
#include "../voxel_data.h"
#include "device_set.h"

namespace bench {
namespace {

// Each call is a range that tells its case to the profiler's table.
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

template <class Call, class Cases>
void profileCases(const Cases& cases, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto found =
        std::find_if(cases.begin(), cases.end(), [&](const auto& c) { return c.name == name; });
    if (found == cases.end()) throw std::runtime_error("no case " + name);
    const auto& data = dataOf<typename Call::Data>(*found);
    const Stream stream;
    robocache::Context context = contextOn(stream);
    DeviceSet<Call> set(data);
    set.call().reserve(context);
    set.reset();
    profileCall(found->op + " " + name, stream, [&] { set.call()(context); });
  }
}

// Kernels that none of the cases has: the check of times, and a copy between strides.
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
  params.flags = RBC_CHECK_TIMES;
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
  profileCases<Call>(resampleCases(),
                     {"1024,500,250,256 bf16", "64,4096,1024,32 f32",
                      "256,2000,1000,7 f32 unaligned", "256,2000,1000,32 f32 random"});
  profileCases<Call>(methodCases(1024, 500, 250, 256, support::kBF16),
                     {"1024,500,250,256 bf16 slerp", "1024,500,250,256 bf16 pchip"});
  profileCases<Call>(
      fuseCases(),
      {"B=256: 100x512, 200x128, 300x64 -> 128 bf16", "B=32: 16 streams 200x7 -> 100 f32",
       "B=64: pose 300x8, IMU 2000x6, contacts 500x2, joints 1000x7 -> 500 f32"});
  profileCases<VoxelCall>(
      voxelCases(),
      {"occupancy/1M 128^3 uniform", "count/1M 128^3 uniform", "occupancy/10M 256^3 uniform",
       "count/10M 256^3 uniform", "count/10M 256^3 sweeps", "mean/1M 200^3 16 features uniform",
       "sparse mean/1M 1000x1000x40 uniform", "sparse mean/10M 2000x2000x100 uniform",
       "tsdf/100k 256^3 uniform"});
  profileOthers();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "robocache_bench --profile: %s\n", error.what());
  return 1;
}

}  // namespace bench
