// The CUDA backend: device time of graph replays, host time of the call, and both together.

#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "../backends.h"
#include "../case_data.h"
#include "device.h"
#include "support/cases.h"

namespace bench {
namespace {

using support::Array;
using support::sizeOf;

constexpr double kGraphSeconds = 100e-6;  // what a graph is to last at least
constexpr int64_t kMostSets = 128;
constexpr int64_t kMostNodes = 256;

struct Device {
  int64_t l2_bytes = 0;
  std::string name;
};

// ---- copy ---------------------------------------------------------------------------------------

constexpr size_t kCopyBytes = size_t{2} << 30;

Samples timeCopy() {
  const Stream stream;
  DeviceMemory source(kCopyBytes), destination(kCopyBytes);
  support::Random random(1);
  std::vector<uint64_t> noise(size_t{1} << 20);
  for (uint64_t& bits : noise) bits = random.bits();
  source.fill(noise.data(), noise.size() * sizeof(uint64_t));
  destination.poison();
  return collectDevice(stream, [&] {
    checkCuda(cudaMemcpyAsync(destination.data(), source.data(), kCopyBytes,
                              cudaMemcpyDeviceToDevice, stream.get()),
              "cudaMemcpyAsync");
  });
}

// Measured once a run.
const Samples& copySamples() {
  static const Samples samples = timeCopy();
  return samples;
}

// Bytes read plus bytes written a second.
double copyBandwidth() { return 2.0 * static_cast<double>(kCopyBytes) / copySamples().median; }

// ---- data ---------------------------------------------------------------------------------------

// The arrays of a case on the device, a block repeated over the whole batch.
class DeviceSet {
 public:
  explicit DeviceSet(const CaseData& data)
      : data_(data), call_(data, [this](const Array& array) { return place(array); }) {}

  const Call& call() const { return call_; }

  void poison() {
    for (DeviceMemory* output : {out_, mask_}) {
      if (output != nullptr) output->poison();
    }
  }
  void check() const {
    checkOutput(data_.out(), *out_);
    if (mask_ != nullptr) checkOutput(data_.mask(), *mask_);
  }

 private:
  robocache::Tensor place(const Array& array) {
    std::vector<int64_t> shape = data_.wholeShape(array);
    int64_t bytes = sizeOf(array.dtype());
    for (const int64_t extent : shape) bytes *= extent;
    memory_.push_back(std::make_unique<DeviceMemory>(static_cast<size_t>(bytes)));
    DeviceMemory& memory = *memory_.back();
    if (&array == &data_.out()) {
      out_ = &memory;
    } else if (&array == &data_.mask()) {
      mask_ = &memory;
    } else {
      memory.fill(array.memory().data(), array.memory().bytes());
    }
    rbcTensor tensor = array.tensorAt(memory.data(), {RBC_DEVICE_CUDA, 0});
    tensor.shape = shape.data();
    return robocache::Tensor(tensor);
  }

  static void checkOutput(const Array& block, const DeviceMemory& memory) {
    std::vector<char> host(block.memory().bytes());
    for (size_t done = 0; done < memory.bytes(); done += host.size()) {
      const size_t bytes = std::min(host.size(), memory.bytes() - done);
      checkCuda(cudaMemcpy(host.data(), memory.data() + done, bytes, cudaMemcpyDeviceToHost),
                "cudaMemcpy");
      if (std::memcmp(host.data(), block.memory().data(), bytes) != 0) {
        throw std::runtime_error("differs from the CPU backend");
      }
    }
  }

