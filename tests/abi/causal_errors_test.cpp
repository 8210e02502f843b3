// Errors of arrivals, lag, RBC_FLAG_CAUSAL and max_age in rbcResample and rbcFuse.
#include <cmath>
#include <cstdint>

#include "abi/error_table.h"
#include "abi/fuse_call.h"
#include "abi/resample_call.h"

namespace {

using support::checkErrors;
using support::kF32;
using support::kF64;
using Resample = resample_call::Call;
using Fuse = fuse_call::Call;

constexpr rbcStatus_t kInvalid = RBC_STATUS_INVALID_ARGUMENT;

const double kZeros[6] = {};
rbcTensor zeros(rbcDType dtype, int32_t ndim, int64_t* shape) {
  return {const_cast<double*>(kZeros), {RBC_DEVICE_CPU, 0}, ndim, dtype, shape, nullptr, 0};
}

rbcChannelGroup group(uint32_t flags, double max_age, int32_t method = RBC_METHOD_LINEAR) {
  return {0, 4, method, 0, flags, 0, max_age};
}

}  // namespace

TEST_CASE("causal errors: the good calls are good") {
  int64_t shape[] = {2, 3};
  const rbcTensor arrivals = zeros(kF64, 2, shape);
  Resample call;
  call.params.arrivals = &arrivals;
  call.params.lag = -0.5;
  call.params.flags = RBC_FLAG_CAUSAL | RBC_FLAG_CHECK_TIMES;
  call.params.max_age = 0;
  CHECK_SUCCEEDS(call.run());
  Resample grouped;
  grouped.regroup({group(RBC_FLAG_CAUSAL, INFINITY)});
  CHECK_SUCCEEDS(grouped.run());
}

TEST_CASE("causal errors: arrivals and lag") {
  int64_t shape[] = {2, 3};
  int64_t short_shape[] = {2, 2};
  int64_t row[] = {3};
  const rbcTensor narrow = zeros(kF32, 2, shape);
  const rbcTensor fewer = zeros(kF64, 2, short_shape);
  const rbcTensor shared = zeros(kF64, 1, row);
  rbcTensor device = zeros(kF64, 2, shape);
  device.device = {RBC_DEVICE_CUDA, 0};
  checkErrors<Resample>(
      {{RBC_STATUS_DTYPE_MISMATCH, "arrivals: dtype is float32, expected float64",
        [&](Resample& c) { c.params.arrivals = &narrow; }},
       {RBC_STATUS_SHAPE_MISMATCH, "arrivals: shape is [2,2], expected [2,3]",
        [&](Resample& c) { c.params.arrivals = &fewer; }},
       {RBC_STATUS_DEVICE_MISMATCH, "arrivals:", [&](Resample& c) { c.params.arrivals = &device; }},
       {RBC_STATUS_SHAPE_MISMATCH, "arrivals: shape is [3], expected [6]",
        [&](Resample& c) {
          c.pack();
          c.params.arrivals = &shared;
        }},
       {kInvalid, "lag: is nan, expected a finite float64",
        [](Resample& c) { c.params.lag = std::nan(""); }},
       {kInvalid, "lag: is -inf, expected a finite float64",
        [](Resample& c) { c.params.lag = -INFINITY; }},
       {kInvalid, "lag_ticks: is 4, expected lag for times of float64",
        [](Resample& c) { c.params.lag_ticks = 4; }}});
  Resample one_row;
  one_row.params.arrivals = &shared;
  CHECK_SUCCEEDS(one_row.run());
}

TEST_CASE("causal errors: what looks back only") {
  checkErrors<Resample>(
      {{kInvalid, "max_age: is 3, expected INFINITY without RBC_FLAG_CAUSAL",
        [](Resample& c) { c.params.max_age = 3; }},
       {kInvalid, "max_age: is -1, expected 0 or more",
        [](Resample& c) {
          c.params.flags = RBC_FLAG_CAUSAL;
          c.params.max_age = -1;
        }},
       {kInvalid, "max_age: is nan, expected 0 or more",
        [](Resample& c) {
          c.params.flags = RBC_FLAG_CAUSAL;
          c.params.max_age = std::nan("");
        }},
       {RBC_STATUS_UNSUPPORTED, "method: is next, which needs a later sample",
        [](Resample& c) {
          c.params.flags = RBC_FLAG_CAUSAL;
          c.params.method = RBC_METHOD_NEXT;
        }},
       {kInvalid, "tolerance: is 1, expected INFINITY with RBC_FLAG_CAUSAL",
        [](Resample& c) {
          c.params.flags = RBC_FLAG_CAUSAL;
          c.params.method = RBC_METHOD_NEAREST;
          c.params.tolerance = 1;
        }},
       {kInvalid, "flags: has RBC_FLAG_CAUSAL, expected it in the flags of groups",
        [](Resample& c) {
          c.params.flags = RBC_FLAG_CAUSAL;
          c.regroup({group(0, 0)});
        }},
       {kInvalid, "max_age: is 3, expected INFINITY: groups",
        [](Resample& c) {
          c.params.max_age = 3;
          c.regroup({group(RBC_FLAG_CAUSAL, 3)});
        }},
       {kInvalid, "groups[0].flags: is 0x1, expected RBC_FLAG_CAUSAL or 0",
        [](Resample& c) { c.regroup({group(RBC_FLAG_CHECK_TIMES, 0)}); }},
       {kInvalid, "groups[0].max_age: is 3, expected 0 without RBC_FLAG_CAUSAL",
        [](Resample& c) { c.regroup({group(0, 3)}); }},
       {kInvalid, "groups[0].max_age: is nan, expected 0 or more",
        [](Resample& c) { c.regroup({group(RBC_FLAG_CAUSAL, std::nan(""))}); }},
       {RBC_STATUS_UNSUPPORTED, "groups[0].method: is next, which needs a later sample",
        [](Resample& c) { c.regroup({group(RBC_FLAG_CAUSAL, 1, RBC_METHOD_NEXT)}); }},
       {kInvalid, "groups[0].reserved0: is 7, expected 0", [](Resample& c) {
          rbcChannelGroup odd = group(0, 0);
          odd.reserved0 = 7;
          c.regroup({odd});
        }}});
}

TEST_CASE("causal errors: what belongs to the params of a fusion") {
  checkErrors<Fuse>(
      {{kInvalid, "streams[2].params.flags: is 0x1, expected RBC_FLAG_CAUSAL or 0: set other flags",
        [](Fuse& c) { c.stream_params[2].flags = RBC_FLAG_CHECK_TIMES; }},
       {kInvalid, "streams[2].params.lag: is 1, expected 0: set it in rbcFuseParams",
        [](Fuse& c) { c.stream_params[2].lag = 1; }},
       {kInvalid, "streams[2].params.lag_ticks: is 1, expected 0: set it in rbcFuseParams",
        [](Fuse& c) { c.stream_params[2].lag_ticks = 1; }},
       {kInvalid, "lag: is inf, expected a finite", [](Fuse& c) { c.params.lag = INFINITY; }}});
}
