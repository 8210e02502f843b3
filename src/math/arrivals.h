// The samples of a row that exist for a query: those that are not missing, and had arrived when the
// robot computes the row.
//
// Arrivals may be in any order, so that the nearest sample that had arrived may be far away. Minima
// of blocks of arrivals, of blocks of these, and so on, let a search pass all that had not: its time
// grows with the logarithm of the row's length. They are only hints. Each answer is looked up in the
// arrivals themselves, so that a thread that changes them meanwhile cannot lead outside of the row.
#pragma once

#include <limits>

#include "times.h"
#include "valid_samples.h"

namespace rbc {

inline constexpr int kArrivalBlockLog2 = 6;

// The minima of a line of samples; missing samples never arrive. A block of level l has 2^(6 l) samples, and levels 1, 2, ... up
// to a level of one block follow each other in memory.
template <class Time>
struct ArrivalMinima {
  const Time* first;  // null: none; every search goes through all samples
  int64_t samples;    // of the line

  static RBC_HD int shiftOf(int level) { return level * kArrivalBlockLog2; }
  static RBC_HD int64_t blocksOf(int64_t samples, int level) {
    return ((samples - 1) >> shiftOf(level)) + 1;
  }
  RBC_HD bool hasAbove(int level) const { return blocksOf(samples, level) > 1; }
  RBC_HD Time at(int level, int64_t block) const {
    const Time* own = first;
    for (int below = 1; below < level; ++below) own += blocksOf(samples, below);
    return own[block];
  }
};

// The arrival of a sample that exists for every query.
template <class Time>
inline constexpr Time kAlways = std::numeric_limits<Time>::has_infinity
                                    ? -std::numeric_limits<Time>::infinity()
                                    : std::numeric_limits<Time>::min();

// The minimum of a block in which nothing arrives.
template <class Time>
inline constexpr Time kNeverArrives = std::numeric_limits<Time>::has_infinity
                                          ? std::numeric_limits<Time>::infinity()
                                          : std::numeric_limits<Time>::max();

// The number of minima of a line.
RBC_HD int64_t arrivalMinimaOf(int64_t samples) {
  using Minima = ArrivalMinima<double>;
  if (samples <= 0) return 0;
  int64_t count = 0;
  for (int level = 1;; ++level) {
    const int64_t blocks = Minima::blocksOf(samples, level);
    count += blocks;
    if (blocks == 1) return count;
  }
}

// The functions of ValidSamples, for the samples of a row that had arrived.
template <class Time, class Index>
struct ArrivedSamples {
  static constexpr bool kAll = false;

  ValidSamples<Index> valid;
  const char* arrivals;  // of the row's first sample; null: all had arrived
  int64_t step;          // in bytes
  Time until;            // what arrived later does not exist
  int64_t origin;        // the number of the row's first sample in its line
  ArrivalMinima<Time> minima;

  RBC_HD bool counts(Index i) const {
    return *reinterpret_cast<const Time*>(arrivals + static_cast<int64_t>(i) * step) <= until &&
           valid.counts(i);
  }

  // The last sample of 0 .. i that exists, or -1.
  RBC_HD_CALLED Index upTo(Index i) const {
    if (arrivals == nullptr) return valid.upTo(i);
    for (int64_t end = origin + i + 1; end > origin;) {
      const int64_t block = minima.first != nullptr ? blockBegin(end - 1) : origin;
      const int64_t stop = block > origin ? block : origin;
      for (; end > stop; --end) {
        const auto own = static_cast<Index>(end - 1 - origin);
        if (counts(own)) return own;
      }
      // Passes blocks, larger ones where possible, until one may have a sample.
      for (int level = 1; level > 0 && end > origin;) {
        const int shift = minima.shiftOf(level);
        if (minima.at(level, (end >> shift) - 1) <= until) {
          --level;
        } else {
          end -= int64_t{1} << shift;
          if (minima.hasAbove(level) && begins(end, level + 1)) ++level;
        }
      }
    }
    return -1;
  }

  // The first sample of i .. n - 1 that exists, or n.
  RBC_HD_CALLED Index from(Index i, Index n) const {
    if (arrivals == nullptr) return valid.from(i, n);
    const int64_t end = origin + n;
    for (int64_t begin = origin + i; begin < end;) {
      const int64_t block =
          minima.first != nullptr ? blockBegin(begin) + (int64_t{1} << kArrivalBlockLog2) : end;
      const int64_t stop = block < end ? block : end;
      for (; begin < stop; ++begin) {
        const auto own = static_cast<Index>(begin - origin);
        if (counts(own)) return own;
      }
      for (int level = 1; level > 0 && begin < end;) {
        const int shift = minima.shiftOf(level);
        if (minima.at(level, begin >> shift) <= until) {
          --level;
        } else {
          begin += int64_t{1} << shift;
          if (minima.hasAbove(level) && begins(begin, level + 1)) ++level;
        }
      }
    }
    return n;
  }

  // The same samples, without those before `begin`.
  RBC_HD ArrivedSamples shifted(Index begin) const {
    ArrivedSamples part = *this;
    if (valid.first != nullptr) part.valid = valid.shifted(begin);
    part.arrivals = arrivals != nullptr ? arrivals + static_cast<int64_t>(begin) * step : nullptr;
    part.origin = origin + begin;
    return part;
  }

 private:
  static RBC_HD int64_t blockBegin(int64_t sample) {
    return sample >> kArrivalBlockLog2 << kArrivalBlockLog2;
  }
  // Whether a block of a level begins at a sample.
  static RBC_HD bool begins(int64_t sample, int level) {
    return (sample & ((int64_t{1} << ArrivalMinima<Time>::shiftOf(level)) - 1)) == 0;
  }
};

// The same functions for samples that arrived in their order: those that had arrived are the valid
// ones among the first `count`. Valid is ValidSamples, or AllSamples.
template <class Valid, class Index>
struct FirstSamples {
  static constexpr bool kAll = false;

  Valid valid;
  Index count;

  RBC_HD bool counts(Index i) const { return i < count && valid.counts(i); }
  RBC_HD Index upTo(Index i) const { return valid.upTo(i < count ? i : count - 1); }
  RBC_HD Index from(Index i, Index n) const {
    const Index found = valid.from(i, count);
    return found < count ? found : n;
  }
  RBC_HD FirstSamples shifted(Index begin) const {
    return {valid.shifted(begin), begin < count ? count - begin : 0};
  }
};

// The arrival of the last sample of 0 .. i that is not missing, as a row.
template <class Time, class Valid>
struct LastArrivals {
  TimeRow<Time> arrivals;
  Valid valid;

  RBC_HD Time operator[](int64_t i) const {
    const int64_t last = valid.upTo(i);
    return last < 0 ? kAlways<Time> : arrivals[last];
  }
};

}  // namespace rbc
