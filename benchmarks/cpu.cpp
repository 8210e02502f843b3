// The CPU backend: real time per call, compared with a memcpy with the same number of threads.

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "backends.h"
#include "call_set.h"
#include "measure.h"
#include "support/random.h"

namespace bench {
namespace {

constexpr double kSampleSeconds = 200e-6;
constexpr size_t kMemcpyBytes = size_t{1} << 28;

Samples timeMemcpy(int threads) {
  support::Random random(1);
  std::vector<uint64_t> source(kMemcpyBytes / sizeof(uint64_t)), destination(source.size());
  for (size_t i = 0; i < source.size(); ++i)
    source[i] = i < 4096 ? random.bits() : source[i - 4096] + 1;
  const size_t part = source.size() / static_cast<size_t>(threads);
  return collect([&] {
    return hostSeconds(1, [&] {
      std::vector<std::thread> others;
      const auto copy = [&](size_t i) {
        std::memcpy(&destination[i * part], &source[i * part], part * sizeof(uint64_t));
      };
      for (int i = 1; i < threads; ++i) others.emplace_back(copy, static_cast<size_t>(i));
      copy(0);
      for (std::thread& other : others) other.join();
      benchmark::ClobberMemory();
    });
  });
}

// Measured once per run.
const Samples& memcpySamples(int threads) {
  static std::map<int, Samples> known;
  if (known.count(threads) == 0) known[threads] = timeMemcpy(threads);
  return known[threads];
}

double memcpyBandwidth(int threads) {
  return 2.0 * static_cast<double>(kMemcpyBytes) / memcpySamples(threads).median;
}

// Cold: rotates among enough sets of arrays that each has left the caches before its next turn.
void benchCase(benchmark::State& state, const CasePtr& c, int threads, int32_t simd, bool cold) {
  const Data& data = dataOf(c);
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = threads;
  params.simd = simd;
  robocache::Context context(params);
  context.warmUp();
  const int64_t cache = std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), int64_t{1} << 25);
  const int64_t count = cold ? std::clamp<int64_t>(3 * cache / data.bytes + 1, 2, 64) : 1;
  std::deque<CallSet<HostMemory>> sets;
  while (static_cast<int64_t>(sets.size()) < count) sets.emplace_back(data);
  sets.front().call().reserve(context);
  for (const auto& set : sets) {
    set.call()(context);
    set.check();
  }
  size_t next = 0;
  const auto call = [&] {
    sets[next].call()(context);
    if (++next == sets.size()) next = 0;
  };
  const int calls = callsPerSample(call, kSampleSeconds);
  reportTraffic(state, collect([&] { return hostSeconds(calls, call); }), data.bytes,
                memcpyBandwidth(threads));
  reportData(state, data);
  reportLaunch(state, context);
}

}  // namespace

void addCpuBenchmarks() {
  const rbcContextInfo info = robocache::Context::cpu().info();
  std::vector<int> thread_counts = {1};
  if (info.num_threads >= 2) thread_counts.push_back(2);
  if (info.num_threads > 2) thread_counts.push_back(info.num_threads);

  for (const int threads : thread_counts) {
    add("cpu/memcpy/threads:" + std::to_string(threads), [threads](benchmark::State& state) {
      const auto bytes = 2 * static_cast<int64_t>(kMemcpyBytes);
      reportTraffic(state, memcpySamples(threads), bytes, memcpyBandwidth(threads));
    });
  }
  for (const CasePtr& c : casesOf("cpu")) {
    if (c->table == "control_loop") continue;
    const auto addRun = [&](int threads, int32_t simd, bool cold) {
      add("cpu/" + c->id() + "/" + kSimdNames[simd] + "/threads:" + std::to_string(threads) +
              (cold ? "/cold" : "/hot"),
          [=](benchmark::State& state) { benchCase(state, c, threads, simd, cold); });
    };
    for (const int threads : thread_counts) addRun(threads, info.simd, false);
    // Voxelization has the same code at all levels. Cases without variants are enough to show the
    // effect of caches and vector instructions.
    if (c->table == "voxelize" || c->variant) continue;
    if (!c->is_single) addRun(thread_counts.back(), info.simd, true);
    const int32_t below = info.simd == RBC_SIMD_NEON ? RBC_SIMD_AVX2 : info.simd;
    for (int32_t simd = RBC_SIMD_PORTABLE; simd < below; ++simd) {
      for (const int threads : thread_counts) {
        if (threads <= 2) addRun(threads, simd, false);
      }
    }
  }
}

}  // namespace bench
