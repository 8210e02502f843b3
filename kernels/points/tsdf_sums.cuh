// The second walk along the rays: what the voxels observe, added up by their numbers.
#pragma once

#include "points/tsdf_rays.cuh"
#include "points/tsdf_table.cuh"

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

// Rays go on side by side, in rounds of some steps. Whether a round's observations are worth adding
// up in the table is seen from the voxels where it begins: those behind have more rays in common.
template <class Storage>
__global__ void __launch_bounds__(kThreads)
    observe(const __grid_constant__ RayArguments<Compute<Storage>> a) {
  constexpr int kSteps = 24;  // few rays that do not carve take more
  __shared__ SumTable table;
  waitForLaunchesAhead();
  letNextLaunchBegin();
  const ObservedVoxels& observed = a.observed;
  const bool weighted = a.field.inverse_square;
  const bool has_keys = observed.capacity <= UINT32_MAX;
  table.clear(weighted);

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

  for (;;) {
    const int rays = __syncthreads_count(goes_on);  // the table is cleared
    if (rays == 0) break;
    const int64_t begin = goes_on && has_keys ? reader.number() : -1;
    const auto key = static_cast<uint32_t>(begin);
    bool fresh = false;
    const bool shares = begin >= 0 && table.ownerFor(key, &fresh) == key && !fresh;
    const bool combines = 8 * __syncthreads_count(shares) > rays;
    if (fresh && !combines) table.release(key);

#pragma unroll 1
    for (int step = 0; step < kSteps && __any_sync(~0u, goes_on); ++step) {
      int64_t number = -1;
      int64_t distance = 0;
      if (goes_on) {
        number = reader.number();
        distance = observedDistance(a.field, ray, voxel);
        goes_on = advance(a.field, ray, voxel);
        if (goes_on) reader.moveTo(voxel);  // its brick arrives during the additions
      }
      if (combines && number >= 0 &&
          table.add(static_cast<uint32_t>(number), distance, weight, weighted)) {
        number = -1;
      }
      if (__any_sync(~0u, number >= 0)) {
        addInPairs(observed.sums, number, static_cast<uint64_t>(distance), weight);
      }
    }
    if (!combines) continue;
    __syncthreads();
    table.flush(observed.sums, weighted);
  }
}

}  // namespace tsdf
}  // namespace rbc::cuda
