#include "fuse/channel_groups.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <limits>

#include "fuse/times_check.h"
#include "params.h"
#include "status.h"

namespace rbc {
namespace {

constexpr const char* kNames[kMethods] = {"linear", "nearest", "previous", "next",
                                          "cubic",  "pchip",   "slerp",    "angle"};
constexpr int64_t kQuaternion = 4;
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

[[noreturn]] void failForTooMany() {
  fail(RBC_STATUS_INVALID_ARGUMENT, "groups: the call has more than %d in all", kMaxSegments);
}

void checkGroup(const rbcChannelGroup& group, int i, int64_t channels) {
  char method[32];
  std::snprintf(method, sizeof method, "groups[%d].method", i);
  const Method own = methodOf(group.method, method);
  if (group.count < 1) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "groups[%d].count: is %" PRId64 ", expected 1 or more", i,
         group.count);
  }
  if (group.begin < 0 || group.begin > channels || group.count > channels - group.begin) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "groups[%d]: begins at channel %" PRId64 " and has count %" PRId64
         ", expected a range within the %" PRId64 " channels of values",
         i, group.begin, group.count, channels);
  }
  if (own == Method::kSlerp && group.count % kQuaternion != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "groups[%d].count: is %" PRId64 ", expected a multiple of 4 for slerp", i, group.count);
  }
  if (group.period < 0 || group.period >= kPeriods) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "groups[%d].period: is %d, expected RBC_PERIOD_RADIANS, _DEGREES, _TURNS, "
         "_RADIANS_POSITIVE, _DEGREES_POSITIVE or _TURNS_POSITIVE",
         i, group.period);
  }
  if (group.period != 0 && own != Method::kAngle) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "groups[%d].period: is %d, expected 0 for method %s; only angle has a period", i,
         group.period, kNames[group.method]);
  }
  if (group.reserved0 != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "groups[%d].reserved0: is %d, expected 0", i,
         group.reserved0);
  }
}

// The age of a group, or without groups of all channels; `where` begins the names of its fields.
SegmentAge causalAgeOf(double max_age, Method method, DType time_dtype, const char* where) {
  if (method == Method::kNext) {
    fail(RBC_STATUS_UNSUPPORTED,
         "%smethod: is next, which needs a later sample, expected another method with "
         "RBC_FLAG_CAUSAL",
         where);
  }
  char name[40];
  std::snprintf(name, sizeof name, "%smax_age", where);
  if (!(max_age >= 0)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is %g, expected 0 or more", name, max_age);
  }
  const TimeLimit limit = timeLimitOf(max_age, time_dtype, name);
  const bool in_ticks = time_dtype == DType::I64;
  return {in_ticks ? limit.ticks : bitCast<uint64_t>(limit.real), limit.set, true};
}

SegmentAge ageOf(const rbcResampleParams& params, Method method, DType time_dtype) {
  if ((params.flags & RBC_FLAG_CAUSAL) != 0) {
    return causalAgeOf(params.max_age, method, time_dtype, "");
  }
  if (params.max_age != kNoLimit) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "max_age: is %g, expected INFINITY without RBC_FLAG_CAUSAL",
         params.max_age);
  }
  return {0, false, false};
}

SegmentAge ageOf(const rbcChannelGroup& group, int i, Method method, DType time_dtype) {
  if ((group.flags & ~RBC_FLAG_CAUSAL) != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "groups[%d].flags: is 0x%x, expected RBC_FLAG_CAUSAL or 0", i,
         group.flags);
  }
  if (group.flags != 0) {
    char where[32];
    std::snprintf(where, sizeof where, "groups[%d].", i);
    return causalAgeOf(group.max_age, method, time_dtype, where);
  }
  if (group.max_age != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "groups[%d].max_age: is %g, expected 0 without RBC_FLAG_CAUSAL", i, group.max_age);
  }
  return {0, false, false};
}

// Returns the method of a group that checkGroup() accepts.
Method methodOf(const rbcChannelGroup& group) {
  return static_cast<Method>(group.method + group.period);
}

}  // namespace

