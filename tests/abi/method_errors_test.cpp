// Errors of rbcResample in methods, groups of channels, shift and scale.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "abi/resample_call.h"

namespace {

using namespace resample_call;
using support::checkError;
using support::checkErrors;

constexpr int32_t kMethods[] = {RBC_METHOD_LINEAR, RBC_METHOD_NEAREST, RBC_METHOD_PREVIOUS,
                                RBC_METHOD_NEXT,   RBC_METHOD_CUBIC,   RBC_METHOD_PCHIP,
                                RBC_METHOD_SLERP,  RBC_METHOD_ANGLE};
constexpr const char* kNames[] = {"linear", "nearest", "previous", "next",
                                  "cubic",  "pchip",   "slerp",    "angle"};
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

bool isStep(int32_t method) {
  return method == RBC_METHOD_NEAREST || method == RBC_METHOD_PREVIOUS || method == RBC_METHOD_NEXT;
}

rbcChannelGroup group(int64_t begin, int64_t count, int32_t method = RBC_METHOD_LINEAR) {
  return {begin, count, method, 0, 0, 0, 0};
}

void refusedGroups(const support::ErrorText& message, std::vector<rbcChannelGroup> groups) {
  checkError<Call>({RBC_STATUS_INVALID_ARGUMENT, message, [&](Call& c) { c.regroup(groups); }});
}

// One group per channel, with two methods in turn, so that no adjacent groups count as one.
std::vector<rbcChannelGroup> alternating(int64_t channels) {
  std::vector<rbcChannelGroup> groups;
  for (int64_t i = 0; i < channels; ++i) {
    groups.push_back(group(i, 1, i % 2 == 0 ? RBC_METHOD_LINEAR : RBC_METHOD_PREVIOUS));
  }
  return groups;
}

// Gives values and out `channels` channels, without an affine part.
void widen(Call& c, int64_t channels) {
  c.values.array = support::Array(kF32, {2, 3, channels});
  c.out.array = support::Array(kF32, {2, 2, channels});
  for (Argument* a : {&c.values, &c.out}) {
    a->shape = a->array.placement().shape;
    a->restore();
  }
  c.withoutAffine();
}

}  // namespace

TEST_CASE("method errors: every method is accepted, as the method and in a group") {
  for (const int32_t method : kMethods) {
    Call call;
    call.params.method = method;
    CHECK_SUCCEEDS(call.run());
    CHECK_FALSE(call.out.array.untouched());
    Call grouped;
    grouped.regroup({group(0, 4, method)});
    CHECK_SUCCEEDS(grouped.run());
    CHECK(grouped.out.array.elements() == call.out.array.elements());
    CHECK(grouped.mask.array.elements() == call.mask.array.elements());
  }
}

TEST_CASE("method errors: unknown methods") {
  for (const int32_t method : {-1, 8, 9, std::numeric_limits<int32_t>::max()}) {
    const std::string told = "method: is " + std::to_string(method);
    checkError<Call>({RBC_STATUS_INVALID_ARGUMENT, told + "...RBC_METHOD_LINEAR" + "..._ANGLE",
                      [&](Call& c) { c.params.method = method; }});
    const std::string in_group = "groups[1].method: is " + std::to_string(method);
    refusedGroups(in_group, {group(0, 2), group(2, 2, method)});
  }
}

TEST_CASE("method errors: the array of groups and its length go together") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  checkErrors<Call>(
      {{kStatus, "groups:...null...num_groups is 2", [](Call& c) { c.params.num_groups = 2; }},
       {kStatus, "groups:...is set...num_groups is 0", [](Call& c) {
          c.regroup({group(0, 4)});
          c.params.num_groups = 0;
        }}});
  for (const int32_t count :
       {-1, std::numeric_limits<int32_t>::min(), RBC_FUSE_MAX_CHANNEL_GROUPS + 1,
        std::numeric_limits<int32_t>::max()}) {
    const std::string told = "num_groups: is " + std::to_string(count);
    checkError<Call>({kStatus, told + "...0 to 256", [&](Call& c) {
                        c.regroup({group(0, 4)});
                        c.params.num_groups = count;
                      }});
  }
}

