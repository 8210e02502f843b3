// The kernels that count, mark or group the points of voxels, on three devices.
#include "points/select_voxels.h"

#include "select_table.h"

namespace {

using rbc::DType;
using rbc::Reduction;
using rbc::VoxelizeProblem;
using rbc::VoxelOrder;
using rbc::cuda::GroupProblem;
using rbc::cuda::LaunchDevice;

// One cloud on a grid of side x side x side voxels.
VoxelizeProblem grid(int64_t points, int64_t side, Reduction mode, DType out) {
  VoxelizeProblem p = {};
  p.points.clouds = 1;
  p.points.rows = points;
  p.points.dtype = DType::F32;
  p.mode = mode;
  p.out.dtype = out;
  p.out.stride[0] = side * side * side;
  p.out.stride[1] = side * side;
  p.out.stride[2] = side;
  p.out.stride[3] = p.out.stride[4] = 1;
  for (int64_t& extent : p.grid.shape) extent = side;
  return p;
}

constexpr int64_t kMillion = 1000000;

constexpr select_table::Row<VoxelizeProblem> kCells[] = {
    {"occupancy, bool: 100000 points, 128^3 voxels",
     [] { return grid(100000, 128, Reduction::kOccupancy, DType::Bool); },
     {"voxel_points, grid 98 x 256, shared 0 bytes"}},
    {"occupancy, bool: 10 million points, 256^3",
     [] { return grid(10 * kMillion, 256, Reduction::kOccupancy, DType::Bool); },
     {"voxel_bins (or straight to the grid), grid 611 x 512, shared 65536 bytes"}},
    {"occupancy, f32: 10 million points, 256^3",
     [] { return grid(10 * kMillion, 256, Reduction::kOccupancy, DType::F32); },
     {"voxel_bins, grid 611 x 512, shared 65536 bytes"}},
    {"occupancy, bool: 10 million points, 400^3",
     [] { return grid(10 * kMillion, 400, Reduction::kOccupancy, DType::Bool); },
     {"voxel_points, grid 1728 x 256, shared 0 bytes; not voxel_bins: shape: 64000000 "
      "voxels, too many for bins in shared memory",
      "voxel_points, grid 2112 x 256, shared 0 bytes; not voxel_bins: shape: 64000000 "
      "voxels, too many for bins in shared memory",
      "voxel_points, grid 128 x 256, shared 0 bytes; not voxel_bins: shape: 64000000 "
      "voxels, too many for bins in shared memory"}},
    {"occupancy, bool: 10 million points, 600^3",
     [] { return grid(10 * kMillion, 600, Reduction::kOccupancy, DType::Bool); },
     {"voxel_points, grid 1728 x 256, shared 0 bytes; not voxel_bins: shape: 216000000 "
      "voxels, expected at most 16 for each point",
      "voxel_points, grid 2112 x 256, shared 0 bytes; not voxel_bins: shape: 216000000 "
      "voxels, expected at most 16 for each point",
      "voxel_points, grid 128 x 256, shared 0 bytes; not voxel_bins: shape: 216000000 "
      "voxels, expected at most 16 for each point"}},
    {"counts, i32: 100000 points, 128^3",
     [] { return grid(100000, 128, Reduction::kCount, DType::I32); },
     {"voxel_counts, grid 98 x 256, shared 0 bytes", nullptr,
      "voxel_counts, grid 33 x 256, shared 0 bytes"}},
    {"counts, i32: 10 million points, 200^3",
     [] { return grid(10 * kMillion, 200, Reduction::kCount, DType::I32); },
     {"voxel_bins (or straight to the grid), grid 611 x 512, shared 131072 bytes"}},
    {"counts, i32: 10 million points, 256^3",
     [] { return grid(10 * kMillion, 256, Reduction::kCount, DType::I32); },
     {"voxel_bins (or straight to the grid), grid 611 x 512, shared 131072 bytes"}},
    {"counts, i32: 10 million points, 300^3",
     [] { return grid(10 * kMillion, 300, Reduction::kCount, DType::I32); },
     {"voxel_counts, grid 1728 x 256, shared 0 bytes; not voxel_bins: shape: 27000000 "
      "voxels, too many for bins in shared memory",
      "voxel_counts, grid 2112 x 256, shared 0 bytes; not voxel_bins: shape: 27000000 "
      "voxels, too many for bins in shared memory",
      "voxel_counts, grid 128 x 256, shared 0 bytes; not voxel_bins: shape: 27000000 "
      "voxels, too many for bins in shared memory"}},
    {"counts, i32: 100000 points, 1300^3",
     [] { return grid(100000, 1300, Reduction::kCount, DType::I32); },
     {"voxel_points, grid 98 x 256, shared 0 bytes"}},
};

constexpr select_table::Row<GroupProblem> kGroups[] = {
    {"features: 5000 points, 64^3 voxels",
     [] {
       return GroupProblem{5000, 64 * 64 * 64, {}, false};
     },
     {"voxel_table, grid 108 x 1024, shared 0 bytes",
      "voxel_table, grid 132 x 1024, shared 0 bytes",
      "voxel_table, grid 8 x 1024, shared 0 bytes"}},
    {"features: 100000 points, 128^3",
     [] {
       return GroupProblem{100000, 128 * 128 * 128, {}, false};
     },
     {"voxel_table, grid 108 x 1024, shared 0 bytes",
      "voxel_table, grid 132 x 1024, shared 0 bytes",
      "voxel_ranks, grid 98 x 256, shared 0 bytes; not voxel_table: points: 100000, more "
      "than the device's hash table takes"}},
    {"features: a million points, 128^3",
     [] {
       return GroupProblem{kMillion, 128 * 128 * 128, {}, false};
     },
     {"voxel_ranks, grid 977 x 256, shared 0 bytes; not voxel_table: points: 1000000, more "
      "than the device's hash table takes"}},
    {"features: a million points, 1000^3",
     [] {
       return GroupProblem{kMillion, 1000 * kMillion, {}, false};
     },
     {"voxel_sort, grid 977 x 256, shared 0 bytes; not voxel_ranks: shape: 1000000000 "
      "voxels, expected at most 256 for each point"}},
    {"features: 10 million points, 256^3",
     [] {
       return GroupProblem{10 * kMillion, 256 * 256 * 256, {}, false};
     },
     {"voxel_sort, grid 9766 x 256, shared 0 bytes; not voxel_ranks: points: 10000000, "
      "expected 2097152 or fewer; a sort is faster for more"}},
    {"sparse: 100000 points, 500^3, lexicographic",
     [] {
       return GroupProblem{100000, 500 * 500 * 500, VoxelOrder::kLexicographic, false};
     },
     {"voxel_table, grid 108 x 1024, shared 0 bytes",
      "voxel_table, grid 132 x 1024, shared 0 bytes",
      "voxel_sort, grid 98 x 256, shared 0 bytes; not voxel_ranks: shape: 125000000 "
      "voxels, expected at most 256 for each point"}},
    {"sparse: 100000 points, 600^3, lexicographic",
     [] {
       return GroupProblem{100000, 600 * 600 * 600, VoxelOrder::kLexicographic, false};
     },
     {"voxel_sort, grid 98 x 256, shared 0 bytes; not voxel_ranks: shape: 216000000 "
      "voxels, expected at most 256 for each point"}},
    {"sparse: 100000 points, 600^3, first points",
     [] {
       return GroupProblem{100000, 600 * 600 * 600, VoxelOrder::kFirstPoint, false};
     },
     {"voxel_table, grid 108 x 1024, shared 0 bytes",
      "voxel_table, grid 132 x 1024, shared 0 bytes",
      "voxel_sort, grid 98 x 256, shared 0 bytes; not voxel_ranks: order: voxels in the "
      "order of their first points"}},
    {"sparse: a million points, 400^3, first points",
     [] {
       return GroupProblem{kMillion, 400 * 400 * 400, VoxelOrder::kFirstPoint, false};
     },
     {"voxel_sort, grid 977 x 256, shared 0 bytes; not voxel_ranks: order: voxels in the "
      "order of their first points"}},
    {"sparse: a million points, 400^3, lexicographic, grouped",
     [] {
       return GroupProblem{kMillion, 400 * 400 * 400, VoxelOrder::kLexicographic, true};
     },
     {"voxel_sort, grid 977 x 256, shared 0 bytes; not voxel_ranks: grouped: the points of "
      "a voxel have to be in order"}},
    {"sparse: a million points, 400^3, lexicographic",
     [] {
       return GroupProblem{kMillion, 400 * 400 * 400, VoxelOrder::kLexicographic, false};
     },
     {"voxel_ranks, grid 977 x 256, shared 0 bytes; not voxel_table: points: 1000000, more "
      "than the device's hash table takes"}},
};

}  // namespace

