// The voxels that the rays of a call observe, numbered, so that sums are kept of those alone: a bit
// for each voxel of the grid, in bricks of 64.
#pragma once

#include "ceil_div.h"
#include "runtime/fast_divmod.cuh"
#include "scratch_layout.h"
#include "tsdf_problem.h"

namespace rbc::cuda {
namespace tsdf {

inline constexpr int kThreads = 256;
inline constexpr int kWarp = 32;
inline constexpr int kWarps = kThreads / kWarp;

// A brick has 2 x 4 x 8 voxels: a ray stays in it for some steps, and 8 floats along z are what
// memory moves at once.
inline constexpr int kBrickVoxels = 64;
inline constexpr int kGroupBricks = kWarp;  // that share a mark
inline constexpr int kGroupVoxels = kGroupBricks * kBrickVoxels;

struct BrickPlace {
  int64_t brick;
  int bit;
};

struct BrickGrid {
  uint32_t shape[3];  // in bricks
  FastDivmod per_column;
  FastDivmod per_slice;

  explicit BrickGrid(const VoxelGrid& grid)
      : shape{static_cast<uint32_t>(ceilDiv(grid.shape[0], 2)),
              static_cast<uint32_t>(ceilDiv(grid.shape[1], 4)),
              static_cast<uint32_t>(ceilDiv(grid.shape[2], 8))},
        per_column(shape[2]),
        per_slice(shape[1]) {}

  int64_t count() const { return static_cast<int64_t>(uint64_t{shape[0]} * shape[1] * shape[2]); }

  RBC_HD BrickPlace placeOf(const int32_t (&voxel)[3]) const {
    const auto x = static_cast<uint32_t>(voxel[0]);
    const auto y = static_cast<uint32_t>(voxel[1]);
    const auto z = static_cast<uint32_t>(voxel[2]);
    const uint64_t column = uint64_t{x >> 1} * shape[1] + (y >> 2);
    return {static_cast<int64_t>(column * shape[2] + (z >> 3)),
            static_cast<int>((x & 1) << 5 | (y & 3) << 3 | (z & 7))};
  }

  __device__ __forceinline__ VoxelCoords coordsOf(int64_t brick, int bit) const {
    const int64_t column = per_column(brick);
    const int64_t x = per_slice(column);
    return {0, x << 1 | bit >> 5, (column - x * shape[1]) << 2 | (bit >> 3 & 3),
            (brick - column * shape[2]) << 3 | (bit & 7)};
  }
};

// The bits of a brick, and the number of its first observed voxel; the others follow.
struct alignas(16) NumberedBrick {
  uint64_t bits;
  uint64_t first;
};

// In the workspace.
struct ObservedVoxels {
  BrickGrid grid;
  int64_t bricks;
  int64_t groups;
  uint64_t* count;  // of observed voxels
  uint32_t* marks;  // of groups with an observed voxel: words, as many rays write them at once
  uint64_t* bits;   // of bricks
  size_t cleared;   // bytes of these three, which begin as 0
  NumberedBrick* numbered;  // bricks of the groups that are marked
  TsdfSums* sums;           // by number
  void* places;             // by number: 64 * brick + bit, as u32 or u64
  int64_t capacity;         // no fewer than there can be numbers
  bool long_places;
  size_t bytes;

  ObservedVoxels(const TsdfProblem& p, void* scratch) : grid(p.grid) {
    bricks = grid.count();
    groups = ceilDiv(bricks, kGroupBricks);
    capacity = mostObserved(p);
    long_places = bricks > (int64_t{1} << 32) / kBrickVoxels;
    ScratchLayout cutter(scratch);
    cutter.take(&count, 1);
    cutter.take(&marks, groups);
    cutter.take(&bits, bricks);
    cleared = cutter.used();
    cutter.take(&numbered, bricks);
    cutter.take(&sums, capacity);
    places = long_places ? static_cast<void*>(cutter.take<uint64_t>(capacity))
                         : static_cast<void*>(cutter.take<uint32_t>(capacity));
    bytes = cutter.used();
  }

 private:
  static int64_t mostObserved(const TsdfProblem& p) {
    const int64_t rays = p.points.total();
    const int64_t volume = p.grid.volume();
    return visitNumber(p.points.dtype, [&](auto tag) {
      const int64_t of_ray = mostVoxels(fieldAs<typename decltype(tag)::type>(p));
      return rays > volume / of_ray ? volume : rays * of_ray;
    });
  }
};

__device__ __forceinline__ int64_t threadIndex() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

}  // namespace tsdf
}  // namespace rbc::cuda
