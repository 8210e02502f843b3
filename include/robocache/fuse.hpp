// Fusion of streams. See robocache.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "fuse.h"
#include "resample.hpp"

ROBOCACHE_NAMESPACE_BEGIN

// One sensor: its samples and how they are resampled, as for resample. It does not own the memory.
struct FuseStream : StreamOptions {
  FuseStream(const Tensor& samples, const Tensor& at) : values(samples), times(at) {}

  Tensor values;
  Tensor times;                    // the same dtype in every stream
  double clock_offset = 0;         // for f32, f64 times: added to the time of each sample
  int64_t clock_offset_ticks = 0;  // the same for i64 times
};

// The options of fuse.
struct FuseOptions {
  bool check_times = false;             // verify times first; on CUDA this waits for the stream
  std::optional<Tensor> query_lengths;  // [B] i32 or i64: valid queries of each row
  std::optional<Tensor> valid;          // [B,T,N] bool or u8, written: 1 if the value is valid
  double lag = 0;         // for f32, f64 times: what arrived up to q + lag exists for query q
  int64_t lag_ticks = 0;  // the same for i64 times
};

namespace detail {

// Returns finish(call, arguments of rbcFuse...).
template <class Finish>
auto fuse(const Finish& finish, const Context& context, const std::vector<FuseStream>& streams,
          const Tensor& query_times, const Tensor& out, const FuseOptions& options) {
  Call call;
  rbcResampleParams params[RBC_FUSE_MAX_STREAMS];
  rbcFuseStream raw[RBC_FUSE_MAX_STREAMS];
  // If there are more, the library refuses their number before it reads any of them.
  const size_t used = std::min<size_t>(streams.size(), RBC_FUSE_MAX_STREAMS);
  for (size_t n = 0; n < used; ++n) {
    const FuseStream& stream = streams[n];
    call.enterStream(static_cast<int>(n));
    params[n] = paramsOf(stream, call);
    raw[n] = rbcFuseStreamInit();
    raw[n].values = call.in(stream.values, "values");
    raw[n].times = call.in(stream.times, "times");
    raw[n].params = &params[n];
    raw[n].clock_offset = stream.clock_offset;
    raw[n].clock_offset_ticks = stream.clock_offset_ticks;
  }
  call.leaveStreams();
  rbcFuseParams fuse_params = rbcFuseParamsInit();
  fuse_params.flags = options.check_times ? RBC_FLAG_CHECK_TIMES : 0;
  fuse_params.query_lengths = call.in(options.query_lengths, "query_lengths");
  fuse_params.lag = options.lag;
  fuse_params.lag_ticks = options.lag_ticks;
  return finish(call, context.get(), raw, count(streams), call.in(query_times, "query_times"),
                call.out(out, "out"), call.out(options.valid, "valid"), &fuse_params);
}

}  // namespace detail

// Resamples the streams onto one clock, side by side, in one launch.
//
//   streams      [N], 1 to RBC_FUSE_MAX_STREAMS
//   query_times  [B,T], or [T] shared by the batch; the dtype of the streams' times
//   out          [B,T,D_0 + ... + D_N-1]; [T,...] without batch; written whole
//
// See rbcFuse for dtypes, rules and errors. Asynchronous on CUDA, as resample.
template <class Errors = DefaultErrors>
Returned<Errors, void> fuse(const Context& context, const std::vector<FuseStream>& streams,
                            const Tensor& query_times, const Tensor& out,
                            const FuseOptions& options = {}) {
  return detail::fuse(detail::run<Errors>(rbcFuse), context, streams, query_times, out, options);
}

// Returns the workspace size in bytes of this call of fuse, for Context::reserve.
template <class Errors = DefaultErrors>
Returned<Errors, size_t> fuseWorkspaceSize(const Context& context,
                                           const std::vector<FuseStream>& streams,
                                           const Tensor& query_times, const Tensor& out,
                                           const FuseOptions& options = {}) {
  return detail::fuse(detail::measure<Errors>(rbcFuseWorkspaceSize), context, streams, query_times,
                      out, options);
}

ROBOCACHE_NAMESPACE_END
