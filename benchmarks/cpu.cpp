// The CPU backend: real time of the call, against a memcpy by as many threads.

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "backends.h"
#include "case_data.h"
#include "last_data.h"
#include "measure.h"
#include "support/cases.h"
#include "voxel_data.h"

namespace bench {
namespace {

using support::Array;

constexpr double kSampleSeconds = 200e-6;
constexpr int64_t kMostPoints = 4'000'000;  // that are voxelized

// ---- memcpy -------------------------------------------------------------------------------------

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

// Measured once a run.
const Samples& memcpySamples(int threads) {
  static std::map<int, Samples> known;
  if (known.count(threads) == 0) known[threads] = timeMemcpy(threads);
  return known[threads];
}

double memcpyBandwidth(int threads) {
  return 2.0 * static_cast<double>(kMemcpyBytes) / memcpySamples(threads).median;
}

// ---- calls --------------------------------------------------------------------------------------

// The arrays of a case in memory of their own, outputs poisoned.
template <class Call>
class HostSet {
 public:
  using Data = typename Call::Data;

  explicit HostSet(const Data& data)
      : data_(data), call_(data, [this](const Array& array) { return place(array); }) {}

  const Call& call() const { return call_; }

  void check() const {
    for (const auto& [expected, memory] : outputs_) {
      if (std::memcmp(expected->memory().data(), memory->data(), memory->bytes()) != 0)
        throw std::runtime_error("differs from the portable code");
    }
  }

 private:
  robocache::Tensor place(const Array& array) {
    const size_t bytes = array.memory().bytes();
    memory_.emplace_back(bytes, support::Flush::kBegin);
    support::GuardedMemory& memory = memory_.back();
    const std::vector<const Array*> outputs = data_.outputs();
    if (std::find(outputs.begin(), outputs.end(), &array) == outputs.end()) {
      std::memcpy(memory.data(), array.memory().data(), bytes);
    } else {
      outputs_.emplace_back(&array, &memory);
      // Fresh memory is 0.
      if (!data_.accumulates()) memory.poison();
    }
    return robocache::Tensor(array.tensorAt(memory.data(), {RBC_DEVICE_CPU, 0}));
  }

  const Data& data_;
  std::deque<support::GuardedMemory> memory_;
  std::vector<std::pair<const Array*, const support::GuardedMemory*>> outputs_;
  Call call_;
};

robocache::Context cpuContext(int threads, int32_t simd) {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = threads;
  params.simd = simd;
  robocache::Context context(params);
  context.warmUp();
  return context;
}

// Cold: rotates among so many sets of arrays that each has left the caches when its turn comes
// again.
template <class Call>
void benchCase(benchmark::State& state, const typename Call::Data::Case& c, int threads,
               int32_t simd, bool cold) {
  const auto& data = dataOf<typename Call::Data>(c);
  robocache::Context context = cpuContext(threads, simd);
  const int64_t cache = std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), int64_t{1} << 25);
  const int64_t count = cold ? std::clamp<int64_t>(3 * cache / data.bytes() + 1, 2, 64) : 1;
  std::deque<HostSet<Call>> sets;
  while (static_cast<int64_t>(sets.size()) < count) sets.emplace_back(data);
  sets.front().call().reserve(context);
  for (const HostSet<Call>& set : sets) {
    set.call()(context);
    set.check();
  }
  size_t next = 0;
  const auto call = [&] {
    sets[next].call()(context);
    if (++next == sets.size()) next = 0;
  };
  const int calls = callsPerSample(call, kSampleSeconds);
  reportTraffic(state, collect([&] { return hostSeconds(calls, call); }), data.bytes(),
                memcpyBandwidth(threads));
  reportData(state, data);
}

const char* nameOfSimd(int32_t level) {
  constexpr const char* kNames[] = {"auto", "portable", "avx2", "avx512"};
  return kNames[level];
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
  const auto addOne = [&](const auto& c, bool cold, bool every_level, auto body) {
    const auto addRun = [&](int threads, int32_t simd, bool is_cold) {
      const std::string name = "cpu/" + c.op + "/" + c.name + "/" + nameOfSimd(simd) +
                               "/threads:" + std::to_string(threads) + (is_cold ? "/cold" : "/hot");
      add(name, [=](benchmark::State& state) { body(state, c, threads, simd, is_cold); });
    };
    for (const int threads : thread_counts) addRun(threads, info.simd, false);
    if (cold) addRun(thread_counts.back(), info.simd, true);
    for (int32_t simd = RBC_SIMD_PORTABLE; every_level && simd < info.simd; ++simd) {
      for (const int threads : thread_counts) {
        if (threads <= 2) addRun(threads, simd, false);
      }
    }
  };
  for (const std::vector<Case>& cases :
       {resampleCases(), fuseCases(), methodCases(32, 500, 250, 256, support::kF32)}) {
    for (const Case& c : cases) {
      if (!CaseData::isWhole(c)) continue;
      // What the caches and the vector instructions give is told by the others.
      addOne(c, !c.variant && c.batch > 1, !c.variant, benchCase<Call>);
    }
  }
  // Voxelization has one code for all levels.
  for (const VoxelCase& c : voxelCases()) {
    if (c.total() <= kMostPoints) addOne(c, false, false, benchCase<VoxelCall>);
  }
}

}  // namespace bench