TEST_CASE("select voxels: occupancy and counts run the kernel of the table, for its reason") {
  select_table::check("voxelize", kCells, [](const VoxelizeProblem& p, const LaunchDevice& device) {
    return rbc::cuda::selectCells(p, device);
  });
}

TEST_CASE("select voxels: groups need points, voxels, and blocks that wait for each other") {
  const auto because = [](const GroupProblem& p, bool waits) {
    LaunchDevice device = select_table::kDevices[1].device;
    device.waits_within = waits;
    return select_table::partBehind(select_table::lineOf(rbc::cuda::selectGrouping(p, device)),
                                    "; not ");
  };
  CHECK(because({5000, 1000, {}, false}, true).empty());
  CHECK(because({5000, 1000, {}, false}, false) ==
        "voxel_table: device: the blocks of a launch cannot wait for each other");
  CHECK(because({0, 1000, {}, false}, true) == "voxel_ranks: points: none");
  CHECK(because({5000, 0, {}, false}, true) == "voxel_ranks: shape: no voxels");
}

TEST_CASE("select voxels: points are grouped by the kernel of the table, for its reason") {
  select_table::check("voxel_groups", kGroups,
                      [](const GroupProblem& p, const LaunchDevice& device) {
                        return rbc::cuda::selectGrouping(p, device);
                      });
}
