// The values of two ranks among unsorted ones, by a block: histograms over ever narrower ranges of keys.
#pragma once

#include <cub/block/block_scan.cuh>

#include "value_key.h"

namespace rbc::cuda {
namespace statistics {

inline constexpr int kSelectThreads = 512;
inline constexpr int kSelectBins = 2048;

struct SelectMemory {
  uint32_t bins[2][kSelectBins];
  uint32_t carries[2][kSelectBins];  // of bins beyond 32 bits
  cub::BlockScan<int64_t, kSelectThreads>::TempStorage scan;
  int64_t bin[2];
  int64_t before[2];
};

// Keys from low on, and the rank among them that is wanted.
template <class Key>
struct KeyRange {
  Key low;
  Key high;
  int64_t rank;

  __device__ __forceinline__ int shift() const {
    const auto span = static_cast<uint64_t>(high - low);
    const int bits = span == 0 ? 0 : 64 - __clzll(static_cast<long long>(span));
    constexpr int kBinBits = 11;
    return bits > kBinBits ? bits - kBinBits : 0;
  }
};

__device__ __forceinline__ void countInBin(SelectMemory& memory, int which, uint32_t bin,
                                           unsigned long long count) {
  const auto low = static_cast<uint32_t>(count);
  const uint32_t before = atomicAdd(&memory.bins[which][bin], low);
  const uint32_t carry = before + low < before ? 1 : 0;
  const auto high = static_cast<uint32_t>(count >> 32) + carry;
  if (high != 0) atomicAdd(&memory.carries[which][bin], high);
}

// Narrows a range to the bin that holds the rank.
template <class Key>
__device__ __forceinline__ void narrow(SelectMemory& memory, int which, KeyRange<Key>* range) {
  constexpr int kEach = kSelectBins / kSelectThreads;
  const int t = static_cast<int>(threadIdx.x);
  int64_t count[kEach];
  int64_t all = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    count[i] = static_cast<int64_t>(memory.bins[which][t * kEach + i]) |
               static_cast<int64_t>(memory.carries[which][t * kEach + i]) << 32;
    all += count[i];
  }
  int64_t before = 0;
  cub::BlockScan<int64_t, kSelectThreads>(memory.scan).ExclusiveSum(all, before);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (range->rank >= before && range->rank < before + count[i]) {
      memory.bin[which] = t * kEach + i;
      memory.before[which] = before;
    }
    before += count[i];
  }
  __syncthreads();
  const int shift = range->shift();
  const Key low = range->low + (static_cast<Key>(memory.bin[which]) << shift);
  const Key last = low + ((Key{1} << shift) - 1);
  range->high = last < low || last > range->high ? range->high : last;
  range->low = low;
  range->rank -= memory.before[which];
  __syncthreads();
}

// Calls source(visit), which calls visit(key, how often) for all keys, by all threads of the block
// together, a few times. The ranks are among the keys in a range; all threads get both keys.
template <class Key, class Source>
__device__ __forceinline__ void selectTwo(SelectMemory& memory, Key low, Key high,
                                          const int64_t (&rank)[2], Source&& source,
                                          Key (&found)[2]) {
  KeyRange<Key> range[2] = {{low, high, rank[0]}, {low, high, rank[1]}};
  while (range[0].low < range[0].high || range[1].low < range[1].high) {
    const bool same = range[0].low == range[1].low && range[0].high == range[1].high;
    for (int i = static_cast<int>(threadIdx.x); i < kSelectBins; i += kSelectThreads) {
      memory.bins[0][i] = memory.bins[1][i] = memory.carries[0][i] = memory.carries[1][i] = 0;
    }
    // If somebody writes the samples meanwhile a rank may not be found: then there is no right answer.
    if (threadIdx.x < 2) memory.bin[threadIdx.x] = memory.before[threadIdx.x] = 0;
    __syncthreads();
    const int shift[2] = {range[0].shift(), range[1].shift()};
    source([&](Key key, unsigned long long count) {
      if (key >= range[0].low && key <= range[0].high) {
        countInBin(memory, 0, static_cast<uint32_t>((key - range[0].low) >> shift[0]), count);
      }
      if (!same && key >= range[1].low && key <= range[1].high) {
        countInBin(memory, 1, static_cast<uint32_t>((key - range[1].low) >> shift[1]), count);
      }
    });
    __syncthreads();
    narrow(memory, 0, &range[0]);
    narrow(memory, same ? 0 : 1, &range[1]);
  }
  found[0] = range[0].low;
  found[1] = range[1].low;
}

}  // namespace statistics
}  // namespace rbc::cuda
