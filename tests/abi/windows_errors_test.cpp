// Errors of rbcWindows: the message names the stream and the field, and no output is written.
#include <cmath>
#include <limits>
#include <vector>

#include "abi/struct_calls.h"
#include "abi/windows_call.h"
#include "abi/wrapper_size.h"
#include "support/accumulator.h"

namespace {

using support::checkDTypes;
using support::checkErrors;
using support::checkShapes;
using support::Seen;
using windows_call::Call;

constexpr auto kInvalid = RBC_STATUS_INVALID_ARGUMENT;
constexpr auto kShape = RBC_STATUS_SHAPE_MISMATCH;
constexpr auto kDType = RBC_STATUS_DTYPE_MISMATCH;

// Only one stream, so that the others may be anything.
void onlyActions(Call& c) { c.num_streams = 1; }

const support::StructCallsOf kWindowsStructs([](support::StructCalls& calls) {
  const rbcTensor* episodes = calls.in(support::kI32, {2}, {0, 1});
  const rbcTensor* anchors = calls.in(support::kI64, {2}, {0, 1});
  rbcWindowsStream stream = rbcWindowsStreamInit();
  stream.values = calls.in(support::kF32, {4, 1}, {1, 2, 4, 8});
  stream.episode_offsets = calls.in(support::kI64, {3}, {0, 2, 4});
  stream.offsets = calls.in(support::kI32, {2}, {0, 1});
  const std::vector<rbcWindowsStream> streams(2, stream);
  std::vector<rbcWindowsOutputs> outputs(2, rbcWindowsOutputsInit());
  for (rbcWindowsOutputs& each : outputs) each.out = calls.out(support::kF32, {2, 2, 1});
  const auto windows = [=, c = calls.context()](const rbcWindowsStream* of,
                                                const rbcWindowsOutputs* to,
                                                const rbcWindowsParams* params) {
    return rbcWindows(c, of, 2, episodes, anchors, to, params);
  };
  calls.add(
      "rbcWindowsStream", rbcWindowsStreamInit(), streams, "streams",
      [=](const rbcWindowsStream* object) { return windows(object, outputs.data(), nullptr); });
  calls.add(
      "rbcWindowsOutputs", rbcWindowsOutputsInit(), outputs, "outputs",
      [=](const rbcWindowsOutputs* object) { return windows(streams.data(), object, nullptr); });
  rbcWindowsParams params = rbcWindowsParamsInit();
  params.flags = RBC_FLAG_CHECK_TIMES;
  calls.add("rbcWindowsParams", rbcWindowsParamsInit(), {params}, "params",
            [=](const rbcWindowsParams* object) {
              return windows(streams.data(), outputs.data(), object);
            });
});

}  // namespace

COMMON_ERROR_TESTS("windows", Call)
STRUCT_ERROR_TESTS("windows", Call)

TEST_CASE("windows errors: the array of streams") {
  checkErrors<Call>(
      {{kInvalid, "num_streams: is 0, expected 1 to 16", [](Call& c) { c.num_streams = 0; }},
       {kInvalid, "num_streams: is -1, expected 1 to 16", [](Call& c) { c.num_streams = -1; }},
       {kInvalid, "num_streams: is 17, expected 1 to 16", [](Call& c) { c.num_streams = 17; }},
       {kInvalid, "streams[0]: struct_size is 0, expected 144",
        [](Call& c) { c.streams[0].struct_size = 0; }},
       {kInvalid, "streams[1]: struct_size is 176, expected 144 as streams[0]",
        [](Call& c) { c.streams[1].struct_size = 176; }},
       {kInvalid, "outputs[0]: struct_size is 4, expected 32",
        [](Call& c) { c.outputs[0].struct_size = 4; }},
       {kInvalid, "outputs[1]: struct_size is 16, expected 32 as outputs[0]",
        [](Call& c) { c.outputs[1].struct_size = 16; }},
       {kInvalid, "streams[1].transform_size: is 0, expected 56",
        [](Call& c) { c.streams[1].transform_size = 0; }},
       {kInvalid, "anchor_stream_index: is 3, expected 0 to 2",
        [](Call& c) { c.params.anchor_stream_index = 3; }},
       {kInvalid, "anchor_stream_index: is -1, expected 0 to 2",
        [](Call& c) { c.params.anchor_stream_index = -1; }},
       {kInvalid, "streams[0].mode: is 2, expected RBC_WINDOWS_MODE_GATHER or _INTERPOLATE",
        [](Call& c) { c.streams[0].mode = 2; }},
       {kInvalid, "streams[1].outside: is -1, expected RBC_OUTSIDE_HOLD, _FILL or _NEUTRAL",
        [](Call& c) { c.stream_params[1].outside = -1; }},
       {kInvalid,
        "outputs[1].accumulate: is 3, expected RBC_WINDOWS_ACCUMULATE_ALL, _VALID or _WHOLE",
        [](Call& c) { c.outputs[1].accumulate = 3; }}});
}

