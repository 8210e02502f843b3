// Descriptions of cases of streams, and random cases.
#include "support/stream_case.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace support {

const char* methodName(int32_t method) {
  constexpr const char* kNames[] = {"linear", "nearest", "previous", "next",
                                    "cubic",  "pchip",   "slerp",    "angle"};
  return kNames[method];
}

namespace {

// ---- descriptions -------------------------------------------------------------------------------

std::string flagged(std::initializer_list<std::pair<bool, const char*>> flags) {
  std::string s;
  for (const auto& [set, text] : flags) {
    if (set) s += std::string(" ") + text;
  }
  return s;
}

}  // namespace

std::string describeStream(const StreamCase& c) {
  constexpr const char* kBounds[] = {"hold", "fill", "extrapolate"};
  constexpr const char* kPatterns[] = {"uniform", "jittered", "duplicates", "clustered", "gaps"};
  std::string s = "S,D " + std::to_string(c.samples) + "," + std::to_string(c.channels) + " " +
                  nameOf(c.values) + " ";
  if (c.groups.empty()) s += methodName(c.method);
  for (const rbcChannelGroup& group : c.groups) {
    s += "[" + std::to_string(group.begin) + "+" + std::to_string(group.count) + " " +
         methodName(group.method) +
         (group.period != 0 ? " period " + std::to_string(group.period) : "") +
         (group.flags != 0 ? " causal " + std::to_string(group.max_age) : "") + "]";
  }
  s += std::string(" ") + kBounds[c.outside] + " " + kPatterns[static_cast<int>(c.pattern)];
  if (!std::isinf(c.max_gap)) s += " max_gap " + std::to_string(c.max_gap);
  if (!std::isinf(c.tolerance)) s += " tolerance " + std::to_string(c.tolerance);
  if (c.clock_offset != 0) s += " offset " + std::to_string(c.clock_offset);
  if (c.clock_offset_ticks != 0) s += " offset " + std::to_string(c.clock_offset_ticks);
  s += " fill " + std::to_string(c.fill_value);
  if (c.no_rotations != 0) s += " no rotations " + std::to_string(c.no_rotations);
  if (c.shift || c.scale) s += " affine " + nameOf(c.affine);
  if (c.missing != 0) {
    s += " missing " + std::to_string(c.missing) + " " + nameOf(c.sample_mask_layout) +
         (c.in_runs ? " in runs" : "") + (c.shared_sample_mask ? " in all rows" : "");
  }
  if (c.causal) s += " causal " + std::to_string(c.max_age);
  if (c.arrivals) {
    s += " arrivals " + std::to_string(c.delay) + " " + nameOf(c.arrivals_layout) +
         (c.shared_arrivals ? " of all rows" : "");
  }
  s += flagged({{c.shift, "shift"},
                {c.scale, "scale"},
                {c.shared_times, "shared times"},
                {c.lengths, "lengths"},
                {c.absent, "absent"},
                {c.packed, "packed"}});
  return s + " layouts " + nameOf(c.values_layout) + "/" + nameOf(c.times_layout) + "/" +
         nameOf(c.affine_layout);
}

std::string describeShared(const SharedCase& c) {
  constexpr const char* kOrders[] = {"sorted", "random", "at samples", "outside"};
  return c.name + " (seed " + std::to_string(c.seed) + "): B,T " + std::to_string(c.batch) + "," +
         std::to_string(c.queries) + " to " + nameOf(c.out) + " times " + nameOf(c.times) + " " +
         kOrders[static_cast<int>(c.order)] + (c.lag != 0 ? " lag " + std::to_string(c.lag) : "") +
         flagged({{!c.batched, "unbatched"},
                  {c.check_times, "checked"},
                  {c.shared_queries, "shared queries"},
                  {c.query_lengths, "query_lengths"},
                  {!c.mask, "no mask"},
                  {c.specials, "specials"}}) +
         " layouts " + nameOf(c.queries_layout) + "/" + nameOf(c.out_layout) + "/" +
         nameOf(c.mask_layout);
}

