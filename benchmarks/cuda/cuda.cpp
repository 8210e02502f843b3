// The CUDA backend: device time of graph replays, host time of the call, and both together.

#include <algorithm>
#include <cstdio>
#include <deque>
#include <string>

#include "../backends.h"
#include "../case_data.h"
#include "../last_data.h"
#include "../voxel_data.h"
#include "copies.h"
#include "device.h"
#include "device_set.h"
#include "plain_voxels.h"
#include "scale.h"
#include "support/cases.h"

namespace bench {
namespace {

using support::sizeOf;

constexpr double kGraphSeconds = 100e-6;  // what a graph is to last at least
constexpr int64_t kMostSets = 128;
constexpr int64_t kMostNodes = 256;
constexpr int64_t kMostLaunches = 400;  // fit into the queue

struct Device {
  int64_t l2_bytes = 0;
  std::string name;
};

// ---- benchmarks ---------------------------------------------------------------------------------

// Reports the device time of enqueue(i), which calls on sets[i], over replays of one graph that
// goes through all sets, over and over. Checks what a graph wrote first.
template <class Call, class Enqueue>
void replay(benchmark::State& state, const typename Call::Data& data, const Stream& stream,
            std::deque<DeviceSet<Call>>& sets, Enqueue&& enqueue) {
  const double floor = static_cast<double>(data.bytes()) / copyBandwidth();
  const auto count = static_cast<int64_t>(sets.size());
  int64_t nodes = static_cast<int64_t>(kGraphSeconds / std::max(floor, 1e-6)) + 1;
  nodes =
      std::min((nodes + count - 1) / count * count, std::max(kMostNodes / count * count, count));
  const auto call = [&](int64_t i) { enqueue(static_cast<size_t>(i % count)); };
  const Graph graph(stream, nodes, call);

  const auto checkOne = [&](const Graph& one) {
    for (DeviceSet<Call>& set : sets) set.reset();
    one.launch(stream);
    stream.synchronize();
    for (const DeviceSet<Call>& set : sets) set.check();
  };
  if (data.accumulates()) {
    checkOne(Graph(stream, count, call));
  } else {
    checkOne(graph);
  }

  Samples samples = collectDevice(stream, [&] { graph.launch(stream); });
  for (double* seconds : {&samples.median, &samples.low, &samples.high})
    *seconds /= static_cast<double>(nodes);
  reportTraffic(state, samples, data.bytes(), copyBandwidth());
  reportData(state, data);
}

// Cold: one graph calls on so many sets of arrays in turn that each has left L2 when its turn comes
// again.
template <class Call>
void benchGraph(benchmark::State& state, const typename Call::Data::Case& c, const Device& device,
                bool cold) {
  const auto& data = dataOf<typename Call::Data>(c);
  const Stream stream;
  robocache::Context context = contextOn(stream);
  const int64_t count = cold ? std::min(4 * device.l2_bytes / data.bytes() + 2, kMostSets) : 1;
  std::deque<DeviceSet<Call>> sets;
  while (static_cast<int64_t>(sets.size()) < count) sets.emplace_back(data);
  sets.front().call().reserve(context);
  replay<Call>(state, data, stream, sets, [&](size_t i) { sets[i].call()(context); });
}

// The same by a plain kernel, for occupancy and count.
void benchPlain(benchmark::State& state, const VoxelCase& c) {
  const auto& data = dataOf<VoxelData>(c);
  const Stream stream;
  std::deque<DeviceSet<VoxelCall>> sets;
  sets.emplace_back(data);
  const VoxelCall& call = sets.front().call();
  replay<VoxelCall>(state, data, stream, sets, [&](size_t) {
    checkCuda(launchPlain(gridOf(c), call.points(), call.output(), stream.get()), "launchPlain");
  });
}

// Host time of the call: it enqueues and returns. The queue of launches is never full.
template <class Call>
void benchCall(benchmark::State& state, const typename Call::Data::Case& c) {
  constexpr int kCalls = kMostLaunches / Call::kMostLaunches;
  const auto& data = dataOf<typename Call::Data>(c);
  const Stream stream;
  robocache::Context context = contextOn(stream);
  DeviceSet<Call> set(data);
  set.call().reserve(context);
  set.reset();
  set.call()(context);
  stream.synchronize();
  set.check();
  report(state, collect([&] {
           const double seconds = hostSeconds(kCalls, [&] { set.call()(context); });
           stream.synchronize();
           return seconds;
         }));
}

// Real time from the call to the result, as a control loop waits for it.
template <class Call>
void benchLatency(benchmark::State& state, const typename Call::Data::Case& c) {
  const auto& data = dataOf<typename Call::Data>(c);
  const Stream stream;
  robocache::Context context = contextOn(stream);
  DeviceSet<Call> set(data);
  set.call().reserve(context);
  const auto call = [&] {
    set.call()(context);
    stream.synchronize();
  };
  set.reset();
  call();
  set.check();
  report(state, collect([&] { return hostSeconds(20, call); }));
}

void benchEmpty(benchmark::State& state) {
  constexpr int64_t kNodes = 64;
  const Stream stream;
  const Graph graph(stream, kNodes,
                    [&](int64_t) { checkCuda(launchEmpty(stream.get()), "launch"); });
  Samples samples = collectDevice(stream, [&] { graph.launch(stream); });
  for (double* seconds : {&samples.median, &samples.low, &samples.high}) *seconds /= kNodes;
  report(state, samples);
}

// Host time of enqueue(), which no call can undercut.
template <class Enqueue>
void benchEnqueue(benchmark::State& state, Enqueue&& enqueue) {
  constexpr int kCalls = 200;
  const Stream stream;
  const DeviceMemory memory(256);
  report(state, collect([&] {
           const double seconds = hostSeconds(
               kCalls, [&] { checkCuda(enqueue(stream.get(), memory.data()), "enqueue"); });
           stream.synchronize();
           return seconds;
         }));
}

// What a case moves, give or take what its queries share.
double roughBytes(const Case& c) {
  int64_t bytes = c.queries * (sizeOf(c.times) + c.channels() * sizeOf(c.out));
  for (const StreamCase& stream : c.streams) {
    const int64_t rows = std::min(2 * c.queries, stream.samples);
    bytes += stream.samples * sizeOf(c.times) + rows * stream.channels * sizeOf(stream.dtype);
  }
  return static_cast<double>(c.batch * bytes);
}

double roughBytes(const VoxelCase& c) {
  int64_t bytes = c.total() * (c.columns + c.features) * sizeOf(support::kF32);
  switch (c.kind) {
    case VoxelCase::Kind::kDense: {
      const bool bytewise = !c.reducesFeatures() && c.mode == RBC_VOXEL_OCCUPANCY;
      bytes +=
          c.clouds * c.volume() * c.channels() * sizeOf(bytewise ? support::kU8 : support::kF32);
      break;
    }
    case VoxelCase::Kind::kSparse:  // if each point has a voxel to itself
      bytes += c.total() * (4 + c.channels()) * sizeOf(support::kF32);
      break;
    case VoxelCase::Kind::kTsdf: bytes += c.volume() * 2 * sizeOf(support::kF32); break;
  }
  return static_cast<double>(bytes);
}

// Whether a call takes four times L2: nothing is left of it when the next one begins.
template <class Case>
bool leavesNothing(const Case& c, const Device& device) {
  return roughBytes(c) > 4 * static_cast<double>(device.l2_bytes);
}

// Whether cold calls differ from hot ones, and kMostSets of them fill L2.
template <class Case>
bool canBeCold(const Case& c, const Device& device) {
  const double most = roughBytes(c) * static_cast<double>(kMostSets);
  return !leavesNothing(c, device) && most >= 4 * static_cast<double>(device.l2_bytes);
}

template <class Call>
void addGraph(const typename Call::Data::Case& c, const Device& device, bool cold) {
  add("cuda/" + c.op + "/" + c.name + (cold ? "/cold" : "/hot"),
      [=](benchmark::State& state) { benchGraph<Call>(state, c, device, cold); });
}

template <class Call>
void addCase(const typename Call::Data::Case& c, const Device& device) {
  const auto named = [&](const char* kind) { return "cuda/" + c.op + kind + "/" + c.name; };
  addGraph<Call>(c, device, false);
  if (canBeCold(c, device)) addGraph<Call>(c, device, true);
  if (c.variant || leavesNothing(c, device)) return;
  add(named("_call"), [=](benchmark::State& state) { benchCall<Call>(state, c); });
  add(named("_latency"), [=](benchmark::State& state) { benchLatency<Call>(state, c); });
}

}  // namespace

void addCudaBenchmarks() {
  Device device;
  try {
    device.name = robocache::Context::cuda().info().device_name;
  } catch (const robocache::Error& error) {
    std::fprintf(stderr, "No cuda/ benchmarks: %s\n", error.what());
    return;
  }
  int l2_bytes = 0, driver = 0, runtime = 0;
  checkCuda(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, 0), "cudaDeviceGetAttribute");
  checkCuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  checkCuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  device.l2_bytes = l2_bytes;
  benchmark::AddCustomContext("gpu", device.name);
  benchmark::AddCustomContext("gpu_l2_bytes", std::to_string(l2_bytes));
  benchmark::AddCustomContext("cuda_driver", std::to_string(driver));
  benchmark::AddCustomContext("cuda_runtime", std::to_string(runtime));

