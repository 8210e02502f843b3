// A good call of rbcFuse for tests to spoil: three streams on one clock, each of another kind.
#pragma once

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "abi/common_errors.h"
#include "abi/operation_call.h"

namespace fuse_call {

using support::Argument;
using support::kF32;
using support::kF64;
using support::kI32;
using support::kI64;
using support::kU8;
using support::Seen;

// B = 2, T = 2. Outputs stay poisoned unless the call succeeds.
struct Call : support::OperationCall<Call, rbcFuse, rbcFuseWorkspaceSize> {
  static constexpr int kStreams = 3;

  struct Padded {  // S = 3, D = 4
    Argument values{kF32, {2, 3, 4}};
    Argument times{kF64, {2, 3}};
    Argument lengths{kI64, {2}};
    Argument shift{kF32, {4}};
    Argument scale{kF64, {4}};
  } padded;
  struct Shared {  // S = 4, D = 1: integers with one row of times, half a second late
    Argument values{kI32, {2, 4, 1}};
    Argument times{kF64, {4}};
  } shared;
  struct Packed {  // D = 2: rows of 2 and of 3 samples
    Argument values{kF32, {5, 2}};
    Argument times{kF64, {5}};
    Argument offsets{kI32, {3}};
    Argument sample_mask{kU8, {5}};  // all samples are present
  } packed;
  Argument query_times{kF64, {2, 2}};
  Argument query_lengths{kI32, {2}};
  Argument out{kF32, {2, 2, 7}};
  Argument mask{kU8, {2, 2, 3}};

  rbcResampleParams stream_params[kStreams];
  rbcFuseStream streams[kStreams];
  rbcFuseParams params = rbcFuseParamsInit();
  std::vector<rbcChannelGroup> groups[kStreams];  // in use once regrouped

  // The arguments of the call.
  const rbcFuseStream* used_streams = streams;
  int32_t num_streams = kStreams;
  const rbcTensor* used_queries = &query_times.raw;
  const rbcTensor* used_out = &out.raw;
  const rbcTensor* used_mask = &mask.raw;
  const rbcFuseParams* used_params = &params;

  Call() {
    padded.values.fill<float>(
        {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7});
    padded.times.fill<double>({0, 1, 2, 0, 1, 2});
    padded.lengths.fill<int64_t>({3, 2});
    padded.shift.fill<float>({0, 0, 5, 0});
    padded.scale.fill<double>({1, 1, 1, 0.5});
    shared.values.fill<int32_t>({7, 8, 0, 0, 9, 10, 0, 0});
    shared.times.fill<double>({0, 1, 5, 6});
    packed.values.fill<float>({1, 2, 3, 4, 10, 20, 11, 21, 13, 23});
    packed.times.fill<double>({0, 1, 0, 1, 3});
    packed.offsets.fill<int32_t>({0, 2, 5});
    packed.sample_mask.fill<uint8_t>({1, 1, 2, 255, 1});
    query_times.fill<double>({0.5, 2, 1, 1.5});
    query_lengths.fill<int32_t>({2, 2});
    params.query_lengths = &query_lengths.raw;

    const std::pair<const rbcTensor*, const rbcTensor*> tensors[] = {
        {&padded.values.raw, &padded.times.raw},
        {&shared.values.raw, &shared.times.raw},
        {&packed.values.raw, &packed.times.raw}};
    for (int n = 0; n < kStreams; ++n) {
      stream_params[n] = rbcResampleParamsInit();
      streams[n] = rbcFuseStreamInit();
      streams[n].values = tensors[n].first;
      streams[n].times = tensors[n].second;
      streams[n].params = &stream_params[n];
    }
    stream_params[0].lengths = &padded.lengths.raw;
    stream_params[0].shift = &padded.shift.raw;
    stream_params[0].scale = &padded.scale.raw;
    stream_params[1].method = RBC_METHOD_PREVIOUS;
    stream_params[2].batch_offsets = &packed.offsets.raw;
    stream_params[2].sample_mask = &packed.sample_mask.raw;
    streams[1].clock_offset = 0.5;
  }

