// Numbers for the voxels that rays observe, and sums of 0 for them.
#pragma once

#include "points/tsdf_voxels.cuh"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace tsdf {

struct NumberArguments {
  ObservedVoxels observed;
  Output<1> dropped;  // is cleared
  int64_t clouds;
  int groups;  // whose marks a warp reads at once
};

struct NumberShared {
  uint32_t counts[kWarps];
  uint64_t firsts[kWarps];
  uint16_t places[kWarps][kGroupVoxels];  // within a group
};

// Of the lanes up to this one.
__device__ __forceinline__ uint32_t sumOfLanes(uint32_t count) {
  const unsigned lane = threadIdx.x % kWarp;
#pragma unroll
  for (unsigned step = 1; step < kWarp; step *= 2) {
    const uint32_t before = __shfl_up_sync(~0u, count, step);
    if (lane >= step) count += before;
  }
  return count;
}

__device__ __forceinline__ uint32_t countBits(uint64_t bits) {
  return static_cast<uint32_t>(__popcll(static_cast<long long>(bits)));
}

// The bits of the lane's brick in a group.
__device__ __forceinline__ uint64_t bitsIn(const ObservedVoxels& observed, int64_t group) {
  const int64_t brick = group * kGroupBricks + threadIdx.x % kWarp;
  return brick < observed.bricks
             ? __ldcg(reinterpret_cast<const unsigned long long*>(observed.bits + brick))
             : 0;
}

// The first number of each warp, which has `count` voxels to number.
__device__ __forceinline__ uint64_t firstOfWarp(const ObservedVoxels& observed, uint32_t count,
                                                NumberShared& shared) {
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned warp = threadIdx.x / kWarp;
  if (lane == 0) shared.counts[warp] = count;
  __syncthreads();
  if (warp == 0) {
    const uint32_t own = lane < kWarps ? shared.counts[lane] : 0;
    const uint32_t up_to = sumOfLanes(own);
    unsigned long long first = 0;
    if (lane == kWarp - 1 && up_to > 0) {
      first = atomicAdd(reinterpret_cast<unsigned long long*>(observed.count),
                        static_cast<unsigned long long>(up_to));
    }
    first = __shfl_sync(~0u, first, kWarp - 1);
    if (lane < kWarps) shared.firsts[lane] = first + up_to - own;
  }
  __syncthreads();
  return shared.firsts[warp];
}

// Numbers the voxels of a group from `first` on; how many there are.
template <class Place>
__device__ __forceinline__ uint32_t numberGroup(const ObservedVoxels& observed, int64_t group,
                                                uint64_t bits, uint64_t first, uint16_t* in_group) {
  const unsigned lane = threadIdx.x % kWarp;
  const int64_t brick = group * kGroupBricks + lane;
  const uint32_t count = countBits(bits);
  const uint32_t up_to = sumOfLanes(count);
  const uint32_t before = up_to - count;
  const uint32_t all = __shfl_sync(~0u, up_to, kWarp - 1);
  if (brick < observed.bricks) observed.numbered[brick] = {bits, first + before};
  // By way of shared memory, so that lanes write neighbours.
  uint32_t next = before;
  for (uint64_t left = bits; left != 0; left &= left - 1) {
    const int bit = __ffsll(static_cast<long long>(left)) - 1;
    in_group[next++] = static_cast<uint16_t>(lane * kBrickVoxels + static_cast<unsigned>(bit));
  }
  __syncwarp();
  auto* places = static_cast<Place*>(observed.places) + first;
  const auto base = static_cast<Place>(group * kGroupVoxels);
  for (uint32_t i = lane; i < all; i += kWarp) {
    places[i] = base + in_group[i];
    observed.sums[first + i] = {0, 0};
  }
  __syncwarp();
  return all;
}

// A block takes numbers for the groups of all its warps at once.
template <class Place>
__global__ void __launch_bounds__(kThreads)
    numberVoxels(const __grid_constant__ NumberArguments a) {
  __shared__ NumberShared shared;
  waitForLaunchesAhead();
  const ObservedVoxels& observed = a.observed;
  if (a.dropped.data != nullptr) {
    const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t b = threadIndex(); b < a.clouds; b += threads) {
      static_cast<int64_t*>(a.dropped.data)[b * a.dropped.stride[0]] = 0;
    }
  }
  const int lane = threadIdx.x % kWarp;
  const int warp = threadIdx.x / kWarp;
  const int64_t turn = int64_t{kWarps} * a.groups;
  for (int64_t of_block = blockIdx.x * turn; of_block < observed.groups;
       of_block += gridDim.x * turn) {
    const int64_t of_warp = of_block + int64_t{warp} * a.groups;
    const bool exists = lane < a.groups && of_warp + lane < observed.groups;
    unsigned marked = __ballot_sync(~0u, exists && __ldcg(observed.marks + of_warp + lane) != 0);
    const auto bitsOfFirst = [&](unsigned groups) -> uint64_t {
      return groups != 0 ? bitsIn(observed, of_warp + __ffs(static_cast<int>(groups)) - 1) : 0;
    };
    uint32_t count = 0;
    for (unsigned left = marked; left != 0; left &= left - 1) count += countBits(bitsOfFirst(left));
    uint64_t bits = bitsOfFirst(marked);
    uint64_t first = firstOfWarp(observed, __reduce_add_sync(~0u, count), shared);
    while (marked != 0) {
      const int64_t group = of_warp + __ffs(static_cast<int>(marked)) - 1;
      const uint64_t own = bits;
      marked &= marked - 1;
      bits = bitsOfFirst(marked);  // on its way meanwhile
      first += numberGroup<Place>(observed, group, own, first, shared.places[warp]);
    }
  }
}

}  // namespace tsdf
}  // namespace rbc::cuda