  addCopyBenchmarks(l2_bytes);
  add("cuda/empty_kernel", benchEmpty);
  for (const bool overlaps : {false, true}) {
    add(std::string("cuda/enqueue/kernel") + (overlaps ? ", overlapping" : ""),
        [=](benchmark::State& state) {
          benchEnqueue(state, [=](cudaStream_t s, void*) { return launchArguments(s, overlaps); });
        });
  }
  add("cuda/enqueue/memset", [](benchmark::State& state) {
    benchEnqueue(state, [](cudaStream_t s, void* at) { return cudaMemsetAsync(at, 0, 256, s); });
  });
  for (const Case& c : resampleCases()) addCase<Call>(c, device);
  for (const Case& c : fuseCases()) addCase<Call>(c, device);
  for (const Case& c : methodCases(1024, 500, 250, 256, support::kBF16)) addCase<Call>(c, device);
  for (const Case& c : sweepCases()) addGraph<Call>(c, device, canBeCold(c, device));
  for (const VoxelCase& c : voxelCases()) {
    addCase<VoxelCall>(c, device);
    if (c.kind == VoxelCase::Kind::kDense && !c.reducesFeatures() && c.clouds == 1) {
      add("cuda/" + c.op + "/" + c.name + "/plain",
          [=](benchmark::State& state) { benchPlain(state, c); });
    }
  }
  addScaleBenchmarks();
}

}  // namespace bench
