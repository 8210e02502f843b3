// Live fusion: pushes of any times, in any order, and fusions between them.
#include <algorithm>

#include "fuzz/fill.h"
#include "fuzz/programs.h"
#include "fuzz/spoil.h"

namespace fuzz {
namespace {

const std::vector<std::string> kArguments = {"context", "live",   "streams", "num_streams",
                                             "params",  "stream", "counters"};

struct Live {
  rbcLive_t handle = nullptr;
  ~Live() { rbcLiveDestroy(handle); }
};

}  // namespace

void liveProgram(Machine& machine, Choices choices, Transcript& transcript) {
  const rbcDType time = choices.pick(support::kTimeDTypes);
  const auto count = static_cast<int32_t>(choices.between(1, 3));
  std::vector<rbcLiveStream> streams;
  rbcResampleParams params[3];
  int64_t channels = 0;
  for (int32_t n = 0; n < count; ++n) {
    rbcResampleParams& p = params[n] = rbcResampleParamsInit();
    p.method = static_cast<int32_t>(choices.below(6));
    p.bounds = static_cast<int32_t>(choices.below(3));
    if (choices.chance(5)) p.method = choices.pick({6, 8, -1});
    rbcLiveStream s = rbcLiveStreamInit();
    s.dtype = anyFloat(choices);
    s.channels =
        choices.chance(97) ? choices.between(1, 5) : choices.pick<int64_t>({0, -1, INT64_MAX});
    s.capacity = choices.chance(97) ? choices.between(4, 24)
                                    : choices.pick<int64_t>({1, 0, -1, INT64_MAX, (1 << 24) + 1});
    s.late_bound = choices.chance(60) ? 0 : choices.chance(97) ? choices.below(4) : -1;
    if (choices.chance(30)) s.max_age = choices.pick({0.0, 3.0, 50.0});
    if (choices.chance(70)) s.params = &params[n];
    if (choices.chance(20)) {
      time.code == RBC_DTYPE_INT ? s.clock_offset_ticks = 3 : s.clock_offset = 0.25;
    }
    if (s.channels > 0 && s.channels < 64) channels += s.channels;
    streams.push_back(s);
  }
  rbcLiveParams live_params = rbcLiveParamsInit();
  live_params.time_dtype = time;
  Live live;
  if (transcript.ended(
          rbcLiveCreate(machine.context(), streams.data(), count, &live_params, &live.handle),
          "rbcLiveCreate", kArguments) != RBC_STATUS_SUCCESS) {
    if (live.handle != nullptr) throw Defect("rbcLiveCreate left a handle");
    return;
  }

  for (int64_t step = choices.between(1, 8); step > 0; --step) {
    if (choices.chance(60)) {
      Call call("rbcLivePush");
      const auto stream = static_cast<int32_t>(choices.below(count));
      const rbcLiveStream& s = streams[static_cast<size_t>(stream)];
      const int64_t pushed = choices.below(12);
      Tensor* times = call.add(choices, "times", time, {pushed}, Role::kInput, Where::kHost);
      fillTimes(call, *times, choices);
      Tensor* values =
          call.add(choices, "values", s.dtype, {pushed, s.channels}, Role::kInput, Where::kHost);
      fillReals(call, *values, choices);
      if (choices.chance(20)) spoil(call, choices);
      const int32_t told = choices.chance(97) ? stream : choices.pick({-1, count, INT32_MAX});
      call.names = kArguments;
      call.run = [&](rbcContext_t context, const Handles&) {
        return rbcLivePush(context, live.handle, told, times->get(), values->get());
      };
      transcript.outcome(run(machine, call, 0xA5));
    } else {
      Call call("rbcLiveFuse");
      const int64_t queries = choices.below(5);
      Tensor* query = call.add(choices, "query_times", time, {queries}, Role::kInput, Where::kHost);
      fillTimes(call, *query, choices);
      Tensor* out = call.addPlain("out", anyFloat(choices), {queries, channels}, Role::kOutput);
      Tensor* mask = choices.chance(60)
                         ? call.addPlain("mask", anyFlag(choices), {queries, count}, Role::kOutput)
                         : nullptr;
      Tensor* ages = choices.chance(60)
                         ? call.add(choices, "ages",
                                    time.code == RBC_DTYPE_INT ? support::kI64 : support::kF64,
                                    {count}, Role::kOutput, Where::kHost)
                         : nullptr;
      if (choices.chance(20)) spoil(call, choices);
      call.names = kArguments;
      call.run = [&](rbcContext_t context, const Handles&) {
        return rbcLiveFuse(context, live.handle, query->get(), out->get(),
                           mask != nullptr ? mask->get() : nullptr,
                           ages != nullptr ? ages->get() : nullptr);
      };
      transcript.outcome(run(machine, call, 0x7F));
    }
  }
  for (int32_t n = -1; n <= count; ++n) {
    rbcLiveCounters counters = rbcLiveCountersInit();
    if (transcript.ended(rbcLiveGetCounters(live.handle, n, &counters), "rbcLiveGetCounters",
                         kArguments) == RBC_STATUS_SUCCESS) {
      transcript.bytes(&counters, sizeof counters);
    }
  }
}

}  // namespace fuzz
