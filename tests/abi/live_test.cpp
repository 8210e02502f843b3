// Live fusion: the same bits as rbcFuse for the samples that a model finds in the rings, for any
// samples in any order.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
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
using live_call::timeDtype;
using support::Context;
using support::Random;

// The samples that a stream keeps, as rbcFuse takes them.
template <class Time>
void listOf(const live_model::Stream<Time>& model, std::vector<Time>* times,
            std::vector<Time>* arrivals, std::vector<float>* values) {
  for (const auto& sample : model.kept) {
    times->push_back(sample.time);
    arrivals->push_back(sample.arrival);
    values->insert(values->end(), sample.row.begin(), sample.row.end());
  }
}

// A time that a broken driver may send, or a query of a broken loop.
template <class Time>
Time strangeTime(Random& random) {
  using Limits = std::numeric_limits<Time>;
  if constexpr (std::is_same_v<Time, int64_t>) {
    constexpr Time kTimes[] = {Limits::min(), Limits::max(), Limits::min() + 1, Limits::max() - 1,
                               0};
    return random.pick(kTimes);
  } else {
    constexpr Time kTimes[] = {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                               Limits::max(),      Limits::lowest(),    0};
    return random.pick(kTimes);
  }
}

struct Choice {
  int32_t method;
  int32_t outside;
};
constexpr Choice kChoices[] = {
    {RBC_METHOD_LINEAR, RBC_OUTSIDE_HOLD},  {RBC_METHOD_LINEAR, RBC_OUTSIDE_EXTRAPOLATE},
    {RBC_METHOD_NEAREST, RBC_OUTSIDE_FILL}, {RBC_METHOD_PREVIOUS, RBC_OUTSIDE_HOLD},
    {RBC_METHOD_NEXT, RBC_OUTSIDE_HOLD},    {RBC_METHOD_CUBIC, RBC_OUTSIDE_FILL},
    {RBC_METHOD_PCHIP, RBC_OUTSIDE_HOLD},   {RBC_METHOD_SLERP, RBC_OUTSIDE_HOLD},
    {RBC_METHOD_ANGLE, RBC_OUTSIDE_HOLD}};

// The time up to which samples may have arrived for a query.
template <class Time>
Time untilOf(Time query, const rbcLiveFuseParams& params) {
  if constexpr (std::is_same_v<Time, int64_t>) {
    const auto exact = static_cast<long double>(query) + params.lag_ticks;
    return exact > static_cast<long double>(INT64_MAX) ? INT64_MAX : static_cast<Time>(exact);
  } else {
    return static_cast<Time>(query + static_cast<Time>(params.lag));
  }
}

