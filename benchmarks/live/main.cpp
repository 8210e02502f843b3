// The cost of live fusion while sensors push: robocache_bench_live [TICKS] (default 1000000).
//
// Eight threads push a sample of seven channels each every millisecond, by the clock. Meanwhile one
// thread fuses all streams, tick after tick, and each tick is timed: for one row, and, a tenth as
// often, for the last 16 ticks of a loop at 1 kHz and of one at 100 Hz. After each tick the thread
// only reads the clock, for as long as a tick usually takes: if that takes longer, the machine was
// busy with other work. Then the same with arrivals, and with a mutex and a std::deque per sensor.
// Pushes are timed by the thousand while another thread ticks. The lines are tab-separated, in ns.
#include <sys/mman.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "histogram.h"
#include "rigs.h"

namespace live_bench {
namespace {

constexpr int64_t kPeriod = 1'000'000;  // ns, per sensor

struct Tick {
  const char* name;
  int rows;
  int64_t apart;  // ns
};
constexpr Tick kTicks[] = {
    {"tick", 1, 0}, {"tick of 16, 1 kHz", 16, kPeriod}, {"tick of 16, 100 Hz", 16, 10 * kPeriod}};

double seconds(int64_t time) { return 1e-9 * static_cast<double>(time); }

void rowAt(double time, float* row) {
  for (int d = 0; d < kChannels; ++d) row[d] = static_cast<float>(time - std::floor(time)) + d;
}

// Sensors that push at their rate until destruction.
template <class Rig>
class Sensors {
 public:
  explicit Sensors(Rig& rig) {
    for (int n = 0; n < kStreams; ++n) threads_.emplace_back([this, &rig, n] { run(rig, n); });
    while (ready_ < kStreams) std::this_thread::yield();
  }
  ~Sensors() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Sensors(const Sensors&) = delete;

 private:
  void run(Rig& rig, int n) {
    float row[kChannels];
    const auto push = [&](int64_t at) {
      rowAt(seconds(at), row);
      rig.push(n, seconds(at), row);
    };
    int64_t at = nanoseconds();
    for (int64_t before = 300; before > 0; --before) push(at - before * kPeriod);
    ++ready_;
    at += n * kPeriod / kStreams;
    while (!stop_) {
      at += kPeriod;
      timespec until = {at / 1'000'000'000, at % 1'000'000'000};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
      push(at);
    }
  }

  std::vector<std::thread> threads_;
  std::atomic<int> ready_{0};
  std::atomic<bool> stop_{false};
};

void print(const char* what, const char* who, const Histogram& times) {
  std::printf(
      "%s\t%s\t%lld\t%lld\t%lld\t%lld\n", what, who, static_cast<long long>(times.quantile(0.5)),
      static_cast<long long>(times.quantile(0.99)), static_cast<long long>(times.quantile(0.9999)),
      static_cast<long long>(times.longest()));
  std::fflush(stdout);
}

// The time to read the clock until `length` is over.
int64_t timeClock(int64_t length) {
  const int64_t begin = nanoseconds();
  int64_t now = begin;
  while (now < begin + length) now = nanoseconds();
  return now - begin;
}

template <class Rig>
void timeTicks(const char* who, int64_t ticks) {
  for (const Tick& tick : kTicks) {
    const int history = tick.rows;
    Rig rig;
    const Sensors<Rig> sensors(rig);
    std::vector<double> queries(static_cast<size_t>(history));
    std::vector<float> out(static_cast<size_t>(history * kWidth));
    Histogram first;  // a few, to estimate their time
    Histogram times;
    Histogram clock;
    int64_t usual = 0;
    const int64_t count = history == 1 ? ticks : (ticks + 9) / 10;
    for (int64_t i = -1000; i < count; ++i) {
      if (i == 0) usual = first.quantile(0.5);
      const int64_t now = nanoseconds();
      for (int t = 0; t < history; ++t) {
        queries[static_cast<size_t>(t)] = seconds(now - (history - 1 - t) * tick.apart);
      }
      const int64_t begin = nanoseconds();
      rig.fuse(queries.data(), history, out.data());
      const int64_t end = nanoseconds();
      (i < 0 ? first : times).add(end - begin);
      if (i >= 0) clock.add(timeClock(usual));
    }
    print(tick.name, who, times);
    print(tick.name, "only the clock", clock);
  }
}

// One stream, while another thread ticks every millisecond.
template <class Rig>
void timePushes(const char* who, int64_t pushes) {
  constexpr int kBatch = 1000;
  Rig rig;
  float row[kChannels] = {};
  for (int n = 0; n < kStreams; ++n) rig.push(n, 0, row);
  std::atomic<bool> stop{false};
  std::thread control([&] {
    std::vector<float> out(kWidth);
    int64_t at = nanoseconds();
    while (!stop) {
      at += kPeriod;
      timespec until = {at / 1'000'000'000, at % 1'000'000'000};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
      const double query = 0;
      rig.fuse(&query, 1, out.data());
    }
  });
  Histogram times;
  double time = 0;
  for (int64_t i = -kBatch; i < pushes; i += kBatch) {
    const int64_t begin = nanoseconds();
    for (int k = 0; k < kBatch; ++k) rig.push(0, time += 1e-3, row);
    const int64_t end = nanoseconds();
    if (i >= 0) times.add((end - begin) / kBatch);
  }
  stop = true;
  control.join();
  print("push", who, times);
}

}  // namespace
}  // namespace live_bench

int main(int argc, char** argv) {
  const int64_t ticks = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  if (ticks < 1) {
    std::fprintf(stderr, "usage: robocache_bench_live [TICKS]\n");
    return 2;
  }
  mlockall(MCL_CURRENT | MCL_FUTURE);  // if permitted
  std::printf("what\twho\tmedian\tp99\tp99.99\tlongest\n");
  live_bench::timePushes<live_bench::RingRig>("robocache", ticks);
  live_bench::timePushes<live_bench::CausalRig>("robocache, causal", ticks);
  live_bench::timePushes<live_bench::DequeRig>("mutex and deque", ticks);
  live_bench::timeTicks<live_bench::RingRig>("robocache", ticks);
  live_bench::timeTicks<live_bench::CausalRig>("robocache, causal", ticks);
  live_bench::timeTicks<live_bench::DequeRig>("mutex and deque", ticks);
  return 0;
}
