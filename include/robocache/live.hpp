// Fusion at run time, of samples as they arrive. See robocache.hpp.
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

// One sensor: how many samples are kept, and how they are fused. Live::create copies the tensors'
// data; it is not used later.
struct LiveStream : StreamOptions {
  explicit LiveStream(int64_t d, rbcDType of_values = dtypeOf<float>())
      : num_channels(d), dtype(of_values) {}

  int64_t num_channels;
  rbcDType dtype;
  int64_t capacity = 256;          // how many samples are kept, the newest ones
  int64_t late_bound = 0;          // how many kept samples may be newer than one that arrives
  double max_ahead = INFINITY;     // how far a sample may be after the newest one, in the same unit
  double clock_offset = 0;         // for f32, f64 times: added to the time of each sample
  int64_t clock_offset_ticks = 0;  // the same for i64 times
};

// The options of Live::fuse.
struct LiveFuseOptions {
  double lag = 0;         // for f32, f64 times: what arrived up to q + lag exists for query q
  int64_t lag_ticks = 0;  // the same for i64 times
};

// Sensors that are fused while they are recorded: see rbcLive_t. One thread per sensor pushes, and
// one thread fuses. It keeps its context alive. It may be moved or destroyed only while no thread
// uses it.
class Live {
 public:
  // Creates the ring buffers of the sensors: see rbcLiveCreate.
  template <class Errors = DefaultErrors>
  static Returned<Errors, Live> create(const Context& context,
                                       const std::vector<LiveStream>& streams,
                                       rbcDType time_dtype = dtypeOf<double>()) {
    detail::Call call;
    rbcResampleParams resampling[RBC_FUSE_MAX_STREAMS];
    rbcLiveStream raw[RBC_FUSE_MAX_STREAMS];
    // If there are more, the library refuses their number before it reads any of them.
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

  // The handle for the C interface; null if this object was moved from.
  rbcLive_t get() const noexcept { return live_.get(); }

  // Adds samples of a stream, in the order in which they arrive: values [n,D], times [n] and, if
  // calls of fuse have a lag, arrivals [n], in host memory. Wait-free.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> push(int32_t stream_index, const Tensor& values, const Tensor& times,
                              const std::optional<Tensor>& arrivals = std::nullopt) {
    detail::Call call;
    return call.make<Errors>(rbcLivePush, get(), stream_index, call.in(values, "values"),
                             call.in(times, "times"), call.in(arrivals, "arrivals"));
  }
  // Fuses the samples in the rings: see rbcLiveFuse. On CUDA it waits for the stream.
  //
  //   query_times  [T]: the tick, or the tick and earlier ones; in host memory
  //   out          [T,D_0 + ... + D_N-1], written whole
  //   valid        [T,N] bool or u8, written: 1 if the stream's value is valid
  //   ages         [N] f64, or i64 for i64 times, written: each stream's age at the newest query;
  //                in host memory
  template <class Errors = DefaultErrors>
  Returned<Errors, void> fuse(const Tensor& query_times, const Tensor& out,
                              const std::optional<Tensor>& valid = std::nullopt,
                              const std::optional<Tensor>& ages = std::nullopt,
                              const LiveFuseOptions& options = {}) {
    detail::Call call;
    rbcLiveFuseParams params = rbcLiveFuseParamsInit();
    params.lag = options.lag;
    params.lag_ticks = options.lag_ticks;
    return call.make<Errors>(rbcLiveFuse, get(), call.in(query_times, "query_times"),
                             call.out(out, "out"), call.out(valid, "valid"), call.out(ages, "ages"),
                             &params);
  }
  // Forgets the samples of a stream, for example after a driver has restarted or its clock was set
  // back. Only for the thread that pushes to the stream.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> reset(int32_t stream_index) {
    detail::Call call;
    return call.make<Errors>(rbcLiveReset, get(), stream_index);
  }
  // Returns the counts of a stream's samples: see rbcLiveCounters. Any thread may call it.
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
