// Brackets around quantiles, and the places of ranks in them.
#pragma once

#include <cstdint>

#include "platform.h"
#include "statistics/sample_readers.cuh"
#include "statistics_problem.h"
#include "value_key.h"

namespace rbc::cuda {
namespace statistics {

// ---- Brackets around quantiles, as in Floyd and Rivest ("Expected time bounds for selection",
// 1975): a sample gives two values between which a quantile probably is; one pass counts the
// values below and keeps those between.

inline constexpr int kMaxBrackets = 5;  // per pass over the samples

// The width of brackets: a sample misses a quantile about once in 100,000.
inline constexpr double kBracketDeviations = 4.5;
inline constexpr double kBracketMargin = 3;

// Brackets of a channel of a group, disjoint and ascending. Unused ones contain no number.
template <class Number>
struct Brackets {
  Number low[kMaxBrackets];
  Number high[kMaxBrackets];
  // A value that is frequent in the sample; it is counted and never kept. Else NaN.
  Number frequent;
  // Where the kept values begin.
  int64_t start[kMaxBrackets];
  int64_t capacity[kMaxBrackets];
};

// The results of a pass.
struct Found {
  unsigned long long below[kMaxBrackets];
  unsigned long long kept[kMaxBrackets];  // strictly between; beyond the capacity they are lost
  unsigned long long at_low[kMaxBrackets];
  unsigned long long at_high[kMaxBrackets];
  unsigned long long frequent;
};

// The levels of a pass, ascending; more levels need several passes. A share is the part of a
// group's samples for which a bracket has room, plus a few.
struct LevelsOfRead {
  int32_t count;
  int32_t index[kMaxBrackets];  // indices of the problem's levels
  double level[kMaxBrackets];
  double share[kMaxBrackets];
  double shares;              // sum of all
  int64_t places_of_channel;  // of kept values, in all groups
};

inline constexpr int64_t kMinCapacity = 32;
inline constexpr int64_t kMaxCapacity = 0x7fffffff;  // per bracket: places in it have 32 bits

RBC_HD int64_t capacityOf(double share, int64_t samples) {
  return static_cast<int64_t>(share * static_cast<double>(samples)) + kMinCapacity;
}

// Where the lists of a group begin, if the groups before it have samples_before samples.
RBC_HD int64_t firstPlace(const LevelsOfRead& levels, int64_t group, int64_t samples_before,
                          int64_t channel) {
  return channel * levels.places_of_channel + group * (levels.count * kMinCapacity + 1) +
         static_cast<int64_t>(levels.shares * static_cast<double>(samples_before));
}

template <class Number>
struct Limits;
template <>
struct Limits<float> {
  static __device__ __forceinline__ float most() { return bitCast<float>(0x7f7fffffu); }
  static __device__ __forceinline__ float infinity() { return bitCast<float>(0x7f800000u); }
};
template <>
struct Limits<double> {
  static __device__ __forceinline__ double most() { return bitCast<double>(0x7fefffffffffffffull); }
  static __device__ __forceinline__ double infinity() {
    return bitCast<double>(0x7ff0000000000000ull);
  }
};

// ---- The places of the values of two ranks among the values that a pass has counted and kept.

// The values of a bracket in order: some at its low end, the values within (which may include the
// frequent value), and some at its high end.
template <class Number>
struct Bracket {
  Number low;
  Number high;
  Number frequent;
  int64_t below;
  int64_t at_low;
  int64_t at_high;
  int64_t frequents;  // strictly within
  int64_t kept;
  bool complete;

  __device__ Bracket(const Brackets<Number>& brackets, const Found& found, int b)
      : low(brackets.low[b]),
        high(brackets.high[b]),
        frequent(brackets.frequent),
        below(static_cast<int64_t>(found.below[b])),
        at_low(static_cast<int64_t>(found.at_low[b])),
        at_high(static_cast<int64_t>(found.at_high[b])),
        frequents(0),
        kept(static_cast<int64_t>(found.kept[b])),
        complete(kept <= brackets.capacity[b]) {
    const auto count = static_cast<int64_t>(found.frequent);
    if (frequent == low) {
      at_low += count;
    } else if (frequent == high) {
      at_high += count;
    } else if (frequent > low && frequent < high) {
      frequents = count;
    }
  }

  __device__ int64_t within() const { return kept + frequents; }
  __device__ bool holds(int64_t rank) const {
    return rank >= below && rank < below + at_low + within() + at_high;
  }
};

// For two ranks in one bracket: the keys at its ends, or the ranks among the values strictly
// within; if is_inner there is at least one such value. If only one rank is in the bracket, both
// are the same.
template <class Number>
struct RankPlaces {
  int bracket = -1;  // no bracket has them
  bool is_inner = false;
  bool each_is_inner[2] = {};
  int64_t inner[2] = {};
  ValueKey<Number> found[2] = {};
};

template <class Number>
__device__ __forceinline__ RankPlaces<Number> placesOf(const Brackets<Number>& brackets,
                                                       const Found& found,
                                                       const int64_t (&rank)[2]) {
  RankPlaces<Number> places;
#pragma unroll 1
  for (int b = 0; b < kMaxBrackets; ++b) {
    if (!(brackets.low[b] <= brackets.high[b])) break;  // no more brackets
    const Bracket<Number> bracket(brackets, found, b);
    if (!bracket.holds(rank[0]) || !bracket.holds(rank[1])) continue;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int64_t inner = rank[i] - bracket.below - bracket.at_low;
      places.inner[i] = inner;
      places.each_is_inner[i] = inner >= 0 && inner < bracket.within();
      places.found[i] = valueKey(inner < 0 ? bracket.low : bracket.high);
    }
    places.is_inner = places.each_is_inner[0] || places.each_is_inner[1];
    if (!places.each_is_inner[0]) places.inner[0] = places.inner[1];
    if (!places.each_is_inner[1]) places.inner[1] = places.inner[0];
    if (bracket.complete || !places.is_inner) places.bracket = b;
    break;
  }
  return places;
}

// The result of a search among all kept values: few values, in a separate list.
struct Refined {
  uint64_t low;   // keys
  uint64_t high;  // 0: no search
  int64_t before;
  unsigned long long count;
  uint64_t found[2];  // the keys themselves, if already known
  uint64_t is_found;
};

// For a dtype whose keys end in bits that follow from the sign: the only key, if any, between two
// bounds that differ at most in these bits. The key of -0 does not count.
__device__ __forceinline__ uint32_t onlyKey(uint32_t low, uint32_t high, int empty_bits) {
  const uint32_t mask = (1u << empty_bits) - 1;
  const uint32_t negative = low | mask;
  return negative <= high && negative < 0x7fffffffu ? negative : high & ~mask;
}

inline constexpr int64_t kMaxRefined = 4096;
inline constexpr int64_t kFewKept = 8192;  // lists that are searched directly

}  // namespace statistics

}  // namespace rbc::cuda
