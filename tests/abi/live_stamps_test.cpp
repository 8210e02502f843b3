// Live fusion of stamps that a broken driver may send: not a time, far in the future, from a clock
// that was set, or late; and the ages that reveal them.
#include <cmath>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include "abi/live_call.h"

namespace {

using live_call::countersOf;
using live_call::hostTensor;
using live_call::Live;
using live_call::make;
using live_call::timeDtype;
using support::Context;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One stream of one channel; each value is its time.
template <class Time>
class Sensor {
 public:
  using Age = std::conditional_t<std::is_same_v<Time, int64_t>, int64_t, double>;
  struct Tick {
    float value;
    bool valid;
    Age age;
  };

  template <class Change>
  explicit Sensor(Change change) : context_(support::cpuContext(1)) {
    rbcResampleParams params = rbcResampleParamsInit();
    params.method = RBC_METHOD_PREVIOUS;
    params.outside = RBC_OUTSIDE_HOLD;
    params.fill_value = -7;
    rbcLiveStream stream = rbcLiveStreamInit();
    stream.num_channels = 1;
    stream.capacity = 8;
    stream.params = &params;
    change(stream);
    rbcLiveParams live_params = rbcLiveParamsInit();
    live_params.time_dtype = timeDtype<Time>();
    live_ = make(context_, {stream}, live_params);
  }

  void push(std::initializer_list<Time> times) {
    for (const Time time : times) {
      const auto value = static_cast<float>(time);
      const rbcTensor time_tensor = hostTensor(&time, timeDtype<Time>(), 1, one_);
      const rbcTensor value_tensor = hostTensor(&value, support::kF32, 2, one_);
      support::require(rbcLivePush(live_.get(), 0, &value_tensor, &time_tensor, nullptr));
    }
  }
  Tick fuse(Time query) {
    Tick tick = {};
    uint8_t mask = 9;
    const rbcTensor queries = hostTensor(&query, timeDtype<Time>(), 1, one_);
    const rbcTensor out = hostTensor(&tick.value, support::kF32, 2, one_);
    const rbcTensor masks = hostTensor(&mask, support::kU8, 2, one_);
    const rbcDType dtype = std::is_same_v<Age, double> ? support::kF64 : support::kI64;
    const rbcTensor ages = hostTensor(&tick.age, dtype, 1, one_);
    support::require(rbcLiveFuse(live_.get(), &queries, &out, &masks, &ages, nullptr));
    tick.valid = mask == 1;
    return tick;
  }
  // Without max_age: outside of what is kept, outside give the sample at the edge.
  float newest() { return fuse(std::numeric_limits<Time>::max()).value; }
  float oldest() { return fuse(std::numeric_limits<Time>::lowest()).value; }
  void reset() { support::require(rbcLiveReset(live_.get(), 0)); }
  rbcLiveCounters counters() const { return countersOf(live_, 0); }
  rbcLive_t get() const { return live_.get(); }

 private:
  Context context_;
  Live live_;
  int64_t one_[2] = {1, 1};
};

void nothing(rbcLiveStream&) {}

// Fills what has no sample of the last `max_age`.
void limitAge(rbcLiveStream& stream, double max_age) {
  static rbcResampleParams params;
  params = *stream.params;
  params.flags = RBC_FLAG_CAUSAL;
  params.max_age = max_age;
  params.outside = RBC_OUTSIDE_FILL;
  stream.params = &params;
}

}  // namespace

TEST_CASE_TEMPLATE("live stamps: infinite stamps and NaN are refused", Time, float, double) {
  using Limits = std::numeric_limits<Time>;
  Sensor<Time> sensor([](auto& stream) { stream.late_bound = 3; });
  for (int i = 0; i < 2; ++i) {  // the first samples of all, and later ones
    sensor.push({Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()});
    CHECK(sensor.counters().invalid == 3 * (i + 1));
    sensor.push({static_cast<Time>(i)});
  }
  sensor.push({2, 3, Limits::infinity(), 4});
  CHECK(sensor.newest() == 4);
  const rbcLiveCounters counters = sensor.counters();
  CHECK(counters.kept == 5);
  CHECK(counters.invalid == 7);
  CHECK(counters.dropped == 0);
}

TEST_CASE("live stamps: ticks that are not a time are refused") {
  Sensor<int64_t> sensor([](auto& stream) { stream.late_bound = 3; });
  sensor.push({INT64_MIN, INT64_MAX, 0, INT64_MAX, INT64_MIN, 10});
  CHECK(sensor.counters().invalid == 4);
  CHECK(sensor.fuse(10).value == 10);
  CHECK(sensor.fuse(10).age == 0);
  CHECK(sensor.counters().kept == 2);
}

