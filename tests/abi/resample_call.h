// A good call of rbcResample for tests to spoil.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "abi/common_errors.h"
#include "abi/operation_call.h"

namespace resample_call {

using support::Argument;
using support::kF32;
using support::kF64;
using support::kI32;
using support::kI64;
using support::kU8;
using support::Seen;

// A good call: B = 2, S = 3, T = 2, D = 4. Outputs stay poisoned unless it succeeds.
struct Call : support::OperationCall<Call, rbcResample, rbcResampleWorkspaceSize> {
  Argument values{kF32, {2, 3, 4}};
  Argument times{kF64, {2, 3}};
  Argument query_times{kF64, {2, 2}};
  Argument out{kF32, {2, 2, 4}};
  Argument mask{kU8, {2, 2}};
  Argument lengths{kI64, {2}};
  Argument query_lengths{kI32, {2}};
  Argument offsets{kI64, {3}};  // not in use: see pack()
  Argument shift{kF32, {4}};
  Argument scale{kF64, {4}};
  Argument sample_mask{kU8, {2, 3}};    // not in use: see maskSamples()
  std::vector<rbcChannelGroup> groups;  // in use once regrouped
  rbcResampleParams params = rbcResampleParamsInit();
  const rbcTensor* used[5] = {&values.raw, &times.raw, &query_times.raw, &out.raw, &mask.raw};
  const rbcResampleParams* used_params = &params;

  Call() {
    values.fill<float>(
        {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7});
    times.fill<double>({0, 1, 2, 0, 1, 2});
    query_times.fill<double>({0.5, 2, 1, 1.5});
    lengths.fill<int64_t>({3, 2});
    query_lengths.fill<int32_t>({2, 2});
    offsets.fill<int64_t>({0, 3, 6});
    shift.fill<float>({0, 0, 5, 0});
    scale.fill<double>({1, 1, 1, 0.5});
    params.lengths = &lengths.raw;
    params.query_lengths = &query_lengths.raw;
    params.shift = &shift.raw;
    params.scale = &scale.raw;
    sample_mask.fill<uint8_t>({1, 1, 1, 1, 1, 1});
  }

  // The same as packed values.
  void pack() {
    values.reshape({6, 4});
    times.reshape({6});
    sample_mask.reshape({6});
    params.lengths = nullptr;
    params.batch_offsets = &offsets.raw;
  }

  // Sets a mask in which all samples are present.
  void maskSamples() { params.sample_mask = &sample_mask.raw; }

  void regroup(std::vector<rbcChannelGroup> by) {
    groups = std::move(by);
    params.groups = groups.data();
    params.num_groups = static_cast<int32_t>(groups.size());
  }
  // For integers, which do not support shift and scale.
  void withoutAffine() { params.shift = params.scale = nullptr; }

  auto arguments() const {
    return std::make_tuple(used[0], used[1], used[2], used[3], used[4], used_params);
  }
  void checkOut(std::initializer_list<float> expected) const {
    auto next = expected.begin();
    for (const uint64_t bits : out.array.elements()) {
      CHECK(support::decodeFloat(kF32, bits) == static_cast<long double>(*next++));
    }
  }
  void checkOutputs() const {
    checkOut({5, 6, 2, 4, 20, 21, 17, 11.5f, 6, 6, 1, 3, 6, 6, 1, 3});
    CHECK(mask.array.elements() == std::vector<uint64_t>{1, 1, 1, 0});
  }

  static std::vector<support::TensorOf<Call>> tensors() {
    using support::Access;
    return {{"values", [](Call& c) -> Argument& { return c.values; }},
            {"times", [](Call& c) -> Argument& { return c.times; }},
            {"query_times", [](Call& c) -> Argument& { return c.query_times; }},
            {"out", [](Call& c) -> Argument& { return c.out; }, Access::kWritten},
            {"valid", [](Call& c) -> Argument& { return c.mask; }, Access::kWritten},
            {"lengths", [](Call& c) -> Argument& { return c.lengths; }},
            {"query_lengths", [](Call& c) -> Argument& { return c.query_lengths; }},
            {"batch_offsets", [](Call& c) -> Argument& { return c.offsets; }, Access::kRead,
             [](Call& c) { c.pack(); }},
            {"shift", [](Call& c) -> Argument& { return c.shift; }},
            {"scale", [](Call& c) -> Argument& { return c.scale; }},
            {"sample_mask", [](Call& c) -> Argument& { return c.sample_mask; }, Access::kRead,
             [](Call& c) { c.maskSamples(); }}};
  }
  static std::vector<support::StructOf<Call>> structs() {
    return {support::structOf("params", &Call::params, &Call::used_params,
                              RBC_FLAG_CHECK_TIMES | RBC_FLAG_CAUSAL)};
  }
  static std::vector<support::PointerOf<Call>> pointers() {
    return {{"values: is null", [](Call& c) { c.used[0] = nullptr; }},
            {"times: is null", [](Call& c) { c.used[1] = nullptr; }},
            {"query_times: is null", [](Call& c) { c.used[2] = nullptr; }},
            {"out: is null", [](Call& c) { c.used[3] = nullptr; }}};
  }
};

}  // namespace resample_call
