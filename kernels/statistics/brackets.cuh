// Brackets around quantiles, as Floyd and Rivest have them ("Expected time bounds for selection", 1975):
// a sample tells between which two values a quantile lies; one read counts the values below and keeps
// those between.
#pragma once

#include <cstdint>

#include "platform.h"
#include "statistics_problem.h"

namespace rbc::cuda {
namespace statistics {

inline constexpr int kMaxBrackets = 5;  // that a read of the samples serves

// How wide brackets are: a sample misses a quantile once in some 100,000.
inline constexpr double kBracketDeviations = 4.5;
inline constexpr double kBracketMargin = 3;

// Of a channel of a group, disjoint and ascending. Those that are not used hold no number.
template <class Number>
struct Brackets {
  Number low[kMaxBrackets];
  Number high[kMaxBrackets];
  // A value that is frequent in the sample, which is counted and never kept; else NaN.
  Number frequent;
  // Room for kept values.
  int64_t start[kMaxBrackets];
  int64_t capacity[kMaxBrackets];
};

// What a read has found.
struct Found {
  unsigned long long below[kMaxBrackets];
  unsigned long long kept[kMaxBrackets];  // strictly between; more than the capacity: some are lost
  unsigned long long at_low[kMaxBrackets];
  unsigned long long at_high[kMaxBrackets];
  unsigned long long frequent;
};

// The levels of a read, ascending: those of more are read one after another. A share is that of a
// group's samples for which a bracket has room, besides a few.
struct LevelsOfRead {
  int32_t count;
  int32_t index[kMaxBrackets];  // into the problem's levels
  double level[kMaxBrackets];
  double share[kMaxBrackets];
  double shares;              // of all
  int64_t places_of_channel;  // of kept values, in all groups
};

inline constexpr int64_t kMinCapacity = 32;
inline constexpr int64_t kMaxCapacity = 0x7fffffff;  // of a bracket: places in it have 32 bits

RBC_HD int64_t capacityOf(double share, int64_t samples) {
  return static_cast<int64_t>(share * static_cast<double>(samples)) + kMinCapacity;
}

// Where the lists of a group begin that comes after so many samples of others.
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

}  // namespace statistics
}  // namespace rbc::cuda
