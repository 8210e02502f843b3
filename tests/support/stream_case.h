// The parameters of one stream, and the parameters that all streams share: cases of rbcResample and
// rbcFuse consist of both.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays.h"
#include "dtypes.h"
#include "random.h"
#include "robocache/fuse.h"

namespace support {

enum class TimePattern { kUniform, kJittered, kDuplicates, kClustered, kGaps };
enum class QueryOrder { kSorted, kRandom, kAtSamples, kOutside };
constexpr TimePattern kTimePatterns[] = {TimePattern::kUniform, TimePattern::kJittered,
                                         TimePattern::kDuplicates, TimePattern::kClustered,
                                         TimePattern::kGaps};
constexpr QueryOrder kQueryOrders[] = {QueryOrder::kSorted, QueryOrder::kRandom,
                                       QueryOrder::kAtSamples, QueryOrder::kOutside};
constexpr int32_t kAllMethods[] = {RBC_METHOD_LINEAR, RBC_METHOD_NEAREST, RBC_METHOD_PREVIOUS,
                                   RBC_METHOD_NEXT,   RBC_METHOD_CUBIC,   RBC_METHOD_PCHIP,
                                   RBC_METHOD_SLERP,  RBC_METHOD_ANGLE};
constexpr int32_t kSteps[] = {RBC_METHOD_NEAREST, RBC_METHOD_PREVIOUS, RBC_METHOD_NEXT};

constexpr double kNone = std::numeric_limits<double>::infinity();
constexpr double kPeriod = 0.01;  // seconds between samples, on average

constexpr bool isStep(int32_t method) {
  return method == RBC_METHOD_NEAREST || method == RBC_METHOD_PREVIOUS || method == RBC_METHOD_NEXT;
}

const char* methodName(int32_t method);

// The method of angles with a period, for StreamCase::setGroups().
constexpr int32_t angleBy(int32_t period) { return RBC_METHOD_ANGLE + period; }
constexpr int32_t kPeriods = 6;

struct StreamCase {
  int64_t samples = 37;  // S; on average per row if packed
  int64_t channels = 5;  // D
  rbcDType values = kF32;
  rbcDType index_dtype = kI64;  // of lengths, query_lengths, offsets

  int32_t method = RBC_METHOD_LINEAR;
  std::vector<rbcChannelGroup> groups = {};  // in any order; empty: method
  int32_t outside = RBC_OUTSIDE_HOLD;
  double max_gap = kNone;    // in average sample periods
  double tolerance = kNone;  // in average sample periods
  double fill_value = 0;
  double no_rotations = 0;  // share of the quaternions of slerp that are zero or not finite
  bool shift = false;
  bool scale = false;
  rbcDType affine = kF32;  // of shift and scale
  double clock_offset = 0;
  int64_t clock_offset_ticks = 0;

  bool shared_times = false;  // [S] instead of [B,S]
  bool lengths = false;
  bool absent = false;  // of length 0 in every row; needs lengths
  bool packed = false;
  double missing = 0;               // share of samples that sample_mask excludes; 0: it is null
  bool in_runs = false;             // missing samples are in long runs, not scattered
  bool shared_sample_mask = false;  // [S] instead of [B,S]
  rbcDType sample_mask_dtype = kBool;
  bool causal = false;           // without groups; groups have their own flags
  double max_age = kNone;        // the same, in average sample periods
  bool arrivals = false;         // samples arrive late, early, out of order or never
  double delay = 3;              // until most of them have, in average sample periods
  bool in_order = false;         // each of them has after the one before it
  bool shared_arrivals = false;  // [S] instead of [B,S]
  TimePattern pattern = TimePattern::kJittered;

  Layout values_layout = Layout::kContiguous;
  Layout times_layout = Layout::kContiguous;
  Layout affine_layout = Layout::kContiguous;
  Layout sample_mask_layout = Layout::kContiguous;
  Layout arrivals_layout = Layout::kContiguous;

  bool uses(int32_t wanted) const {
    if (groups.empty()) return method == wanted;
    return std::any_of(groups.begin(), groups.end(),
                       [&](const rbcChannelGroup& group) { return group.method == wanted; });
  }
  bool usesStep() const {
    return uses(RBC_METHOD_NEAREST) || uses(RBC_METHOD_PREVIOUS) || uses(RBC_METHOD_NEXT);
  }
  // The groups in the order of channels; without groups one for all channels.
  std::vector<rbcChannelGroup> segments() const {
    if (groups.empty()) return {{0, channels, method, 0, causal ? RBC_FLAG_CAUSAL : 0, 0, 0}};
    std::vector<rbcChannelGroup> sorted = groups;
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.begin < b.begin; });
    return sorted;
  }
  // Groups with these sizes and methods, in order; sets the number of channels. For angles with a
  // period the method is angleBy().
  void setGroups(const std::vector<std::pair<int64_t, int32_t>>& sizes) {
    groups.clear();
    channels = 0;
    for (const auto& [count, own] : sizes) {
      const int32_t method_of = std::min<int32_t>(own, RBC_METHOD_ANGLE);
      groups.push_back({channels, count, method_of, own - method_of, 0, 0, 0});
      channels += count;
    }
  }
  // All channels that can look back only; `limit` is in average sample periods.
  void setCausal(rbcDType times, double limit) {
    causal = groups.empty() && method != RBC_METHOD_NEXT;
    if (causal) max_age = limit;
    for (rbcChannelGroup& group : groups) {
      if (group.method == RBC_METHOD_NEXT) continue;
      group.flags = RBC_FLAG_CAUSAL;
      group.max_age = limit * kPeriod * (same(times, kI64) ? 1e9 : 1);
    }
    tolerance = kNone;
  }
  // One group of angles.
  void setAngles(int64_t count, int32_t period) { setGroups({{count, angleBy(period)}}); }
};

struct SharedCase {
  std::string name = "";
  uint64_t seed = 1;

  int64_t batch = 3;     // B
  int64_t queries = 29;  // T
  bool batched = true;   // false: values [S,D], B = 1

  rbcDType out = kF32;
  rbcDType times = kF32;
  rbcDType mask_dtype = kBool;

  bool check_times = false;
  bool shared_queries = false;  // [T] instead of [B,T]
  bool query_lengths = false;
  bool mask = true;
  // NaN, infinities and subnormals among values, NaN and infinities among queries.
  bool specials = false;

  QueryOrder order = QueryOrder::kSorted;
  double lag = 0;  // in average sample periods, whole nanoseconds

  Layout queries_layout = Layout::kContiguous;
  Layout out_layout = Layout::kContiguous;
  Layout mask_layout = Layout::kContiguous;
  Flush flush = Flush::kEnd;
};

// ---- descriptions -------------------------------------------------------------------------------

namespace detail {}  // namespace detail

// The lag in the unit of the times.
template <class Time>
Time lagOf(const SharedCase& c) {
  constexpr double kUnit = std::is_integral_v<Time> ? kPeriod * 1e9 : kPeriod;
  return static_cast<Time>(c.lag * kUnit);
}

std::string describeStream(const StreamCase& c);

std::string describeShared(const SharedCase& c);

// ---- random cases -------------------------------------------------------------------------------

namespace detail {}  // namespace detail

// A stream of any kind that fits the rest of the case, except for clock offsets.
StreamCase randomStream(Random& random, const SharedCase& shared, bool integers);

SharedCase randomShared(Random& random, uint64_t seed);

}  // namespace support