  void regroup(int n, std::vector<rbcChannelGroup> by) {
    groups[n] = std::move(by);
    stream_params[n].groups = groups[n].data();
    stream_params[n].num_groups = static_cast<int32_t>(groups[n].size());
  }
  // All times as ticks.
  void tick() {
    for (Argument* a : {&padded.times, &shared.times, &packed.times, &query_times}) {
      a->raw.dtype = kI64;
      a->array.each([](std::byte* p) { std::memset(p, 0, sizeof(int64_t)); });
    }
    streams[1].clock_offset = 0;
  }

  auto arguments() const {
    return std::make_tuple(used_streams, num_streams, used_queries, used_out, used_mask,
                           used_params);
  }
  void checkOutputs() const {
    const float expected[] = {5, 6, 2, 4, 7, 2,  3,  20, 21, 17, 11.5f, 8,  3,     4,
                              6, 6, 1, 3, 9, 11, 21, 6,  6,  1,  3,     10, 11.5f, 21.5f};
    size_t i = 0;
    for (const uint64_t bits : out.array.elements()) {
      CHECK(support::decodeFloat(kF32, bits) == static_cast<long double>(expected[i++]));
    }
    CHECK(mask.array.elements() == std::vector<uint64_t>{1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1});
  }

  static std::vector<support::TensorOf<Call>> tensors() {
    using support::Access;
    return {{"streams[0].values", [](Call& c) -> Argument& { return c.padded.values; }},
            {"streams[0].times", [](Call& c) -> Argument& { return c.padded.times; }},
            {"streams[0].lengths", [](Call& c) -> Argument& { return c.padded.lengths; }},
            {"streams[0].shift", [](Call& c) -> Argument& { return c.padded.shift; }},
            {"streams[0].scale", [](Call& c) -> Argument& { return c.padded.scale; }},
            {"streams[1].values", [](Call& c) -> Argument& { return c.shared.values; }},
            {"streams[1].times", [](Call& c) -> Argument& { return c.shared.times; }},
            {"streams[2].values", [](Call& c) -> Argument& { return c.packed.values; }},
            {"streams[2].times", [](Call& c) -> Argument& { return c.packed.times; }},
            {"streams[2].batch_offsets", [](Call& c) -> Argument& { return c.packed.offsets; }},
            {"streams[2].sample_mask", [](Call& c) -> Argument& { return c.packed.sample_mask; }},
            {"query_times", [](Call& c) -> Argument& { return c.query_times; }},
            {"query_lengths", [](Call& c) -> Argument& { return c.query_lengths; }},
            {"out", [](Call& c) -> Argument& { return c.out; }, Access::kWritten},
            {"valid", [](Call& c) -> Argument& { return c.mask; }, Access::kWritten}};
  }
  static std::vector<support::StructOf<Call>> structs() {
    return {support::structOf("params", &Call::params, &Call::used_params, RBC_FLAG_CHECK_TIMES),
            {"streams[1].params", sizeof(rbcResampleParams),
             [](Call& c) -> void* { return &c.stream_params[1]; },
             [](Call& c, const void* s) {
               c.streams[1].params = static_cast<const rbcResampleParams*>(s);
             },
             support::reservedOf<rbcResampleParams>(), false}};
  }
  static std::vector<support::PointerOf<Call>> pointers() {
    return {{"streams: is null", [](Call& c) { c.used_streams = nullptr; }},
            {"streams[0].values: is null", [](Call& c) { c.streams[0].values = nullptr; }},
            {"streams[0].times: is null", [](Call& c) { c.streams[0].times = nullptr; }},
            {"streams[1].values: is null", [](Call& c) { c.streams[1].values = nullptr; }},
            {"streams[1].times: is null", [](Call& c) { c.streams[1].times = nullptr; }},
            {"streams[2].values: is null", [](Call& c) { c.streams[2].values = nullptr; }},
            {"streams[2].times: is null", [](Call& c) { c.streams[2].times = nullptr; }},
            {"query_times: is null", [](Call& c) { c.used_queries = nullptr; }},
            {"out: is null", [](Call& c) { c.used_out = nullptr; }}};
  }
};

}  // namespace fuse_call
