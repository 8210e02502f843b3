// A good call of rbcWindows for tests to spoil: actions relative to now and normalized, poses at
// times between those of their samples, and numbers of rows.
#pragma once

#include <string>
#include <vector>

#include "abi/common_errors.h"
#include "abi/operation_call.h"
#include "robocache/windows.h"

namespace windows_call {

using support::Argument;
using support::kBool;
using support::kF32;
using support::kF64;
using support::kI32;
using support::kI64;
using support::kU8;

// Two samples, one of each of two episodes. Outputs stay poisoned unless the call succeeds.
struct Call : support::OperationCall<Call, rbcWindows, rbcWindowsWorkspaceSize> {
  static constexpr int kStreams = 3;

  struct Actions {
    Argument values{kF32, {6, 3}};
    Argument episode_offsets{kI32, {3}};
    Argument times{kF64, {6}};
    Argument offsets{kI64, {3}};
    Argument sample_mask{kU8, {6}};  // all rows are present
    Argument shift{kF32, {3}};
    Argument scale{kF64, {3, 3}};
    Argument bias{kF32, {3}};
    Argument clip_min{kF32, {3}};
    Argument clip_max{kF32, {3, 3}};
    Argument neutral{kF32, {3}};
    Argument neutral_channels{kU8, {3}};
    Argument out{kF32, {2, 3, 3}};
    Argument valid{kU8, {2, 3}};
  } actions;
  struct Poses {
    Argument values{kF64, {5, 7}};
    Argument episode_offsets{kI64, {3}};
    Argument times{kF64, {5}};
    Argument offsets{kF64, {4}};
    Argument out{kF32, {2, 4, 9}};
    Argument valid{kBool, {2, 4}};
  } poses;
  struct Numbers {
    Argument episode_offsets{kI64, {3}};
    Argument offsets{kI32, {2}};
    Argument out{kI64, {2, 2}};
  } numbers;
  Argument episodes{kI32, {2}};
  Argument anchors{kI64, {2}};

  rbcWindowsTransform transforms[2] = {
      {0, 2, RBC_WINDOWS_TRANSFORM_SUBTRACT, 0, 0, 1, 0, 0, 0, 0, 0},
      {0, 7, RBC_WINDOWS_TRANSFORM_SE3_RELATIVE, 0, 1, 1, 0, RBC_ROTATION_QUAT_XYZW,
       RBC_ROTATION_QUAT_XYZW, RBC_ROTATION_ROT6D_ROWS, 0}};
  rbcChannelGroup groups[2] = {{3, 4, RBC_METHOD_SLERP, 0, 0, 0, 0},
                               {0, 3, RBC_METHOD_LINEAR, 0, 0, 0, 0}};
  rbcResampleParams stream_params[3] = {rbcResampleParamsInit(), rbcResampleParamsInit(),
                                        rbcResampleParamsInit()};
  rbcWindowsStream streams[kStreams];
  rbcWindowsOutputs outputs[kStreams];
  rbcWindowsParams params = rbcWindowsParamsInit();

  // The arguments of the call.
  const rbcWindowsStream* used_streams = streams;
  int32_t num_streams = kStreams;
  const rbcTensor* used_episodes = &episodes.raw;
  const rbcTensor* used_anchors = &anchors.raw;
  const rbcWindowsOutputs* used_outputs = outputs;
  const rbcWindowsParams* used_params = &params;

