// The choice of kernels that count, mark or group the points of voxels: plain C++, also for tests
// without a GPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "ceil_div.h"
#include "launch_choice.h"
#include "runtime/launch_device.h"
#include "voxel_problem.h"

namespace rbc::cuda {

inline constexpr int kPoints = 4;  // consecutive points that a thread loads at once

// ---- Occupancy and counts -----------------------------------------------------------------------

namespace bins {

inline constexpr int kBinThreads = 512;
inline constexpr int kGroups = 4;  // of kPoints per thread
inline constexpr int kTile = kBinThreads * kGroups * kPoints;
inline constexpr int kMaxRun = 8;     // tiles per block
inline constexpr int kMaxBins = 512;  // one per thread

// The division of voxels into bins, and of points into tiles. Bins have a multiple of 16 cells, so
// that each begins at a word of any output.
struct Bins {
  int64_t voxels;
  int shift;  // log2 of the cells per bin
  int count;
  int run;  // tiles per block
  int64_t tiles;
  int64_t part_points;  // a bin with more points is split
  int64_t most_parts;   // of all split bins

  RBC_HD int cells() const { return 1 << shift; }
  int64_t blocks() const { return ceilDiv(tiles, run); }
};

// The most cells per bin, log2: they fit into shared memory, and their places into 16 bits.
int mostShift(Reduction mode, const LaunchDevice& device);

}  // namespace bins

enum class CellKernel : uint8_t {
  kBins,    // voxel_bins.cu: bins of voxels, counted in shared memory
  kCounts,  // voxelize.cu, addCounts: combines counts of neighbours before it adds them to the grid
  kPoints,  // voxelize.cu, addPoints: adds each point to the grid
};

// After bins, a launch of `direct` may follow: the device decides whether it does the work.
struct CellChoice : LaunchChoice {
  CellKernel family;
  bool takes_cells;     // cells are counted in the output itself, not in the workspace
  CellKernel direct;    // of the launch that adds to the grid directly
  int32_t groups;       // of points that share a table of counts
  int64_t direct_grid;  // blocks
  bins::Bins bins;      // kBins
};

inline constexpr int kCellThreads = 256;  // per block that adds to the grid directly

// Whether the cells of out are contiguous, in the order of their keys.
bool hasCellsInLine(const VoxelizeProblem& problem);

// For occupancy or counts.
CellChoice selectCells(const VoxelizeProblem& problem, const LaunchDevice& device);

// ---- Points grouped by voxel --------------------------------------------------------------------

namespace grouping {

inline constexpr int kThreads = 256;
inline constexpr int kTableThreads = 1024;  // per block; one point per thread
inline constexpr int kMaxTableBlocks = 256;
inline constexpr int kMaxTablePoints = 1 << 17;
inline constexpr int kSlotKeyBits = 28;  // per voxel in the table

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

// The points to group.
struct GroupProblem {
  int64_t points;
  int64_t voxels;                   // of the grid, in all clouds
  std::optional<VoxelOrder> order;  // of voxels; none: any
  bool points_in_order;             // within a voxel
};

struct GroupChoice : LaunchChoice {
  GroupKernel family;
};

GroupChoice selectGrouping(const GroupProblem& problem, const LaunchDevice& device);

}  // namespace rbc::cuda
