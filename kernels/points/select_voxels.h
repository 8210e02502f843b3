// The choice of kernels that count, mark or group the points of voxels: plain C++, also for tests without a
// GPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "ceil_div.h"
#include "launch_choice.h"
#include "runtime/launch_device.h"
#include "voxel_problem.h"

namespace rbc::cuda {

inline constexpr int kPoints = 4;  // neighbours that a thread loads at once

// ---- Occupancy and counts -----------------------------------------------------------------------

namespace bins {

inline constexpr int kBinThreads = 512;
inline constexpr int kGroups = 4;  // of kPoints a thread
inline constexpr int kTile = kBinThreads * kGroups * kPoints;
inline constexpr int kMaxRun = 8;     // tiles of a block
inline constexpr int kMaxBins = 512;  // one per thread

// How voxels are cut into bins, and points into tiles. Bins have a multiple of 16 cells, so that each begins
// at a word of any output.
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

// The most cells of a bin, log2: they fit into shared memory, and their places into 16 bits.
int mostShift(Reduction mode, const LaunchDevice& device);

}  // namespace bins

enum class CellKernel : uint8_t {
  kBins,    // voxel_bins.cu: bins of voxels, counted in shared memory
  kCounts,  // voxelize.cu, addCounts: counts of neighbours added up before they go to the grid
  kPoints,  // voxelize.cu, addPoints: each point straight to the grid
};

// By bins, a launch of `direct` may follow: the device finds out whether it has to do the work.
struct CellChoice : LaunchChoice {
  CellKernel family;
  bool takes_cells;     // the output has the cells themselves: no others are in the workspace
  CellKernel direct;    // of the launch that goes straight to the grid
  int32_t groups;       // of points, that share a table of counts
  int64_t direct_grid;  // blocks
  bins::Bins bins;      // kBins
};

inline constexpr int kCellThreads = 256;  // of a block that goes straight to the grid

// Whether the cells of out are contiguous, in the order of their keys.
bool hasCellsInLine(const VoxelizeProblem& problem);

// Of occupancy or counts.
CellChoice selectCells(const VoxelizeProblem& problem, const LaunchDevice& device);

// ---- Points grouped by voxel --------------------------------------------------------------------

namespace grouping {

inline constexpr int kThreads = 256;
inline constexpr int kTableThreads = 1024;  // of a block; one point per thread
inline constexpr int kMaxTableBlocks = 256;
inline constexpr int kMaxTablePoints = 1 << 17;
inline constexpr int kSlotKeyBits = 28;  // of a voxel in the table

inline int tableBlocks(const LaunchDevice& device) {
  return std::min(device.multiprocessors, kMaxTableBlocks);
}

}  // namespace grouping

// In the order of preference.
enum class GroupKernel : uint8_t {
  kTable,  // table_points.cuh: a hash table, in one launch
  kRanks,  // rank_points.cuh: ranks in a bitmap of the grid
  kSort,   // sort_points.cuh: a radix sort
};

// Points to group.
struct GroupProblem {
  int64_t points;
  int64_t voxels;                   // of the grid, of all clouds
  std::optional<VoxelOrder> order;  // of voxels; none: any
  bool points_in_order;             // within a voxel
};

struct GroupChoice : LaunchChoice {
  GroupKernel family;
};

GroupChoice selectGrouping(const GroupProblem& problem, const LaunchDevice& device);

}  // namespace rbc::cuda