TEST_CASE("live stamps: a stamp of the far future does not make an old sample fresh") {
  for (const double wild : {1e3, 1e6, 1e18, std::numeric_limits<double>::max()}) {
    CAPTURE(wild);
    Sensor<double> sensor([](auto& stream) { limitAge(stream, 0.5); });
    for (int i = 0; i < 20; ++i) sensor.push({0.1 * i});
    sensor.push({wild});
    CHECK(sensor.fuse(2.0).valid);  // between two samples, and just after the first
    for (int i = 20; i < 400; ++i) sensor.push({0.1 * i});
    const auto tick = sensor.fuse(39.95);
    CHECK(tick.age == 39.95 - 0.1 * 19);
    CHECK_FALSE(tick.valid);
    CHECK(tick.value == -7);
    CHECK(sensor.counters().dropped == 380);

    sensor.reset();
    sensor.push({40});
    CHECK(sensor.fuse(40).valid);
    CHECK(sensor.fuse(40.25).age == 0.25);
  }
}

TEST_CASE("live stamps: max_ahead refuses a wrong stamp, and no other sample is lost") {
  for (const double wild : {2.5, 1e6, 1e18}) {
    Sensor<double> sensor([](auto& stream) { stream.max_ahead = 0.5; });
    for (int i = 0; i < 20; ++i) sensor.push({0.1 * i});
    sensor.push({wild, wild, wild, wild});  // again and again the same: they do not go on
    for (int i = 20; i < 400; ++i) sensor.push({0.1 * i});
    CHECK(sensor.newest() == static_cast<float>(0.1 * 399));
    CHECK(sensor.counters().ahead == 4);
    CHECK(sensor.counters().kept == 400);
    CHECK(sensor.counters().dropped == 0);
  }
}

TEST_CASE("live stamps: max_ahead is the last distance that is accepted") {
  Sensor<int64_t> ticks([](auto& stream) { stream.max_ahead = 5; });
  ticks.push({0, 5, 11, 10});
  CHECK(ticks.counters().ahead == 1);
  CHECK(ticks.fuse(20).value == 10);
  // At the ends of the range no difference overflows.
  Sensor<int64_t> far([](auto& stream) { stream.max_ahead = 5; });
  far.push({INT64_MIN + 1, INT64_MAX - 1, INT64_MIN + 2});
  CHECK(far.counters().ahead == 1);
  CHECK(far.counters().kept == 2);
  Sensor<float> floats([](auto& stream) { stream.max_ahead = 0.1; });  // rounded as the times are
  floats.push({0, 0.1f, 0.3f});
  CHECK(floats.counters().ahead == 1);
  Sensor<double> all([&](auto& stream) { stream.max_ahead = kInfinity; });
  all.push({0, 1e300});
  CHECK(all.counters().ahead == 0);
  CHECK(all.counters().kept == 2);
}

TEST_CASE("live stamps: a sensor that was silent comes back in spite of max_ahead") {
  Sensor<double> sensor([](auto& stream) { stream.max_ahead = 1; });
  sensor.push({0, 0.5, 1, 3600, 3600.5});
  CHECK(sensor.newest() == 1);
  CHECK(sensor.counters().ahead == 2);
  sensor.push({3601, 3601.5});
  CHECK(sensor.newest() == 3601.5f);
  CHECK(sensor.oldest() == 0);  // nothing was wrong with those
  CHECK(sensor.counters().ahead == 2);
  CHECK(sensor.counters().kept == 5);
  CHECK(sensor.counters().forgotten == 0);
  // Three that disagree, or that others come between, do not.
  sensor.push({7200, 7210, 7220, 7205, 7205.5, 3602, 7206, 7206.5, 3602.5});
  CHECK(sensor.newest() == 3602.5f);
  CHECK(sensor.counters().ahead == 9);
}

TEST_CASE("live stamps: a clock that is set back, and a wrong first stamp") {
  for (const int64_t late_bound : {0, 3}) {
    CAPTURE(late_bound);
    Sensor<double> sensor([&](auto& stream) {
      stream.max_ahead = 1;
      stream.late_bound = late_bound;
    });
    sensor.push({1e12, 10, 10.5, 11, 11.5});
    CHECK(sensor.newest() == 11.5f);
    CHECK(sensor.oldest() == 11);
    rbcLiveCounters counters = sensor.counters();
    CHECK(counters.dropped == (late_bound == 0 ? 2 : 0));
    CHECK(counters.late == (late_bound == 0 ? 0 : 2));
    CHECK(counters.forgotten == (late_bound == 0 ? 1 : 3));

    sensor.push({12, 12.5, 13, 13.5, 14});
    sensor.push({5, 5.5, 6, 6.5});  // set back
    CHECK(sensor.newest() == 6.5f);
    CHECK(sensor.oldest() == 6);
    counters = sensor.counters();
    CHECK(counters.kept == counters.overwritten + counters.forgotten + 2);
  }
}

