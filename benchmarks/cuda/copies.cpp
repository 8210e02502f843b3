// Copies from device memory to device memory: the basis of floors, and the bandwidth of copies of
// the cases' sizes.

#include <algorithm>
#include <deque>
#include <stdexcept>

#include "device.h"
#include "kernels.h"
#include "support/random.h"

namespace bench {
namespace {

constexpr size_t kLargest = size_t{2} << 30;
constexpr double kGraphSeconds = 100e-6;  // minimum duration of a graph

const support::GuardedMemory& noise() {
  static const support::GuardedMemory noise = [] {
    support::Random random(1);
    support::GuardedMemory words(size_t{8} << 20, support::Flush::kBegin);
    auto* at = reinterpret_cast<uint64_t*>(words.data());
    for (size_t i = 0; i < words.bytes() / sizeof *at; ++i) at[i] = random.bits();
    return words;
  }();
  return noise;
}

// Source and destination.
struct Pair {
  explicit Pair(size_t bytes) : source(bytes), destination(bytes) {
    source.fill(noise().data(), noise().bytes());
    destination.poison();
  }
  void enqueue(cudaStream_t stream) const {
    checkCuda(cudaMemcpyAsync(destination.data(), source.data(), source.bytes(),
                              cudaMemcpyDeviceToDevice, stream),
              "cudaMemcpyAsync");
  }
  void check() const {
    if (!destination.holds(noise())) throw std::runtime_error("is not a copy");
  }

  DeviceMemory source, destination;
};

// Measured once per run.
const Samples& largestSamples() {
  static const Samples samples = [] {
    const Stream stream;
    const Pair pair(kLargest);
    return collectDevice(stream, [&] { pair.enqueue(stream.get()); });
  }();
  return samples;
}

// Cold: one graph uses enough pairs that each has left L2 before its next turn.
void benchCopy(benchmark::State& state, int64_t moved, bool by_kernel, bool cold,
               int64_t l2_bytes) {
  int major = 0;
  checkCuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0),
            "cudaDeviceGetAttribute");
  const Stream stream;
  std::deque<Pair> pairs;
  const int64_t count = cold ? 4 * l2_bytes / moved + 2 : 1;
  while (static_cast<int64_t>(pairs.size()) < count)
    pairs.emplace_back(static_cast<size_t>(moved / 2));
  const double floor = static_cast<double>(moved) / copyBandwidth();
  const int64_t nodes = std::max(count, static_cast<int64_t>(kGraphSeconds / floor) + 1);
  const Graph graph(stream, nodes, [&](int64_t i) {
    const Pair& pair = pairs[static_cast<size_t>(i % count)];
    if (!by_kernel) {
      pair.enqueue(stream.get());
    } else {
      checkCuda(launchCopy(pair.source.data(), pair.destination.data(), moved / 32, major >= 9,
                           stream.get()),
                "launchCopy");
    }
  });
  graph.launch(stream);
  stream.synchronize();
  for (const Pair& pair : pairs) pair.check();

  reportTraffic(state, collectGraph(stream, graph, nodes), moved, copyBandwidth());
}

}  // namespace

// Measured once per run.
double copyBandwidth() { return 2.0 * static_cast<double>(kLargest) / largestSamples().median; }

void addCopyBenchmarks(int64_t l2_bytes) {
  add("cuda/copy", [](benchmark::State& state) {
    reportTraffic(state, largestSamples(), 2 * static_cast<int64_t>(kLargest), copyBandwidth());
  });
  for (const int64_t size : {1, 4, 16, 64, 256}) {
    const int64_t moved = size * 1'000'000;
    for (const bool by_kernel : {false, true}) {
      const std::string name =
          "cuda/copy/" + std::to_string(size) + " MB" + (by_kernel ? ", kernel" : "");
      for (const bool cold : {false, true}) {
        if (cold && moved > 4 * l2_bytes) continue;  // leaves nothing in L2 for the next one
        add(name + (cold ? "/cold" : "/hot"),
            [=](benchmark::State& state) { benchCopy(state, moved, by_kernel, cold, l2_bytes); });
      }
    }
  }
}

}  // namespace bench