TEST_CASE("windows errors: shapes") {
  checkShapes<Call>(
      {{"episodes", {1, 2}, "rank is 2"},
       {"anchors", {3}, "shape is [3], expected [2]"},
       {"anchors", {2, 1}, "shape is [2,1], expected [2]"},
       {"streams[0].values", {18}, "rank is 1"},
       {"streams[0].values", {6, 3, 1}, "rank is 3"},
       {"streams[0].times", {5}, "shape is [5], expected [6]"},
       {"streams[0].episode_offsets", {3, 1}, "rank is 2"},
       {"streams[0].episode_offsets", {0}, "shape is [0], expected [E+1]"},
       {"streams[1].episode_offsets", {2}, "number of episodes is 1, expected 2 as in streams[0]"},
       {"streams[0].offsets", {3, 1}, "rank is 2"},
       {"streams[0].sample_mask", {5}, "shape is [5], expected [6]"},
       {"streams[0].shift", {2}, "shape is [2], expected [3]"},
       {"streams[0].scale", {2, 3}, "shape is [2,3], expected [3,3]"},
       {"streams[0].bias", {1, 1, 3}, "rank is 3"},
       {"streams[0].clip_min", {}, "rank is 0"},
       {"streams[0].clip_max", {3, 1}, "shape is [3,1], expected [3,3]"},
       {"streams[0].neutral", {4}, "shape is [4], expected [3]"},
       {"streams[0].neutral_channels", {3, 1}, "shape is [3,1], expected [3]"},
       {"outputs[0].out", {2, 3, 2}, "shape is [2,3,2], expected [2,3,3]"},
       {"outputs[0].valid", {3, 2}, "shape is [3,2], expected [2,3]"},
       {"outputs[1].out", {2, 4, 7}, "shape is [2,4,7], expected [2,4,9]"},
       {"outputs[2].out", {2, 2, 1}, "shape is [2,2,1], expected [2,2]"}});
  // The mask sets the number of rows of a stream without values and times.
  support::checkError<Call>(
      {kShape, "streams[2].sample_mask: rank is 2 (shape [6,1]), expected 1", [](Call& c) {
         c.streams[0].params = nullptr;
         c.streams[0].neutral = c.streams[0].neutral_channels = nullptr;
         c.stream_params[0].outside = RBC_OUTSIDE_HOLD;
         c.streams[2].params = &c.stream_params[0];
         c.actions.sample_mask.reshape({6, 1});
       }});
}

TEST_CASE("windows errors: dtypes") {
  using namespace support;
  checkDTypes<Call>({{"episodes", kF32, "dtype is float32, expected int32 or int64"},
                     {"anchors", kF64, "dtype is float64, expected int64"},
                     {"streams[0].times", kU64, "dtype is uint64, expected float32, float64 or"},
                     {"streams[1].times", kI64, "dtype is int64, expected float64 as"},
                     {"streams[0].episode_offsets", kF32, "dtype is float32, expected int32"},
                     {"streams[0].offsets", kF64, "dtype is float64, expected int32 or int64"},
                     {"streams[1].offsets", kI64, "dtype is int64, expected float64 as times"},
                     {"streams[1].values", kI64, "dtype is int64, expected a float to interpolate"},
                     {"streams[0].sample_mask", kI8, "dtype is int8, expected bool or uint8"},
                     {"streams[0].shift", kI32, "dtype is int32, expected float32 or float64"},
                     {"streams[0].neutral_channels", kI8, "dtype is int8, expected bool or uint8"},
                     {"outputs[0].out", kI32, "dtype is int32, expected a float"},
                     {"outputs[0].valid", kI8, "dtype is int8, expected bool or uint8"},
                     {"outputs[2].out", kF64, "dtype is float64, expected int64 for numbers"}});
  checkErrors<Call>(
      {{kDType, "anchors: dtype is int64, expected float64 as times",
        [](Call& c) {
          c.params.flags = RBC_WINDOWS_FLAG_ANCHOR_TIMES;
          c.num_streams = 2;
        }},
       // Integers keep their dtype only if they are copied.
       {kDType, "outputs[0].out: dtype is int16, expected int32 or a float", [](Call& c) {
          onlyActions(c);
          c.actions.values.raw.dtype = kI32;
          rbcWindowsStream& s = c.streams[0];
          s.transforms = nullptr;
          s.num_transforms = 0;
          s.shift = s.scale = s.bias = s.clip_min = s.clip_max = s.neutral = nullptr;
          c.actions.out.raw.dtype = kI16;
        }}});
}

