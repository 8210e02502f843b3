// Where among what a read has counted and kept the values of two ranks are.
#pragma once

#include "statistics/brackets.cuh"
#include "statistics/sample_readers.cuh"
#include "value_key.h"

namespace rbc::cuda {
namespace statistics {

// What is known of a bracket's values, in their order: some at its low end, those within, of which
// some equal the frequent value, and some at its high end.
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

// Of two ranks in one bracket: the keys at its ends, or the ranks among what is strictly within, of
// which there is one at least if is_inner. Both are the same if only one of them is.
template <class Number>
struct RankPlaces {
  int bracket = -1;  // none tells
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
    if (!(brackets.low[b] <= brackets.high[b])) break;  // no more of them
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

// What a search among all that was kept has left of it: few values, in a list of their own.
struct Refined {
  uint64_t low;   // keys
  uint64_t high;  // 0: there was none
  int64_t before;
  unsigned long long count;
  uint64_t found[2];  // the keys themselves, if they are known by now
  uint64_t is_found;
};

// Of a dtype whose keys end in bits that follow from the sign: the key between two that are not further
// apart than those bits tell, if there is one. That of -0 is none.
__device__ __forceinline__ uint32_t onlyKey(uint32_t low, uint32_t high, int empty_bits) {
  const uint32_t mask = (1u << empty_bits) - 1;
  const uint32_t negative = low | mask;
  return negative <= high && negative < 0x7fffffffu ? negative : high & ~mask;
}

inline constexpr int64_t kMaxRefined = 4096;
inline constexpr int64_t kFewKept = 8192;  // that are looked through as they are

}  // namespace statistics
}  // namespace rbc::cuda
