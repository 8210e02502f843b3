// Voxels with many points, listed in chunks of these while points are grouped: a chunk is a warp's work.
#pragma once

#include <cstdint>

namespace rbc::cuda {

inline constexpr int kChunkPoints = 1024;

struct Chunk {
  int32_t voxel;
  int32_t begin;  // into the order of points
  int32_t end;
  int32_t large;  // the number of the voxel among those of several chunks, or -1
};

struct ChunkList {
  uint32_t* counters;  // [3]: chunks, large voxels, chunks taken; null: nothing is listed
  Chunk* chunks;
  uint32_t* arrived;  // by large voxel: warps that have put their parts in
  int32_t few;        // points of a voxel that is not listed
  // What has to be 0 before, `counters` among it.
  uint32_t* clear;
  int64_t clear_words;

  // Of a voxel.
  __device__ uint32_t chunksOf(int32_t size) const {
    if (counters == nullptr || size <= few) return 0;
    return static_cast<uint32_t>((int64_t{size} + kChunkPoints - 1) / kChunkPoints);
  }

  // Writes those of a voxel to their place in the list; `large` counts if there are several.
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

}  // namespace rbc::cuda
