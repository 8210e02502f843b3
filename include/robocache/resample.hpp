// Resampling. See robocache.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "context.hpp"
#include "resample.h"

ROBOCACHE_NAMESPACE_BEGIN

// See RBC_METHOD_... in resample.h.
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

// What queries before the first and after the last time get.
enum class Bounds : int32_t {
  kHold = RBC_BOUNDS_HOLD,
  kFill = RBC_BOUNDS_FILL,
  kExtrapolate = RBC_BOUNDS_EXTRAPOLATE,
};

// Channels begin .. begin + count - 1 by a method of their own, for StreamOptions::groups. Only
// Method::kAngle has a period.
inline rbcChannelGroup channels(int64_t begin, int64_t count, Method method,
                                Period period = Period::kRadians) noexcept {
  return {begin, count, static_cast<int32_t>(method), static_cast<int32_t>(period)};
}

// How one stream is resampled: see rbcResampleParams in resample.h. Tensors are optional.
struct StreamOptions {
  Method method = Method::kLinear;
  std::vector<rbcChannelGroup> groups;  // of all channels; none: method
  Bounds bounds = Bounds::kHold;
  double fill_value = 0;          // where there is no value
  double max_gap = INFINITY;      // between the two samples around a query, in the unit of times
  double tolerance = INFINITY;    // for nearest, previous and next, in the unit of times
  std::optional<Tensor> lengths;  // [B] i32 or i64: valid samples of padded rows
  std::optional<Tensor> offsets;  // [B+1] i32 or i64: the rows of packed values
  std::optional<Tensor> mean;     // [D] f32 or f64: out = (v - mean) * inv_std
  std::optional<Tensor> inv_std;  // [D] f32 or f64
  std::optional<Tensor> sample_mask;  // [B,S], [S] or [N] bool or u8: 0 where a sample is missing
};

// The options of resample.
struct ResampleOptions : StreamOptions {
  bool check_times = false;             // verify times first; on CUDA this waits for the stream
  std::optional<Tensor> query_lengths;  // [B] i32 or i64: valid queries of each row
  std::optional<Tensor> mask;           // [B,T] bool or u8, written: 1 where there is a value
};

namespace detail {

// Points into the options.
inline rbcResampleParams paramsOf(const StreamOptions& options, Call& call) {
  rbcResampleParams params = rbcResampleParamsInit();
  params.method = static_cast<int32_t>(options.method);
  params.bounds = static_cast<int32_t>(options.bounds);
  params.fill_value = options.fill_value;
  params.max_gap = options.max_gap;
  params.tolerance = options.tolerance;
  params.lengths = call.in(options.lengths, "lengths");
  params.offsets = call.in(options.offsets, "offsets");
  params.mean = call.in(options.mean, "mean");
  params.inv_std = call.in(options.inv_std, "inv_std");
  params.sample_mask = call.in(options.sample_mask, "sample_mask");
  params.groups = options.groups.empty() ? nullptr : options.groups.data();
  params.num_groups = count(options.groups);
  return params;
}

}  // namespace detail

// Resamples trajectories from their own times to query times.
//
//   values       [B,S,D]; [S,D] without batch; [N,D] packed, with offsets
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
  detail::Call call;
  rbcResampleParams params = detail::paramsOf(options, call);
  params.flags = options.check_times ? RBC_CHECK_TIMES : 0;
  params.query_lengths = call.in(options.query_lengths, "query_lengths");
  return call.make<Errors>(rbcResample, context.get(), call.in(values, "values"),
                           call.in(times, "times"), call.in(query_times, "query_times"),
                           call.out(out, "out"), call.out(options.mask, "mask"), &params);
}

ROBOCACHE_NAMESPACE_END
