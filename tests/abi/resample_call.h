// A good call of rbcResample for tests to spoil.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "abi/refusal.h"

namespace resample_call {

using support::Argument;
using support::kF32;
using support::kF64;
using support::kI32;
using support::kI64;
using support::kU8;
using support::Seen;

// A good call: B = 2, S = 3, T = 2, D = 4. Outputs stay poisoned unless it succeeds.
struct Call {
  Argument values{kF32, {2, 3, 4}};
  Argument times{kF64, {2, 3}};
  Argument query_times{kF64, {2, 2}};
  Argument out{kF32, {2, 2, 4}};
  Argument mask{kU8, {2, 2}};
  Argument lengths{kI64, {2}};
  Argument query_lengths{kI32, {2}};
  Argument offsets{kI64, {3}};  // not in use: see pack()
  Argument mean{kF32, {4}};
  Argument inv_std{kF64, {4}};
  std::vector<rbcChannelGroup> groups;  // in use once regrouped
  rbcResampleParams params = rbcResampleParamsInit();
  const rbcTensor* used[5] = {&values.raw, &times.raw, &query_times.raw, &out.raw, &mask.raw};

  Call() {
    values.fill<float>(
        {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7});
    times.fill<double>({0, 1, 2, 0, 1, 2});
    query_times.fill<double>({0.5, 2, 1, 1.5});
    lengths.fill<int64_t>({3, 2});
    query_lengths.fill<int32_t>({2, 2});
    offsets.fill<int64_t>({0, 3, 6});
    mean.fill<float>({0, 0, 5, 0});
    inv_std.fill<double>({1, 1, 1, 0.5});
    params.lengths = &lengths.raw;
    params.query_lengths = &query_lengths.raw;
    params.mean = &mean.raw;
    params.inv_std = &inv_std.raw;
  }
  Call(const Call&) = delete;

  // The same as packed values.
  void pack() {
    values.reshape({6, 4});
    times.reshape({6});
    params.lengths = nullptr;
    params.offsets = &offsets.raw;
  }

  void regroup(std::vector<rbcChannelGroup> by) {
    groups = std::move(by);
    params.groups = groups.data();
    params.num_groups = static_cast<int32_t>(groups.size());
  }
  // For integers, which know no affine.
  void withoutAffine() { params.mean = params.inv_std = nullptr; }

  rbcStatus_t run() const {
    return rbcResample(support::refusingContext().get(), used[0], used[1], used[2], used[3],
                       used[4], &params);
  }
  rbcStatus_t workspace() const {
    size_t bytes = 0;
    return rbcResampleWorkspaceSize(support::refusingContext().get(), used[0], used[1], used[2],
                                    used[3], used[4], &params, &bytes);
  }
  bool untouched() const { return out.array.untouched() && mask.array.untouched(); }
  void checkOut(std::initializer_list<float> expected) const {
    auto next = expected.begin();
    for (const uint64_t bits : out.array.elements()) {
      CHECK(support::decodeFloat(kF32, bits) == static_cast<long double>(*next++));
    }
  }
  static void checkGood() {
    const Call good;
    CHECK_SUCCEEDS(good.run());
    good.checkOut({5, 6, 2, 4, 20, 21, 17, 11.5f, 6, 6, 1, 3, 6, 6, 1, 3});
    CHECK(good.mask.array.elements() == std::vector<uint64_t>{1, 1, 1, 0});
  }
};

template <class Spoil>
void refused(rbcStatus_t status, std::initializer_list<const char*> words, Spoil&& spoil,
             Seen seen = Seen::kByBoth) {
  support::checkRefused<Call>(status, words, spoil, seen);
}

using Member = Argument Call::*;
struct Named {
  const char* name;
  Member member;
};
constexpr Named kTensors[] = {{"values", &Call::values},
                              {"times", &Call::times},
                              {"query_times", &Call::query_times},
                              {"out", &Call::out},
                              {"mask", &Call::mask},
                              {"lengths", &Call::lengths},
                              {"query_lengths", &Call::query_lengths},
                              {"mean", &Call::mean},
                              {"inv_std", &Call::inv_std}};

}  // namespace resample_call
