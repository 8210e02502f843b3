// rbcResample and rbcFuse.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "fuzz/bind.h"
#include "fuzz/calls.h"
#include "fuzz/fill.h"

namespace fuzz {
namespace {

constexpr int32_t kHolding[] = {RBC_METHOD_NEAREST, RBC_METHOD_PREVIOUS, RBC_METHOD_NEXT};

// The parameters that the streams of a call share.
struct Clock {
  enum Kind { kSingle, kPadded, kPacked };
  Kind kind;
  int64_t batch;
  rbcDType dtype;

  explicit Clock(Choices& choices)
      : kind(static_cast<Kind>(choices.below(3))),
        batch(kind == kSingle     ? 1
              : choices.chance(8) ? 0
                                  : choices.between(1, 4)),
        dtype(choices.pick(support::kTimeDTypes)) {}
};

struct Stream {
  Tensor* values;
  Tensor* times;
  Struct* params;
  int64_t channels;
  bool integers;
};

// A lag, in the field that fits the times.
template <class Params>
void setLag(Choices& choices, rbcDType time, Params* params) {
  if (!choices.chance(50)) return;
  if (time.code == RBC_DTYPE_INT) {
    params->lag_ticks = choices.chance(5) ? INT64_MAX : choices.between(-3, 10);
  } else {
    params->lag = choices.uniform(-1, 6);
  }
}

// How old a sample may be that channels look back to, or with a few methods nothing.
bool looksBack(Choices& choices, int32_t method, double* max_age) {
  if (!choices.chance(60) || (method == RBC_METHOD_NEXT && !choices.chance(5))) return false;
  *max_age = choices.pick({0.0, 1.0, 3.0, 20.0, static_cast<double>(INFINITY)});
  return true;
}

// Groups of channels that cover all channels.
std::vector<rbcChannelGroup> anyGroups(Choices& choices, int64_t channels, bool holding,
                                       bool causal) {
  std::vector<rbcChannelGroup> groups;
  for (int64_t begin = 0; begin < channels;) {
    int32_t method = holding ? choices.pick(kHolding) : static_cast<int32_t>(choices.below(8));
    int64_t count = choices.between(1, std::min<int64_t>(channels - begin, 6));
    if (method == RBC_METHOD_SLERP) {
      if (channels - begin < 4) method = RBC_METHOD_CUBIC;
      count = method == RBC_METHOD_SLERP ? 4 : count;
    }
    const bool angles = method == RBC_METHOD_ANGLE;
    groups.push_back(
        {begin, count, method, angles ? static_cast<int32_t>(choices.below(6)) : 0, 0, 0, 0});
    rbcChannelGroup& group = groups.back();
    if (causal && looksBack(choices, method, &group.max_age)) group.flags = RBC_FLAG_CAUSAL;
    begin += count;
  }
  if (choices.chance(30)) std::reverse(groups.begin(), groups.end());
  return groups;
}

Stream anyStream(Call& call, Choices& choices, const Clock& clock, bool alone) {
  Stream s = {};
  const int64_t samples = anyExtent(choices, 24);
  s.channels = choices.chance(5) ? 0 : anyExtent(choices, choices.chance(30) ? 20 : 7);
  s.integers = choices.chance(20);
  const rbcDType dtype = s.integers ? choices.pick(support::kIntegerDTypes) : anyFloat(choices);
  const std::vector<int64_t> rows = clock.kind == Clock::kPadded
                                        ? std::vector<int64_t>{clock.batch, samples}
                                        : std::vector<int64_t>{samples};
  std::vector<int64_t> shape = rows;
  shape.push_back(s.channels);
  s.values = call.add(choices, "values", dtype, shape, Role::kInput);
  s.integers ? fillBits(call, *s.values, choices) : fillReals(call, *s.values, choices);
  const bool shared = clock.kind == Clock::kPadded && choices.chance(40);
  s.times = call.add(choices, "times", clock.dtype, shared ? std::vector<int64_t>{samples} : rows,
                     Role::kInput);
  fillTimes(call, *s.times, choices);

  rbcResampleParams params = rbcResampleParamsInit();
  if (alone && choices.chance(40)) params.flags = RBC_FLAG_CHECK_TIMES;
  const bool holding = s.integers;
  params.method = holding ? choices.pick(kHolding) : static_cast<int32_t>(choices.below(8));
  if (params.method == RBC_METHOD_SLERP && s.channels % 4 != 0) params.method = RBC_METHOD_LINEAR;
  params.outside = static_cast<int32_t>(choices.below(3));
  if (choices.chance(40)) params.fill_value = choices.pick({0.0, -1.0, 7.0, 1e9});
  if (choices.chance(30)) params.max_gap = choices.pick({0.0, 1.0, 2.5, 100.0});
  if (choices.chance(30)) params.tolerance = choices.pick({0.0, 1.0, 2.5, 100.0});
  if (clock.kind == Clock::kPacked) {
    Tensor* t =
        call.add(choices, "batch_offsets", anyIndex(choices), {clock.batch + 1}, Role::kInput);
    fillOffsets(call, *t, choices, samples);
    params.batch_offsets = t->hold();
  } else if (clock.kind == Clock::kPadded && choices.chance(40)) {
    Tensor* t = call.add(choices, "lengths", anyIndex(choices), {clock.batch}, Role::kInput);
    fillIntegers(call, *t, choices, 0, samples);
    params.lengths = t->hold();
  }
  if (choices.chance(25)) {
    Tensor* t =
        call.add(choices, "sample_mask", anyFlag(choices),
                 shared || choices.chance(30) ? std::vector<int64_t>{samples} : rows, Role::kInput);
    fillMask(call, *t, choices);
    params.sample_mask = t->hold();
  }
  if (choices.chance(25)) {
    Tensor* t = call.add(choices, "shift", anyReal(choices), {s.channels}, Role::kInput);
    fillReals(call, *t, choices);
    params.shift = t->hold();
  }
  if (choices.chance(25)) {
    Tensor* t = call.add(choices, "scale", anyReal(choices), {s.channels}, Role::kInput);
    fillReals(call, *t, choices);
    params.scale = t->hold();
  }
  if (choices.chance(25)) {
    Tensor* t =
        call.add(choices, "arrivals", clock.dtype,
                 shared || choices.chance(30) ? std::vector<int64_t>{samples} : rows, Role::kInput);
    choices.chance(70) ? fillTimes(call, *t, choices) : fillReals(call, *t, choices, -2, 60);
    params.arrivals = t->hold();
  }
  const bool causal = choices.chance(25);
  if (causal && !choices.chance(3)) params.tolerance = INFINITY;
  if (choices.chance(30) && s.channels > 0) {
    const auto groups = anyGroups(choices, s.channels, holding, causal);
    const auto n = static_cast<int32_t>(groups.size());
    params.groups = call.add("rbcChannelGroup", groups.data(), n)->get<rbcChannelGroup>();
    params.num_groups = n;
  } else if (causal && looksBack(choices, params.method, &params.max_age)) {
    params.flags |= RBC_FLAG_CAUSAL;
  }
  if (alone) setLag(choices, clock.dtype, &params);
  s.params = call.add("rbcResampleParams", &params);
  return s;
}

std::vector<int64_t> outShape(const Clock& clock, int64_t queries) {
  if (clock.kind == Clock::kSingle) return {queries};
  return {clock.batch, queries};
}

Tensor* anyQueries(Call& call, Choices& choices, const Clock& clock, int64_t queries) {
  const bool shared = clock.kind == Clock::kSingle || choices.chance(50);
  Tensor* t =
      call.add(choices, "query_times", clock.dtype,
               shared ? std::vector<int64_t>{queries} : outShape(clock, queries), Role::kInput);
  choices.chance(70) ? fillTimes(call, *t, choices) : fillReals(call, *t, choices, -2, 60);
  return t;
}

Tensor* anyQueryLengths(Call& call, Choices& choices, const Clock& clock, int64_t queries) {
  if (clock.kind == Clock::kSingle || !choices.chance(25)) return nullptr;
  Tensor* t = call.add(choices, "query_lengths", anyIndex(choices), {clock.batch}, Role::kInput);
  fillIntegers(call, *t, choices, 0, queries);
  return t;
}

}  // namespace

static std::unique_ptr<Call> makeResample(Choices& choices) {
  auto call = std::make_unique<Call>("rbcResample");
  const Clock clock(choices);
  const Stream s = anyStream(*call, choices, clock, true);
  call->checking = s.params;
  // Sometimes so many that a call is divided among its threads.
  const int64_t queries =
      choices.bits() % 100 == 0 ? choices.between(2000, 6000) : anyExtent(choices, 30);
  Tensor* query_times = anyQueries(*call, choices, clock, queries);
  std::vector<int64_t> shape = outShape(clock, queries);
  Tensor* mask = choices.chance(60)
                     ? call->add(choices, "valid", anyFlag(choices), shape, Role::kOutput)
                     : nullptr;
  shape.push_back(s.channels);
  const rbcDType dtype = s.integers && choices.chance(50) ? s.values->raw.dtype : anyFloat(choices);
  Tensor* out = call->add(choices, "out", dtype, shape, Role::kOutput);
  if (Tensor* t = anyQueryLengths(*call, choices, clock, queries)) {
    s.params->get<rbcResampleParams>()->query_lengths = t->hold();
  }
  Operation<rbcResample, rbcResampleWorkspaceSize>::bind(call.get(), s.values, s.times, query_times,
                                                         out, mask, s.params);
  return call;
}
const Maker kResample(0, makeResample);

static std::unique_ptr<Call> makeFuse(Choices& choices) {
  auto call = std::make_unique<Call>("rbcFuse");
  const Clock clock(choices);
  const int64_t count = choices.chance(5) ? choices.between(5, 64) : choices.between(1, 4);
  std::vector<rbcFuseStream> streams;
  int64_t channels = 0;
  for (int64_t n = 0; n < count; ++n) {
    const Stream s = anyStream(*call, choices, clock, false);
    rbcFuseStream stream = rbcFuseStreamInit();
    stream.values = s.values->hold();
    stream.times = s.times->hold();
    stream.params = s.params->get<rbcResampleParams>();
    if (choices.chance(30)) stream.clock_offset = choices.uniform(-2, 2);
    if (choices.chance(30)) stream.clock_offset_ticks = choices.between(-20, 20);
    if (clock.dtype.code == RBC_DTYPE_INT) stream.clock_offset = 0;
    if (clock.dtype.code != RBC_DTYPE_INT) stream.clock_offset_ticks = 0;
    channels += s.channels;
    streams.push_back(stream);
  }
  const int64_t queries = anyExtent(choices, 20);
  Tensor* query_times = anyQueries(*call, choices, clock, queries);
  std::vector<int64_t> shape = outShape(clock, queries);
  shape.push_back(count);
  Tensor* mask = choices.chance(60)
                     ? call->add(choices, "valid", anyFlag(choices), shape, Role::kOutput)
                     : nullptr;
  shape.back() = channels;
  Tensor* out = call->add(choices, "out", anyFloat(choices), shape, Role::kOutput);
  Struct* array = call->add("rbcFuseStream", streams.data(), static_cast<int32_t>(count));
  rbcFuseParams fuse = rbcFuseParamsInit();
  if (choices.chance(40)) fuse.flags = RBC_FLAG_CHECK_TIMES;
  if (Tensor* t = anyQueryLengths(*call, choices, clock, queries)) fuse.query_lengths = t->hold();
  setLag(choices, clock.dtype, &fuse);
  Struct* params = call->add("rbcFuseParams", &fuse);
  call->checking = params;
  const int32_t num_streams = choices.chance(96) ? static_cast<int32_t>(count)
                                                 : choices.pick({0, -1, 65, INT32_MAX, INT32_MIN});
  Operation<rbcFuse, rbcFuseWorkspaceSize>::bind(call.get(), array, num_streams, query_times, out,
                                                 mask, params);
  return call;
}
const Maker kFuse(1, makeFuse);

}  // namespace fuzz
