// Live fusion for a long time: live_soak [SECONDS] of the sensors' clocks (default 3600), as fast
// as it goes.
//
// Eight threads push at 1 kHz and one fuses at 1 kHz, by clocks that run ahead of each other by 64
// ms at most. Samples come late, too late, without a time, from the far future, and not at all
// while a sensor is dead; a clock jumps, and a driver resets its stream. Every value encodes the
// time of its sample, which reveals a torn or old row. Each producer computes the expected counters
// of its samples.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "abi/live_model.h"
#include "robocache/robocache.hpp"

namespace {

constexpr int kStreams = 8;
constexpr int kChannels = 7;
constexpr int64_t kCapacity = 64;
constexpr int64_t kLateBound = 6;
constexpr int64_t kAhead = 64;  // ms
constexpr int64_t kRecent = 500;
constexpr int64_t kMaxAhead = 5000;  // of the sensor that sends wild stamps

std::atomic<int64_t> clocks[kStreams + 1];  // ms; the last is that of the consumer
std::atomic<int64_t> wrong{0};

void require(bool right, const char* what, int stream, double time) {
  if (right) return;
  if (wrong.fetch_add(1) < 10) std::fprintf(stderr, "stream %d at %.0f: %s\n", stream, time, what);
}

void awaitOthers(int64_t now) {
  for (const std::atomic<int64_t>& clock : clocks) {
    while (clock.load() + kAhead < now) std::this_thread::yield();
  }
}

using Expected = live_model::Stream<double>;

void produce(robocache::Live& live, int n, int64_t end, Expected* expected) {
  std::mt19937_64 random(static_cast<uint64_t>(n));
  const auto chance = [&](int of) { return random() % static_cast<uint64_t>(of) == 0; };
  double row[kChannels];
  const auto push = [&](double time) {
    for (int d = 0; d < kChannels; ++d) row[d] = d % 2 == 0 ? time : -time;
    live.push(n, {row, {1, kChannels}}, {&time, {1}});
    expected->push(time, 0, {});
  };
  std::vector<std::pair<int64_t, double>> held;  // until when, and what
  for (int64_t now = 1; now <= end; ++now) {
    awaitOthers(now);
    const bool dead = n == 3 && now % 60'000 > 40'000 && now % 60'000 < 42'000;
    if (!dead) {
      const auto time = static_cast<double>(now);
      if (chance(50)) {
        held.push_back({now + 1 + static_cast<int64_t>(random() % kLateBound), time});
      } else if (chance(1000)) {
        held.push_back({now + 30, time});
      } else if (n == 5 && now % 600'000 == 300'000) {
        push(time + 3000);  // makes all following samples late
      } else {
        push(chance(2000) ? std::numeric_limits<double>::quiet_NaN() : time);
        if (n == 6 && chance(1000))
          push(chance(2) ? 1e15 : std::numeric_limits<double>::infinity());
        if (n == 7 && chance(10000)) {
          live.reset(n);
          expected->reset();
        }
      }
      for (size_t i = 0; i < held.size();) {
        if (held[i].first > now) {
          ++i;
        } else {
          push(held[i].second);
          held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
        }
      }
    }
    clocks[n] = now;
  }
}

void consume(robocache::Live& live, int64_t end) {
  constexpr int kHistory = 4;
  double queries[kHistory];
  std::vector<double> out(kHistory * kStreams * kChannels);
  double ages[kStreams];
  double newest[kStreams] = {};
  for (int64_t now = 1; now <= end; ++now) {
    awaitOthers(now);
    for (int t = 0; t < kHistory; ++t) {
      queries[t] = static_cast<double>(now - 3 * (kHistory - 1 - t)) + 0.5;
    }
    live.fuse(queries, {out, {kHistory, kStreams * kChannels}}, {}, {ages});
    for (int n = 0; n < kStreams; ++n) {
      const double query = queries[kHistory - 1];
      const double last = query - ages[n];
      const bool any = std::fabs(ages[n]) <= kRecent;
      // Except for late samples that follow a reset.
      require(n == 7 || !(last < newest[n]), "the newest sample is older than before", n, query);
      newest[n] = std::max(newest[n], last == last ? last : 0);
      for (int t = 0; t < kHistory; ++t) {
        const double* row = &out[static_cast<size_t>((t * kStreams + n) * kChannels)];
        if (ages[n] != ages[n]) {
          for (int d = 0; d < kChannels; ++d) {
            require(row[d] == -1, "a sensor without samples has a value", n, query);
          }
          continue;
        }
        if (!any) continue;
        for (int d = 1; d < kChannels; ++d) {
          require(row[d] == (d % 2 == 0 ? row[0] : -row[0]), "a row is torn", n, query);
        }
        if (n % 2 == 0) {
          require(row[0] == std::floor(row[0]), "a value between samples", n, query);
          if (queries[t] >= last) require(row[0] == last, "not the newest sample", n, query);
        } else {
          const bool inside = row[0] <= std::max(queries[t], last) && row[0] > queries[t] - 3000;
          require(inside, "a value of another time", n, query);
        }
      }
    }
    clocks[kStreams] = now;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t seconds = argc > 1 ? std::atoll(argv[1]) : 3600;
  const robocache::Context context = robocache::Context::cpu(1);
  std::vector<robocache::LiveStream> streams;
  for (int n = 0; n < kStreams; ++n) {
    robocache::LiveStream& stream = streams.emplace_back(kChannels, robocache::dtypeOf<double>());
    stream.capacity = kCapacity;
    stream.late_bound = kLateBound;
    if (n == 6) stream.max_ahead = kMaxAhead;
    stream.fill_value = -1;
    stream.method = n % 2 == 0 ? robocache::Method::kPrevious : robocache::Method::kLinear;
    stream.outside = robocache::Outside::kHold;
  }
  robocache::Live live = robocache::Live::create(context, streams);
  std::vector<Expected> expected;
  for (int n = 0; n < kStreams; ++n) {
    expected.emplace_back(kCapacity, kLateBound, streams[static_cast<size_t>(n)].max_ahead);
  }
  std::vector<std::thread> threads;
  for (int n = 0; n < kStreams; ++n) {
    threads.emplace_back([&live, n, seconds, &expected] {
      produce(live, n, 1000 * seconds, &expected[static_cast<size_t>(n)]);
    });
  }
  consume(live, 1000 * seconds);
  for (std::thread& thread : threads) thread.join();

  int64_t samples = 0, late = 0, dropped = 0, refused = 0, forgotten = 0, retried = 0;
  for (int n = 0; n < kStreams; ++n) {
    const rbcLiveCounters counters = live.counters(n);
    const Expected& right = expected[static_cast<size_t>(n)];
    require(counters.kept == right.pushed, "samples are lost", n, 0);
    require(counters.late == right.late, "late samples are miscounted", n, 0);
    require(counters.dropped == right.dropped, "dropped samples are miscounted", n, 0);
    require(counters.ahead == right.ahead, "samples that are ahead are miscounted", n, 0);
    require(counters.invalid == right.invalid, "samples without a time are miscounted", n, 0);
    require(counters.forgotten == right.forgotten, "forgotten samples are miscounted", n, 0);
    require(counters.overwritten == right.overwritten, "overwritten samples are miscounted", n, 0);
    samples += counters.kept, late += counters.late, dropped += counters.dropped;
    refused += counters.ahead + counters.invalid, forgotten += counters.forgotten;
    retried += counters.snapshot_retries;
  }
  std::printf(
      "%lld ticks, %lld samples kept, %lld of them late, %lld forgotten, %lld dropped, %lld ahead "
      "or "
      "invalid, %lld looks again, %lld wrong\n",
      static_cast<long long>(1000 * seconds), static_cast<long long>(samples),
      static_cast<long long>(late), static_cast<long long>(forgotten),
      static_cast<long long>(dropped), static_cast<long long>(refused),
      static_cast<long long>(retried), static_cast<long long>(wrong.load()));
  return wrong == 0 && samples > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
