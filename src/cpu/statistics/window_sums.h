// Fast exact sums and sums of squares of some channels: a channel's values mostly have similar
// magnitudes. Values of up to 2^top, and not finer than the rest of a float's bits, are sums of two
// or three integers ("pieces") with one unit each. Integers and their products are added lane by
// lane, without carries; values that do not fit are added to the limbs of exact_sum.h one by one.
#pragma once

#include <cstdint>
#include <type_traits>

#include "exact_sum.h"
#include "runtime/simd.h"

namespace rbc::cpu {

template <class Number>
struct Window;
template <>
struct Window<float> {
  static constexpr int kPieces = 2;
  static constexpr int kUnit[kPieces] = {18, 40};  // piece i is a multiple of 2^(top - kUnit[i])
  static constexpr int kMantissa = 23;
  static constexpr int kLowest = -105;  // of `top`, so that all constants are normal
  static constexpr int kHighest = 120;
  static constexpr int64_t kMaxRows = 1 << 20;  // products of up to 2^42 then fit in 64 bits
};
template <>
struct Window<double> {
  static constexpr int kPieces = 3;
  static constexpr int kUnit[kPieces] = {24, 48, 72};
  static constexpr int kMantissa = 52;
  static constexpr int kLowest = -1000;
  static constexpr int kHighest = 990;
  static constexpr int64_t kMaxRows = 1 << 14;  // of up to 2^48
};

inline constexpr int kMaxWidth = 32;  // channels that are summed together
inline constexpr int64_t kTileBytes = 16 << 10;
template <class Number>
inline constexpr int64_t kTileElements = kTileBytes / static_cast<int64_t>(sizeof(Number));

// The values of `width` channels are interleaved, so that as many rows as a vector has lanes are
// `width` vectors: in each of these, every lane belongs to one channel.
template <class Number>
struct WindowSums {
  static constexpr int kPieces = Window<Number>::kPieces;
  static constexpr int kProducts = kPieces * (kPieces + 1) / 2;
  static constexpr int kMaxLanes = 2048 / sizeof(Number);

  alignas(64) Number limit[kMaxLanes];           // 2^top; negative if there is no window
  alignas(64) Number magic[kPieces][kMaxLanes];  // rounds to the unit when it is added
  alignas(64) Number min[kMaxLanes];
  alignas(64) Number max[kMaxLanes];
  alignas(64) int64_t sums[kPieces][kMaxLanes];
  alignas(64) int64_t products[kProducts][kMaxLanes];  // lanes: see productPlace()
  int width;
  int lanes;                // per vector
  int64_t rows;             // since the last flush
  int64_t exact_additions;  // to a channel's limbs since they were normalized, at most
  bool open[kMaxWidth];
  int top[kMaxWidth];
  int32_t misses[kMaxWidth];  // in the last tile
  int64_t negative_infinities[kMaxWidth];
  Moments* moments;  // [width]
};

// The products of a vector of 32-bit numbers are two vectors of 64-bit integers: even lanes, odd
// lanes.
inline int productPlace(int place, int lanes, size_t size) {
  if (size == 8 || lanes == 1) return place;
  const int lane = place % lanes;
  return place - lane + (lane & 1) * (lanes / 2) + lane / 2;
}

// Number of lanes of a vector at a level.
int vectorLanes(SimdLevel level, size_t number_size);

// Starts sums of some channels; they are added to `moments`, which are clear or have sums.
template <class Number>
void beginSums(WindowSums<Number>* sums, SimdLevel level, int width, Moments* moments);

// Adds rows of values, contiguous. `slow` has room for as many places as there are values.
template <class Number>
void addTile(WindowSums<Number>* sums, SimdLevel level, const Number* values, int64_t rows,
             int32_t* slow);

// Adds everything to the moments, except the count, which is the caller's: rows minus values that
// are not finite. Normalizes the limbs.
template <class Number>
void endSums(WindowSums<Number>* sums);

// The part that is compiled for each level: adds the values that fit into the windows, and returns
// the number of the others, with their places.
template <class Number>
using SumTile = int64_t (*)(WindowSums<Number>* sums, const Number* values, int64_t rows,
                            int32_t* slow);
template <class Number>
SumTile<Number> sumTileFor(SimdLevel level);

// Rounds x to pieces; returns false if x is not their sum.
template <class Number>
inline bool splitIntoPieces(const WindowSums<Number>& sums, int place, Number x,
                            int64_t (&pieces)[Window<Number>::kPieces]) {
  using Bits = std::conditional_t<sizeof(Number) == 4, int32_t, int64_t>;
  const Number magnitude = x < 0 ? -x : x;
  if (!(magnitude <= sums.limit[place])) return false;
  Number rest = x;
  for (int i = 0; i < Window<Number>::kPieces; ++i) {
    const Number magic = sums.magic[i][place];
    const Number shifted = rest + magic;
    pieces[i] = bitCast<Bits>(shifted) - bitCast<Bits>(magic);
    rest -= shifted - magic;
  }
  return rest == 0;
}

// Adds one value; returns false if it does not fit.
template <class Number>
inline bool addOne(WindowSums<Number>* sums, int place, Number x) {
  constexpr int kPieces = Window<Number>::kPieces;
  int64_t pieces[kPieces];
  if (!splitIntoPieces(*sums, place, x, pieces)) return false;
  const int product_place = productPlace(place, sums->lanes, sizeof(Number));
  int product = 0;
  for (int i = 0; i < kPieces; ++i) {
    sums->sums[i][place] += pieces[i];
    for (int k = i; k < kPieces; ++k) {
      sums->products[product++][product_place] += pieces[i] * pieces[k];
    }
  }
  if (x < sums->min[place]) sums->min[place] = x;
  if (x > sums->max[place]) sums->max[place] = x;
  return true;
}

}  // namespace rbc::cpu