TEST_CASE("windows errors: parameters that belong elsewhere or are not used") {
  const float zeros[3] = {0, 0, 0};
  int64_t extent = 3;
  const rbcTensor some = {
      const_cast<float*>(zeros), {RBC_DEVICE_CPU, 0}, 1, support::kF32, &extent, nullptr, 0};
  checkErrors<Call>(
      {{kInvalid,
        "streams[0].params.flags: is 0x1, expected RBC_FLAG_CAUSAL or 0: set other flags in",
        [](Call& c) { c.stream_params[0].flags = RBC_FLAG_CHECK_TIMES; }},
       {kInvalid,
        "streams[1]: flags: 0x2 has unknown bits, expected RBC_WINDOWS_FLAG_SCALE_DIVIDES",
        [](Call& c) { c.streams[1].flags = 2; }},
       {kInvalid, "streams[1]: reserved0 is not 0", [](Call& c) { c.streams[1].reserved0 = 1; }},
       {kInvalid, "streams[1].outside: is 2, expected RBC_OUTSIDE_HOLD, _FILL or _NEUTRAL",
        [](Call& c) { c.stream_params[1].outside = RBC_OUTSIDE_EXTRAPOLATE; }},
       {kInvalid, "streams[0].params.lengths: is set, expected null: episode_offsets replaces it",
        [&](Call& c) { c.stream_params[0].lengths = &some; }},
       {kInvalid, "streams[0].params.query_lengths: is set, expected null: every offset",
        [&](Call& c) { c.stream_params[0].query_lengths = &some; }},
       {kInvalid,
        "streams[0].params.batch_offsets: is set, expected null: episode_offsets replaces it",
        [&](Call& c) { c.stream_params[0].batch_offsets = &some; }},
       {kInvalid, "streams[1].params.shift: is set, expected null: the stream's shift replaces it",
        [&](Call& c) { c.stream_params[1].shift = &some; }},
       {kInvalid, "streams[1].params.scale: is set, expected null: the stream's scale replaces",
        [&](Call& c) { c.stream_params[1].scale = &some; }},
       {kInvalid, "streams[0].params.method: is 1, expected 0 (linear): mode is gather",
        [](Call& c) { c.stream_params[0].method = RBC_METHOD_NEAREST; }},
       {kInvalid, "streams[0].params.groups: is set, expected null: mode is gather",
        [](Call& c) {
          c.stream_params[0].groups = c.groups;
          c.stream_params[0].num_groups = 2;
        }},
       {kInvalid, "streams[0].params.max_gap: is 1, expected INFINITY: mode is gather",
        [](Call& c) { c.stream_params[0].max_gap = 1; }},
       {kInvalid, "streams[0].params.tolerance: is 1, expected INFINITY: mode is gather",
        [](Call& c) { c.stream_params[0].tolerance = 1; }},
       {kInvalid, "streams[1].groups: channel 6 is in none of the groups",
        [](Call& c) { c.groups[0] = {3, 3, RBC_METHOD_LINEAR, 0, 0, 0, 0}; }},
       {kInvalid, "streams[1].tolerance: is for methods nearest, previous and next",
        [](Call& c) { c.stream_params[1].tolerance = 1; }},
       {kInvalid, "streams[0].params.flags: is set, expected none: mode is gather",
        [](Call& c) { c.stream_params[0].flags = RBC_FLAG_CAUSAL; }},
       {kInvalid, "streams[0].params.max_age: is set, expected none: mode is gather",
        [](Call& c) { c.stream_params[0].max_age = 1; }},
       {kInvalid, "streams[0].params.lag: is 1, expected 0: set it in rbcWindowsParams",
        [](Call& c) { c.stream_params[0].lag = 1; }},
       {kInvalid, "streams[2].params.arrivals: is set, but the stream has no times",
        [&](Call& c) {
          c.streams[2].params = &c.stream_params[2];
          c.stream_params[2].arrivals = &some;
        }},
       {kInvalid, "streams[0].neutral: is set, but outside is 0, expected RBC_OUTSIDE_NEUTRAL",
        [](Call& c) { c.stream_params[0].outside = RBC_OUTSIDE_HOLD; }},
       {kInvalid,
        "streams[0].neutral_channels: is set, but outside is 1, expected RBC_OUTSIDE_NEUTRAL",
        [](Call& c) {
          c.stream_params[0].outside = RBC_OUTSIDE_FILL;
          c.streams[0].neutral = nullptr;
        }},
       {kInvalid, "streams[2].clock_offset: is set, but the stream has no times",
        [](Call& c) { c.streams[2].clock_offset = 1; }},
       {kInvalid, "streams[2].clock_offset: is set, but the stream has no times",
        [](Call& c) { c.streams[2].clock_offset_ticks = 1; }},
       {kInvalid, "streams[0].clock_offset_ticks: is 5, expected clock_offset for times of float64",
        [](Call& c) { c.streams[0].clock_offset_ticks = 5; }},
       {kInvalid, "streams[1].clock_offset: is inf, expected a finite float64",
        [](Call& c) { c.streams[1].clock_offset = INFINITY; }},
       {kInvalid, "streams[2].shift: is set, expected null because values is null",
        [&](Call& c) { c.streams[2].shift = &some; }},
       {kInvalid, "streams[2].transforms: is set, expected null because values is null",
        [](Call& c) {
          c.streams[2].transforms = c.transforms;
          c.streams[2].num_transforms = 1;
        }},
       {kInvalid, "streams[2].outside: is RBC_OUTSIDE_NEUTRAL, but values is null",
        [](Call& c) {
          c.stream_params[2].outside = RBC_OUTSIDE_NEUTRAL;
          c.streams[2].params = &c.stream_params[2];
        }},
       {kInvalid, "streams[2].fill_value: 0.5 cannot be written as int64", [](Call& c) {
          c.streams[2].params = &c.stream_params[1];
          c.stream_params[1] = rbcResampleParamsInit();
          c.stream_params[1].fill_value = 0.5;
          c.streams[1] = c.streams[2];
          c.streams[1].params = nullptr;
          c.outputs[1].out = c.outputs[1].valid = nullptr;
        }}});
}

