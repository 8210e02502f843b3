// The launcher of grouping points by voxel.
#pragma once

#include <cuda_runtime.h>

#include "runtime/launch_device.h"
#include "scratch_layout.h"
#include "voxel_problem.h"

namespace rbc::cuda {

// In scratch, on the device. Voxels that hold points are numbered in the order of their keys.
struct PointGroups {
  int32_t* num;      // [1]: voxels
  const void* keys;  // ranked: [most], i32, of voxels; sorted: [points], of points in order, u32
  bool wide;         // or, if true, u64
  int32_t* starts;   // [most + 1]: of the voxel's points in `order`
  int32_t* order;    // [points]: rows of points by voxel; if sorted, ascending within one, and then
                     // those in none
  int32_t* heads;    // sorted: [points], voxels that begin up to a place in the order; else, or
                     // if it is not asked for, null
  int32_t* ranks;    // ranked: [points], each one's voxel or -1; else null
  int64_t points;
  int64_t most;  // voxels that there can be

  __device__ int64_t key(int64_t voxel) const {
    if (ranks != nullptr) return __ldg(static_cast<const int32_t*>(keys) + voxel);
    const int32_t first = __ldg(starts + voxel);
    if (wide)
      return static_cast<int64_t>(__ldg(static_cast<const unsigned long long*>(keys) + first));
    return __ldg(static_cast<const uint32_t*>(keys) + first);
  }
};

// Cuts the groups, and what grouping needs besides, from scratch.
class PointGrouping {
 public:
  // What has to be known beside the points of each voxel.
  struct Wanted {
    bool order_in_voxel;  // of its points
    bool voxel_of_point;
  };
  PointGrouping(const PointClouds& points, const VoxelGrid& grid, const Output<1>& dropped,
                const Wanted& wanted, ScratchLayout* cutter);

  const PointGroups& groups() const { return groups_; }

  // Adds to `dropped`, which has to be cleared before.
  cudaError_t launch(const LaunchDevice& device, cudaStream_t cuda_stream) const;

 private:
  void cutRanked(ScratchLayout* cutter);
  cudaError_t launchRanked(const LaunchDevice& device, cudaStream_t cuda_stream) const;
  template <class Key>
  void cutSorted(const Wanted& wanted, ScratchLayout* cutter);
  template <class Key>
  cudaError_t launchSorted(const LaunchDevice& device, cudaStream_t cuda_stream) const;

  PointClouds clouds_;
  VoxelGrid grid_;
  Output<1> dropped_;
  int64_t voxels_;  // of the grid
  bool ranked_;
  PointGroups groups_ = {};

  // Ranked.
  int32_t* voxel_keys_ = nullptr;  // [most]
  uint64_t* words_ = nullptr;      // [num_words_]: a bit for each voxel; and behind them:
  uint32_t* counts_ = nullptr;     // [most + 1]: points of a voxel
  size_t clear_bytes_ = 0;         // of both
  uint32_t* prefix_ = nullptr;     // [num_words_]: voxels before a word
  int32_t* slots_ = nullptr;       // [points]: which of its voxel's points
  int64_t num_words_ = 0;

  // Sorted: [points] each.
  void* keys_ = nullptr;
  void* sorted_keys_ = nullptr;
  int32_t* rows_ = nullptr;
  uint64_t* states_ = nullptr;  // of tiles of sorted keys

  char* temporary_ = nullptr;  // of CUB
  size_t temporary_bytes_ = 0;
};

cudaError_t loadGroupPoints();

}  // namespace rbc::cuda