  const CaseData& data_;
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
  DeviceMemory* out_ = nullptr;
  DeviceMemory* mask_ = nullptr;
  Call call_;
};

// ---- benchmarks ---------------------------------------------------------------------------------

robocache::Context contextOn(const Stream& stream) {
  robocache::Context context = robocache::Context::cuda(0, stream.get());
  context.warmUp();
  return context;
}

// Cold: one graph calls on so many sets of arrays in turn that each has left L2 when its turn comes
// again.
void benchGraph(benchmark::State& state, const Case& c, const Device& device, bool cold) {
  const CaseData& data = dataOf(c);
  const double floor = static_cast<double>(data.bytes()) / copyBandwidth();
  const Stream stream;
  const robocache::Context context = contextOn(stream);

  const int64_t count = cold ? std::min(4 * device.l2_bytes / data.bytes() + 2, kMostSets) : 1;
  std::deque<DeviceSet> sets;
  while (static_cast<int64_t>(sets.size()) < count) sets.emplace_back(data);
  int64_t nodes = static_cast<int64_t>(kGraphSeconds / std::max(floor, 1e-6)) + 1;
  nodes =
      std::min((nodes + count - 1) / count * count, std::max(kMostNodes / count * count, count));
  const Graph graph(stream, nodes,
                    [&](int64_t i) { sets[static_cast<size_t>(i % count)].call()(context); });

  for (DeviceSet& set : sets) set.poison();
  graph.launch(stream);
  stream.synchronize();
  for (const DeviceSet& set : sets) set.check();

  Samples samples = collectDevice(stream, [&] { graph.launch(stream); });
  for (double* seconds : {&samples.median, &samples.low, &samples.high})
    *seconds /= static_cast<double>(nodes);
  reportTraffic(state, samples, data.bytes(), copyBandwidth());
  reportData(state, data);
}

// Host time of the call: it enqueues and returns. The queue of launches is never full.
void benchCall(benchmark::State& state, const Case& c) {
  constexpr int kCalls = 200;
  const Stream stream;
  const robocache::Context context = contextOn(stream);
  const DeviceSet set(dataOf(c));
  const auto sample = [&] {
    const double seconds = hostSeconds(kCalls, [&] { set.call()(context); });
    stream.synchronize();
    return seconds;
  };
  sample();
  set.check();
  report(state, collect(sample));
}

// Real time from the call to the result, as a control loop waits for it.
void benchLatency(benchmark::State& state, const Case& c) {
  const Stream stream;
  const robocache::Context context = contextOn(stream);
  const DeviceSet set(dataOf(c));
  const auto call = [&] {
    set.call()(context);
    stream.synchronize();
  };
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

// What a case moves, give or take what its queries share.
double roughBytes(const Case& c) {
  int64_t bytes = c.queries * (sizeOf(c.times) + c.channels() * sizeOf(c.out));
  for (const StreamCase& stream : c.streams) {
    const int64_t rows = std::min(2 * c.queries, stream.samples);
    bytes += stream.samples * sizeOf(c.times) + rows * stream.channels * sizeOf(stream.dtype);
  }
  return static_cast<double>(c.batch * bytes);
}

void addCase(const Case& c, const Device& device) {
  const auto named = [&](const char* kind) { return "cuda/" + c.op + kind + "/" + c.name; };
  // Four times L2 in one call: nothing is left of it when the next one begins. Too little to fill
  // L2: hot alone.
  const double bytes = roughBytes(c);
  const double caches = 4 * static_cast<double>(device.l2_bytes);
  for (const bool cold : {false, true}) {
    if (cold && (bytes > caches || bytes * static_cast<double>(kMostSets) < caches)) continue;
    add(named("") + (cold ? "/cold" : "/hot"),
        [=](benchmark::State& state) { benchGraph(state, c, device, cold); });
  }
  if (c.variant || bytes > caches) return;
  add(named("_call"), [=](benchmark::State& state) { benchCall(state, c); });
  add(named("_latency"), [=](benchmark::State& state) { benchLatency(state, c); });
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

  add("cuda/copy", [](benchmark::State& state) {
    reportTraffic(state, copySamples(), 2 * static_cast<int64_t>(kCopyBytes), copyBandwidth());
  });
  add("cuda/empty_kernel", benchEmpty);
  for (const Case& c : resampleCases()) addCase(c, device);
  for (const Case& c : fuseCases()) addCase(c, device);
  for (const Case& c : methodCases(1024, 500, 250, 256, support::kBF16)) addCase(c, device);
}

}  // namespace bench