TEST_CASE("windows errors: streams that need times") {
  double time = 0;
  const rbcTensor scalar = {&time, {RBC_DEVICE_CPU, 0}, 0, support::kF64, nullptr, nullptr, 0};
  checkErrors<Call>(
      {{kShape, "streams[2].times: rank is 0 (shape []), expected 1",
        [&](Call& c) { c.streams[2].times = &scalar; }},
       {kInvalid, "streams[0].times: is null, expected a tensor: the anchors are times",
        [](Call& c) {
          c.params.flags = RBC_WINDOWS_FLAG_ANCHOR_TIMES;
          c.streams[0].times = nullptr;
        }},
       {kInvalid, "streams[2].times: is null, expected a tensor: the anchors are times",
        [](Call& c) { c.params.flags = RBC_WINDOWS_FLAG_ANCHOR_TIMES; }},
       {kInvalid,
        "streams[1].mode: is interpolate, but the anchors are rows of streams[2], which has no "
        "times",
        [](Call& c) { c.params.anchor_stream_index = 2; }}});
}

TEST_CASE("windows errors: transforms") {
  const auto first = [](auto&& change) { return [change](Call& c) { change(c.transforms[0]); }; };
  using T = rbcWindowsTransform;
  checkErrors<Call>(
      {{kInvalid, "streams[0].num_transforms: is 65, expected 0 to 64: 64 in all streams",
        [](Call& c) { c.streams[0].num_transforms = 65; }},
       {kInvalid, "streams[1].num_transforms: is 64, expected 0 to 63: 64 in all streams",
        [](Call& c) { c.streams[1].num_transforms = 64; }},
       {kInvalid, "streams[0].num_transforms: is -1",
        [](Call& c) { c.streams[0].num_transforms = -1; }},
       {kInvalid, "streams[0].transforms: is set, but num_transforms is 0",
        [](Call& c) { c.streams[0].num_transforms = 0; }},
       {kInvalid, "streams[0].transforms[0].kind: is 5, expected RBC_WINDOWS_TRANSFORM_COPY",
        first([](T& t) { t.kind = 5; })},
       {kInvalid, "streams[0].transforms[0].flags: 0x2 has unknown bits",
        first([](T& t) { t.flags = 2; })},
       {kInvalid, "streams[0].transforms[0]: reserved0 is not 0",
        first([](T& t) { t.reserved0 = 1; })},
       {kInvalid, "streams[0].transforms[0].count: is 0, expected 1 or more",
        first([](T& t) { t.count = 0; })},
       {kInvalid, "streams[0].transforms[0]: begins at channel 2 and has 2 channels",
        first([](T& t) { t.begin = 2; })},
       {kInvalid, "streams[0].transforms[0]: begins at channel -1 and has 2",
        first([](T& t) { t.begin = -1; })},
       {kInvalid, "streams[0].transforms[0]: begins at channel 9223372036854775807 and has 2",
        first([](T& t) { t.begin = std::numeric_limits<int64_t>::max(); })},
       {kInvalid, "streams[0].transforms[1]: shares channel 1 with transforms[0]",
        [](Call& c) {
          c.transforms[1] = c.transforms[0];
          c.transforms[1].begin = 1;
          c.streams[0].num_transforms = 2;
          c.num_streams = 1;
        }},
       {kInvalid,
        "streams[0].transforms[0].reference_stream_index: is 3, expected 0 to 2: a stream of",
        first([](T& t) { t.reference_stream_index = 3; })},
       {kInvalid, "streams[0].transforms[0].reference_stream_index: is -1, expected 0 to 2",
        first([](T& t) { t.reference_stream_index = -1; })},
       {kInvalid, "streams[0].transforms[0].reference_stream_index: is 2, which has no values",
        first([](T& t) { t.reference_stream_index = 2; })},
       {kInvalid,
        "streams[0].transforms[0].reference_offset_index: is 3, expected the index of one of",
        first([](T& t) { t.reference_offset_index = 3; })},
       {kInvalid,
        "streams[0].transforms[0].reference_offset_index: is -1, expected the index of one of",
        first([](T& t) { t.reference_offset_index = -1; })},
       {kInvalid,
        "streams[0].transforms[0].reference_begin: is 2, expected 2 channels from there within "
        "the 3 of streams[0]",
        first([](T& t) { t.reference_begin = 2; })},
       {kInvalid, "streams[0].transforms[0].reference_begin: is -1, expected 2 channels",
        first([](T& t) { t.reference_begin = -1; })},
       {kInvalid, "streams[1].transforms[0].rotation: is 7, expected one of RBC_ROTATION_",
        [](Call& c) { c.transforms[1].rotation = 7; }},
       {kInvalid, "streams[1].transforms[0].reference_rotation: is -1, expected one of",
        [](Call& c) { c.transforms[1].reference_rotation = -1; }},
       {kInvalid, "streams[1].transforms[0].out_rotation: is 44, expected one of RBC_ROTATION_",
        [](Call& c) { c.transforms[1].out_rotation = 44; }},
       {kInvalid, "streams[1].transforms[0].count: is 7, expected 12: 3 of the position and 9 of",
        [](Call& c) { c.transforms[1].rotation = RBC_ROTATION_MATRIX; }},
       {kInvalid,
        "streams[1].transforms[0].reference_begin: is 0, expected 9 channels from there within "
        "the 7 of streams[1]",
        [](Call& c) { c.transforms[1].reference_rotation = RBC_ROTATION_ROT6D_ROWS; }},
       // A reference in a stream without offsets.
       {kInvalid,
        "streams[0].transforms[0].reference_offset_index: is 1, expected the index of one of",
        [](Call& c) {
          onlyActions(c);
          c.actions.offsets.reshape({0});
          c.actions.out.reshape({2, 0, 3});
          c.actions.valid.reshape({2, 0});
          c.actions.scale.reshape({0, 3});
          c.actions.clip_max.reshape({0, 3});
        }}});
}