// Streams that are pushed at random and fused sometimes.
template <class Time>
void checkRandomly(const Context& context, uint64_t seed, int64_t* compared) {
  Random random(seed);
  const bool ticks = std::is_same_v<Time, int64_t>;
  const auto timeAt = [&](double t) { return static_cast<Time>(ticks ? t * 1000 : t); };
  const int32_t count = 1 + static_cast<int32_t>(random.below(3));
  std::vector<rbcLiveStream> streams;
  std::vector<rbcResampleParams> params(static_cast<size_t>(count));
  std::vector<live_model::Stream<Time>> models;
  std::vector<float> shift = {0.5f, -1, 2, 0.25f};
  std::vector<double> scale = {2, 0.5, 1, 3};
  int64_t four = 4;
  const rbcTensor mean_tensor = hostTensor(shift.data(), support::kF32, 1, &four);
  const rbcTensor inv_std_tensor = hostTensor(scale.data(), support::kF64, 1, &four);
  int64_t channels = 0;
  std::vector<bool> timed;  // it is pushed with arrivals
  for (int32_t n = 0; n < count; ++n) {
    const Choice& choice = random.pick(kChoices);
    rbcResampleParams& p = params[static_cast<size_t>(n)];
    p = rbcResampleParamsInit();
    p.method = choice.method;
    p.outside = choice.outside;
    p.fill_value = -7;
    if (random.chance(0.3)) p.max_gap = ticks ? 3000 : 3;
    const bool step = choice.method == RBC_METHOD_NEAREST || choice.method == RBC_METHOD_PREVIOUS;
    if (step && random.chance(0.5)) p.tolerance = ticks ? 1500 : 1.5;
    rbcLiveStream stream = rbcLiveStreamInit();
    const bool fours = choice.method == RBC_METHOD_SLERP || random.chance(0.5);
    stream.num_channels = fours ? 4 : 1 + random.below(3);
    if (fours && random.chance(0.5)) p.shift = &mean_tensor;
    if (fours && random.chance(0.5)) p.scale = &inv_std_tensor;
    const bool steps = choice.method == RBC_METHOD_NEAREST ||
                       choice.method == RBC_METHOD_PREVIOUS || choice.method == RBC_METHOD_NEXT;
    const bool cubic = choice.method == RBC_METHOD_CUBIC || choice.method == RBC_METHOD_PCHIP;
    stream.capacity = steps ? 1 : cubic ? 4 : 2;
    if (random.chance(0.7)) stream.capacity += random.below(random.chance(0.5) ? 4 : 24);
    stream.late_bound = std::min<int64_t>(random.below(4), stream.capacity - 1);
    if (random.chance(0.2)) stream.late_bound = stream.capacity - 1;
    if (std::isinf(p.tolerance) && choice.method != RBC_METHOD_NEXT && random.chance(0.5)) {
      p.flags = RBC_FLAG_CAUSAL;
      if (random.chance(0.5)) p.max_age = ticks ? 4000 : 4;
    }
    timed.push_back(random.chance(0.6));
    if (random.chance(0.4)) stream.max_ahead = ticks ? 6000 : 6;
    stream.params = &p;
    if (random.chance(0.4)) {
      stream.clock_offset = ticks ? 0 : 0.75;
      stream.clock_offset_ticks = ticks ? 750 : 0;
    }
    models.emplace_back(stream.capacity, stream.late_bound, stream.max_ahead);
    channels += stream.num_channels;
    streams.push_back(stream);
  }
  rbcLiveParams live_params = rbcLiveParamsInit();
  live_params.time_dtype = timeDtype<Time>();
  const Live live = make(context, streams, live_params);

  double clock = 10;
  for (int step = 0; step < 60; ++step) {
    for (int32_t n = 0; n < count; ++n) {
      live_model::Stream<Time>& model = models[static_cast<size_t>(n)];
      const int64_t width = streams[static_cast<size_t>(n)].num_channels;
      if (random.chance(0.02)) {
        CHECK_SUCCEEDS(rbcLiveReset(live.get(), n));
        model.reset();
        if (random.chance(0.5)) clock -= 50;
      }
      int64_t samples = random.below(random.chance(0.9) ? 3 : 30);
      std::vector<Time> times;
      std::vector<Time> arrivals;
      std::vector<float> rows;
      for (int64_t i = 0; i < samples; ++i) {
        clock += random.chance(0.2) ? 0 : random.uniform(0, 1);
        double at = clock;
        if (random.chance(0.2)) at -= random.uniform(0, 3);  // late
        if (random.chance(0.02)) at += 20;                   // a wild stamp
        if (random.chance(0.01)) clock += 30;                // a leap
        if (random.chance(0.01)) clock -= 30;
        if (random.chance(0.2)) at = std::floor(at);  // repeated
        Time time = timeAt(at);
        if (random.chance(0.02)) time = strangeTime<Time>(random);
        times.push_back(time);
        std::vector<float> row;
        for (int64_t d = 0; d < width; ++d) {
          const bool nan = random.chance(0.02);
          row.push_back(nan ? std::numeric_limits<float>::quiet_NaN()
                            : static_cast<float>(random.uniform(-3, 3)));
        }
        rows.insert(rows.end(), row.begin(), row.end());
        using Limits = std::numeric_limits<Time>;
        const Time always = ticks ? Limits::min() : -Limits::infinity();
        Time arrival = timeAt(clock + random.uniform(-0.5, 1.5));
        if (random.chance(0.02)) arrival = strangeTime<Time>(random);
        arrivals.push_back(timed[static_cast<size_t>(n)] ? arrival : always);
        model.push(time, arrivals.back(), row);
      }
      // Sometimes with strides, so that columns are far apart.
      const bool strided = random.chance(0.3);
      std::vector<float> columns(rows.size());
      for (int64_t i = 0; i < samples; ++i) {
        for (int64_t d = 0; d < width; ++d) {
          columns[static_cast<size_t>(d * samples + i)] = rows[static_cast<size_t>(i * width + d)];
        }
      }
      int64_t shape[] = {samples, width};
      int64_t strides[] = {1, samples};
      const rbcTensor time_tensor = hostTensor(times.data(), timeDtype<Time>(), 1, shape);
      const rbcTensor value_tensor =
          hostTensor(strided ? columns.data() : rows.data(), support::kF32, 2, shape,
                     strided ? strides : nullptr);
      const rbcTensor arrival_tensor = hostTensor(arrivals.data(), timeDtype<Time>(), 1, shape);
      CHECK_SUCCEEDS(rbcLivePush(live.get(), n, &value_tensor, &time_tensor,
                                 timed[static_cast<size_t>(n)] ? &arrival_tensor : nullptr));
    }
    if (!random.chance(0.5)) continue;

    std::vector<Time> queries;
    const int64_t some = random.below(5);
    const bool ascend = random.chance(0.5);
    for (int64_t i = 0; i < some; ++i) {
      const double back = random.chance(0.2) ? 30 : 4;
      queries.push_back(timeAt(clock + random.uniform(-back, 2)));
      if (random.chance(0.2)) queries.back() = timeAt(std::floor(clock));
      if (random.chance(ascend ? 0.02 : 0.1)) queries.back() = strangeTime<Time>(random);
      if (ascend && queries.back() != queries.back()) queries.back() = 0;  // NaN has no place
    }
    if (ascend) std::sort(queries.begin(), queries.end());
    const auto rows = static_cast<int64_t>(queries.size());
    int64_t query_shape[] = {rows};
    int64_t out_shape[] = {rows, channels};
    int64_t mask_shape[] = {rows, count};
    int64_t age_shape[] = {count};
    std::vector<float> out(static_cast<size_t>(rows * channels), 99);
    std::vector<uint8_t> mask(static_cast<size_t>(rows * count), 99);
    std::vector<double> ages(static_cast<size_t>(count), 99);
    const rbcTensor query_tensor = hostTensor(queries.data(), timeDtype<Time>(), 1, query_shape);
    const rbcTensor out_tensor = hostTensor(out.data(), support::kF32, 2, out_shape);
    const rbcTensor mask_tensor = hostTensor(mask.data(), support::kU8, 2, mask_shape);
    const rbcTensor age_tensor =
        hostTensor(ages.data(), ticks ? support::kI64 : support::kF64, 1, age_shape);
    rbcLiveFuseParams how = rbcLiveFuseParamsInit();
    const double lag = static_cast<double>(random.below(4)) * 0.5;
    if (ticks) {
      how.lag_ticks = static_cast<int64_t>(lag * 1000);
    } else {
      how.lag = lag;
    }
    CHECK_SUCCEEDS(
        rbcLiveFuse(live.get(), &query_tensor, &out_tensor, &mask_tensor, &age_tensor, &how));

    std::vector<std::vector<Time>> model_times(static_cast<size_t>(count));
    std::vector<std::vector<Time>> model_arrivals(static_cast<size_t>(count));
    std::vector<std::vector<float>> model_values(static_cast<size_t>(count));
    std::vector<rbcTensor> tensors(static_cast<size_t>(3 * count));
    std::vector<rbcResampleParams> full(static_cast<size_t>(count));
    std::vector<int64_t> shapes(static_cast<size_t>(2 * count));
    std::vector<rbcFuseStream> fused;
    bool any_query = false;
    Time last = 0;
    for (const Time query : queries) {
      if (query != query) continue;
      last = any_query ? std::max(last, query) : query;
      any_query = true;
    }
    for (size_t n = 0; n < static_cast<size_t>(count); ++n) {
      listOf(models[n], &model_times[n], &model_arrivals[n], &model_values[n]);
      int64_t* shape = &shapes[2 * n];
      shape[0] = static_cast<int64_t>(model_times[n].size());
      shape[1] = streams[n].num_channels;
      double age = std::numeric_limits<double>::quiet_NaN();
      int64_t age_ticks = std::numeric_limits<int64_t>::max();
      if (any_query && shape[0] > 0) {
        const auto onClock = [&](Time query) {
          if constexpr (std::is_same_v<Time, int64_t>) {
            const auto exact = static_cast<long double>(query) - streams[n].clock_offset_ticks;
            return exact < static_cast<long double>(INT64_MIN) ? INT64_MIN
                                                               : static_cast<Time>(exact);
          } else {
            return static_cast<Time>(query - static_cast<Time>(streams[n].clock_offset));
          }
        };
        const Time now = onClock(last);
        const auto* sample = models[n].usedBy(now, untilOf(last, how));
        const Time used = sample != nullptr ? sample->time : 0;
        const long double distance = live_model::distanceOf(now, used);
        if (sample != nullptr) age = static_cast<double>(now < used ? -distance : distance);
        if (ticks && sample != nullptr) {
          const long double exact = static_cast<long double>(now) - static_cast<long double>(used);
          age_ticks = exact >= 0x1p63L - 1 ? INT64_MAX - 1
                      : exact <= -0x1p63L  ? INT64_MIN
                                           : static_cast<int64_t>(exact);
        }
        for (const Time query : queries) {
          models[n].early += onClock(query) < model_times[n].front() ? 1 : 0;
        }
      }
      if (ticks) {
        int64_t told = 0;
        std::memcpy(&told, &ages[n], sizeof told);
        CHECK(told == age_ticks);
      } else {
        CHECK((ages[n] == age || (ages[n] != ages[n] && age != age)));
      }
      tensors[3 * n] = hostTensor(model_values[n].data(), support::kF32, 2, shape);
      tensors[3 * n + 1] = hostTensor(model_times[n].data(), timeDtype<Time>(), 1, shape);
      tensors[3 * n + 2] = hostTensor(model_arrivals[n].data(), timeDtype<Time>(), 1, shape);
      full[n] = *streams[n].params;
      if (timed[n]) full[n].arrivals = &tensors[3 * n + 2];
      rbcFuseStream stream = rbcFuseStreamInit();
      stream.values = &tensors[3 * n];
      stream.times = &tensors[3 * n + 1];
      stream.params = &full[n];
      stream.clock_offset = streams[n].clock_offset;
      stream.clock_offset_ticks = streams[n].clock_offset_ticks;
      fused.push_back(stream);
    }
    std::vector<float> expected(out.size(), 98);
    std::vector<uint8_t> expected_mask(mask.size(), 98);
    const rbcTensor expected_tensor = hostTensor(expected.data(), support::kF32, 2, out_shape);
    const rbcTensor expected_mask_tensor =
        hostTensor(expected_mask.data(), support::kU8, 2, mask_shape);
    rbcFuseParams fuse_params = rbcFuseParamsInit();
    fuse_params.lag = how.lag;
    fuse_params.lag_ticks = how.lag_ticks;
    CHECK_SUCCEEDS(rbcFuse(context.get(), fused.data(), count, &query_tensor, &expected_tensor,
                           &expected_mask_tensor, &fuse_params));
    CHECK(
        (out.empty() || std::memcmp(out.data(), expected.data(), out.size() * sizeof(float)) == 0));
    CHECK(mask == expected_mask);
    *compared += rows;
  }
  for (int32_t n = 0; n < count; ++n) {
    const live_model::Stream<Time>& model = models[static_cast<size_t>(n)];
    const rbcLiveCounters counters = countersOf(live, n);
    CHECK(counters.kept == model.pushed);
    CHECK(counters.overwritten == model.overwritten);
    CHECK(counters.late == model.late);
    CHECK(counters.dropped == model.dropped);
    CHECK(counters.ahead == model.ahead);
    CHECK(counters.invalid == model.invalid);
    CHECK(counters.forgotten == model.forgotten);
    CHECK(counters.queries_before_first == model.early);
    const auto held = static_cast<int64_t>(model.kept.size());
    CHECK(counters.kept == counters.overwritten + counters.forgotten + held);
    CHECK(counters.snapshot_retries == 0);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("live: the bits of rbcFuse on what is in the rings", Time, float, double,
                   int64_t) {
  const Context context = support::cpuContext(1);
  int64_t compared = 0;
  for (uint64_t seed = 1; seed <= (support::kSanitized ? 60u : 400u); ++seed) {
    if (!support::inShare(seed)) continue;
    CAPTURE(seed);
    checkRandomly<Time>(context, seed, &compared);
  }
  CHECK(compared > support::shareOf(1000));
}

TEST_CASE("live: the description is copied") {
  const Context context = support::cpuContext(1);
  auto shift = std::make_unique<double[]>(2);
  shift[0] = 1, shift[1] = 2;
  auto groups = std::make_unique<rbcChannelGroup[]>(2);
  groups[0] = {0, 1, RBC_METHOD_PREVIOUS, 0, 0, 0, 0};
  groups[1] = {1, 1, RBC_METHOD_LINEAR, 0, 0, 0, 0};
  int64_t two = 2;
  auto tensor = std::make_unique<rbcTensor>(hostTensor(shift.get(), support::kF64, 1, &two));
  auto params = std::make_unique<rbcResampleParams>(rbcResampleParamsInit());
  params->shift = tensor.get();
  params->groups = groups.get();
  params->num_groups = 2;
  rbcLiveStream stream = rbcLiveStreamInit();
  stream.num_channels = 2;
  stream.capacity = 4;
  stream.params = params.get();
  const Live live = make(context, {stream}, rbcLiveParamsInit());
  shift[0] = shift[1] = 1e30;
  groups[0].method = groups[1].method = 99;
  shift.reset(), groups.reset(), tensor.reset(), params.reset();

  const double times[] = {0, 1};
  const float values[] = {10, 20, 30, 40};
  int64_t shape[] = {2, 2};
  const rbcTensor time_tensor = hostTensor(times, support::kF64, 1, shape);
  const rbcTensor value_tensor = hostTensor(values, support::kF32, 2, shape);
  CHECK_SUCCEEDS(rbcLivePush(live.get(), 0, &value_tensor, &time_tensor, nullptr));
  double query = 0.5;
  float out[2] = {};
  int64_t one[] = {1, 2};
  const rbcTensor queries = hostTensor(&query, support::kF64, 1, one);
  const rbcTensor outs = hostTensor(out, support::kF32, 2, one);
  CHECK_SUCCEEDS(rbcLiveFuse(live.get(), &queries, &outs, nullptr, nullptr, nullptr));
  CHECK(out[0] == 9);
  CHECK(out[1] == 28);
}

TEST_CASE("live: a clock that goes back drops samples until it is where it was") {
  const Context context = support::cpuContext(1);
  rbcLiveStream stream = rbcLiveStreamInit();
  stream.num_channels = 1;
  stream.capacity = 8;
  stream.late_bound = 1;
  const Live live = make(context, {stream}, rbcLiveParamsInit());
  int64_t shape[] = {1, 1};
  float value = 0;
  for (const double time : {100., 101., 102., 97., 98., 101.5, 101.6, 103.}) {
    const rbcTensor times = hostTensor(&time, support::kF64, 1, shape);
    const rbcTensor values = hostTensor(&value, support::kF32, 2, shape);
    CHECK_SUCCEEDS(rbcLivePush(live.get(), 0, &values, &times, nullptr));
  }
  const rbcLiveCounters counters = countersOf(live, 0);
  CHECK(counters.kept == 6);     // 100, 101, 102, 101.5, 101.6, 103
  CHECK(counters.late == 2);     // 101.5, 101.6
  CHECK(counters.dropped == 2);  // 97, 98
}

TEST_CASE("live: a clock that leaps ahead leaves a gap, and a query before all is counted") {
  const Context context = support::cpuContext(1);
  rbcResampleParams params = rbcResampleParamsInit();
  params.max_gap = 2;
  params.fill_value = -7;
  rbcLiveStream stream = rbcLiveStreamInit();
  stream.num_channels = 1;
  stream.capacity = 4;
  stream.params = &params;
  const Live live = make(context, {stream}, rbcLiveParamsInit());
  int64_t shape[] = {1, 1};
  for (const double time : {99., 100., 101., 161., 162.}) {
    const auto value = static_cast<float>(time);
    const rbcTensor times = hostTensor(&time, support::kF64, 1, shape);
    const rbcTensor values = hostTensor(&value, support::kF32, 2, shape);
    CHECK_SUCCEEDS(rbcLivePush(live.get(), 0, &values, &times, nullptr));
  }
  const double queries[] = {99.5, 100.5, 130, 161.5};
  float out[4] = {};
  uint8_t mask[4] = {9, 9, 9, 9};
  int64_t rows[] = {4, 1};
  const rbcTensor query_times = hostTensor(queries, support::kF64, 1, rows);
  const rbcTensor outs = hostTensor(out, support::kF32, 2, rows);
  const rbcTensor masks = hostTensor(mask, support::kU8, 2, rows);
  CHECK_SUCCEEDS(rbcLiveFuse(live.get(), &query_times, &outs, &masks, nullptr, nullptr));
  const float expected[] = {100, 100.5, -7, 161.5};
  const uint8_t valid[] = {0, 1, 0, 1};
  for (int t = 0; t < 4; ++t) {
    CHECK(out[t] == expected[t]);
    CHECK(mask[t] == valid[t]);
  }
  const rbcLiveCounters counters = countersOf(live, 0);
  CHECK(counters.kept == 5);
  CHECK(counters.overwritten == 1);
  CHECK(counters.dropped == 0);
  CHECK(counters.queries_before_first == 1);  // 99.5
}
