// Points grouped by voxel, in one of three ways.
//
// By a hash table: one launch, for so few points that several launches would take most of the time.
// Ranked: a bit for each voxel of the grid; the number of a voxel is the count of set bits before
// it. The points of a voxel get their places in any order, so this suits reductions, which do not
// depend on it. Sorted: a stable radix sort of the points' rows by the bits of the keys in use, for
// grids that are too large for that, for many points (each step of the ranked way accesses memory
// at random: with 10 million points it took 2.4 times as long, with a million 0.9), and where the
// points of a voxel must be in order.

#include "points/group_points.h"

#include <algorithm>

#include "ceil_div.h"
#include "points/number_voxels.cuh"
#include "points/rank_points.cuh"
#include "points/sort_points.cuh"
#include "points/table_points.cuh"
#include "runtime/cuda_state.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"

namespace rbc::cuda {
namespace {

using namespace grouping;

// All its blocks are on the device together, so that they can wait for each other.
template <class Arguments>
cudaError_t launchTogether(void (*kernel)(Arguments), Arguments* arguments, int blocks,
                           cudaStream_t cuda_stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = gridOf(blocks);
  config.blockDim = dim3(kTableThreads);
  config.stream = cuda_stream;
  cudaLaunchAttribute together = {};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  config.attrs = &together;
  config.numAttrs = 1;
  void* list[] = {arguments};
  return cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), list);
}

}  // namespace

PointGrouping::PointGrouping(const PointClouds& points, const VoxelGrid& grid,
                             const Output<1>& dropped, const Wanted& wanted,
                             const LaunchDevice& device, ScratchLayout* cutter)
    : clouds_(points),
      grid_(grid),
      dropped_(dropped),
      voxels_(points.clouds * grid.volume()),
      choice_(
          selectGrouping({points.total(), voxels_, wanted.order, wanted.points_in_order}, device)) {
  groups_.wide = voxels_ > INT32_MAX;
  groups_.points = points.total();
  groups_.most = std::min(groups_.points, voxels_);
  cutter->take(&groups_.num, 1);
  cutter->take(&groups_.order, groups_.points);
  if (byTable()) {
    cutter->take(&groups_.spans, groups_.most);
    if (wanted.keys) cutter->take(&groups_.voxel_keys, groups_.most);
    if (wanted.order == VoxelOrder::kLexicographic) {
      cutter->take(&groups_.rows, groups_.most);
      if (wanted.voxel_of_row) cutter->take(&groups_.voxels, groups_.most);
    }
    table_ = VoxelTable(groups_.points, groups_.most, voxels_, wanted.order, wanted.points_in_order,
                        cutter);
    return;
  }
  cutter->take(&groups_.starts, groups_.most + 1);
  if (ranked()) {
    cutRanked(cutter);
  } else if (groups_.wide) {
    cutSorted<uint64_t>(wanted, cutter);
  } else {
    cutSorted<uint32_t>(wanted, cutter);
  }
}

cudaError_t PointGrouping::launchTable(const SparseRows& rows, const ChunkList& chunks,
                                       const LaunchDevice&, cudaStream_t cuda_stream) const {
  const auto blocks = static_cast<int>(choice_.grid);
  const int64_t points_of_block = ceilDiv(ceilDiv(groups_.points, blocks), kPoints) * kPoints;
  return visitLoader(clouds_, [&](auto tag) {
    using Loader = typename decltype(tag)::type;
    using Number = typename Loader::Number;
    TableArguments<Number> arguments = {
        sourceOf<Number>(clouds_, grid_, dropped_),
        {table_, groups_, rows, chunks, clouds_.clouds, static_cast<int64_t*>(dropped_.data),
         dropped_.stride[0], FastDivmod(points_of_block),
         FastDivmod(ceilDiv(table_.groups, blocks))}};
    return launchTogether(groupByTable<Loader>, &arguments, blocks, cuda_stream);
  });
}

void PointGrouping::cutRanked(ScratchLayout* cutter) {
  groups_.num_words = ceilDiv(voxels_, RankWord::kBits);
  cutter->take(&groups_.voxel_keys, groups_.most);
  cutter->take(&groups_.ranks, groups_.points);
  cutter->take(&slots_, groups_.points);
  cutter->take(&groups_.words, groups_.num_words);
  const size_t before = cutter->used() - sizeof(RankWord) * static_cast<size_t>(groups_.num_words);
  cutter->take(&counts_, groups_.most);
  cutter->take(&states_, ceilDiv(groups_.num_words, kTileWords));
  cutter->take(&voxel_states_, placeTiles());
  clear_bytes_ = cutter->used() - before;
}

// The last tile has room for at least one voxel more.
int64_t PointGrouping::placeTiles() const { return groups_.most / (kThreads * kPoints) + 1; }

