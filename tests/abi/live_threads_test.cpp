// Live fusion with threads that push and fuse at once: no row is torn, and every lost row is
// counted.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <thread>
#include <vector>

#include "abi/live_call.h"
#include "abi/live_model.h"
#include "support/random.h"
#include "support/sanitizers.h"
#include "support/share.h"

namespace {

using live_call::countersOf;
using live_call::hostTensor;
using live_call::Live;
using live_call::make;
using support::Context;
using support::Random;

// ROBOCACHE_LIVE_TEST_FACTOR multiplies the samples, for a long run.
int64_t factor() {
  const char* given = std::getenv("ROBOCACHE_LIVE_TEST_FACTOR");
  return given != nullptr ? std::max<int64_t>(std::atoll(given), 1) : 1;
}

constexpr double kNone = -1;  // the time of a sample that is not there

// A call of the thread that pushes, and the samples that the ring holds after it.
struct Event {
  bool is_reset;
  double time;
  int64_t come;  // samples so far
  double oldest;
  double newest;
};

// Late samples, too late ones, stamps from the future, some without a time, a clock that is set
// back, and resets.
std::vector<Event> eventsOf(uint64_t seed, int64_t count, const rbcLiveStream& stream) {
  Random random(seed);
  live_model::Stream<double> model(stream.capacity, stream.late_bound, stream.max_ahead);
  std::vector<Event> events;
  double clock = 1000;
  int64_t come = 0;
  while (come < count) {
    Event event = {random.chance(0.01), 0, 0, kNone, kNone};
    if (event.is_reset) {
      model.reset();
    } else {
      clock += 1;
      event.time = clock;
      if (random.chance(0.3)) event.time -= 1.5 + static_cast<double>(random.below(3));
      if (random.chance(0.02)) event.time += 1e6;
      if (random.chance(0.01)) event.time = std::numeric_limits<double>::infinity();
      if (random.chance(0.01)) clock = 1000;
      model.push(event.time, 0, {});
      ++come;
    }
    event.come = come;
    if (!model.kept.empty()) {
      event.oldest = model.kept.front().time;
      event.newest = model.kept.back().time;
    }
    events.push_back(event);
  }
  return events;
}

struct Seen {
  int64_t before;  // samples that had come when the call began
  int64_t after;   // and when it was done
  double oldest;
  double newest;
};

int64_t comeOf(const Live& live, int32_t n) {
  const rbcLiveCounters counters = countersOf(live, n);
  return counters.kept + counters.dropped + counters.ahead + counters.invalid;
}

// Returns whether the ring had these samples at some time of the call.
bool wasThere(const std::vector<Event>& events, const Seen& seen) {
  if (seen.before == 0 && seen.newest == kNone) return true;
  const auto isBefore = [](const Event& event, int64_t come) { return event.come < come; };
  auto at = std::lower_bound(events.begin(), events.end(), seen.before, isBefore);
  for (; at != events.end() && at->come <= seen.after; ++at) {
    if (at->oldest == seen.oldest && at->newest == seen.newest) return true;
  }
  return false;
}

}  // namespace

