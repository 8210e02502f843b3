// Calls on the CPU so small that what counts is the call itself: its overhead, and how long a
// control loop may have to wait for one.

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends.h"
#include "measure.h"
#include "robocache/robocache.hpp"
#include "support/random.h"

namespace bench {
namespace {

constexpr double kSampleSeconds = 50e-6;
constexpr size_t kLoopCalls = 1'000'000;

// Streams of S samples and D channels, all f32, at 100 Hz, put onto T ticks of one clock: one
// recording, with no more around it than the call itself.
class SmallCall {
 public:
  SmallCall(int64_t streams, int64_t samples, int64_t queries, int64_t channels)
      : samples_(samples),
        query_times_(static_cast<size_t>(queries)),
        out_(static_cast<size_t>(queries * streams * channels)),
        query_tensor_(query_times_.data(), {1, queries}),
        out_tensor_(out_.data(), {1, queries, streams * channels}) {
    support::Random random(1);
    for (int64_t n = 0; n < streams; ++n) {
      arrays_.push_back(std::make_unique<Arrays>(samples, channels, random));
      rbcFuseStream stream = rbcFuseStreamInit();
      stream.values = arrays_.back()->values_tensor.get();
      stream.times = arrays_.back()->times_tensor.get();
      stream.params = &params_;
      streams_.push_back(stream);
    }
    lookAt(0.5);
  }
  SmallCall(const SmallCall&) = delete;

  // Puts the ticks at this part of the recording.
  void lookAt(double part) {
    const double last = static_cast<double>(samples_ - 1) * 0.01;
    for (float& time : query_times_) time = static_cast<float>(part * last);
  }

  void resample(const robocache::Context& context) const {
    robocache::check(rbcResample(context.get(), streams_[0].values, streams_[0].times,
                                 query_tensor_.get(), out_tensor_.get(), nullptr, &params_));
  }
  void fuse(const robocache::Context& context) const {
    robocache::check(rbcFuse(context.get(), streams_.data(), static_cast<int32_t>(streams_.size()),
                             query_tensor_.get(), out_tensor_.get(), nullptr, nullptr));
  }

 private:
  struct Arrays {
    Arrays(int64_t samples, int64_t channels, support::Random& random)
        : values(static_cast<size_t>(samples * channels)),
          times(static_cast<size_t>(samples)),
          values_tensor(values.data(), {1, samples, channels}),
          times_tensor(times.data(), {1, samples}) {
      for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
      for (size_t i = 0; i < times.size(); ++i)
        times[i] = static_cast<float>(0.01 * (static_cast<double>(i) + random.uniform(-0.2, 0.2)));
    }
    std::vector<float> values, times;
    robocache::Tensor values_tensor, times_tensor;
  };

  int64_t samples_;
  rbcResampleParams params_ = rbcResampleParamsInit();
  std::vector<std::unique_ptr<Arrays>> arrays_;
  std::vector<rbcFuseStream> streams_;
  std::vector<float> query_times_, out_;
  robocache::Tensor query_tensor_, out_tensor_;
};

struct Size {
  int64_t streams, samples, queries, channels;
};

// Of one call after the other.
void benchOverhead(benchmark::State& state, const Size& size, bool fuses) {
  const SmallCall small(size.streams, size.samples, size.queries, size.channels);
  const robocache::Context context = robocache::Context::cpu();
  const auto call = [&] { fuses ? small.fuse(context) : small.resample(context); };
  const int calls = callsPerSample(call, kSampleSeconds);
  report(state, collect([&] { return hostSeconds(calls, call); }));
}

// A million calls, each with a new tick and timed alone: the clock's own 20 ns are in it.
void benchLoop(benchmark::State& state, const Size& size) {
  using Clock = std::chrono::steady_clock;
  SmallCall small(size.streams, size.samples, size.queries, size.channels);
  robocache::Context context = robocache::Context::cpu();
  context.warmUp();
  std::vector<double> seconds(kLoopCalls, 0);  // touched before
  for (size_t i = 0; i < kLoopCalls; ++i) {
    small.lookAt(static_cast<double>(i % 1009) / 1009);
    const auto start = Clock::now();
    small.fuse(context);
    seconds[i] = std::chrono::duration<double>(Clock::now() - start).count();
  }
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double part) {
    return seconds[static_cast<size_t>(part * static_cast<double>(kLoopCalls - 1))];
  };
  report(state, {at(0.5), at(0.1), at(0.9)});
  state.counters["p99_us"] = at(0.99) * 1e6;
  state.counters["p999_us"] = at(0.999) * 1e6;
  state.counters["most_us"] = at(1) * 1e6;
}

}  // namespace

void addCallBenchmarks() {
  const auto overhead = [](const std::string& name, const Size& size, bool fuses) {
    add("cpu/call/" + name, [=](benchmark::State& state) { benchOverhead(state, size, fuses); });
  };
  overhead("resample, no query", {1, 100, 0, 7}, false);
  overhead("resample 1,1,1,1", {1, 1, 1, 1}, false);
  overhead("resample 1,100,1,7", {1, 100, 1, 7}, false);
  overhead("fuse 3 streams, no query", {3, 100, 0, 7}, true);
  overhead("fuse 8 streams, no query", {8, 100, 0, 7}, true);
  for (const int64_t streams : {3, 8}) {
    add("cpu/control_loop/B=1: " + std::to_string(streams) + " streams 100x7 -> 1 f32",
        [=](benchmark::State& state) {
          benchLoop(state, {streams, 100, 1, 7});
        });
  }
}

}  // namespace bench