TEST_CASE("windows errors: bad data, on the CPU") {
  const auto kNaN = std::numeric_limits<float>::quiet_NaN();
  checkErrors<Call>(
      {{kInvalid, "episodes: index 1 is 2, expected 0 to 1",
        [](Call& c) {
          c.episodes.fill<int32_t>({0, 2});
        }},
       {kInvalid, "episodes: index 0 is -1, expected 0 to 1",
        [](Call& c) {
          c.episodes.fill<int32_t>({-1, 0});
        }},
       {kInvalid, "streams[0].episode_offsets: decrease at index 1 (4 -> 3)",
        [](Call& c) {
          c.actions.episode_offsets.fill<int32_t>({4, 3, 6});
        }},
       {kInvalid, "streams[1].episode_offsets: index 2 is 6, past the 5 rows",
        [](Call& c) {
          c.poses.episode_offsets.fill<int64_t>({0, 3, 6});
        }},
       {kInvalid, "streams[0].episode_offsets: index 0 is -1, expected 0 or more",
        [](Call& c) {
          c.actions.episode_offsets.fill<int32_t>({-1, 4, 6});
        }},
       {kInvalid, "streams[2].episode_offsets: decrease at index 2 (4 -> 3)",
        [](Call& c) {
          c.numbers.episode_offsets.fill<int64_t>({0, 4, 3});
        }},
       {kInvalid, "streams[0].shift: is NaN at channel 2",
        [&](Call& c) {
          c.actions.shift.fill<float>({0, 0, kNaN});
        }},
       {kInvalid, "streams[0].scale: is NaN at channel 1 (offset 2)",
        [](Call& c) {
          c.actions.scale.fill<double>({0, 0, 0, 0, 0, 0, 0, std::nan(""), 0});
        }},
       {kInvalid, "streams[0].bias: is NaN at channel 0",
        [&](Call& c) {
          c.actions.bias.fill<float>({kNaN, 0, 0});
        }},
       {kInvalid, "streams[0].clip_min: is NaN at channel 0",
        [&](Call& c) {
          c.actions.clip_min.fill<float>({kNaN, 0, 0});
        }},
       {kInvalid, "streams[0].clip_max: is NaN at channel 0 (offset 1)",
        [&](Call& c) {
          c.actions.clip_max.fill<float>({0, 0, 0, kNaN, 0, 0, 0, 0, 0});
        }},
       {kInvalid,
        "streams[0].episode_offsets: number of episodes is 0, expected 1 or more for 2 samples",
        [](Call& c) {
          c.num_streams = 1;
          c.actions.episode_offsets.reshape({1});
        }}});
}

