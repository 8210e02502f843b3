// How voxels are cut into bins, and points into tiles; and what is kept of them in scratch.
#pragma once

#include <algorithm>

#include "ceil_div.h"
#include "points/points.cuh"
#include "runtime/launch_device.h"
#include "scratch_layout.h"

namespace rbc::cuda {
namespace bins {

inline constexpr int kWarp = 32;
inline constexpr int kBinThreads = 512;
inline constexpr int kGroups = 4;  // of kPoints a thread
inline constexpr int kTile = kBinThreads * kGroups * kPoints;
inline constexpr int kMaxRun = 8;     // tiles of a block
inline constexpr int kMaxBins = 512;  // one a thread
inline constexpr int kCellThreads = 1024;
inline constexpr int kMaxParts = 64;
inline constexpr int kPlaces = 8;    // in a word
inline constexpr int kSamples = 64;  // of kSampleThreads * kPoints neighbouring points each
inline constexpr int kSampleThreads = 256;
static_assert(kMaxBins == kBinThreads);

// Bins of a multiple of 16 cells, so that each begins at a word of any output.
struct Bins {
  int64_t voxels;
  int shift;  // log2 of a bin's cells
  int count;
  int run;  // tiles of a block
  int64_t tiles;
  int64_t part_points;  // a bin with more is cut
  int64_t most_parts;   // of all cut bins

  RBC_HD int cells() const { return 1 << shift; }
  int64_t blocks() const { return ceilDiv(tiles, run); }
};

struct Unit {
  int32_t bin;
  int32_t part;
  int32_t parts;
  int32_t slot;  // of the first part's cells
};

// What a sample of neighbouring points has.
struct Sample {
  uint32_t points;     // in voxels
  uint32_t different;  // words of the grid among them
};

struct BinScratch {
  uint16_t* staged;  // [tiles, kTile]: the places in their bins of a tile's points, bin by bin
  uint16_t* begins;  // [bins + 1, tiles]
  uint32_t* totals;  // [bins]: points; and behind them:
  uint32_t* done;    // [1]: blocks
  uint32_t* units_used;
  uint32_t* cuts_used;
  Unit* units;
  Unit* cuts;       // [most_parts]: those of bins in parts, once more
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

// What shared memory holds of a bin, and 16 bits tell apart.
inline int mostShift(VoxelMode mode, const LaunchDevice& device) {
  if (mode == VoxelMode::kOccupancy) return 16;
  return device.block_memory >= 1 << 17 ? 15 : 14;
}

inline Bins binsOf(const VoxelizeProblem& p, const LaunchDevice& device) {
  constexpr int kFewestCells = 12;  // log2
  constexpr int kWantedBins = 256;
  constexpr int64_t kWantedBlocks = 512;
  constexpr int64_t kWantedParts = 256;
  Bins bins = {};
  bins.voxels = p.points.clouds * p.grid.volume();
  bins.shift = kFewestCells;
  while (bins.voxels >> bins.shift > kWantedBins && bins.shift < mostShift(p.mode, device)) {
    ++bins.shift;
  }
  bins.count = static_cast<int>(((bins.voxels - 1) >> bins.shift) + 1);
  const int64_t points = p.points.total();
  bins.tiles = ceilDiv(points, kTile);
  bins.run = static_cast<int>(std::clamp<int64_t>(bins.tiles / kWantedBlocks, 1, kMaxRun));
  bins.part_points = std::max(points / kWantedParts, 2 * points / bins.count);
  bins.most_parts = 2 * (points / bins.part_points);
  return bins;
}

}  // namespace bins
}  // namespace rbc::cuda
