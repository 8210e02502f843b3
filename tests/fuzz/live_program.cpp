// Live fusion: pushes with any times, in any order, and fusions in between.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "fuzz/fill.h"
#include "fuzz/programs.h"
#include "fuzz/spoil.h"

namespace fuzz {
namespace {

const std::vector<std::string> kArguments = {"context", "live",         "streams", "num_streams",
                                             "params",  "stream_index", "counters"};

const rbcTensor kSomething = {};  // must not be accessed

struct Live {
  rbcLive_t handle = nullptr;
  ~Live() { rbcLiveDestroy(handle); }
};

// Sometimes a time that no clock has.
void fillWild(Call& call, Tensor& times, Choices& choices) {
  if (!choices.chance(15)) return;
  const double wild = times.raw.dtype.code == RBC_DTYPE_INT
                          ? choices.pick({1e18, -1e18})
                          : choices.pick({HUGE_VAL, -HUGE_VAL, 1e30, -1e30});
  const auto at = static_cast<int64_t>(choices.below(8));
  fillWhere(call, times, wild, [&](int64_t n) { return n == at; });
}

}  // namespace

void liveProgram(Machine& machine, Choices choices, Transcript& transcript) {
  const rbcDType time = choices.pick(support::kTimeDTypes);
  const auto count = static_cast<int32_t>(choices.between(1, 3));
  std::vector<rbcLiveStream> streams;
  rbcResampleParams params[3];
  rbcChannelGroup groups[3];
  Call factors("factors");
  std::deque<Block> held;  // keeps their memory
  int64_t channels = 0;
  for (int32_t n = 0; n < count; ++n) {
    rbcResampleParams& p = params[n] = rbcResampleParamsInit();
    p.method = static_cast<int32_t>(choices.below(6));
    p.outside = static_cast<int32_t>(choices.below(3));
    if (choices.chance(5)) p.method = choices.pick({6, 8, -1});
    rbcChannelGroup& group = groups[n] = {0, 1, p.method, 0, 0, 0, 0};
    if (choices.chance(15)) {
      p.groups = &group;  // as many as the count says, or an impossible number
      p.num_groups = choices.chance(80) ? 1 : choices.pick({0, -1, INT32_MAX, INT32_MIN, 300});
    }
    rbcLiveStream s = rbcLiveStreamInit();
    s.dtype = anyFloat(choices);
    s.num_channels =
        choices.chance(97) ? choices.between(1, 5) : choices.pick<int64_t>({0, -1, INT64_MAX});
    s.capacity = choices.chance(90)
                     ? choices.between(4, 24)
                     : choices.pick<int64_t>({1, 2, 3, 0, -1, INT64_MAX, (1 << 24) + 1});
    s.late_bound = choices.chance(60)   ? 0
                   : choices.chance(97) ? choices.below(4)
                                        : choices.pick<int64_t>({-1, 24, INT64_MAX});
    if (choices.chance(30)) {
      p.flags = RBC_FLAG_CAUSAL;
      p.max_age = choices.pick({0.0, 3.0, 50.0, HUGE_VAL});
      group.flags = choices.pick({0u, RBC_FLAG_CAUSAL});
      group.max_age = group.flags != 0 ? p.max_age : 0;
      if (p.groups != nullptr) p.flags = 0, p.max_age = HUGE_VAL;
    }
    if (choices.chance(3)) p.max_age = choices.pick({-1.0, 2.0, std::nan("")});
    if (choices.chance(30)) s.max_ahead = choices.pick({3.0, 50.0, 1e9, HUGE_VAL});
    if (choices.chance(3)) s.max_ahead = choices.pick({-1.0, 0.0, 1e-60, std::nan("")});
    if (choices.chance(70)) s.params = &params[n];
    if (p.groups != nullptr && choices.chance(80)) group.count = s.num_channels;
    const auto factor = [&](const char* name, const rbcTensor** of) {
      if (s.num_channels < 1 || s.num_channels > 64 || !choices.chance(10)) return;
      const rbcDType dtype = choices.chance(90) ? anyReal(choices) : anyFloat(choices);
      Tensor* t = factors.add(choices, name, dtype, {s.num_channels}, Role::kInput, Where::kHost);
      fillReals(factors, *t, choices);
      held.push_back(factors.blocks().back());
      t->raw.device = {RBC_DEVICE_CPU, 0};
      t->raw.data = held.back().bytes.data() + t->shift;
      *of = t->hold();
    };
    factor("shift", &p.shift);
    factor("scale", &p.scale);
    if (choices.chance(2)) p.lengths = &kSomething;
    if (choices.chance(2)) p.sample_mask = &kSomething;
    if (choices.chance(20)) {
      time.code == RBC_DTYPE_INT ? s.clock_offset_ticks = 3 : s.clock_offset = 0.25;
    }
    if (s.num_channels > 0 && s.num_channels < 64) channels += s.num_channels;
    streams.push_back(s);
  }
  rbcLiveParams live_params = rbcLiveParamsInit();
  live_params.time_dtype = choices.chance(98) ? time : choices.pick(support::kIntegerDTypes);
  const int32_t count_argument =
      choices.chance(98) ? count : choices.pick({0, -1, RBC_FUSE_MAX_STREAMS + 1, INT32_MAX});
  Live live;
  if (transcript.ended(rbcLiveCreate(machine.context(), streams.data(), count_argument,
                                     &live_params, &live.handle),
                       "rbcLiveCreate", kArguments) != RBC_STATUS_SUCCESS) {
    if (live.handle != nullptr) throw Defect("rbcLiveCreate left a handle");
    return;
  }
  if (!support::same(live_params.time_dtype, time)) return;
  for (int64_t step = choices.between(1, 8); step > 0; --step) {
    if (choices.chance(10)) {
      const auto stream = static_cast<int32_t>(choices.between(-1, count));
      transcript.ended(rbcLiveReset(live.handle, stream), "rbcLiveReset", kArguments);
    } else if (choices.chance(60)) {
      Call call("rbcLivePush");
      call.adds_up = true;
      const auto stream = static_cast<int32_t>(choices.below(count));
      const rbcLiveStream& s = streams[static_cast<size_t>(stream)];
      const int64_t pushed = choices.below(12);
      Tensor* times = call.add(choices, "times", time, {pushed}, Role::kInput, Where::kHost);
      fillTimes(call, *times, choices);
      fillWild(call, *times, choices);
      Tensor* values = call.add(choices, "values", s.dtype, {pushed, s.num_channels}, Role::kInput,
                                Where::kHost);
      fillReals(call, *values, choices);
      Tensor* arrivals = choices.chance(60) ? call.add(choices, "arrivals", time, {pushed},
                                                       Role::kInput, Where::kHost)
                                            : nullptr;
      if (arrivals != nullptr) {
        fillTimes(call, *arrivals, choices);
        fillWild(call, *arrivals, choices);
      }
      if (choices.chance(20)) spoil(call, choices);
      const int32_t number = choices.chance(97) ? stream : choices.pick({-1, count, INT32_MAX});
      call.names = kArguments;
      call.run = [&](rbcContext_t, const Handles&) {
        return rbcLivePush(live.handle, number, values->get(), times->get(),
                           arrivals != nullptr ? arrivals->get() : nullptr);
      };
      transcript.outcome(run(machine, call, 0xA5));
    } else {
      Call call("rbcLiveFuse");
      const int64_t queries = choices.below(5);
      Tensor* query = call.add(choices, "query_times", time, {queries}, Role::kInput, Where::kHost);
      fillTimes(call, *query, choices);
      fillWild(call, *query, choices);
      Tensor* out = call.addPlain("out", anyFloat(choices), {queries, channels}, Role::kOutput);
      Tensor* mask = choices.chance(60)
                         ? call.addPlain("valid", anyFlag(choices), {queries, count}, Role::kOutput)
                         : nullptr;
      Tensor* ages = choices.chance(60)
                         ? call.add(choices, "ages",
                                    time.code == RBC_DTYPE_INT ? support::kI64 : support::kF64,
                                    {count}, Role::kOutput, Where::kHost)
                         : nullptr;
      rbcLiveFuseParams how = rbcLiveFuseParamsInit();
      if (choices.chance(40)) {
        const bool ticks = (time.code == RBC_DTYPE_INT) == choices.chance(97);
        if (ticks) how.lag_ticks = choices.pick<int64_t>({1, 30, -2, INT64_MAX, INT64_MIN});
        if (!ticks) how.lag = choices.pick({0.25, 3.0, -1.0, 1e300, HUGE_VAL});
      }
      if (choices.chance(20)) spoil(call, choices);
      call.names = kArguments;
      call.run = [&](rbcContext_t, const Handles&) {
        return rbcLiveFuse(live.handle, query->get(), out->get(),
                           mask != nullptr ? mask->get() : nullptr,
                           ages != nullptr ? ages->get() : nullptr, &how);
      };
      transcript.outcome(run(machine, call, 0x7F));
    }
  }
  const auto last = static_cast<int32_t>(choices.between(0, count));
  transcript.ended(rbcLiveReset(live.handle, last), "rbcLiveReset", kArguments);
  for (int32_t n = -1; n <= count; ++n) {
    rbcLiveCounters counters = rbcLiveCountersInit();
    if (choices.chance(5)) counters.struct_size = static_cast<uint32_t>(choices.below(200));
    const std::unique_ptr<uint8_t[]> exact(
        new uint8_t[std::max<size_t>(counters.struct_size, 4)]());
    std::memcpy(exact.get(), &counters.struct_size, 4);
    auto* const placed = reinterpret_cast<rbcLiveCounters*>(exact.get());
    if (transcript.ended(rbcLiveGetCounters(live.handle, n, placed), "rbcLiveGetCounters",
                         kArguments) == RBC_STATUS_SUCCESS) {
      transcript.bytes(exact.get(), counters.struct_size);
    }
  }
}

}  // namespace fuzz