TEST_CASE("windows errors: times and all offsets, if they are checked") {
  const auto checked = [](auto&& change) {
    return [change](Call& c) {
      c.params.flags = RBC_FLAG_CHECK_TIMES;
      change(c);
    };
  };
  constexpr auto kAlone = Seen::kByTheCallAlone;
  checkErrors<Call>(
      {{kInvalid, "streams[0].times: episode 0 decreases at index 2 (0.5 -> 0.25)",
        checked([](Call& c) {
          c.actions.times.fill<double>({0, 0.5, 0.25, 1.5, 10, 10.5});
        }),
        kAlone},
       {kInvalid, "streams[1].times: episode 1 is NaN at index 1", checked([](Call& c) {
          c.poses.times.fill<double>({0, 1, 2, 10, std::nan("")});
        }),
        kAlone},
       // An episode without a sample.
       {kInvalid, "streams[2].episode_offsets: decrease at index 2 (4 -> 3)", checked([](Call& c) {
          c.episodes.fill<int32_t>({0, 0});
          c.numbers.episode_offsets.fill<int64_t>({0, 4, 3});
        })},
       {kInvalid, "episodes: index 1 is 2, expected 0 to 1", checked([](Call& c) {
          c.episodes.fill<int32_t>({0, 2});
        })}});
  Call good;
  good.params.flags = RBC_FLAG_CHECK_TIMES;
  good.actions.times.fill<double>({0, 0.5, 1, 1.5, -10, -10});  // the next episode begins anew
  good.poses.times.fill<double>({0, 1, 2, -10, -10});
  CHECK_SUCCEEDS(good.run());
  good.numbers.episode_offsets.fill<int64_t>({0, 4, 3});
  good.episodes.fill<int32_t>({0, 0});
  good.params.flags = 0;
  CHECK_SUCCEEDS(good.run());
}

