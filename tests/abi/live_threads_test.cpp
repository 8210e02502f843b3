// Live fusion among threads that push and fuse at once: no row is torn, none is lost uncounted.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "abi/live_call.h"
#include "support/sanitizers.h"

namespace {

using live_call::countersOf;
using live_call::hostTensor;
using live_call::Live;
using live_call::make;
using support::Context;

}  // namespace

// Every value of a sample is its time, so that a row which is torn shows.
TEST_CASE("live: producers and a consumer that never wait for each other") {
  constexpr int32_t kStreams = 3;
  constexpr int64_t kChannels = 7;
  const int64_t samples = support::kSanitized ? 20000 : 300000;
  rbcResampleParams params = rbcResampleParamsInit();
  params.method = RBC_METHOD_PREVIOUS;
  rbcLiveStream stream = rbcLiveStreamInit();
  stream.dtype = support::kF64;
  stream.channels = kChannels;
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
      support::require(rbcLivePush(context.get(), live.get(), n, &times, &values));
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
    support::require(rbcLiveFuse(context.get(), live.get(), &queries, &outs, &masks, &age));
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
    CHECK(countersOf(live, n).pushed == samples);
    CHECK(countersOf(live, n).overwritten == samples - 4);
  }
}