TEST_CASE("method errors: groups that do not contain each channel once") {
  refusedGroups("groups[1]: shares channel 1 with groups[0]", {group(0, 2), group(1, 3)});
  refusedGroups("groups[0]: shares channel 3 with groups[2]",
                {group(3, 1), group(0, 2), group(2, 2)});
  refusedGroups("groups[1]: shares channel 0 with groups[0]", {group(0, 4), group(0, 4)});
  refusedGroups("groups: channel 0 is in none", {group(1, 3)});
  refusedGroups("groups: channel 2 is in none", {group(3, 1), group(0, 2)});
  refusedGroups("groups: channel 3 is in none", {group(0, 1), group(1, 2)});
  // In any order they are fine.
  Call call;
  call.regroup({group(3, 1), group(0, 2, RBC_METHOD_ANGLE), group(2, 1, RBC_METHOD_NEXT)});
  CHECK_SUCCEEDS(call.run());
}

TEST_CASE("method errors: groups that reach outside the channels") {
  refusedGroups("groups[0]...channel -1...4 channels of values", {group(-1, 5)});
  refusedGroups("groups[1]...channel 2...count 3...4 channels", {group(0, 2), group(2, 3)});
  refusedGroups("groups[0]...channel 5", {group(5, 1)});
  refusedGroups("groups[0]", {group(1, kMost)});
  refusedGroups("groups[0]", {group(kMost, 1)});
  refusedGroups("groups[0]", {group(-kMost - 1, 4)});
  refusedGroups("groups[1].count: is 0, expected 1 or more", {group(0, 4), group(4, 0)});
  refusedGroups("groups[0].count: is -4", {group(4, -4), group(0, 4)});
}

TEST_CASE("method errors: unknown periods, and periods without angles") {
  for (const int32_t period : {-1, 6, 7, INT32_MAX, INT32_MIN}) {
    std::vector<rbcChannelGroup> groups = {group(0, 2), group(2, 2, RBC_METHOD_ANGLE)};
    groups[1].period = period;
    refusedGroups("groups[1].period: is " + std::to_string(period) +
                      ", expected RBC_PERIOD_RADIANS..._DEGREES..._TURNS_POSITIVE",
                  groups);
  }
  for (size_t m = 0; m < std::size(kMethods); ++m) {
    for (int32_t period = 0; period < 6; ++period) {
      std::vector<rbcChannelGroup> groups = {group(0, 4, kMethods[m])};
      groups[0].period = period;
      if (period != 0 && kMethods[m] != RBC_METHOD_ANGLE) {
        refusedGroups("groups[0].period: is " + std::to_string(period) +
                          ", expected 0 for method " + kNames[m] + "; only angle has a period",
                      groups);
      } else {
        Call call;
        call.regroup(groups);
        CHECK_SUCCEEDS(call.run());
      }
    }
  }
}

TEST_CASE("method errors: slerp needs whole quaternions") {
  refusedGroups("groups[0].count: is 3...multiple of 4 for slerp",
                {group(0, 3, RBC_METHOD_SLERP), group(3, 1)});
  for (const int64_t channels : {1, 3, 6}) {
    const std::string told = "values: has " + std::to_string(channels) + " channels";
    checkError<Call>(
        {RBC_STATUS_INVALID_ARGUMENT, told + "...multiple of 4 for slerp", [&](Call& c) {
           widen(c, channels);
           c.params.method = RBC_METHOD_SLERP;
         }});
  }
  for (const int64_t channels : {0, 8}) {
    Call call;
    widen(call, channels);
    call.values.array.each([](std::byte* p) { std::memset(p, 0, 4); });
    call.params.method = RBC_METHOD_SLERP;
    CHECK_SUCCEEDS(call.run());
  }
}

TEST_CASE("method errors: the most groups, and one more") {
  checkError<Call>(
      {RBC_STATUS_INVALID_ARGUMENT, "num_groups: is 257, expected 0 to 256", [](Call& c) {
         widen(c, RBC_FUSE_MAX_CHANNEL_GROUPS + 1);
         c.regroup(alternating(RBC_FUSE_MAX_CHANNEL_GROUPS + 1));
       }});
  Call call;
  widen(call, RBC_FUSE_MAX_CHANNEL_GROUPS);
  call.values.array.each([](std::byte* p) { std::memset(p, 0, 4); });
  call.regroup(alternating(RBC_FUSE_MAX_CHANNEL_GROUPS));
  CHECK_SUCCEEDS(call.run());
}

