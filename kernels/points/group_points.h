// Groups points by voxel.
#pragma once

#include <cuda_runtime.h>
#include <cstdint>
#include <optional>

#include "points/sparse_rows.cuh"
#include "points/voxel_table.cuh"
#include "runtime/launch_device.h"
#include "scratch_layout.h"
#include "voxel_problem.h"

namespace rbc::cuda {

// ---- Voxels with many points, listed in chunks while points are grouped: a chunk is the work of a
// warp.

inline constexpr int kChunkPoints = 1024;

struct Chunk {
  int32_t voxel;
  int32_t begin;  // in the order of points
  int32_t end;
  int32_t large;  // index of the voxel among those with several chunks, or -1
};

struct ChunkList {
  uint32_t* counters;  // [3]: chunks, large voxels, chunks taken; null: no list
  Chunk* chunks;
  uint32_t* arrived;  // by large voxel: warps that have added their parts
  int32_t few;        // the most points of a voxel that is not listed
  // The memory to clear before, including `counters`.
  uint32_t* clear;
  int64_t clear_words;

  // Number of chunks of a voxel.
  __device__ uint32_t chunksOf(int32_t size) const {
    if (counters == nullptr || size <= few) return 0;
    return static_cast<uint32_t>((int64_t{size} + kChunkPoints - 1) / kChunkPoints);
  }

  // Writes the chunks of a voxel to their place in the list; `large` is used if there are several.
  __device__ void put(uint32_t at, uint32_t large, int32_t voxel, int32_t begin,
                      int32_t size) const {
    const uint32_t n = chunksOf(size);
    if (n > 1) arrived[large] = 0;
    const int32_t end = begin + size;
    for (uint32_t i = 0; i < n; ++i) {
      const int32_t first = begin + static_cast<int32_t>(i) * kChunkPoints;
      chunks[at + i] = {voxel, first, first + min(kChunkPoints, end - first),
                        n > 1 ? static_cast<int32_t>(large) : -1};
    }
  }

  __device__ void add(int32_t voxel, int32_t begin, int32_t size) const {
    const uint32_t n = chunksOf(size);
    if (n == 0) return;
    const uint32_t at = atomicAdd(&counters[0], n);
    put(at, n > 1 ? atomicAdd(&counters[1], 1u) : 0, voxel, begin, size);
  }
};

// The bits of some voxels of the grid that have points, and the number of such voxels before them.
struct alignas(16) RankWord {
  static constexpr int kBits = 64;
  uint64_t bits;
  uint32_t before;
};

// A half of a word, by the number of the half.
__device__ __forceinline__ uint32_t* halfOf(RankWord* words, int32_t half) {
  return reinterpret_cast<uint32_t*>(&words[half / 2].bits) + half % 2;
}

// In scratch, on the device. Voxels with points are numbered in the order of their keys; by a
// table, in any order.
struct PointGroups {
  int32_t* num;  // [1]: voxels
  // Sorted: [points], of points in order, u32 or, if wide, u64.
  const void* keys;
  bool wide;
  int32_t* voxel_keys;  // ranked, or by a table if requested: [most]; else null
  int32_t* starts;      // ranked or sorted: [most + 1], of the voxel's points in `order`
  int2* spans;          // by a table: [most], where these begin, in any order, and their number
  int32_t* order;       // [points]: rows of points by voxel; if sorted, ascending within a voxel,
                        // with points without a voxel at the end
  int32_t* heads;       // sorted: [points], number of voxels that begin up to a place in the order;
                        // else, or if not requested, null
  int32_t* ranks;       // ranked: [points], each one's voxel or -1; else null
  RankWord* words;      // ranked: [num_words], of all voxels of the grid; else null
  int64_t num_words;
  // By a table, the rows of voxels if these are in the order of keys, and voxels are not; else
  // null:
  int32_t* rows;    // [most]: of the voxels
  int32_t* voxels;  // [most]: of the rows, if requested
  int64_t points;
  int64_t most;  // upper bound of the number of voxels

  // Where the points of a voxel begin in `order`, and their number.
  __device__ int2 span(int64_t voxel) const {
    if (spans != nullptr) return __ldg(spans + voxel);
    const int32_t begin = __ldg(starts + voxel);
    return make_int2(begin, __ldg(starts + voxel + 1) - begin);
  }
  __device__ int64_t key(int64_t voxel) const {
    if (voxel_keys != nullptr) return __ldg(voxel_keys + voxel);
    const int32_t first = __ldg(starts + voxel);
    if (wide)
      return static_cast<int64_t>(__ldg(static_cast<const unsigned long long*>(keys) + first));
    return __ldg(static_cast<const uint32_t*>(keys) + first);
  }
};

// Takes the groups, and the other memory for grouping, from scratch.
class PointGrouping {
 public:
  // Further requirements, besides the points of each voxel.
  struct Wanted {
    std::optional<VoxelOrder> order;  // of voxels; none: any
    bool points_in_order;             // within a voxel
    bool keys;                        // of voxels
    bool voxel_of_row;
    bool voxel_of_point;
  };
  PointGrouping(const PointClouds& points, const VoxelGrid& grid, const Output<1>& dropped,
                const Wanted& wanted, const LaunchDevice& device, ScratchLayout* cutter);

  const PointGroups& groups() const { return groups_; }

  // The kernel that groups. The first two list chunks, and write rows if these have coords.
  bool byTable() const { return choice_.family == GroupKernel::kTable; }
  bool ranked() const { return choice_.family == GroupKernel::kRanks; }
  const GroupChoice& choice() const { return choice_; }

  // One launch, which clears its own counters.
  cudaError_t launchTable(const SparseRows& rows, const ChunkList& chunks,
                          const LaunchDevice& device, cudaStream_t cuda_stream) const;

  // Adds to `dropped`, `lost` and the list of chunks; clear these before.
  cudaError_t launchRanked(const SparseRows& rows, const ChunkList& chunks,
                           const LaunchDevice& device, cudaStream_t cuda_stream) const;

  // Adds to `dropped`; clear it before.
  cudaError_t launchSorted(const LaunchDevice& device, cudaStream_t cuda_stream) const;

 private:
  void cutRanked(ScratchLayout* cutter);
  int64_t placeTiles() const;
  template <class Key>
  void cutSorted(const Wanted& wanted, ScratchLayout* cutter);
  template <class Key>
  cudaError_t launchSorted(const LaunchDevice& device, cudaStream_t cuda_stream) const;

  PointClouds clouds_;
  VoxelGrid grid_;
  Output<1> dropped_;
  int64_t voxels_;  // of the grid
  GroupChoice choice_;
  PointGroups groups_ = {};

  grouping::VoxelTable table_ = {};

  // If ranked.
  uint32_t* counts_ = nullptr;        // [most]: points of a voxel
  uint64_t* voxel_states_ = nullptr;  // of tiles of voxels
  size_t clear_bytes_ = 0;            // of both, of the words before and the states of their tiles
  int32_t* slots_ = nullptr;          // [points]: index among its voxel's points

  // If sorted: [points] each.
  void* keys_ = nullptr;
  void* sorted_keys_ = nullptr;
  int32_t* rows_ = nullptr;

  uint64_t* states_ = nullptr;  // of tiles of sorted keys, or of words

  char* temporary_ = nullptr;  // CUB's
  size_t temporary_bytes_ = 0;
};

cudaError_t loadGroupPoints();

}  // namespace rbc::cuda