TEST_CASE("live stamps: if two drivers alternate, the stream keeps one of them") {
  Sensor<double> sensor([](auto& stream) { stream.max_ahead = 1; });
  for (int i = 0; i < 50; ++i) sensor.push({0.1 * i, 1e9 + 0.1 * i});
  CHECK(sensor.newest() == static_cast<float>(0.1 * 49));
  CHECK(sensor.counters().kept == 50);
  CHECK(sensor.counters().ahead == 50);
}

TEST_CASE("live stamps: late samples do not push out newer ones") {
  Sensor<double> sensor([](auto& stream) { stream.capacity = 4, stream.late_bound = 3; });
  sensor.push({0, 1, 2, 3, 4, 5});
  sensor.push({3.5, 3.6, 3.7, 3.8, 3.9, 3.95, 3.96, 3.97});  // as after a stall of a network
  CHECK(sensor.newest() == 5);
  CHECK(sensor.fuse(4.5).value == 4);
  CHECK(sensor.oldest() == 3.96f);
  CHECK(sensor.fuse(5).age == 0);
  CHECK(sensor.counters().overwritten == 10);
  sensor.push({3});  // older than all
  CHECK(sensor.counters().dropped == 1);
  CHECK(sensor.counters().late == 8);
  // Of equal times the first one goes first.
  sensor.push({3.97, 3.97, 3.97});
  CHECK(sensor.counters().dropped == 1);
  CHECK(sensor.oldest() == 3.97f);
  CHECK(sensor.newest() == 5);
}

TEST_CASE("live stamps: a ring of one sample has the newest") {
  for (const int32_t method : {RBC_METHOD_PREVIOUS, RBC_METHOD_NEAREST, RBC_METHOD_NEXT}) {
    rbcResampleParams params = rbcResampleParamsInit();
    params.method = method;
    Sensor<double> sensor([&](auto& stream) { stream.capacity = 1, stream.params = &params; });
    sensor.push({1, 2, 2, 1.5, 3});
    CHECK(sensor.newest() == 3);
    CHECK(sensor.fuse(3).valid);
    CHECK(sensor.counters().kept == 4);
    CHECK(sensor.counters().overwritten == 3);
    CHECK(sensor.counters().dropped == 1);
    sensor.reset();
    sensor.push({0});
    CHECK(sensor.newest() == 0);
  }
}

TEST_CASE("live stamps: the age is from the last sample at or before the newest query") {
  Sensor<double> sensor([](auto& stream) { limitAge(stream, 0.5); });
  sensor.push({10, 11, 12, 13, 14});
  // A query of the past, with samples around it.
  CHECK(sensor.fuse(11.25).age == 0.25);
  CHECK(sensor.fuse(11.25).valid);
  CHECK(sensor.fuse(11.75).age == 0.75);
  CHECK_FALSE(sensor.fuse(11.75).valid);
  // Before all of them.
  CHECK(sensor.fuse(9.75).age == -0.25);
  CHECK(sensor.fuse(9.75).value == -7);
  CHECK(sensor.fuse(9.25).age == -0.75);
  CHECK(sensor.fuse(9.25).value == -7);
  CHECK(sensor.fuse(kInfinity).age == kInfinity);
  CHECK(sensor.fuse(kInfinity).value == -7);
  CHECK(sensor.fuse(-kInfinity).age == -kInfinity);
  CHECK(sensor.fuse(-kInfinity).value == -7);
  CHECK(std::isnan(sensor.fuse(std::nan("")).age));
  CHECK(sensor.fuse(std::nan("")).value == -7);

  Sensor<double> strict([](auto& stream) { limitAge(stream, 0); });
  strict.push({1, 2});
  CHECK(strict.fuse(2).valid);
  CHECK_FALSE(strict.fuse(std::nextafter(2.0, 3.0)).valid);
  CHECK(strict.fuse(std::nextafter(1.0, 0.0)).value == -7);
}

