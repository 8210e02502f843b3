// Resampling. See robocache.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "context.hpp"
#include "resample.h"

ROBOCACHE_NAMESPACE_BEGIN

// Interpolation methods: see RBC_METHOD_... in resample.h.
enum class Method : int32_t {
  kLinear = RBC_METHOD_LINEAR,
  kNearest = RBC_METHOD_NEAREST,
  kPrevious = RBC_METHOD_PREVIOUS,
  kNext = RBC_METHOD_NEXT,
  kCubic = RBC_METHOD_CUBIC,
  kPchip = RBC_METHOD_PCHIP,
  kSlerp = RBC_METHOD_SLERP,
  kAngle = RBC_METHOD_ANGLE,
};

// The unit and the range of angles: see RBC_PERIOD_... in resample.h.
enum class Period : int32_t {
  kRadians = RBC_PERIOD_RADIANS,
  kDegrees = RBC_PERIOD_DEGREES,
  kTurns = RBC_PERIOD_TURNS,
  kRadiansPositive = RBC_PERIOD_RADIANS_POSITIVE,
  kDegreesPositive = RBC_PERIOD_DEGREES_POSITIVE,
  kTurnsPositive = RBC_PERIOD_TURNS_POSITIVE,
};

// The result of queries before the first or after the last time; in windows, of elements outside
// the episode. See RBC_OUTSIDE_... in resample.h.
enum class Outside : int32_t {
  kHold = RBC_OUTSIDE_HOLD,
  kFill = RBC_OUTSIDE_FILL,
  kExtrapolate = RBC_OUTSIDE_EXTRAPOLATE,  // not in windows
  kNeutral = RBC_OUTSIDE_NEUTRAL,          // only in windows
};

// Returns a group of channels, begin .. begin + count - 1, with its own method, for
// StreamOptions::groups. The period applies only to Method::kAngle.
inline rbcChannelGroup channels(int64_t begin, int64_t count, Method method,
                                Period period = Period::kRadians) noexcept {
  return {begin, count, static_cast<int32_t>(method), static_cast<int32_t>(period), 0, 0, 0};
}

// Returns the group so that it looks back only (RBC_FLAG_CAUSAL): it is valid if its last sample is
// at most `max_age` old, in the unit of times.
inline rbcChannelGroup causal(rbcChannelGroup group, double max_age) noexcept {
  group.flags |= RBC_FLAG_CAUSAL;
  group.max_age = max_age;
  return group;
}

// How one stream is resampled: see rbcResampleParams in resample.h. Tensors are optional.
struct StreamOptions {
  Method method = Method::kLinear;
  std::vector<rbcChannelGroup> groups;  // must cover all channels; empty: method
  Outside outside = Outside::kHold;
  double fill_value = 0;          // written to invalid elements
  double max_gap = INFINITY;      // between the two samples around a query, in the unit of times
  double tolerance = INFINITY;    // for nearest, previous and next, in the unit of times
  std::optional<Tensor> lengths;  // [B] i32 or i64: valid samples of padded rows
  std::optional<Tensor> batch_offsets;  // [B+1] i32 or i64: the rows of packed values
  std::optional<Tensor> shift;          // [D] f32 or f64: out = (v - shift) * scale
  std::optional<Tensor> scale;          // [D] f32 or f64
  std::optional<Tensor> sample_mask;    // [B,S], [S] or [N] bool or u8: 0 where a sample is missing
  std::optional<Tensor> arrivals;  // [B,S], [S] or [N], the dtype of times: when each had arrived
  bool causal = false;             // without groups: it looks back only (RBC_FLAG_CAUSAL)
  double max_age = INFINITY;       // the same: how old a valid sample may be, in the unit of times
};

// The options of resample.
struct ResampleOptions : StreamOptions {
  bool check_times = false;             // verify times first; on CUDA this waits for the stream
  std::optional<Tensor> query_lengths;  // [B] i32 or i64: valid queries of each row
  std::optional<Tensor> valid;          // [B,T] bool or u8, written: 1 if the value is valid
  double lag = 0;         // for f32, f64 times: what arrived up to q + lag exists for query q
  int64_t lag_ticks = 0;  // the same for i64 times
};

namespace detail {

// The returned struct points into the options.
inline rbcResampleParams paramsOf(const StreamOptions& options, Call& call) {
  rbcResampleParams params = rbcResampleParamsInit();
  params.method = static_cast<int32_t>(options.method);
  params.outside = static_cast<int32_t>(options.outside);
  params.fill_value = options.fill_value;
  params.max_gap = options.max_gap;
  params.tolerance = options.tolerance;
  params.lengths = call.in(options.lengths, "lengths");
  params.batch_offsets = call.in(options.batch_offsets, "batch_offsets");
  params.shift = call.in(options.shift, "shift");
  params.scale = call.in(options.scale, "scale");
  params.sample_mask = call.in(options.sample_mask, "sample_mask");
  params.arrivals = call.in(options.arrivals, "arrivals");
  if (options.causal) params.flags |= RBC_FLAG_CAUSAL;
  params.max_age = options.max_age;
  params.groups = options.groups.empty() ? nullptr : options.groups.data();
  params.num_groups = count(options.groups);
  return params;
}

// Returns finish(call, arguments of rbcResample...).
template <class Finish>
auto resample(const Finish& finish, const Context& context, const Tensor& values,
              const Tensor& times, const Tensor& query_times, const Tensor& out,
              const ResampleOptions& options) {
  Call call;
  rbcResampleParams params = paramsOf(options, call);
  if (options.check_times) params.flags |= RBC_FLAG_CHECK_TIMES;
  params.query_lengths = call.in(options.query_lengths, "query_lengths");
  params.lag = options.lag;
  params.lag_ticks = options.lag_ticks;
  return finish(call, context.get(), call.in(values, "values"), call.in(times, "times"),
                call.in(query_times, "query_times"), call.out(out, "out"),
                call.out(options.valid, "valid"), &params);
}

}  // namespace detail

// Resamples trajectories from their own times to query times.
//
//   values       [B,S,D]; [S,D] without batch; [N,D] packed, with batch_offsets
//   times        [B,S], or [S] shared by the batch; [N] packed; f32, f64 or i64
//   query_times  [B,T], or [T] shared by the batch; the dtype of times
//   out          [B,T,D]; [T,D] without batch; written whole
//
// See rbcResample for dtypes, rules and errors. Asynchronous on CUDA: the memory must live until
// the stream is done with it.
template <class Errors = DefaultErrors>
Returned<Errors, void> resample(const Context& context, const Tensor& values, const Tensor& times,
                                const Tensor& query_times, const Tensor& out,
                                const ResampleOptions& options = {}) {
  return detail::resample(detail::run<Errors>(rbcResample), context, values, times, query_times,
                          out, options);
}

// Returns the workspace size in bytes of this call of resample, for Context::reserve.
template <class Errors = DefaultErrors>
Returned<Errors, size_t> resampleWorkspaceSize(const Context& context, const Tensor& values,
                                               const Tensor& times, const Tensor& query_times,
                                               const Tensor& out,
                                               const ResampleOptions& options = {}) {
  return detail::resample(detail::measure<Errors>(rbcResampleWorkspaceSize), context, values, times,
                          query_times, out, options);
}

ROBOCACHE_NAMESPACE_END
