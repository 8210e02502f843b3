// Tells for most values by one look into a table that no bracket holds them, and between which brackets
// they lie: the range of a channel's brackets is cut into cells of one width.
//
// A value's cell grows with the value. So what lies in another cell than the ends of a bracket, or in
// none between them, is certainly below or above it, whatever was rounded on the way.
#pragma once

#include "statistics/brackets.cuh"
#include "statistics/reduce_channels.cuh"

namespace rbc::cuda {
namespace statistics {

inline constexpr int kCells = 128;
inline constexpr int kCellStride = kCells + 1;  // of a channel: neighbours in other banks
inline constexpr int kMaxKeepWidth = 32;        // channels of a block that keeps values

// An entry counts a value in one of the gaps below, between and above brackets, of which the last one
// needs no count. They lie side by side in one word, until one may overflow.
inline constexpr int kGapBits = 6;
inline constexpr int kMaxInGap = (1 << kGapBits) - 1;
inline constexpr uint32_t kUncertain = 0x80000000u;
static_assert(kMaxBrackets * kGapBits < 32);

struct CellMap {
  float center;
  float scale;

  __device__ __forceinline__ explicit CellMap(const Brackets<float>& brackets) {
    const float most = Limits<float>::most();
    int used = 0;
    while (used < kMaxBrackets && brackets.low[used] <= brackets.high[used]) ++used;
    const int last = used > 0 ? used - 1 : 0;
    // The ends of brackets but for those that are open.
    const float low = brackets.low[0] > -most ? brackets.low[0] : brackets.high[0];
    const float high = brackets.high[last] < most ? brackets.high[last] : brackets.low[last];
    const float width = high - low;
    const bool wide = used > 0 && width > 0x1p-100f && width < 0x1p100f;
    center = wide ? low + 0.5f * width : used > 0 ? low : 0;
    // Some cells at both ends are for what lies beyond. A scale of 0 would make NaN of an infinity.
    scale = wide ? 0.9375f / width : 0x1p-126f;
  }

  // 0 .. kCells - 1; NaN has the first.
  __device__ __forceinline__ uint32_t cellOf(float x) const {
    constexpr float kMagic = 0x1p23f;  // adding it leaves an integer in the lowest bits
    const float place = __saturatef(fmaf(x - center, scale, 0.5f));
    return bitCast<uint32_t>(fmaf(place, static_cast<float>(kCells - 1), kMagic)) -
           bitCast<uint32_t>(kMagic);
  }
};

__device__ __forceinline__ uint32_t entryOf(const Brackets<float>& brackets, const CellMap& map,
                                            uint32_t cell) {
  int gap = 0;
#pragma unroll
  for (int b = 0; b < kMaxBrackets; ++b) {
    if (!(brackets.low[b] <= brackets.high[b])) break;
    if (cell > map.cellOf(brackets.high[b])) {
      gap = b + 1;
    } else if (cell >= map.cellOf(brackets.low[b])) {
      return kUncertain;
    }
  }
  return gap < kMaxBrackets ? 1u << (kGapBits * gap) : 0;
}

using CellTable = uint32_t[kMaxKeepWidth * kCellStride];

// Of a block's channels, `count` of them. All threads take part.
__device__ __forceinline__ void fillCells(CellTable& table, const Brackets<float>* brackets,
                                          int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count * kCells; i += kThreads) {
    const int channel = i / kCells;
    const int cell = i % kCells;
    table[channel * kCellStride + cell] =
        entryOf(brackets[channel], CellMap(brackets[channel]), static_cast<uint32_t>(cell));
  }
  __syncthreads();
}

}  // namespace statistics
}  // namespace rbc::cuda