const char* MethodSet::interpolating() const {
  for (int i = 0; i < kMethods + kPeriods - 1; ++i) {
    const auto method = static_cast<Method>(i);
    if (has(method) && !isStep(method)) return kNames[std::min(i, kMethods - 1)];
  }
  return nullptr;
}

Method methodOf(int32_t code, const char* argument) {
  if (code < 0 || code >= kMethods) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "%s: is %d, expected RBC_METHOD_LINEAR, _NEAREST, _PREVIOUS, _NEXT, _CUBIC, _PCHIP, "
         "_SLERP or _ANGLE",
         argument, code);
  }
  return static_cast<Method>(code);
}

void readGroups(const rbcResampleParams& params, rbcChannelGroup (&groups)[kMaxSegments]) {
  if (params.num_groups < 0 || params.num_groups > kMaxSegments) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "num_groups: is %d, expected 0 to %d", params.num_groups,
         kMaxSegments);
  }
  if ((params.groups == nullptr) != (params.num_groups == 0)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "groups: %s, but num_groups is %d",
         params.groups == nullptr ? "is null" : "is set", params.num_groups);
  }
  readElements(params.groups, params.num_groups, params.group_size, "groups", "group_size", groups);
}

int segmentsOf(const rbcResampleParams& params, int64_t channels, DType time_dtype,
               const Segments& to, MethodSet* methods) {
  ChannelSegment* const segments = to.segments;
  const Method method = methodOf(params.method, "method");
  rbcChannelGroup groups[kMaxSegments];
  readGroups(params, groups);
  if (params.num_groups == 0) {
    if (method == Method::kSlerp && channels % kQuaternion != 0) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "values: has %" PRId64 " channels, expected a multiple of 4 for slerp", channels);
    }
    if (to.room < 1) failForTooMany();
    segments[0] = {0, channels, method};
    to.ages[0] = ageOf(params, method, time_dtype);
    methods->add(method);
    if (to.ages[0].causal) methods->addCausal();
    return 1;
  }

  if ((params.flags & RBC_FLAG_CAUSAL) != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "flags: has RBC_FLAG_CAUSAL, expected it in the flags of groups, which are set");
  }
  if (params.max_age != kNoLimit) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "max_age: is %g, expected INFINITY: groups, which are set, have their own",
         params.max_age);
  }
  int order[kMaxSegments] = {};
  for (int i = 0; i < params.num_groups; ++i) {
    checkGroup(groups[i], i, channels);
    order[i] = i;
  }
  std::sort(order, order + params.num_groups,
            [&](int a, int b) { return groups[a].begin < groups[b].begin; });
  int count = 0;
  int64_t covered = 0;
  for (int i = 0; i < params.num_groups; ++i) {
    const rbcChannelGroup& group = groups[order[i]];
    if (group.begin < covered) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "groups[%d]: shares channel %" PRId64 " with groups[%d]",
           order[i], group.begin, order[i - 1]);
    }
    if (group.begin > covered) break;
    covered += group.count;
    const Method own = methodOf(group);
    methods->add(own);
    const SegmentAge age = ageOf(group, order[i], own, time_dtype);
    if (age.causal) methods->addCausal();
    if (count > 0 && segments[count - 1].method == own && to.ages[count - 1] == age) {
      segments[count - 1].count += group.count;
      continue;
    }
    if (count == to.room) failForTooMany();
    to.ages[count] = age;
    segments[count++] = {group.begin, group.count, own};
  }
  if (covered < channels) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "groups: channel %" PRId64 " is in none of the groups",
         covered);
  }
  return count;
}

void requireMethodsFit(const rbcResampleParams& params, const MethodSet& methods) {
  if (params.outside == RBC_OUTSIDE_EXTRAPOLATE && !methods.has(Method::kLinear)) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "outside: extrapolate needs method linear, expected hold or fill");
  }
  if (!std::isinf(params.tolerance) && methods.hasCausal()) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "tolerance: is %g, expected INFINITY with RBC_FLAG_CAUSAL, where max_age limits the age",
         params.tolerance);
  }
  if (!std::isinf(params.tolerance) && !methods.hasStep()) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "tolerance: is for methods nearest, previous and next; others take max_gap");
  }
}

}  // namespace rbc
