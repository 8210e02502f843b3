// The conditions of the kernels that count, mark or group points.

#include "points/select_voxels.h"

#include "runtime/conditions.h"
#include "runtime/tiling.h"

namespace rbc::cuda {

// ---- occupancy and counts -----------------------------------------------------------------------

namespace bins {

int mostShift(Reduction mode, const LaunchDevice& device) {
  if (mode == Reduction::kOccupancy) return 16;
  return device.block_memory >= 1 << 17 ? 15 : 14;
}

namespace {

int64_t voxelsOf(const VoxelizeProblem& p) { return p.points.clouds * p.grid.volume(); }

// With fewer points, atomics on the grid are as fast.
constexpr int64_t kFewestPoints = 1 << 22;

constexpr Condition<VoxelizeProblem, LaunchDevice> kBins[] = {
    {[](const VoxelizeProblem& p, const LaunchDevice&) {
       return voxelsOf(p) / 16 <= p.points.total();
     },
     "shape: {} voxels, expected at most 16 for each point",
     [](const VoxelizeProblem& p, const LaunchDevice&) { return voxelsOf(p); }},
    {[](const VoxelizeProblem& p, const LaunchDevice& device) {
       return voxelsOf(p) <= int64_t{kMaxBins} << mostShift(p.mode, device);
     },
     "shape: {} voxels, too many for bins in shared memory",
     [](const VoxelizeProblem& p, const LaunchDevice&) { return voxelsOf(p); }},
};

Bins binsOf(const VoxelizeProblem& p, const LaunchDevice& device) {
  constexpr int kFewestCells = 12;  // log2
  constexpr int kWantedBins = 256;
  constexpr int64_t kWantedBlocks = 512;
  constexpr int64_t kWantedParts = 256;
  Bins bins = {};
  bins.voxels = voxelsOf(p);
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

}  // namespace
}  // namespace bins

bool hasCellsInLine(const VoxelizeProblem& p) {
  const int64_t extent[] = {p.points.clouds, p.grid.shape[0], p.grid.shape[1], p.grid.shape[2]};
  int64_t compact = 1;
  bool in_line = true;
  for (int i = 3; i >= 0; --i) {
    in_line &= extent[i] == 1 || p.out.stride[i] == compact;
    compact *= extent[i];
  }
  return in_line;
}

CellChoice selectCells(const VoxelizeProblem& p, const LaunchDevice& device) {
  constexpr int kGroup = kCellThreads * kPoints;
  constexpr int kMaxGroups = 4;
  const bool counts = p.mode != Reduction::kOccupancy;
  const size_t cell_bytes = counts ? sizeof(uint32_t) : sizeof(uint8_t);
  const int64_t voxels = bins::voxelsOf(p);
  const int64_t points = p.points.total();
  CellChoice choice;
  choice.takes_cells = p.empty_bits == 0 && hasCellsInLine(p) &&
                       static_cast<size_t>(sizeOf(p.out.dtype)) == cell_bytes &&
                       !isFloat(p.out.dtype);
  // Enough that every multiprocessor has some.
  choice.groups = static_cast<int32_t>(
      std::clamp<int64_t>(points / (int64_t{4} * kGroup * device.multiprocessors), 1, kMaxGroups));
  choice.direct = counts && voxels <= INT32_MAX ? CellKernel::kCounts : CellKernel::kPoints;
  choice.direct_grid =
      blocksFor(points, choice.direct == CellKernel::kCounts ? kGroup * choice.groups : kGroup,
                int64_t{16} * device.multiprocessors);
  if (points >= bins::kFewestPoints && meets<bins::kBins>(&choice.because, p, device)) {
    choice.bins = bins::binsOf(p, device);
    choice.family = CellKernel::kBins;
    choice.kernel = "voxel_bins";
    choice.form = choice.takes_cells ? "or straight to the grid" : "";
    choice.grid = choice.bins.blocks();
    choice.threads = bins::kBinThreads;
    choice.shared_bytes = choice.bins.cells() * static_cast<int32_t>(cell_bytes);
    return choice;
  }
  if (choice.because.text != nullptr) choice.because.kernel = "voxel_bins";
  choice.general = choice.because.kernel != nullptr;
  choice.family = choice.direct;
  choice.kernel = choice.direct == CellKernel::kCounts ? "voxel_counts" : "voxel_points";
  choice.grid = choice.direct_grid;
  choice.threads = kCellThreads;
  return choice;
}

// ---- points grouped by voxel --------------------------------------------------------------------

namespace grouping {
namespace {

using OfGroups = Condition<GroupProblem, LaunchDevice>;

constexpr int64_t kMaxRanked = int64_t{1} << 21;  // with more, a sort is faster

int64_t mostTablePoints(const LaunchDevice& device) {
  return std::min<int64_t>(kMaxTablePoints, int64_t{kTableThreads} * tableBlocks(device));
}

int64_t mostTableVoxels(const GroupProblem& p) {
  constexpr int64_t kMaxKeysOfBits = int64_t{1} << 27;  // 18 MiB
  return p.order == VoxelOrder::kLexicographic ? kMaxKeysOfBits : int64_t{1} << kSlotKeyBits;
}

constexpr OfGroups kHasPoints = {
    [](const GroupProblem& p, const LaunchDevice&) { return p.points > 0; }, "points: none",
    nullptr};
constexpr OfGroups kHasVoxels = {
    [](const GroupProblem& p, const LaunchDevice&) { return p.voxels > 0; }, "shape: no voxels",
    nullptr};

// Conditions under which a table is faster and has room.
constexpr OfGroups kTable[] = {
    {[](const GroupProblem&, const LaunchDevice& device) { return device.waits_within; },
     "device: the blocks of a launch cannot wait for each other", nullptr},
    kHasPoints,
    {[](const GroupProblem& p, const LaunchDevice& device) {
       return p.points <= mostTablePoints(device);
     },
     "points: {}, more than the device's hash table takes",
     [](const GroupProblem& p, const LaunchDevice&) { return p.points; }},
    kHasVoxels,
    {[](const GroupProblem& p, const LaunchDevice&) { return p.voxels <= mostTableVoxels(p); },
     "shape: {} voxels, too many for a hash table",
     [](const GroupProblem& p, const LaunchDevice&) { return p.voxels; }},
};

constexpr OfGroups kRanks[] = {
    {[](const GroupProblem& p, const LaunchDevice&) { return p.order != VoxelOrder::kFirstPoint; },
     "order: voxels in the order of their first points", nullptr},
    {[](const GroupProblem& p, const LaunchDevice&) { return !p.points_in_order; },
     "grouped: the points of a voxel have to be in order", nullptr},
    kHasPoints,
    {[](const GroupProblem& p, const LaunchDevice&) { return p.points <= kMaxRanked; },
     "points: {}, expected 2097152 or fewer; a sort is faster for more",
     [](const GroupProblem& p, const LaunchDevice&) { return p.points; }},
    kHasVoxels,
    {[](const GroupProblem& p, const LaunchDevice&) { return p.voxels <= INT32_MAX; },
     "shape: {} voxels, too many for 32-bit numbers",
     [](const GroupProblem& p, const LaunchDevice&) { return p.voxels; }},
    {[](const GroupProblem& p, const LaunchDevice&) { return p.voxels / 256 <= p.points; },
     "shape: {} voxels, expected at most 256 for each point",
     [](const GroupProblem& p, const LaunchDevice&) { return p.voxels; }},
};

}  // namespace
}  // namespace grouping

GroupChoice selectGrouping(const GroupProblem& p, const LaunchDevice& device) {
  using namespace grouping;
  GroupChoice choice;
  choice.grid = ceilDiv(p.points, kThreads * kPoints);
  choice.threads = kThreads;
  if (meets<kTable>(&choice.because, p, device)) {
    choice.family = GroupKernel::kTable;
    choice.kernel = "voxel_table";
    choice.grid = tableBlocks(device);
    choice.threads = kTableThreads;
    return choice;
  }
  choice.because.kernel = "voxel_table";
  if (meets<kRanks>(&choice.because, p, device)) {
    choice.family = GroupKernel::kRanks;
    choice.kernel = "voxel_ranks";
    return choice;
  }
  choice.because.kernel = "voxel_ranks";
  choice.family = GroupKernel::kSort;
  choice.kernel = "voxel_sort";
  choice.general = p.points <= kMaxRanked;
  return choice;
}

}  // namespace rbc::cuda
