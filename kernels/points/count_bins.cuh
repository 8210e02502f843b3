// Counts the points of a bin, and writes its part of the output.
#pragma once

#include "points/dense_output.cuh"
#include "points/points.cuh"
#include "points/select_voxels.h"
#include "runtime/pdl.cuh"
#include "scratch_layout.h"

namespace rbc::cuda {
namespace bins {

// ---- The data of bins and tiles in scratch.

inline constexpr int kWarp = 32;
inline constexpr int kCountThreads = 1024;
inline constexpr int kMaxParts = 64;
inline constexpr int kPlaces = 8;    // per word
inline constexpr int kSamples = 64;  // of kSampleThreads * kPoints consecutive points each
inline constexpr int kSampleThreads = 256;
static_assert(kMaxBins == kBinThreads);

struct Unit {
  int32_t bin;
  int32_t part;
  int32_t parts;
  int32_t slot;  // of the first part's cells
};

// The result for a sample of consecutive points.
struct Sample {
  uint32_t points;     // points in voxels
  uint32_t different;  // distinct words of the grid among them
};

struct BinScratch {
  uint16_t* staged;  // [tiles, kTile]: the places in their bins of a tile's points, bin by bin
  uint16_t* begins;  // [bins + 1, tiles]
  uint32_t* totals;  // [bins]: points; followed by:
  uint32_t* done;    // [1]: blocks
  uint32_t* units_used;
  uint32_t* cuts_used;
  Unit* units;
  Unit* cuts;       // [most_parts]: the units of split bins, once more
  void* parts;      // [most_parts, cells]
  Sample* samples;  // [kSamples]
  int32_t* coherent;
};

template <class Cell>
BinScratch cut(ScratchLayout* cutter, const Bins& bins) {
  BinScratch s = {};
  cutter->take(&s.staged, bins.tiles * kTile);
  cutter->take(&s.begins, (bins.count + 1) * bins.tiles);
  cutter->take(&s.totals, bins.count + 3);
  s.done = s.totals + bins.count;
  s.units_used = s.done + 1;
  s.cuts_used = s.units_used + 1;
  cutter->take(&s.units, bins.count + bins.most_parts);
  cutter->take(&s.cuts, bins.most_parts);
  Cell* parts;
  cutter->take(&parts, bins.most_parts * bins.cells());
  s.parts = parts;
  cutter->take(&s.samples, kSamples);
  cutter->take(&s.coherent, 1);
  return s;
}

// Adds a point to a cell: marks only record that there is one.
__device__ inline void addPoint(uint8_t* cells, uint16_t place) { cells[place] = 1; }
__device__ inline void addPoint(uint32_t* cells, uint16_t place) { atomicAdd(&cells[place], 1u); }

__device__ inline void addCell(uint8_t* cell, uint8_t more) { *cell |= more; }
__device__ inline void addCell(uint32_t* cell, uint32_t more) { *cell += more; }

struct CellArguments {
  Bins bins;
  BinScratch scratch;
  CellOutput out;
  bool sampled;
};

// Adds the places, of the eight in a word, that are in begin .. end - 1 of the tile.
template <class Cell>
__device__ __forceinline__ void addWord(const uint4& word, int first, int begin, int end,
                                        Cell* cells) {
  const uint32_t pairs[] = {word.x, word.y, word.z, word.w};
#pragma unroll
  for (int k = 0; k < kPlaces; ++k) {
    if (first + k >= begin && first + k < end) {
      addPoint(cells, static_cast<uint16_t>(pairs[k / 2] >> (k % 2 * 16)));
    }
  }
}

struct Stretch {
  int begin;
  int end;
};

// The range of the bin's points in a tile.
__device__ __forceinline__ Stretch stretchOf(const Bins& bins, const BinScratch& s, int bin,
                                             int64_t tile, int64_t end_tile) {
  if (tile >= end_tile) return {0, 0};
  return {__ldg(&s.begins[bin * bins.tiles + tile]),
          __ldg(&s.begins[(bin + 1) * bins.tiles + tile])};
}

// A warp adds the stretches of its bin in up to 32 tiles; each lane has one of them. Four lanes
// process a short stretch, and all loads of a lane are issued before it uses the first: the code is
// bound by memory only.
template <class Cell>
__device__ void addStretches(const Bins& bins, const BinScratch& s, int64_t first_tile, Stretch own,
                             Cell* cells) {
  constexpr int kLanes = 4;
  constexpr int kAtOnce = kWarp / kLanes;
  constexpr int kLong = 4 * kLanes * kPlaces;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const auto* words = reinterpret_cast<const uint4*>(s.staged + first_tile * kTile);
  const int words_of_tile = kTile / kPlaces;
  const unsigned is_long = __ballot_sync(~0u, own.end - own.begin > kLong);
  uint4 word[kLanes];
  Stretch stretch[kLanes];
#pragma unroll
  for (int j = 0; j < kLanes; ++j) {
    const int t = j * kAtOnce + lane / kLanes;
    const int begin = __shfl_sync(~0u, own.begin, t);
    const int end = __shfl_sync(~0u, own.end, t);
    stretch[j] = {begin, (is_long >> t & 1) != 0 ? 0 : end};
    const int w = begin / kPlaces + lane % kLanes;
    if (w * kPlaces < stretch[j].end) word[j] = __ldg(words + t * words_of_tile + w);
  }
#pragma unroll
  for (int j = 0; j < kLanes; ++j) {
    const int t = j * kAtOnce + lane / kLanes;
    int w = stretch[j].begin / kPlaces + lane % kLanes;
    while (w * kPlaces < stretch[j].end) {
      addWord(word[j], w * kPlaces, stretch[j].begin, stretch[j].end, cells);
      w += kLanes;
      if (w * kPlaces < stretch[j].end) word[j] = __ldg(words + t * words_of_tile + w);
    }
  }
  for (unsigned rest = is_long; rest != 0; rest &= rest - 1) {
    const int t = __ffs(rest) - 1;
    const int begin = __shfl_sync(~0u, own.begin, t);
    const int end = __shfl_sync(~0u, own.end, t);
    for (int w = begin / kPlaces + lane; w * kPlaces < end; w += kWarp) {
      addWord(__ldg(words + t * words_of_tile + w), w * kPlaces, begin, end, cells);
    }
  }
}

// The cells of one part of a split bin.
template <class Cell>
__device__ Cell* partCells(const BinScratch& s, const Bins& bins, const Unit& unit, int part) {
  return static_cast<Cell*>(s.parts) + static_cast<int64_t>(unit.slot + part) * bins.cells();
}

// Writes the cells begin .. end - 1 of a bin, as far as there are voxels.
template <class Element, class Cell>
__device__ void writeBin(const CellArguments& a, int bin, const Cell* cells, int begin, int end) {
  const int64_t key = static_cast<int64_t>(bin) << a.bins.shift;
  const int64_t count = min(static_cast<int64_t>(end), a.bins.voxels - key) - begin;
  if (count > 0) {
    writeCells<Element>(a.out, cells + begin, key + begin, count, threadIdx.x, kCountThreads);
  }
}

// Clears all cells of the output, for the direct way; by all blocks together.
template <class Cell>
__device__ void clearCells(const CellArguments& a) {
  constexpr int kPerWord = 16 / sizeof(Cell);
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kCountThreads + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kCountThreads;
  auto* cells = static_cast<Cell*>(a.out.data);
  const int64_t count = a.bins.voxels;
  const int64_t words = reinterpret_cast<uintptr_t>(cells) % 16 == 0 ? count / kPerWord : 0;
  for (int64_t i = thread; i < words; i += threads) {
    reinterpret_cast<uint4*>(cells)[i] = make_uint4(0, 0, 0, 0);
  }
  for (int64_t i = words * kPerWord + thread; i < count; i += threads) cells[i] = 0;
}

template <class Cell, class Element>
__global__ void __launch_bounds__(kCountThreads)
    countCells(const __grid_constant__ CellArguments a) {
  extern __shared__ uint4 memory[];
  auto* cells = reinterpret_cast<Cell*>(memory);
  const Bins& bins = a.bins;
  const int cells_of_bin = bins.cells();
  const auto thread = static_cast<int>(threadIdx.x);
  // Each bin is at least one unit; blocks beyond the bins mostly have nothing to do.
  const bool surplus = blockIdx.x >= bins.count;
  if (surplus) waitForLaunchesAhead();
  if (!surplus || blockIdx.x < *a.scratch.units_used) {
    for (int i = thread; i < cells_of_bin * static_cast<int>(sizeof(Cell)) / 16;
         i += kCountThreads) {
      memory[i] = make_uint4(0, 0, 0, 0);
    }
  }
  waitForLaunchesAhead();
  if (a.sampled && *a.scratch.coherent != 0) {
    clearCells<Cell>(a);
    return;
  }
  if (blockIdx.x >= *a.scratch.units_used) return;
  const Unit unit = a.scratch.units[blockIdx.x];
  __syncthreads();
  const int64_t first = bins.tiles * unit.part / unit.parts;
  const int64_t end = bins.tiles * (unit.part + 1) / unit.parts;
  // Few tiles are shared among all warps.
  constexpr int kWarps = kCountThreads / kWarp;
  const int64_t share = min(static_cast<int64_t>(kWarp), (end - first + kWarps - 1) / kWarps);
  const int lane = thread % kWarp;
  const auto stretchAt = [&](int64_t tile) {
    return lane < share ? stretchOf(bins, a.scratch, unit.bin, tile + lane, end) : Stretch{0, 0};
  };
  int64_t tile = first + thread / kWarp * share;
  Stretch next = stretchAt(tile);
  while (tile < end) {
    const Stretch own = next;
    const int64_t own_tile = tile;
    tile += kWarps * share;
    next = stretchAt(tile);
    addStretches(bins, a.scratch, own_tile, own, cells);
  }
  __syncthreads();
  if (unit.parts == 1) {
    writeBin<Element>(a, unit.bin, cells, 0, cells_of_bin);
    return;
  }
  auto* part = reinterpret_cast<uint4*>(partCells<Cell>(a.scratch, bins, unit, unit.part));
  for (int i = thread; i < cells_of_bin * static_cast<int>(sizeof(Cell)) / 16; i += kCountThreads) {
    part[i] = memory[i];
  }
}

// For each part of a split bin, adds and writes a slice of a multiple of 16 cells.
template <class Cell, class Element>
__global__ void __launch_bounds__(kCountThreads) addParts(const __grid_constant__ CellArguments a) {
  extern __shared__ uint4 memory[];
  auto* cells = reinterpret_cast<Cell*>(memory);
  const Bins& bins = a.bins;
  waitForLaunchesAhead();
  if (a.sampled && *a.scratch.coherent != 0) return;
  if (blockIdx.x >= *a.scratch.cuts_used) return;
  const Unit unit = a.scratch.cuts[blockIdx.x];
  const auto* parts = partCells<Cell>(a.scratch, bins, unit, 0);
  const int slice = (bins.cells() / 16 + unit.parts - 1) / unit.parts * 16;
  const int begin = min(bins.cells(), unit.part * slice);
  const int end = min(bins.cells(), begin + slice);
  for (int i = begin + static_cast<int>(threadIdx.x); i < end; i += kCountThreads) {
    Cell cell = 0;
    for (int part = 0; part < unit.parts; ++part) {
      addCell(&cell, parts[i + (part << bins.shift)]);
    }
    cells[i - begin] = cell;
  }
  __syncthreads();
  writeBin<Element>(a, unit.bin, cells - begin, begin, end);
}

}  // namespace bins

}  // namespace rbc::cuda