// Every value of a sample is its time. A model computes the ring after each sample. The samples of
// a tick must be one of these states, between the counts before and after the tick.
TEST_CASE("live: rings of one to three samples, with late ones and resets, among threads") {
  constexpr int32_t kStreams = 4;
  constexpr int64_t kChannels = 67;  // so that looks meet pushes
  const int64_t samples = support::shareOf(factor() * (support::kSanitized ? 20000 : 150000));
  rbcResampleParams params = rbcResampleParamsInit();
  params.method = RBC_METHOD_PREVIOUS;
  std::vector<rbcLiveStream> streams;
  std::vector<std::vector<Event>> events;
  for (int32_t n = 0; n < kStreams; ++n) {
    rbcLiveStream& stream = streams.emplace_back(rbcLiveStreamInit());
    stream.dtype = support::kF64;
    stream.num_channels = kChannels;
    stream.capacity = std::min(n + 1, 3);
    stream.late_bound = n < 3 ? n : 1;
    stream.max_ahead = n == 1 ? HUGE_VAL : 50;
    stream.params = &params;
    events.push_back(eventsOf(static_cast<uint64_t>(n + 1), samples, stream));
  }
  const Context context = support::cpuContext(1);
  const Live live = make(context, streams, rbcLiveParamsInit());

  std::atomic<int32_t> running{kStreams};
  const auto produce = [&](int32_t n) {
    std::vector<double> row(kChannels);
    double time = 0;
    int64_t shape[] = {1, kChannels};
    const rbcTensor times = hostTensor(&time, support::kF64, 1, shape);
    const rbcTensor values = hostTensor(row.data(), support::kF64, 2, shape);
    for (const Event& event : events[static_cast<size_t>(n)]) {
      if (event.is_reset) {
        support::require(rbcLiveReset(live.get(), n));
        continue;
      }
      time = event.time;
      std::fill(row.begin(), row.end(), time);
      support::require(rbcLivePush(live.get(), n, &values, &times, nullptr));
    }
    --running;
  };
  std::vector<std::thread> threads;
  for (int32_t n = 0; n < kStreams; ++n) threads.emplace_back(produce, n);
  std::atomic<int64_t> backwards{0};  // counts that go down
  threads.emplace_back([&] {
    int64_t before[kStreams] = {};
    while (running > 0) {
      for (int32_t n = 0; n < kStreams; ++n) {
        const int64_t come = comeOf(live, n);
        backwards += come < before[n] ? 1 : 0;
        before[n] = come;
      }
    }
  });

  std::vector<Seen> seen[kStreams];
  int64_t torn = 0;
  while (running > 0 || seen[0].empty()) {
    const double queries[] = {-1e18, 1e18};
    int64_t shape[] = {2, kStreams * kChannels};
    int64_t age_shape[] = {kStreams};
    std::vector<double> out(2 * kStreams * kChannels, -1);
    std::vector<double> ages(kStreams, -1);
    const rbcTensor query_times = hostTensor(queries, support::kF64, 1, shape);
    const rbcTensor outs = hostTensor(out.data(), support::kF64, 2, shape);
    const rbcTensor age = hostTensor(ages.data(), support::kF64, 1, age_shape);
    Seen ticks[kStreams];
    for (int32_t n = 0; n < kStreams; ++n) ticks[n].before = comeOf(live, n);
    support::require(rbcLiveFuse(live.get(), &query_times, &outs, nullptr, &age, nullptr));
    for (int32_t n = 0; n < kStreams; ++n) {
      ticks[n].after = comeOf(live, n);
      const double* const rows[] = {&out[static_cast<size_t>(n) * kChannels],
                                    &out[static_cast<size_t>(kStreams + n) * kChannels]};
      for (const double* row : rows) {
        for (int64_t d = 1; d < kChannels; ++d) torn += row[d] != row[0] ? 1 : 0;
      }
      const bool none = std::isnan(ages[static_cast<size_t>(n)]);
      ticks[n].oldest = none ? kNone : rows[0][0];
      ticks[n].newest = none ? kNone : rows[1][0];
      seen[n].push_back(ticks[n]);
    }
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(torn == 0);
  CHECK(backwards == 0);
  int64_t different = 0;
  for (int32_t n = 0; n < kStreams; ++n) {
    const std::vector<Event>& all = events[static_cast<size_t>(n)];
    for (const Seen& tick : seen[n]) different += wasThere(all, tick) ? 0 : 1;
    CHECK(comeOf(live, n) == samples);
    const rbcLiveCounters counters = countersOf(live, n);
    CHECK(counters.forgotten > 0);
    CHECK(counters.invalid > 0);
    CHECK((counters.late > 0) == (n > 0));
    CHECK((counters.ahead > 0) == (n != 1));
    MESSAGE("stream " << n << ": " << seen[n].size() << " ticks, " << counters.kept << " kept, "
                      << counters.late << " late, " << counters.dropped << " dropped, "
                      << counters.ahead << " ahead, " << counters.invalid << " invalid, "
                      << counters.forgotten << " forgotten, " << counters.snapshot_retries
                      << " looks again");
  }
  CHECK(different == 0);
}

TEST_CASE("live: threads that push to one stream and reset it, one at a time") {
  const int64_t samples = factor() * (support::kSanitized ? 10000 : 100000);
  rbcLiveStream stream = rbcLiveStreamInit();
  stream.dtype = support::kF64;
  stream.num_channels = 3;
  stream.capacity = 2;
  stream.late_bound = 1;
  const Context context = support::cpuContext(1);
  const Live live = make(context, {stream}, rbcLiveParamsInit());
  std::atomic<int64_t> taken{0};
  std::atomic<int64_t> resets{0};
  std::atomic<int64_t> strange{0};  // statuses
  std::atomic<int32_t> running{3};
  const auto count = [&](rbcStatus_t status, std::atomic<int64_t>* successes) {
    if (status == RBC_STATUS_SUCCESS) ++*successes;
    if (status != RBC_STATUS_SUCCESS && status != RBC_STATUS_UNSUPPORTED) ++strange;
  };
  const auto push = [&](double step) {
    double row[3];
    double time = 0;
    int64_t shape[] = {1, 3};
    const rbcTensor times = hostTensor(&time, support::kF64, 1, shape);
    const rbcTensor values = hostTensor(row, support::kF64, 2, shape);
    for (int64_t i = 1; i <= samples; ++i) {
      time = step * static_cast<double>(i);
      std::fill_n(row, 3, time);
      count(rbcLivePush(live.get(), 0, &values, &times, nullptr), &taken);
    }
    --running;
  };
  std::thread threads[] = {std::thread(push, 1), std::thread(push, 1.25), std::thread([&] {
                             for (int64_t i = 0; i < samples; ++i) {
                               count(rbcLiveReset(live.get(), 0), &resets);
                             }
                             --running;
                           })};
  int64_t torn = 0;
  while (running > 0) {
    const double query = 1e18;
    double out[3];
    int64_t shape[] = {1, 3};
    const rbcTensor queries = hostTensor(&query, support::kF64, 1, shape);
    const rbcTensor outs = hostTensor(out, support::kF64, 2, shape);
    support::require(rbcLiveFuse(live.get(), &queries, &outs, nullptr, nullptr, nullptr));
    torn += out[1] != out[0] || out[2] != out[0] ? 1 : 0;
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(torn == 0);
  CHECK(strange == 0);
  CHECK(resets > 0);
  CHECK(comeOf(live, 0) == taken);
  const rbcLiveCounters counters = countersOf(live, 0);
  const int64_t held = counters.kept - counters.overwritten - counters.forgotten;
  CHECK(held >= 0);
  CHECK(held <= 2);
}

// Every value of a sample is its time, which reveals a torn row.
TEST_CASE("live: producers and a consumer that never wait for each other") {
  constexpr int32_t kStreams = 3;
  constexpr int64_t kChannels = 7;
  const int64_t samples = support::kSanitized ? 20000 : 300000;
  rbcResampleParams params = rbcResampleParamsInit();
  params.method = RBC_METHOD_PREVIOUS;
  rbcLiveStream stream = rbcLiveStreamInit();
  stream.dtype = support::kF64;
  stream.num_channels = kChannels;
  stream.capacity = 4;  // so few that the consumer meets overwritten ones
  stream.params = &params;
  const Context context = support::cpuContext(1);
  rbcLiveParams live_params = rbcLiveParamsInit();
  const Live live = make(context, {stream, stream, stream}, live_params);

  std::atomic<int32_t> running{kStreams};
  const auto produce = [&](int32_t n) {
    double time = 0;
    std::vector<double> row(kChannels);
    int64_t shape[] = {1, kChannels};
    const rbcTensor times = hostTensor(&time, support::kF64, 1, shape);
    const rbcTensor values = hostTensor(row.data(), support::kF64, 2, shape);
    for (int64_t i = 1; i <= samples; ++i) {
      time = static_cast<double>(i);
      std::fill(row.begin(), row.end(), time);
      support::require(rbcLivePush(live.get(), n, &values, &times, nullptr));
    }
    --running;
  };
  std::thread threads[] = {std::thread(produce, 0), std::thread(produce, 1),
                           std::thread(produce, 2)};

  int64_t wrong = 0;
  int64_t ticks = 0;
  std::vector<double> before(kStreams, 0);
  while (running > 0 || ticks == 0) {
    double query = 1e18;
    int64_t shape[] = {1, kStreams * kChannels};
    int64_t mask_shape[] = {1, kStreams};
    std::vector<double> out(kStreams * kChannels, -1);
    std::vector<uint8_t> mask(kStreams, 9);
    std::vector<double> ages(kStreams, -1);
    const rbcTensor queries = hostTensor(&query, support::kF64, 1, shape);
    const rbcTensor outs = hostTensor(out.data(), support::kF64, 2, shape);
    const rbcTensor masks = hostTensor(mask.data(), support::kU8, 2, mask_shape);
    const rbcTensor age = hostTensor(ages.data(), support::kF64, 1, mask_shape + 1);
    support::require(rbcLiveFuse(live.get(), &queries, &outs, &masks, &age, nullptr));
    for (size_t n = 0; n < kStreams; ++n) {
      const double* row = &out[n * kChannels];
      const bool none = std::isnan(ages[n]);
      for (int64_t d = 1; d < kChannels; ++d) wrong += row[d] != row[0] ? 1 : 0;
      wrong += !none && (row[0] < before[n] || row[0] != std::floor(row[0])) ? 1 : 0;
      if (!none) before[n] = row[0];
    }
    ++ticks;
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(ticks > 0);
  for (int32_t n = 0; n < kStreams; ++n) {
    CHECK(countersOf(live, n).kept == samples);
    CHECK(countersOf(live, n).overwritten == samples - 4);
  }
}
