// The CUDA backend: device time of graph replays, host time of the call, and both together.

#include <algorithm>
#include <cstdio>
#include <string>

#include "backends.h"
#include "device.h"
#include "kernels.h"
#include "voxels.h"

namespace bench {
namespace {

constexpr double kGraphSeconds = 100e-6;  // minimum duration of a graph
constexpr int64_t kMaxSets = 128;
constexpr int64_t kMaxNodes = 256;
constexpr int kMaxLaunches = 400;  // fit into the queue

// Reports the device time of enqueue(i), which calls on sets[i], over replays of one graph that
// uses all sets repeatedly. Checks the results of the graph first.
template <class Enqueue>
void replay(benchmark::State& state, const Data& data, const Stream& stream,
            std::deque<DeviceSet>& sets, Enqueue&& enqueue) {
  const double floor = static_cast<double>(data.bytes) / copyBandwidth();
  const auto count = static_cast<int64_t>(sets.size());
  int64_t nodes = static_cast<int64_t>(kGraphSeconds / std::max(floor, 1e-6)) + 1;
  nodes = std::min((nodes + count - 1) / count * count, std::max(kMaxNodes / count * count, count));
  const auto call = [&](int64_t i) { enqueue(static_cast<size_t>(i % count)); };
  const Graph graph(stream, nodes, call);

  const auto checkOne = [&](const Graph& one) {
    for (DeviceSet& set : sets) set.reset();
    one.launch(stream);
    stream.synchronize();
    for (const DeviceSet& set : sets) set.check();
  };
  if (data.accumulates) {
    checkOne(Graph(stream, count, call));
  } else {
    checkOne(graph);
  }
  reportTraffic(state, collectGraph(stream, graph, nodes), data.bytes, copyBandwidth());
  reportData(state, data);
}

// Cold: one graph calls on enough sets of arrays in turn that each has left L2 before its next
// turn.
void benchGraph(benchmark::State& state, const CasePtr& c, int64_t l2_bytes, bool cold) {
  const Data& data = dataOf(c);
  const Stream stream;
  robocache::Context context = contextOn(stream);
  const int64_t count = cold ? std::min(4 * l2_bytes / data.bytes + 2, kMaxSets) : 1;
  std::deque<DeviceSet> sets;
  while (static_cast<int64_t>(sets.size()) < count) sets.emplace_back(data);
  sets.front().call().reserve(context);
  replay(state, data, stream, sets, [&](size_t i) { sets[i].call()(context); });
  reportLaunch(state, context);
}

// The same with a simple kernel, for occupancy and count.
void benchPlain(benchmark::State& state, const CasePtr& c) {
  const Data& data = dataOf(c);
  const rbcVoxelGrid grid = static_cast<const VoxelCase&>(*c).grid();
  const Stream stream;
  std::deque<DeviceSet> sets;
  sets.emplace_back(data);
  const Tensors& tensors = sets.front().tensors();
  replay(state, data, stream, sets, [&](size_t) {
    checkCuda(launchPlain(grid, *tensors.inputs[0].get(), *tensors.outputs[0].get(), stream.get()),
              "launchPlain");
  });
}

// Host time of enqueue(), over `calls` of them; the queue of launches is never full.
template <class Enqueue>
void benchHost(benchmark::State& state, const Stream& stream, int calls, Enqueue&& enqueue) {
  report(state, collect([&] {
           const double seconds = hostSeconds(calls, enqueue);
           stream.synchronize();
           return seconds;
         }));
}

// Host time of the call: it enqueues and returns.
void benchCall(benchmark::State& state, const CasePtr& c) {
  const Worker worker(dataOf(c));
  benchHost(state, worker.stream, kMaxLaunches / c->kernels, [&] { worker.call(); });
}

// Real time from the call to the result, as in a control loop.
void benchLatency(benchmark::State& state, const CasePtr& c) {
  const Worker worker(dataOf(c));
  report(state, collect([&] {
           return hostSeconds(20, [&] {
             worker.call();
             worker.stream.synchronize();
           });
         }));
}

void benchEmpty(benchmark::State& state) {
  constexpr int64_t kNodes = 64;
  const Stream stream;
  const Graph graph(stream, kNodes,
                    [&](int64_t) { checkCuda(launchEmpty(stream.get()), "launch"); });
  report(state, collectGraph(stream, graph, kNodes));
}

// Host time of enqueue(stream, memory), a lower bound of any call.
template <class Enqueue>
void addEnqueue(const std::string& name, Enqueue&& enqueue) {
  add("cuda/enqueue/" + name, [enqueue](benchmark::State& state) {
    const Stream stream;
    const DeviceMemory memory(256);
    benchHost(state, stream, kMaxLaunches / 2,
              [&] { checkCuda(enqueue(stream.get(), memory.data()), "enqueue"); });
  });
}

void addCase(const CasePtr& c, int64_t l2_bytes) {
  const int64_t bytes = c->roughBytes();
  const auto addGraph = [&](bool cold) {
    add("cuda/" + c->id() + (cold ? "/cold" : "/hot"),
        [=](benchmark::State& state) { benchGraph(state, c, l2_bytes, cold); });
  };
  // After a call that moves four times L2, nothing is left of its data when the next one begins.
  const bool leaves_nothing = bytes > 4 * l2_bytes;
  const bool can_be_cold = !leaves_nothing && bytes * kMaxSets >= 4 * l2_bytes;
  if (c->table == "sweep") return addGraph(can_be_cold);
  addGraph(false);
  if (can_be_cold) addGraph(true);
  if (!c->variant && !leaves_nothing) {
    add("cuda/" + c->table + "_call/" + c->name,
        [=](benchmark::State& state) { benchCall(state, c); });
    add("cuda/" + c->table + "_latency/" + c->name,
        [=](benchmark::State& state) { benchLatency(state, c); });
  }
  if (c->has_plain)
    add("cuda/" + c->id() + "/plain", [=](benchmark::State& state) { benchPlain(state, c); });
}

}  // namespace

void addCudaBenchmarks() {
  std::string name;
  try {
    name = robocache::Context::cuda().info().device_name;
  } catch (const robocache::Error& error) {
    std::fprintf(stderr, "No cuda/ benchmarks: %s\n", error.what());
    return;
  }
  int l2_bytes = 0, driver = 0, runtime = 0;
  checkCuda(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, 0), "cudaDeviceGetAttribute");
  checkCuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  checkCuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  benchmark::AddCustomContext("gpu", name);
  benchmark::AddCustomContext("gpu_l2_bytes", std::to_string(l2_bytes));
  benchmark::AddCustomContext("cuda_driver", std::to_string(driver));
  benchmark::AddCustomContext("cuda_runtime", std::to_string(runtime));

  addCopyBenchmarks(l2_bytes);
  add("cuda/empty_kernel", benchEmpty);
  addEnqueue("kernel", [](cudaStream_t s, void*) { return launchArguments(s, false); });
  addEnqueue("kernel, overlapping", [](cudaStream_t s, void*) { return launchArguments(s, true); });
  addEnqueue("memset", [](cudaStream_t s, void* at) { return cudaMemsetAsync(at, 0, 256, s); });
  for (const CasePtr& c : casesOf("cuda")) addCase(c, l2_bytes);
  addScaleBenchmarks();
}

}  // namespace bench
