// The second walk along the rays: what the voxels observe, added up by their numbers.
#pragma once

#include <cstddef>

#include "points/tsdf_rays.cuh"

namespace rbc::cuda {
namespace tsdf {

// The number of the voxel where a ray is. A brick is read when the ray comes to it.
class NumberReader {
 public:
  __device__ explicit NumberReader(const ObservedVoxels& observed) : observed_(observed) {}

  __device__ __forceinline__ void moveTo(const int32_t (&voxel)[3]) {
    const BrickPlace place = observed_.grid.placeOf(voxel);
    bit_ = place.bit;
    if (place.brick == brick_) return;
    brick_ = place.brick;
    const ulonglong2 read = __ldg(reinterpret_cast<const ulonglong2*>(observed_.numbered + brick_));
    bits_ = read.x;
    first_ = read.y;
  }

  // -1 where there are no sums: if somebody has written to the points since the walk before, there
  // may be anything.
  __device__ __forceinline__ int64_t number() const {
    const uint64_t before = bits_ & ((uint64_t{1} << bit_) - 1);
    const uint64_t number =
        first_ + static_cast<uint64_t>(__popcll(static_cast<long long>(before)));
    return number < static_cast<uint64_t>(observed_.capacity) ? static_cast<int64_t>(number) : -1;
  }

 private:
  const ObservedVoxels& observed_;
  int64_t brick_ = -1;
  uint64_t bits_ = 0;
  uint64_t first_ = 0;
  int bit_ = 0;
};

__device__ __forceinline__ void addTo(uint64_t* sum, uint64_t term) {
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(term));
}

static_assert(sizeof(TsdfSums) == 2 * sizeof(uint64_t) && offsetof(TsdfSums, distance) == 0,
              "sums are two words, the distance first");

// Adds what each lane of a warp has for the voxel of a number, if that is not -1. Memory takes
// random additions one by one, but those of neighbouring lanes to neighbouring words together:
// lanes add in pairs, the distance and the weight of one of them after those of the other.
__device__ __forceinline__ void addInPairs(TsdfSums* sums, int64_t number, uint64_t distance,
                                           uint64_t weight) {
  const bool odd = threadIdx.x % 2 != 0;
  const int64_t number_beside = __shfl_xor_sync(~0u, number, 1);
  const uint64_t term_beside =
      __shfl_xor_sync(~0u, static_cast<unsigned long long>(odd ? distance : weight), 1);
  const int64_t of_even = odd ? number_beside : number;
  const int64_t of_odd = odd ? number : number_beside;
  uint64_t* words = &sums->distance;
  const int word = odd ? 1 : 0;
  if (of_even >= 0) addTo(words + 2 * of_even + word, odd ? term_beside : distance);
  if (of_odd >= 0) addTo(words + 2 * of_odd + word, odd ? weight : term_beside);
}

// The rays of a warp go on side by side.
template <class Storage>
__global__ void __launch_bounds__(kThreads)
    observe(const __grid_constant__ RayArguments<Compute<Storage>> a) {
  waitForLaunchesAhead();
  const ObservedVoxels& observed = a.observed;
  DropCounter drops(a);
  TsdfRay<Compute<Storage>> ray = {};
  const int64_t i = threadIndex();
  bool goes_on =
      i < a.total && aimRay<Storage>(a, i, &ray, [&](int64_t cloud) { drops.add(cloud); });
  drops.finish();
  const auto weight = static_cast<uint64_t>(ray.weight);
  int32_t voxel[3] = {ray.first[0], ray.first[1], ray.first[2]};
  NumberReader reader(observed);
  if (goes_on) reader.moveTo(voxel);
#pragma unroll 1
  while (__any_sync(~0u, goes_on)) {
    int64_t number = -1;
    int64_t distance = 0;
    if (goes_on) {
      number = reader.number();
      distance = observedDistance(a.field, ray, voxel);
      goes_on = advance(a.field, ray, voxel);
      if (goes_on) reader.moveTo(voxel);  // its brick arrives during the additions
    }
    addInPairs(observed.sums, number, static_cast<uint64_t>(distance), weight);
  }
}

}  // namespace tsdf
}  // namespace rbc::cuda