TEST_CASE("live stamps: without max_age, infinite queries have infinite ages and valid 0") {
  Sensor<float> floats(nothing);
  floats.push({1, 2});
  const auto infinity = static_cast<float>(kInfinity);
  for (const float query : {infinity, -infinity}) {
    CHECK(floats.fuse(query).age == static_cast<double>(query));
    CHECK_FALSE(floats.fuse(query).valid);
  }
  constexpr float kMost = std::numeric_limits<float>::max();
  Sensor<float> ends([](auto& stream) { limitAge(stream, 1e38); });
  ends.push({-kMost, kMost});
  CHECK(ends.fuse(0.75f * kMost).age == kInfinity);  // past the range of f32
  CHECK(ends.fuse(0.75f * kMost).value == -7);
}

TEST_CASE("live stamps: ages of ticks are kept within their range") {
  Sensor<int64_t> sensor(nothing);
  sensor.push({-10, 10});
  CHECK(sensor.fuse(INT64_MAX).age == INT64_MAX - 10);
  CHECK(sensor.fuse(INT64_MIN).age == INT64_MIN + 10);
  CHECK_FALSE(sensor.fuse(INT64_MIN).valid);
  Sensor<int64_t> low([](auto& stream) { limitAge(stream, 1e18); });
  low.push({INT64_MIN + 1});
  CHECK(low.fuse(INT64_MAX).age == INT64_MAX - 1);  // INT64_MAX means that there is none
  CHECK(low.fuse(INT64_MAX).value == -7);
  Sensor<int64_t> high([](auto& stream) { limitAge(stream, 1e18); });
  high.push({INT64_MAX - 1});
  CHECK(high.fuse(INT64_MIN).age == INT64_MIN);
  CHECK(high.fuse(INT64_MIN).value == -7);
  high.reset();
  CHECK(high.fuse(0).age == INT64_MAX);
}

TEST_CASE("live stamps: a clock_offset that takes queries past the range") {
  Sensor<double> sensor([](auto& stream) { stream.clock_offset = -1e308, limitAge(stream, 1); });
  sensor.push({1e308});
  CHECK(sensor.fuse(1e308).age == kInfinity);
  CHECK(sensor.fuse(1e308).value == -7);
  CHECK(sensor.fuse(0).valid);
  Sensor<int64_t> ticks([](auto& stream) {
    stream.clock_offset_ticks = INT64_MIN;
    limitAge(stream, 5);
  });
  ticks.push({INT64_MAX - 3});
  CHECK(ticks.fuse(10).age == 3);  // at INT64_MAX
  CHECK(ticks.fuse(10).value == static_cast<float>(INT64_MAX));
}

TEST_CASE("live stamps: a reset forgets, and older samples are accepted") {
  Sensor<double> sensor([](auto& stream) { stream.capacity = 4, stream.late_bound = 2; });
  sensor.reset();  // of an empty ring
  CHECK(sensor.counters().forgotten == 0);
  for (int round = 0; round < 5; ++round) {
    CAPTURE(round);
    const double start = 100.0 - 10 * round;
    sensor.push({start, start + 1, start + 2, start + 1.5, start + 3, start + 2.5});
    CHECK(sensor.newest() == static_cast<float>(start + 3));
    CHECK(sensor.oldest() == static_cast<float>(start + 1.5));
    sensor.reset();
    CHECK(std::isnan(sensor.fuse(start).age));
    CHECK_FALSE(sensor.fuse(start).valid);
    const rbcLiveCounters counters = sensor.counters();
    CHECK(counters.kept == 6 * (round + 1));
    CHECK(counters.overwritten == 2 * (round + 1));
    CHECK(counters.forgotten == 4 * (round + 1));
    CHECK(counters.late == 2 * (round + 1));
    CHECK(counters.dropped == 0);
  }
  constexpr rbcStatus_t kInvalid = RBC_STATUS_INVALID_ARGUMENT;
  CHECK_FAILS(rbcLiveReset(nullptr, 0), kInvalid, "live: is null");
  CHECK_FAILS(rbcLiveReset(sensor.get(), 1), kInvalid, "stream_index: is 1, expected 0 to 0");
  CHECK_FAILS(rbcLiveReset(sensor.get(), -1), kInvalid, "stream_index: is -1");
}

TEST_CASE("live stamps: equal stamps forever") {
  Sensor<double> sensor([](auto& stream) {
    stream.capacity = 3;
    stream.late_bound = 2;
    stream.max_ahead = 1;
    limitAge(stream, 1);
  });
  for (int i = 0; i < 100; ++i) sensor.push({5});
  CHECK(sensor.fuse(5).valid);
  CHECK_FALSE(sensor.fuse(6.5).valid);
  CHECK(sensor.counters().overwritten == 97);
  sensor.push({5.5});
  CHECK(sensor.fuse(6).value == 5.5f);
}
