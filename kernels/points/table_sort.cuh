// The last step of grouping points by a table, if it is wanted: the points of a voxel are put in order.
#pragma once

#include "points/table_counts.cuh"
#include "points/table_steps.cuh"

namespace rbc::cuda {
namespace grouping {

// The points of a voxel, of which there are few, by counting those before each.
__device__ __forceinline__ void sortFew(const TableSteps& a, const TablePoint& point, int32_t begin,
                                        int32_t size) {
  if (size == 0 || size > kCrowded) return;
  const int32_t* came = a.table.as_they_came + begin;
  const auto number = static_cast<int32_t>(point.number);
  int32_t before = 0;
  for (int32_t i = 0; i < size; ++i) before += __ldcg(&came[i]) < number ? 1 : 0;
  a.groups.order[begin + before] = number;
}

// The points of crowded voxels, by a bit for each of all points.
__device__ __forceinline__ void sortCrowded(const TableSteps& a, TableShared& shared) {
  constexpr int kWords = kMaxTablePoints / 32 / kTableThreads;  // of a thread
  const uint32_t count = __ldcg(a.table.num_crowded);
  uint32_t* const words = shared.bits + threadIdx.x * kWords;
  for (uint32_t v = blockIdx.x; v < count; v += gridDim.x) {
    const int2 voxel = __ldcg(reinterpret_cast<const int2*>(&a.table.crowded[v]));
    *reinterpret_cast<uint4*>(words) = make_uint4(0, 0, 0, 0);
    __syncthreads();
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < voxel.y; i += kTableThreads) {
      const int32_t number = __ldcg(&a.table.as_they_came[voxel.x + i]);
      atomicOr(&shared.bits[number / 32], 1u << number % 32);
    }
    __syncthreads();
    TableCounts own = {0, 0};
#pragma unroll
    for (int w = 0; w < kWords; ++w) own.bits += static_cast<uint32_t>(__popc(words[w]));
    TableCounts sum;
    int32_t* order = a.groups.order + voxel.x + sumBefore(own, shared, &sum).bits;
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      const auto first = static_cast<int32_t>((threadIdx.x * kWords + w) * 32);
      for (uint32_t bits = words[w]; bits != 0; bits &= bits - 1)
        *order++ = first + __ffs(bits) - 1;
    }
  }
}

}  // namespace grouping
}  // namespace rbc::cuda
