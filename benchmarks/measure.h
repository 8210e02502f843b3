// Samples of a time, and their report: every benchmark ends with report().
//
// A benchmark does its own measurement and passes the median to Google Benchmark: the time of its
// only iteration is the time of one call.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cases.h"

namespace bench {

// The options of the command line, and the errors of the run.
struct Run {
  double seconds = 0.2;                       // sampling time per benchmark
  std::map<std::string, std::string> errors;  // by benchmark name
};
inline Run& run() {
  static Run run;
  return run;
}

// Seconds per call.
struct Samples {
  double median = 0;
  double low = 0;   // tenth percentile
  double high = 0;  // ninetieth percentile

  Samples operator/(double calls) const { return {median / calls, low / calls, high / calls}; }
};

inline Samples summarize(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const size_t last = seconds.size() - 1;
  return {seconds[last / 2], seconds[last / 10], seconds[last - last / 10]};
}

// Takes samples for as long as the run allows, and at least `at_least`. sample() returns seconds
// per call.
template <class Sample>
Samples collect(Sample&& sample, size_t at_least = 5) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  const auto start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  while (seconds.size() < at_least || elapsed() < run().seconds) seconds.push_back(sample());
  return summarize(std::move(seconds));
}

// Host seconds per call of work(), over `calls` of them.
template <class Work>
double hostSeconds(int calls, Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
}

// Number of calls that make a sample long enough for the clock.
template <class Work>
int callsPerSample(Work&& work, double sample_seconds) {
  int calls = 1;
  while (calls < (1 << 20) && hostSeconds(calls, work) * calls < sample_seconds) calls *= 2;
  return calls;
}

inline void report(benchmark::State& state, const Samples& samples) {
  state.SetIterationTime(samples.median);
  state.counters["low_us"] = samples.low * 1e6;
  state.counters["high_us"] = samples.high * 1e6;
}

// Bytes that must be moved, and the bandwidth of a plain copy: bytes read plus bytes written per
// second.
inline void reportTraffic(benchmark::State& state, const Samples& samples, int64_t bytes,
                          double copy_bandwidth) {
  report(state, samples);
  const double floor = static_cast<double>(bytes) / copy_bandwidth;
  state.counters["bytes"] = static_cast<double>(bytes);
  state.counters["floor_us"] = floor * 1e6;
  state.counters["x_floor"] = samples.median / floor;
  state.counters["GB/s"] = static_cast<double>(bytes) / samples.median / 1e9;
}

// Properties of the data that a reader needs to interpret the time.
inline void reportData(benchmark::State& state, const Data& data) {
  state.counters["in_range"] = data.in_range;
  state.counters["rows"] = static_cast<double>(data.rows);
  if (data.points > 0) state.counters["points"] = static_cast<double>(data.points);
}

// The kernel that the context's last call ran, as the benchmark's label.
inline void reportLaunch(benchmark::State& state, const robocache::Context& context) {
  state.SetLabel(context.info().last_launch);
}

// Registers a benchmark; an exception in it fails the run.
inline void add(const std::string& name, std::function<void(benchmark::State&)> body) {
  const auto guarded = [name, body = std::move(body)](benchmark::State& state) {
    try {
      for (auto _ : state) body(state);
    } catch (const std::exception& error) {
      run().errors[name] = error.what();
      state.SkipWithError(error.what());
    }
  };
  benchmark::RegisterBenchmark(name.c_str(), guarded)
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace bench
