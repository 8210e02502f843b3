// The voxels of a dense grid that hold no point, filled by the launch that reduces the others: it waits for
// memory that answers late, and this for memory that takes much.
#pragma once

#include "points/reduce_arguments.cuh"

namespace rbc::cuda {
namespace reduction {

// By whole warps of the blocks for it, a word of voxels each.
__device__ __forceinline__ void fillEmpty(const ReduceArguments& a) {
  const EmptyVoxels& empty = a.target.empty;
  const auto vecs = static_cast<int32_t>(empty.row_vecs.divisor);
  const int32_t lane = static_cast<int32_t>(threadIdx.x) % kWarp;
  const int64_t warps = int64_t{a.empty_blocks} * kWarpsPerBlock;
  int64_t i = int64_t{blockIdx.x - a.chunk_blocks} * kWarpsPerBlock + threadIdx.x / kWarp;
  for (; i < a.groups.num_words; i += warps) {
    const uint64_t bits = a.groups.words[i].bits;
    const int64_t first = i * RankWord::kBits;
    const auto voxels = static_cast<int32_t>(min(int64_t{RankWord::kBits}, empty.voxels - first));
    uint4* const out = static_cast<uint4*>(a.target.data) + first * vecs;
    for (int32_t v = lane; v < voxels * vecs; v += kWarp) {
      if ((bits >> empty.row_vecs(v) & 1) == 0) __stcs(out + v, empty.value);
    }
  }
}

}  // namespace reduction
}  // namespace rbc::cuda
