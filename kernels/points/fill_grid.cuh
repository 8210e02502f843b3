// A dense grid of features, filled with what voxels without points have.
#pragma once

#include "element_of.h"
#include "points/reduce_voxels.h"
#include "points/voxel_coords.cuh"
#include "runtime/launch.h"
#include "runtime/pdl.cuh"

namespace rbc::cuda {

inline constexpr int kFillThreads = 256;

struct FillArguments {
  void* data;
  int64_t stride[5];
  VoxelCoordsOf places;
  int64_t features;
  int64_t count;  // elements
  uint64_t bits;
  bool contiguous;
};

template <class Element>
__global__ void __launch_bounds__(kFillThreads) fillGrid(const __grid_constant__ FillArguments a) {
  waitForLaunchesAhead();
  const auto value = elementOf<Element>(a.bits);
  auto* data = static_cast<Element*>(a.data);
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kFillThreads + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kFillThreads;
  for (int64_t i = thread; i < a.count; i += threads) {
    int64_t offset = i;
    if (!a.contiguous) {
      const int64_t key = i / a.features;
      const VoxelCoords at = a.places(key);
      offset = at.cloud * a.stride[0] + at.x * a.stride[1] + at.y * a.stride[2] +
               at.z * a.stride[3] + (i - key * a.features) * a.stride[4];
    }
    data[offset] = value;
  }
}

inline FillArguments fillOf(const VoxelizeProblem& p) {
  FillArguments fill = {p.out.data,   {},  VoxelCoordsOf(p.grid), p.features.count, 0,
                        p.empty_bits, true};
  const int64_t extent[] = {p.points.clouds, p.grid.shape[0], p.grid.shape[1], p.grid.shape[2],
                            p.features.count};
  int64_t compact = 1;
  for (int i = 4; i >= 0; --i) {
    fill.stride[i] = p.out.stride[i];
    fill.contiguous &= extent[i] == 1 || p.out.stride[i] == compact;
    compact *= extent[i];
  }
  fill.count = compact;
  return fill;
}

inline cudaError_t launchFill(const VoxelizeProblem& p, FillArguments* fill,
                              const LaunchDevice& device, cudaStream_t cuda_stream) {
  if (fill->count == 0) return cudaSuccess;
  if (fill->contiguous && p.empty_bits == 0) {
    const auto bytes = static_cast<size_t>(fill->count) * static_cast<size_t>(sizeOf(p.out.dtype));
    return cudaMemsetAsync(p.out.data, 0, bytes, cuda_stream);
  }
  const int64_t most_blocks = int64_t{16} * device.multiprocessors;
  return visitFloat(p.out.dtype, [&](auto tag) {
    return launchBlocks(fillGrid<typename decltype(tag)::type>, fill,
                        blocksFor(fill->count, kFillThreads * 4, most_blocks), kFillThreads, device,
                        cuda_stream);
  });
}

// What the reduction can fill of it by the bits of the groups.
inline EmptyVoxels emptyOf(const VoxelizeProblem& p, const FillArguments& fill,
                           const PointGroups& groups) {
  constexpr int64_t kVec = sizeof(uint4);
  constexpr int64_t kMaxRow = int64_t{1} << 24;  // bytes: a word's rows are counted in 32 bits
  const int64_t size = sizeOf(p.out.dtype);
  const bool suits = groups.words != nullptr && groups.most > 0 && fill.contiguous &&
                     fill.count > 0 && p.features.count <= kMaxRow / size &&
                     p.features.count * size % kVec == 0 &&
                     reinterpret_cast<uintptr_t>(p.out.data) % kVec == 0;
  if (!suits) return {};
  uint64_t bits = p.empty_bits;
  for (int64_t bytes = size; bytes < 8; bytes *= 2) bits |= bits << 8 * bytes;
  const auto low = static_cast<uint32_t>(bits);
  const auto high = static_cast<uint32_t>(bits >> 32);
  return {p.points.clouds * p.grid.volume(),
          FastDivmod(p.features.count * size / kVec),
          {low, high, low, high}};
}

}  // namespace rbc::cuda