  Call() {
    actions.values.fill<float>(
        {0, 0, 100, 1, 10, 100, 2, 20, 100, 3, 30, 100, 4, 40, 100, 5, 50, 100});
    actions.episode_offsets.fill<int32_t>({0, 4, 6});
    actions.times.fill<double>({0, 0.5, 1, 1.5, 10, 10.5});
    actions.offsets.fill<int64_t>({-1, 0, 1});
    actions.sample_mask.fill<uint8_t>({1, 1, 2, 255, 1, 1});
    actions.shift.fill<float>({0, 0, 100});
    actions.scale.fill<double>({2, 1, 1, 2, 1, 1, 2, 1, 1});
    actions.bias.fill<float>({0.5f, 0, 0});
    actions.clip_min.fill<float>({-5, -5, -5});
    actions.clip_max.fill<float>({5, 5, 5, 5, 5, 5, 5, 5, 5});
    actions.neutral.fill<float>({9, 9, 9});
    actions.neutral_channels.fill<uint8_t>({1, 0, 1});
    poses.values.fill<double>({0, 0, 0, 0, 0, 0, 1,  //
                               1, 0, 0, 0, 0, 0, 1,  //
                               2, 0, 0, 0, 0, 0, 1,  //
                               3, 0, 0, 0, 0, 0, 1,  //
                               4, 0, 0, 0, 0, 0, 1});
    poses.episode_offsets.fill<int64_t>({0, 3, 5});
    poses.times.fill<double>({0, 1, 2, 10, 11});
    poses.offsets.fill<double>({-0.5, 0, 0.5, 0});
    numbers.episode_offsets.fill<int64_t>({0, 4, 9});
    numbers.offsets.fill<int32_t>({0, 5});
    episodes.fill<int32_t>({0, 1});
    anchors.fill<int64_t>({3, 0});

    for (rbcWindowsStream& stream : streams) stream = rbcWindowsStreamInit();
    for (rbcWindowsOutputs& output : outputs) output = rbcWindowsOutputsInit();
    rbcWindowsStream& a = streams[0];
    a.values = &actions.values.raw;
    a.episode_offsets = &actions.episode_offsets.raw;
    a.times = &actions.times.raw;
    a.offsets = &actions.offsets.raw;
    a.params = &stream_params[0];
    stream_params[0].outside = RBC_OUTSIDE_NEUTRAL;
    stream_params[0].sample_mask = &actions.sample_mask.raw;
    a.transforms = &transforms[0];
    a.num_transforms = 1;
    a.shift = &actions.shift.raw;
    a.scale = &actions.scale.raw;
    a.bias = &actions.bias.raw;
    a.clip_min = &actions.clip_min.raw;
    a.clip_max = &actions.clip_max.raw;
    a.neutral = &actions.neutral.raw;
    a.neutral_channels = &actions.neutral_channels.raw;
    outputs[0].out = &actions.out.raw;
    outputs[0].valid = &actions.valid.raw;
    rbcWindowsStream& p = streams[1];
    p.values = &poses.values.raw;
    p.episode_offsets = &poses.episode_offsets.raw;
    p.times = &poses.times.raw;
    p.offsets = &poses.offsets.raw;
    p.mode = RBC_WINDOWS_MODE_INTERPOLATE;
    p.params = &stream_params[1];
    stream_params[1].groups = groups;
    stream_params[1].num_groups = 2;
    p.transforms = &transforms[1];
    p.num_transforms = 1;
    outputs[1].out = &poses.out.raw;
    outputs[1].valid = &poses.valid.raw;
    rbcWindowsStream& n = streams[2];
    n.episode_offsets = &numbers.episode_offsets.raw;
    n.offsets = &numbers.offsets.raw;
    outputs[2].out = &numbers.out.raw;
  }

  auto arguments() const {
    return std::make_tuple(used_streams, num_streams, used_episodes, used_anchors, used_outputs,
                           used_params);
  }
  void checkOutputs() const {
    const auto check = [](const Argument& out, const std::vector<float>& expected) {
      size_t i = 0;
      for (const uint64_t bits : out.array.elements()) {
        CHECK(support::decodeFloat(kF32, bits) == static_cast<long double>(expected[i++]));
      }
    };
    using Bits = std::vector<uint64_t>;
    check(actions.out, {-1.5f, -5, 0, 0.5f, 0, 0, 9, 0, 9,  //
                        0.5f, 0, 0, 0.5f, 0, 0, 2.5f, 5, 0});
    CHECK(actions.valid.array.elements() == Bits{1, 1, 0, 0, 1, 1});
    std::vector<float> relative;
    for (const float x : {-0.5f, 0.0f, 0.5f, 0.0f, 0.0f, 0.0f, 0.5f, 0.0f}) {
      for (const float y : {x, 0.0f, 0.0f, 1.0f, 0.0f, 0.0f, 0.0f, 1.0f, 0.0f}) {
        relative.push_back(y);
      }
    }
    check(poses.out, relative);
    CHECK(poses.valid.array.elements() == Bits{1, 1, 1, 1, 0, 1, 1, 1});
    CHECK(numbers.out.array.elements() == Bits{3, 3, 4, 8});
  }