cudaError_t PointGrouping::launchRanked(const SparseRows& rows, const ChunkList& chunks,
                                        const LaunchDevice& device,
                                        cudaStream_t cuda_stream) const {
  const int64_t blocks = choice_.grid;
  cudaError_t error = cudaMemsetAsync(groups_.words, 0, clear_bytes_, cuda_stream);
  if (error != cudaSuccess) return error;
  error = visitLoader(clouds_, [&](auto tag) {
    using Loader = typename decltype(tag)::type;
    using Number = typename Loader::Number;
    MarkArguments<Number> arguments = {sourceOf<Number>(clouds_, grid_, dropped_), groups_.words,
                                       groups_.ranks};
    return launchBlocks(markVoxels<Loader>, &arguments, blocks, kThreads, device, cuda_stream);
  });
  if (error != cudaSuccess) return error;
  NumberArguments number = {groups_, groups_.voxel_keys, states_};
  error = launchBlocks(numberVoxels, &number, ceilDiv(groups_.num_words, kTileWords), kThreads,
                       device, cuda_stream);
  if (error != cudaSuccess) return error;
  RankArguments arguments = {groups_, counts_, slots_};
  error = launchBlocks(rankPoints, &arguments, blocks, kThreads, device, cuda_stream);
  if (error != cudaSuccess) return error;
  PlaceArguments place = {groups_,        reinterpret_cast<const int32_t*>(counts_),
                          groups_.starts, voxel_states_,
                          rows,           chunks};
  const int64_t last_rows = ceilDiv(rows.capacity, kThreads * kPoints);
  error = launchBlocks(placeVoxels, &place, std::max(placeTiles(), last_rows), kThreads, device,
                       cuda_stream);
  if (error != cudaSuccess) return error;
  return launchBlocks(orderPoints, &arguments, blocks, kThreads, device, cuda_stream);
}

template <class Key>
void PointGrouping::cutSorted(const Wanted& wanted, ScratchLayout* cutter) {
  if (wanted.voxel_of_point) cutter->take(&groups_.heads, groups_.points);
  cutter->take(&rows_, groups_.points);
  Key* keys;
  Key* sorted_keys;
  cutter->take(&keys, groups_.points);
  cutter->take(&sorted_keys, groups_.points);
  cutter->take(&states_, ceilDiv(groups_.points, kTileKeys));
  keys_ = keys;
  groups_.keys = sorted_keys_ = sorted_keys;
  checkCuda(sort<Key>(nullptr, &temporary_bytes_, keys, sorted_keys, rows_, groups_.order,
                      groups_.points, voxels_, nullptr),
            "the size of a sort");
  cutter->take(&temporary_, static_cast<int64_t>(temporary_bytes_));
}

template <class Key>
cudaError_t PointGrouping::launchSorted(const LaunchDevice& device,
                                        cudaStream_t cuda_stream) const {
  const auto none = static_cast<Key>(voxels_);
  auto* keys = static_cast<Key*>(keys_);
  auto* sorted_keys = static_cast<Key*>(sorted_keys_);
  const int64_t tiles = ceilDiv(groups_.points, kTileKeys);
  cudaError_t error = visitLoader(clouds_, [&](auto tag) {
    using Loader = typename decltype(tag)::type;
    using Number = typename Loader::Number;
    KeyArguments<Number, Key> arguments = {
        sourceOf<Number>(clouds_, grid_, dropped_), none, keys, rows_, states_, tiles};
    return launchBlocks(makeKeys<Loader, Key>, &arguments, choice_.grid, kThreads, device,
                        cuda_stream);
  });
  if (error != cudaSuccess) return error;
  size_t bytes = temporary_bytes_;
  error = sort<Key>(temporary_, &bytes, keys, sorted_keys, rows_, groups_.order, groups_.points,
                    voxels_, cuda_stream);
  if (error != cudaSuccess) return error;
  FindArguments<Key> arguments = {groups_, sorted_keys, none, states_};
  return launchBlocks(findVoxels<Key>, &arguments, tiles, kThreads, device, cuda_stream);
}

cudaError_t PointGrouping::launchSorted(const LaunchDevice& device,
                                        cudaStream_t cuda_stream) const {
  if (groups_.most == 0) {
    cudaError_t error = cudaMemsetAsync(groups_.num, 0, sizeof *groups_.num, cuda_stream);
    if (error == cudaSuccess) {
      error = cudaMemsetAsync(groups_.starts, 0, sizeof *groups_.starts, cuda_stream);
    }
    return error;
  }
  return groups_.wide ? launchSorted<uint64_t>(device, cuda_stream)
                      : launchSorted<uint32_t>(device, cuda_stream);
}

cudaError_t loadGroupPoints() { return loadKernelsBeside(orderPoints); }

}  // namespace rbc::cuda