TEST_CASE("method errors: limits that no channel's method uses") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  for (const int32_t method : kMethods) {
    if (!isStep(method)) {
      checkError<Call>({kStatus, "tolerance:...nearest, previous and next", [&](Call& c) {
                          c.params.method = method;
                          c.params.tolerance = 1;
                        }});
    }
    if (method != RBC_METHOD_LINEAR) {
      checkError<Call>({kStatus, "outside:...extrapolate needs method linear", [&](Call& c) {
                          c.params.method = method;
                          c.params.outside = RBC_OUTSIDE_EXTRAPOLATE;
                        }});
    }
  }
  checkErrors<Call>(
      {{kStatus, "tolerance:",
        [](Call& c) {
          c.regroup({group(0, 2), group(2, 2, RBC_METHOD_PCHIP)});
          c.params.method = RBC_METHOD_NEAREST;  // not a channel's method
          c.params.tolerance = 1;
        }},
       {kStatus, "outside:", [](Call& c) {
          c.regroup({group(0, 2, RBC_METHOD_CUBIC), group(2, 2, RBC_METHOD_PREVIOUS)});
          c.params.outside = RBC_OUTSIDE_EXTRAPOLATE;
        }}});
  // One group that takes it is enough.
  Call call;
  call.regroup({group(0, 1), group(1, 2, RBC_METHOD_ANGLE), group(3, 1, RBC_METHOD_NEXT)});
  call.params.tolerance = 1;
  call.params.outside = RBC_OUTSIDE_EXTRAPOLATE;
  CHECK_SUCCEEDS(call.run());
}

TEST_CASE("method errors: integers allow the methods that make no new values") {
  constexpr auto kStatus = RBC_STATUS_DTYPE_MISMATCH;
  for (const rbcDType dtype : support::kIntegerDTypes) {
    for (const int32_t method : kMethods) {
      const auto set = [&](Call& c) {
        c.values.array = support::Array(dtype, {2, 3, 4});
        c.values.array.each(
            [&](std::byte* p) { std::memset(p, 0, static_cast<size_t>(support::sizeOf(dtype))); });
        c.values.restore();
        c.withoutAffine();
        c.params.method = method;
      };
      if (isStep(method)) {
        Call call;
        set(call);
        CHECK_SUCCEEDS(call.run());
      } else {
        const std::string told = std::string("method ") + kNames[method];
        checkError<Call>(
            {kStatus, std::string("values:...") + told + "...nearest, previous or next", set});
      }
    }
  }
  checkError<Call>({kStatus, "values:...int32...method angle", [](Call& c) {
                      c.values.raw.dtype = kI32;
                      c.regroup({group(0, 3, RBC_METHOD_NEAREST), group(3, 1, RBC_METHOD_ANGLE)});
                    }});
  const auto into = [](rbcDType values, rbcDType out) {
    return [=](Call& c) {
      c.values.raw.dtype = values;
      c.out.raw.dtype = out;
      c.params.method = RBC_METHOD_NEAREST;
      c.withoutAffine();
    };
  };
  checkErrors<Call>(
      {{kStatus, "out:...int16...expected int32 or a float", into(kI32, support::kI16)},
       {kStatus, "out:...uint32...int32", into(kI32, support::kU32)},
       {kStatus, "out:...uint8...bool", into(support::kBool, kU8)},
       {kStatus, "out:...int32...float for float values", into(kF32, kI32)}});
}

TEST_CASE("method errors: shift and scale need a float output") {
  for (const bool shift : {true, false}) {
    const char* const name = shift ? "shift:" : "scale:";
    checkError<Call>(
        {RBC_STATUS_DTYPE_MISMATCH, std::string(name) + "...out...int32", [&](Call& c) {
           c.values.raw.dtype = c.out.raw.dtype = kI32;
           c.params.method = RBC_METHOD_NEXT;
           (shift ? c.params.scale : c.params.shift) = nullptr;
         }});
  }
  // Each may be set without the other, with any stride.
  for (const bool shift : {true, false}) {
    Call call;
    (shift ? call.params.scale : call.params.shift) = nullptr;
    (shift ? call.shift : call.scale).restride({0});
    CHECK_SUCCEEDS(call.run());
    call.checkOut({5, 6, 7, 8, 20, 21, 22, 23, 6, 6, 6, 6, 6, 6, 6, 6});
  }
}