namespace {

// ---- random cases -------------------------------------------------------------------------------

Layout randomOutLayout(Random& random) {
  Layout layout;
  do layout = random.pick(kLayouts);
  while (layout == Layout::kBroadcast);  // elements of an output may not share memory
  return layout;
}

// A random division of `channels` channels into groups, in any order.
std::vector<rbcChannelGroup> randomGroups(Random& random, int64_t channels, bool steps) {
  std::vector<rbcChannelGroup> groups;
  for (int64_t begin = 0; begin < channels;) {
    int64_t count = 1 + random.below(std::min<int64_t>(channels - begin, 9));
    int32_t method = steps ? random.pick(kSteps) : random.pick(kAllMethods);
    if (method == RBC_METHOD_SLERP) {
      if (channels - begin < 4) continue;
      count = 4 * (1 + random.below(std::min<int64_t>((channels - begin) / 4, 3)));
    }
    const bool angles = method == RBC_METHOD_ANGLE;
    const auto period = static_cast<int32_t>(angles ? random.below(kPeriods) : 0);
    groups.push_back({begin, count, method, period, 0, 0, 0});
    begin += count;
  }
  for (size_t i = groups.size(); i > 1; --i)
    std::swap(groups[i - 1], groups[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  return groups;
}

}  // namespace

StreamCase randomStream(Random& random, const SharedCase& shared, bool integers) {
  StreamCase c;
  c.packed = shared.batched && random.chance(0.2);
  c.samples = random.chance(0.2) ? random.below(4) : random.below(70);
  c.channels = random.chance(0.7) ? random.below(12) : random.below(140);
  c.values = integers ? random.pick(kIntegerDTypes) : random.pick(kFloatDTypes);
  c.method = integers ? random.pick(kSteps) : random.pick(kAllMethods);
  if (c.channels > 0 && random.chance(0.35)) c.groups = randomGroups(random, c.channels, integers);
  if (c.groups.empty() && c.method == RBC_METHOD_SLERP) c.channels = c.channels / 4 * 4;
  if (c.uses(RBC_METHOD_SLERP) && random.chance(0.5)) c.no_rotations = random.uniform(0, 0.2);
  c.outside = static_cast<int32_t>(random.below(c.uses(RBC_METHOD_LINEAR) ? 3 : 2));
  c.index_dtype = random.chance(0.5) ? kI32 : kI64;
  if (random.chance(0.4)) c.max_gap = random.uniform(0, 3);
  if (c.usesStep() && random.chance(0.5)) c.tolerance = random.uniform(0, 1);
  c.fill_value = random.chance(0.5) ? 0 : 1;
  if (isFloat(shared.out)) {
    c.shift = random.chance(0.25);
    c.scale = random.chance(0.25);
    c.affine = random.chance(0.6) ? kF32 : kF64;
  }
  c.shared_times = !c.packed && shared.batched && random.chance(0.3);
  c.lengths = !c.packed && random.chance(0.3);
  c.pattern = random.pick(kTimePatterns);
  c.values_layout = random.pick(kLayouts);
  c.times_layout = random.pick(kLayouts);
  c.affine_layout = random.pick(kLayouts);
  if (random.chance(0.35)) {
    c.missing = random.chance(0.1) ? 1 : random.uniform(0, 1);
    c.in_runs = random.chance(0.4);
    c.shared_sample_mask = !c.packed && shared.batched && random.chance(0.3);
    c.sample_mask_dtype = random.chance(0.5) ? kBool : kU8;
    if (random.chance(0.5)) c.sample_mask_layout = random.pick(kLayouts);
  }
  return c;
}

SharedCase randomShared(Random& random, uint64_t seed) {
  SharedCase c;
  c.name = "random";
  c.seed = seed;
  c.batched = random.chance(0.85);
  c.batch = c.batched ? random.below(7) : 1;
  c.queries = random.below(60);
  c.times = random.pick(kTimeDTypes);
  c.out = random.pick(kFloatDTypes);
  c.mask_dtype = random.chance(0.5) ? kBool : kU8;
  c.check_times = random.chance(0.3);
  c.shared_queries = c.batched && random.chance(0.3);
  c.query_lengths = random.chance(0.3);
  c.mask = random.chance(0.8);
  c.specials = random.chance(0.25);
  c.order = random.pick(kQueryOrders);
  c.queries_layout = random.pick(kLayouts);
  c.out_layout = randomOutLayout(random);
  c.mask_layout = randomOutLayout(random);
  c.flush = random.chance(0.5) ? Flush::kEnd : Flush::kBegin;
  return c;
}

}  // namespace support
