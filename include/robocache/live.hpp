// Fusion at run time, of samples that arrive. See robocache.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "live.h"
#include "resample.hpp"

ROBOCACHE_NAMESPACE_BEGIN

// One sensor: what is kept of it, and how it is fused. Only Live::create reads what it refers to.
struct LiveStream : StreamOptions {
  explicit LiveStream(int64_t d, rbcDType of_values = dtypeOf<float>())
      : num_channels(d), dtype(of_values) {}

  int64_t num_channels;
  rbcDType dtype;
  int64_t capacity = 256;          // how many samples are kept, the newest ones
  int64_t late_bound = 0;          // how many kept samples may be newer than one that comes
  double max_age = INFINITY;       // in the unit of the times
  double max_ahead = INFINITY;     // how far after the newest sample one may be, in the unit of the times
  double clock_offset = 0;         // f32, f64 times: a sample at t counts as at t + clock_offset
  int64_t clock_offset_ticks = 0;  // the same for i64 times
};

// Sensors that are fused while they are recorded: see rbcLive_t. One thread a sensor pushes, one fuses.
// It belongs to the context that it is made with, which has to live as long as it is used. Movable, and
// destroyed, when no thread uses it.
class Live {
 public:
  // See rbcLiveCreate.
  template <class Errors = DefaultErrors>
  static Returned<Errors, Live> create(const Context& context,
                                       const std::vector<LiveStream>& streams,
                                       rbcDType time_dtype = dtypeOf<double>()) {
    detail::Call call;
    rbcResampleParams resampling[RBC_FUSE_MAX_STREAMS];
    rbcLiveStream raw[RBC_FUSE_MAX_STREAMS];
    // The library refuses more by their number, before it looks at one.
    const size_t used = std::min<size_t>(streams.size(), RBC_FUSE_MAX_STREAMS);
    for (size_t n = 0; n < used; ++n) {
      const LiveStream& stream = streams[n];
      call.enterStream(static_cast<int>(n));
      resampling[n] = detail::paramsOf(stream, call);
      raw[n] = rbcLiveStreamInit();
      raw[n].dtype = stream.dtype;
      raw[n].num_channels = stream.num_channels;
      raw[n].capacity = stream.capacity;
      raw[n].late_bound = stream.late_bound;
      raw[n].max_age = stream.max_age;
      raw[n].max_ahead = stream.max_ahead;
      raw[n].params = &resampling[n];
      raw[n].clock_offset = stream.clock_offset;
      raw[n].clock_offset_ticks = stream.clock_offset_ticks;
    }
    call.leaveStreams();
    rbcLiveParams params = rbcLiveParamsInit();
    params.time_dtype = time_dtype;
    rbcLive_t made = nullptr;
    const Result<void> done = call.make<Expect>(rbcLiveCreate, context.get(), raw,
                                                detail::count(streams), &params, &made);
    if (!done) return Errors::report(Result<Live>(done.error()));
    return Errors::report(Result<Live>(Live(made)));
  }

  // For the C interface; null if it was moved from.
  rbcLive_t get() const noexcept { return live_.get(); }

  // Adds samples of a stream, in the order in which they arrive: values [n,D], times [n]. Wait-free.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> push(int32_t stream_index, const Tensor& values, const Tensor& times) {
    detail::Call call;
    return call.make<Errors>(rbcLivePush, get(), stream_index, call.in(values, "values"),
                             call.in(times, "times"));
  }
  // Fuses what is there.
  //
  //   query_times  [T]: the tick, or it and those before
  //   out          [T,D_0 + ... + D_N-1], written whole
  //   valid        [T,N] bool or u8, written: 1 where a stream has a value
  //   ages         [N] f64, for i64 times i64, written: of each stream at the newest query
  template <class Errors = DefaultErrors>
  Returned<Errors, void> fuse(const Tensor& query_times, const Tensor& out,
                              const std::optional<Tensor>& valid = std::nullopt,
                              const std::optional<Tensor>& ages = std::nullopt) {
    detail::Call call;
    return call.make<Errors>(rbcLiveFuse, get(), call.in(query_times, "query_times"),
                             call.out(out, "out"), call.out(valid, "valid"),
                             call.out(ages, "ages"), nullptr);
  }
  // Forgets the samples of a stream: after a driver has restarted, or its clock was set back. For the
  // thread that pushes to it.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> reset(int32_t stream_index) {
    detail::Call call;
    return call.make<Errors>(rbcLiveReset, get(), stream_index);
  }
  // What has become of a stream's samples so far. From any thread.
  template <class Errors = DefaultErrors>
  Returned<Errors, rbcLiveCounters> counters(int32_t stream_index) const {
    rbcLiveCounters counters = rbcLiveCountersInit();
    const rbcStatus_t status = rbcLiveGetCounters(get(), stream_index, &counters);
    return Errors::report(detail::done(status, counters));
  }

 private:
  struct Destroy {
    void operator()(rbcLive_t live) const noexcept { rbcLiveDestroy(live); }
  };

  explicit Live(rbcLive_t live) noexcept : live_(live) {}

  std::unique_ptr<rbcLive, Destroy> live_;
};

ROBOCACHE_NAMESPACE_END