  static std::vector<support::TensorOf<Call>> tensors() {
    using support::Access;
#define ACTIONS(field)                                                         \
  {                                                                            \
    "streams[0]." #field, [](Call& c) -> Argument& { return c.actions.field; } \
  }
#define POSES(field)                                                         \
  {                                                                          \
    "streams[1]." #field, [](Call& c) -> Argument& { return c.poses.field; } \
  }
    return {
        ACTIONS(values),
        ACTIONS(episode_offsets),
        ACTIONS(times),
        ACTIONS(offsets),
        ACTIONS(sample_mask),
        ACTIONS(shift),
        ACTIONS(scale),
        ACTIONS(bias),
        ACTIONS(clip_min),
        ACTIONS(clip_max),
        ACTIONS(neutral),
        ACTIONS(neutral_channels),
        POSES(values),
        POSES(episode_offsets),
        POSES(times),
        POSES(offsets),
        {"streams[2].episode_offsets",
         [](Call& c) -> Argument& { return c.numbers.episode_offsets; }},
        {"streams[2].offsets", [](Call& c) -> Argument& { return c.numbers.offsets; }},
        {"episodes", [](Call& c) -> Argument& { return c.episodes; }},
        {"anchors", [](Call& c) -> Argument& { return c.anchors; }},
        {"outputs[0].out", [](Call& c) -> Argument& { return c.actions.out; }, Access::kWritten},
        {"outputs[0].valid", [](Call& c) -> Argument& { return c.actions.valid; },
         Access::kWritten},
        {"outputs[1].out", [](Call& c) -> Argument& { return c.poses.out; }, Access::kWritten},
        {"outputs[1].valid", [](Call& c) -> Argument& { return c.poses.valid; }, Access::kWritten},
        {"outputs[2].out", [](Call& c) -> Argument& { return c.numbers.out; }, Access::kWritten}};
#undef ACTIONS
#undef POSES
  }
  static std::vector<support::StructOf<Call>> structs() {
    return {support::structOf("params", &Call::params, &Call::used_params,
                              RBC_FLAG_CHECK_TIMES | RBC_WINDOWS_FLAG_ANCHOR_TIMES),
            {"streams[1].params", sizeof(rbcResampleParams),
             [](Call& c) -> void* { return &c.stream_params[1]; },
             [](Call& c, const void* s) {
               c.streams[1].params = static_cast<const rbcResampleParams*>(s);
             },
             support::reservedOf<rbcResampleParams>(), false}};
  }
  static std::vector<support::PointerOf<Call>> pointers() {
    return {{"streams: is null", [](Call& c) { c.used_streams = nullptr; }},
            {"streams[1].values: is null", [](Call& c) { c.streams[1].values = nullptr; }},
            {"streams[1].times: is null", [](Call& c) { c.streams[1].times = nullptr; }},
            {"streams[0].episode_offsets: is null",
             [](Call& c) { c.streams[0].episode_offsets = nullptr; }},
            {"streams[2].offsets: is null", [](Call& c) { c.streams[2].offsets = nullptr; }},
            {"episodes: is null", [](Call& c) { c.used_episodes = nullptr; }},
            {"outputs: is null", [](Call& c) { c.used_outputs = nullptr; }},
            {"anchors: is null", [](Call& c) { c.used_anchors = nullptr; }},
            {"streams[0].transforms: is null", [](Call& c) { c.streams[0].transforms = nullptr; }}};
  }
};

}  // namespace windows_call
