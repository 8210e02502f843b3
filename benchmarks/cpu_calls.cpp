// Calls on the CPU so small that only the call itself matters: its overhead, and how long a control
// loop may have to wait for one.

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "backends.h"
#include "call_set.h"
#include "measure.h"

namespace bench {
namespace {

constexpr double kSampleSeconds = 50e-6;
constexpr size_t kLoopCalls = 1'000'000;

// For one call after the other.
void benchOverhead(benchmark::State& state, const CasePtr& c) {
  CallSet<HostMemory> set(dataOf(c));
  const robocache::Context context = robocache::Context::cpu();
  const auto call = [&] { set.call()(context); };
  call();
  set.check();
  const int calls = callsPerSample(call, kSampleSeconds);
  report(state, collect([&] { return hostSeconds(calls, call); }));
  reportLaunch(state, context);
}

// A million calls, each with a new tick and timed separately: includes about 20 ns for the clock.
void benchLoop(benchmark::State& state, const CasePtr& c) {
  using Clock = std::chrono::steady_clock;
  const Data& data = dataOf(c);
  CallSet<HostMemory> set(data);
  robocache::Context context = robocache::Context::cpu();
  context.warmUp();
  set.call()(context);
  set.check();
  const support::Array& times = data.inputs[1].second;
  const float first = elements<float>(times)[0], last = elements<float>(times)[times.count() - 1];
  auto* tick = static_cast<float*>(set.tensors().inputs.back().get()->data);
  std::vector<double> seconds(kLoopCalls, 0);  // touched in advance
  for (size_t i = 0; i < kLoopCalls; ++i) {
    *tick = first + (last - first) * static_cast<float>(i % 1009) / 1009;
    const auto start = Clock::now();
    set.call()(context);
    seconds[i] = std::chrono::duration<double>(Clock::now() - start).count();
  }
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double part) {
    return seconds[static_cast<size_t>(part * static_cast<double>(kLoopCalls - 1))];
  };
  report(state, {at(0.5), at(0.1), at(0.9)});
  reportLaunch(state, context);
  state.counters["p99_us"] = at(0.99) * 1e6;
  state.counters["p999_us"] = at(0.999) * 1e6;
  state.counters["most_us"] = at(1) * 1e6;
}

}  // namespace

void addCallBenchmarks() {
  constexpr const char* kCalls[][2] = {
      {"resample, no query", "1,100,0,7 f32"},
      {"resample 1,1,1,1", "1,1,1,1 f32"},
      {"resample 1,100,1,7", "1,100,1,7 f32"},
      {"fuse 3 streams, no query", "B=1: 3 streams 100x7 -> 0 f32"},
      {"fuse 8 streams, no query", "B=1: 8 streams 100x7 -> 0 f32"}};
  for (const auto& [name, what] : kCalls) {
    add(std::string("cpu/call/") + name,
        [c = parseCase("call", what)](benchmark::State& state) { benchOverhead(state, c); });
  }
  for (const CasePtr& c : casesOf("cpu")) {
    if (c->table == "control_loop")
      add("cpu/" + c->id(), [c](benchmark::State& state) { benchLoop(state, c); });
  }
}

}  // namespace bench
