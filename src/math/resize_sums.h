// The sums of a resize, for every rule: along a row, then along the columns, and the rounding of
// both.
#pragma once

#include <cstdint>

#include "number.h"
#include "platform.h"
#include "resize_filter.h"

namespace rbc {

// How weights are applied: the sums of a resize.
enum class ResizeSums : int32_t {
  kRounded,      // i32 from half a unit, shifted, u8 after each pass
  kExact,        // i64, one rounding at the end, ties to even
  kLinear,       // OpenCV's sums of 11 bits
  kLinearExact,  // OpenCV's sums of 8 bits
  kBlocks,       // OpenCV's means of whole blocks
  kCells,        // OpenCV's f32 means of cells
};

// The numbers that the sums of an image need.
struct SumNumbers {
  int32_t across_bits;  // of the fraction of weights
  int32_t down_bits;
  int64_t block_height;  // pixels, of kBlocks
  int64_t block_width;
};

RBC_HD uint8_t clampToByte(int32_t x) {
  return static_cast<uint8_t>(x < 0 ? 0 : x > 255 ? 255 : x);
}

// A sum of weights of 2^44 in all, rounded to nearest, ties to even.
RBC_HD uint8_t roundExact(int64_t sum) {
  constexpr int kBits = 2 * kFilterBits;
  constexpr int64_t kHalf = int64_t{1} << (kBits - 1);
  const int64_t whole = sum >> kBits;
  const int64_t rest = sum & ((int64_t{1} << kBits) - 1);
  const int64_t rounded = whole + (rest > kHalf || (rest == kHalf && (whole & 1) != 0) ? 1 : 0);
  return static_cast<uint8_t>(rounded < 0 ? 0 : rounded > 255 ? 255 : rounded);
}

// The mean of a block of whole pixels.
RBC_HD uint8_t blockMean(int64_t sum, int64_t height, int64_t width) {
  if (height == 2 && width == 2) return static_cast<uint8_t>((sum + 2) >> 2);
  const float share = 1.0f / static_cast<float>(height * width);
  return clampToByte(static_cast<int32_t>(roundEven(static_cast<float>(sum) * share)));
}

// Across: the type of sums along a row. Middle: what is kept of them. Down: sums along the columns.
struct RoundedSums {
  using Across = int32_t;
  using Middle = uint8_t;
  using Down = int32_t;
  RBC_HD explicit RoundedSums(const SumNumbers& n) : across(n.across_bits), down(n.down_bits) {}
  RBC_HD int32_t firstAcross() const { return half(across); }
  RBC_HD uint8_t middle(int32_t sum) const { return clampToByte(sum >> across); }
  RBC_HD int32_t firstDown() const { return half(down); }
  static RBC_HD int32_t term(int32_t w, uint8_t x) { return w * int32_t{x}; }
  RBC_HD uint8_t result(int32_t sum) const { return clampToByte(sum >> down); }
  static RBC_HD int32_t half(int32_t bits) { return bits > 0 ? 1 << (bits - 1) : 0; }
  int32_t across;
  int32_t down;
};

struct ExactSums {
  using Across = int32_t;
  using Middle = int32_t;
  using Down = int64_t;
  RBC_HD explicit ExactSums(const SumNumbers&) {}
  static RBC_HD int32_t firstAcross() { return 0; }
  static RBC_HD int32_t middle(int32_t sum) { return sum; }
  static RBC_HD int64_t firstDown() { return 0; }
  static RBC_HD int64_t term(int32_t w, int32_t x) { return int64_t{w} * x; }
  static RBC_HD uint8_t result(int64_t sum) { return roundExact(sum); }
};

struct LinearSums {
  using Across = int32_t;
  using Middle = int32_t;
  using Down = int32_t;
  RBC_HD explicit LinearSums(const SumNumbers&) {}
  static RBC_HD int32_t firstAcross() { return 0; }
  static RBC_HD int32_t middle(int32_t sum) { return sum >> 4; }
  static RBC_HD int32_t firstDown() { return 2; }
  static RBC_HD int32_t term(int32_t w, int32_t x) { return (w * x) >> 16; }
  static RBC_HD uint8_t result(int32_t sum) { return clampToByte(sum >> 2); }
};

struct LinearExactSums {
  using Across = int32_t;
  using Middle = int32_t;
  using Down = int32_t;
  RBC_HD explicit LinearExactSums(const SumNumbers&) {}
  static RBC_HD int32_t firstAcross() { return 0; }
  static RBC_HD int32_t middle(int32_t sum) { return sum; }
  static RBC_HD int32_t firstDown() { return 1 << 15; }
  static RBC_HD int32_t term(int32_t w, int32_t x) { return w * x; }
  static RBC_HD uint8_t result(int32_t sum) { return clampToByte(sum >> 16); }
};

struct BlocksSums {
  using Across = int32_t;
  using Middle = int32_t;
  using Down = int64_t;
  RBC_HD explicit BlocksSums(const SumNumbers& n) : height(n.block_height), width(n.block_width) {}
  static RBC_HD int32_t firstAcross() { return 0; }
  static RBC_HD int32_t middle(int32_t sum) { return sum; }
  static RBC_HD int64_t firstDown() { return 0; }
  static RBC_HD int64_t term(int32_t, int32_t x) { return x; }
  RBC_HD uint8_t result(int64_t sum) const { return blockMean(sum, height, width); }
  int64_t height;
  int64_t width;
};

// The f32 sums are added in order, each product and each sum rounded.
struct CellsSums {
  using Across = float;
  using Middle = float;
  using Down = float;
  RBC_HD explicit CellsSums(const SumNumbers&) {}
  static RBC_HD float firstAcross() { return 0; }
  static RBC_HD float middle(float sum) { return sum; }
  static RBC_HD float firstDown() { return 0; }
  static RBC_HD float term(int32_t w, float x) { return x * bitCast<float>(w); }
  static RBC_HD uint8_t result(float sum) {
    return clampToByte(static_cast<int32_t>(roundEven(sum)));
  }
};

// One term of a sum along a row.
RBC_HD int32_t termAcross(int32_t w, uint8_t x, int32_t) { return w * int32_t{x}; }
RBC_HD float termAcross(int32_t w, uint8_t x, float) {
  return static_cast<float>(x) * bitCast<float>(w);
}

}  // namespace rbc