TEST_CASE("windows errors: accumulators that do not fit are not changed") {
  using support::Accumulator;
  using support::Context;
  const Context& context = support::refusingContext();
  const Context other = support::cpuContext(1);
  const auto refused = [&](const Accumulator& accumulator, rbcStatus_t status, const char* told,
                           auto&& change) {
    const support::Bytes before = support::exported(accumulator);
    support::checkError<Call>({status, told, [&](Call& c) {
                                 c.outputs[0].accumulator = accumulator.get();
                                 change(c);
                               }});
    CHECK(support::exported(accumulator) == before);
  };
  const auto nothing = [](Call&) {};
  const Accumulator three = support::makeAccumulator(context, 3, {0.5}, 8);
  const Accumulator four = support::makeAccumulator(context, 4, {0.5}, 8);
  const Accumulator foreign = support::makeAccumulator(other, 3, {0.5}, 8);
  refused(four, kShape,
          "outputs[0].accumulator: has 4 channels, expected 3, or 3 * 3 to count each offset "
          "separately",
          nothing);
  refused(foreign, kInvalid, "outputs[0].accumulator: belongs to another context", nothing);
  refused(three, kInvalid, "outputs[1].accumulator: is that of outputs[0], expected another",
          [&](Call& c) { c.outputs[1].accumulator = three.get(); });
  refused(three, kInvalid, "outputs[2].accumulator: is set, expected null because values is null",
          [&](Call& c) {
            c.outputs[0].accumulator = nullptr;
            c.outputs[2].accumulator = three.get();
          });
  // Errors in other arguments.
  refused(three, kInvalid, "streams[2].offsets: is null",
          [](Call& c) { c.streams[2].offsets = nullptr; });
  refused(three, kInvalid, "episodes: index 0 is 7", [](Call& c) {
    c.episodes.fill<int32_t>({7, 0});
  });
  // An accumulator of integers accepts only integers that are copied.
  rbcAccumulatorParams params = rbcAccumulatorParamsInit();
  params.num_channels = 3;
  params.dtype = support::kI32;
  rbcAccumulator_t made = nullptr;
  support::require(rbcAccumulatorCreate(context.get(), &params, &made));
  const Accumulator integers(made);
  refused(integers, kDType, "outputs[0].accumulator: dtype is int32, expected a float", nothing);
  // An accumulator whose quantiles are exact.
  const Accumulator resolved = support::makeAccumulator(context, 3, {0.5}, 8);
  const support::Array samples(support::kF32, {4, 3});
  do {
    support::require(support::update(context, resolved, samples));
  } while (support::nextPass(resolved));
  refused(resolved, kInvalid, "outputs[0].accumulator: its passes are over", nothing);
  // More windows than the accumulator allows: all are the same window, and no output is written.
  int64_t windows = int64_t{1} << 40;
  int64_t stride = 0;
  refused(three, RBC_STATUS_UNSUPPORTED,
          "outputs[0].accumulator: 3298534883328 samples and the 0 before are more than 2^40",
          [&](Call& c) {
            for (rbcTensor* each : {&c.episodes.raw, &c.anchors.raw}) {
              each->shape = &windows;
              each->strides = &stride;
            }
            for (rbcWindowsOutputs& outputs : c.outputs) outputs.out = outputs.valid = nullptr;
          });
}

TEST_CASE("wrapper: the workspace of windows has the size of its size function") {
  constexpr int64_t kRows = 20000;
  const std::vector<float> values(3 * kRows);
  std::vector<float> written(12);
  const int64_t ends[] = {0, kRows};
  const int64_t steps[] = {0, 1};
  const int32_t episodes[] = {0, 0};
  const int64_t anchors[] = {0, 9};
  robocache::WindowsStream stream(robocache::Tensor(values, {kRows, 3}),
                                  robocache::Tensor(ends, {2}), robocache::Tensor(steps, {2}));
  stream.out = robocache::Tensor(written, {2, 2, 3});
  CHECK(CHECKED_WRAPPER_SIZE(windows, {stream}, {episodes, {2}}, {anchors, {2}}) > 0);
}
