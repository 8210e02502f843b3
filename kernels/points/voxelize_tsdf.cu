// Integration into a truncated signed distance field on CUDA.
//
// Two launches follow the rays, one thread each: the first one marks the voxels that rays observe,
// and the second one adds the observations. The sums are integers, so their order does not matter.
// In between, the marked voxels are numbered and their sums cleared, and at the end these are
// averaged: a voxel that no ray reaches costs one bit.

#include <algorithm>
#include <cstddef>

#include "ceil_div.h"
#include "points/clear_counts.h"
#include "points/points.cuh"
#include "runtime/cuda_state.h"
#include "runtime/fast_divmod.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "scratch_layout.h"
#include "tsdf_problem.h"
#include "visit_dtype.h"

namespace rbc::cuda {
namespace tsdf {

// ---- The voxels that the rays of a call observe, numbered, so that only these have sums: a bit
// for each voxel of the grid, in bricks of 64.

inline constexpr int kThreads = 256;
inline constexpr int kWarp = 32;
inline constexpr int kWarps = kThreads / kWarp;

// A brick has 2 x 4 x 8 voxels: a ray stays in it for some steps, and 8 floats along z are one
// memory transaction.
inline constexpr int kBrickVoxels = 64;
inline constexpr int kGroupBricks = kWarp;  // that share a mark
inline constexpr int kGroupVoxels = kGroupBricks * kBrickVoxels;

struct BrickPlace {
  int64_t brick;
  int bit;
};

struct BrickGrid {
  uint32_t shape[3];  // in bricks
  FastDivmod per_column;
  FastDivmod per_slice;

  explicit BrickGrid(const VoxelGrid& grid)
      : shape{static_cast<uint32_t>(ceilDiv(grid.shape[0], 2)),
              static_cast<uint32_t>(ceilDiv(grid.shape[1], 4)),
              static_cast<uint32_t>(ceilDiv(grid.shape[2], 8))},
        per_column(shape[2]),
        per_slice(shape[1]) {}

  int64_t count() const { return static_cast<int64_t>(uint64_t{shape[0]} * shape[1] * shape[2]); }

  RBC_HD BrickPlace placeOf(const int32_t (&voxel)[3]) const {
    const auto x = static_cast<uint32_t>(voxel[0]);
    const auto y = static_cast<uint32_t>(voxel[1]);
    const auto z = static_cast<uint32_t>(voxel[2]);
    const uint64_t column = uint64_t{x >> 1} * shape[1] + (y >> 2);
    return {static_cast<int64_t>(column * shape[2] + (z >> 3)),
            static_cast<int>((x & 1) << 5 | (y & 3) << 3 | (z & 7))};
  }

  __device__ __forceinline__ VoxelCoords coordsOf(int64_t brick, int bit) const {
    const int64_t column = per_column(brick);
    const int64_t x = per_slice(column);
    return {0, x << 1 | bit >> 5, (column - x * shape[1]) << 2 | (bit >> 3 & 3),
            (brick - column * shape[2]) << 3 | (bit & 7)};
  }
};

// The bits of a brick, and the number of its first observed voxel; the others follow.
struct alignas(16) NumberedBrick {
  uint64_t bits;
  uint64_t first;
};

// In the workspace.
struct ObservedVoxels {
  BrickGrid grid;
  int64_t bricks;
  int64_t groups;
  uint64_t* count;  // number of observed voxels
  uint32_t* marks;  // of groups with an observed voxel: words, as many rays write them at once
  uint64_t* bits;   // of bricks
  size_t cleared;   // bytes of these three, which start as 0
  NumberedBrick* numbered;  // bricks of the marked groups
  TsdfSums* sums;           // by number
  void* places;             // by number: 64 * brick + bit, as u32 or u64
  int64_t capacity;         // at least as many as there can be numbers
  bool long_places;
  size_t bytes;

  ObservedVoxels(const TsdfProblem& p, void* scratch) : grid(p.grid) {
    bricks = grid.count();
    groups = ceilDiv(bricks, kGroupBricks);
    capacity = mostObserved(p);
    long_places = bricks > (int64_t{1} << 32) / kBrickVoxels;
    ScratchLayout cutter(scratch);
    cutter.take(&count, 1);
    cutter.take(&marks, groups);
    cutter.take(&bits, bricks);
    cleared = cutter.used();
    cutter.take(&numbered, bricks);
    cutter.take(&sums, capacity);
    places = long_places ? static_cast<void*>(cutter.take<uint64_t>(capacity))
                         : static_cast<void*>(cutter.take<uint32_t>(capacity));
    bytes = cutter.used();
  }

 private:
  static int64_t mostObserved(const TsdfProblem& p) {
    const int64_t rays = p.points.total();
    const int64_t volume = p.grid.volume();
    return visitNumber(p.points.dtype, [&](auto tag) {
      const int64_t of_ray = mostVoxels(fieldAs<typename decltype(tag)::type>(p));
      return rays > volume / of_ray ? volume : rays * of_ray;
    });
  }
};

__device__ __forceinline__ int64_t threadIndex() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

// ---- Numbers the voxels that rays observe, and clears their sums.

struct NumberArguments {
  ObservedVoxels observed;
  Output<1> dropped;  // to clear
  int64_t clouds;
  int groups;  // marks that a warp reads at once
};

struct NumberShared {
  uint32_t counts[kWarps];
  uint64_t firsts[kWarps];
  uint16_t places[kWarps][kGroupVoxels];  // within a group
};

// The sum over the lanes up to this one.
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

// Numbers the voxels of a group, starting with `first`; returns how many there are.
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
  // Through shared memory, so that lanes write adjacent words.
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

// A block reserves numbers for the groups of all its warps at once.
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
      bits = bitsOfFirst(marked);  // loaded meanwhile
      first += numberGroup<Place>(observed, group, own, first, shared.places[warp]);
    }
  }
}

// ---- The rays of a call, one thread each, and the first walk along them: marks the observed
// voxels.

template <class Number>
struct RayArguments {
  TsdfProblem problem;
  RayField<Number> field;
  ObservedVoxels observed;
  FastDivmod per_cloud;  // rows of a padded cloud
  int64_t total;         // rows, valid or not
  int64_t* dropped;      // by cloud; may be null
  int64_t dropped_stride;
};

// The ray of the i-th point. Returns false without a ray; calls drop(cloud) if the point is
// dropped.
template <class Storage, class Drop>
__device__ __forceinline__ bool aimRay(const RayArguments<Compute<Storage>>& a, int64_t i,
                                       TsdfRay<Compute<Storage>>* ray, Drop&& drop) {
  using Number = Compute<Storage>;
  const PointClouds& c = a.problem.points;
  const int64_t cloud = c.packed() ? cloudAround(c, i) : a.per_cloud(static_cast<int32_t>(i));
  const int64_t row = c.packed() ? i : i - cloud * c.rows;
  const RowRange range = pointsOf(c, cloud);
  if (row < range.begin || row - range.begin >= range.count) return false;
  const Storage* at = static_cast<const Storage*>(c.data) + cloud * c.stride[0] + row * c.stride[1];
  const Number point[] = {widen(at[0]), widen(at[c.stride[2]]), widen(at[2 * c.stride[2]])};
  Number sensor[3];
  sensorOf(a.problem, cloud, sensor);
  if (aim(a.field, point, sensor, ray)) return true;
  drop(cloud);
  return false;
}

// Sets a ray's bits of a brick, and marks its group.
class Marker {
 public:
  __device__ explicit Marker(const ObservedVoxels& observed) : observed_(observed) {}

  // Sets bits of a brick that had the value `seen`. Another thread may have set them since: then
  // they are set again. A ray that saw an empty brick marks its group without checking, which would
  // wait for memory at each brick.
  __device__ __forceinline__ void set(int64_t brick, uint64_t bits, uint64_t seen) {
    if ((bits & ~seen) == 0) return;
    atomicOr(reinterpret_cast<unsigned long long*>(observed_.bits + brick),
             static_cast<unsigned long long>(bits));
    const int64_t group = brick / kGroupBricks;
    if (seen != 0 || group == last_group_) return;
    observed_.marks[group] = 1;
    last_group_ = group;
  }

 private:
  const ObservedVoxels& observed_;
  int64_t last_group_ = -1;
};

template <class Storage>
__global__ void __launch_bounds__(kThreads)
    markVoxels(const __grid_constant__ RayArguments<Compute<Storage>> a) {
  waitForLaunchesAhead();
  TsdfRay<Compute<Storage>> ray;
  const int64_t i = threadIndex();
  if (i >= a.total || !aimRay<Storage>(a, i, &ray, [](int64_t) {})) return;
  int32_t voxel[3] = {ray.first[0], ray.first[1], ray.first[2]};
  Marker marker(a.observed);
  int64_t brick = -1;
  uint64_t bits = 0;  // bits that the ray observes in the brick
  uint64_t seen = 0;  // the brick's bits when the ray entered it
  do {
    const BrickPlace place = a.observed.grid.placeOf(voxel);
    if (place.brick != brick) {
      marker.set(brick, bits, seen);
      brick = place.brick;
      bits = 0;
      seen = a.observed.bits[brick];
    }
    bits |= uint64_t{1} << place.bit;
  } while (advance(a.field, ray, voxel));
  marker.set(brick, bits, seen);
}

// ---- The second walk along the rays: adds the observations by the voxels' numbers.

// The number of a ray's voxel. A brick is read when the ray enters it.
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

  // -1 without sums: if another thread has changed the points since the first walk, the voxel may
  //   not be numbered.
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

// Adds the values of each lane of a warp to the voxel with a number, unless it is -1. Memory
// processes random additions one by one, but additions of neighbouring lanes to adjacent words
// together: lanes add in pairs, first the distance and the weight of one, then of the other.
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

// The rays of a warp advance side by side.
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
      if (goes_on) reader.moveTo(voxel);  // its brick is loaded during the additions
    }
    addInPairs(observed.sums, number, static_cast<uint64_t>(distance), weight);
  }
}
namespace {

struct AverageArguments {
  TsdfProblem problem;
  ObservedVoxels observed;
};

template <class Place>
__global__ void __launch_bounds__(kThreads) average(const __grid_constant__ AverageArguments a) {
  waitForLaunchesAhead();
  const ObservedVoxels& observed = a.observed;
  const auto* places = static_cast<const Place*>(observed.places);
  const auto count = static_cast<int64_t>(*observed.count);
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = threadIndex(); i < count; i += threads) {
    const Place place = __ldcg(places + i);
    const ulonglong2 sums = __ldcg(reinterpret_cast<const ulonglong2*>(observed.sums + i));
    if (sums.y == 0) continue;
    integrateAt(a.problem,
                observed.grid.coordsOf(static_cast<int64_t>(place / kBrickVoxels),
                                       static_cast<int>(place % kBrickVoxels)),
                {sums.x, sums.y});
  }
}

// ---- launches -----------------------------------------------------------------------------------

// A warp reads the marks of several groups if more groups exist than warps run at once.
template <class Place>
cudaError_t launchNumbers(const TsdfProblem& p, const ObservedVoxels& observed,
                          const LaunchDevice& device, cudaStream_t cuda_stream) {
  const int64_t resident = int64_t{64} * device.multiprocessors;
  const auto groups = static_cast<int>(std::clamp<int64_t>(observed.groups / resident, 1, kWarp));
  NumberArguments arguments = {observed, p.dropped, p.points.clouds, groups};
  return launchBlocks(numberVoxels<Place>, &arguments,
                      ceilDiv(observed.groups, int64_t{kWarps} * groups), kThreads, device,
                      cuda_stream);
}

template <class Place>
cudaError_t launchAverage(const TsdfProblem& p, const ObservedVoxels& observed,
                          const LaunchDevice& device, cudaStream_t cuda_stream) {
  AverageArguments arguments = {p, observed};
  return launchBlocks(average<Place>, &arguments,
                      blocksFor(observed.capacity, kThreads, int64_t{16} * device.multiprocessors),
                      kThreads, device, cuda_stream);
}

template <class Storage>
cudaError_t launchAll(const TsdfProblem& p, const ObservedVoxels& observed,
                      const LaunchDevice& device, cudaStream_t cuda_stream) {
  using Number = Compute<Storage>;
  RayArguments<Number> rays = {p,
                               fieldAs<Number>(p),
                               observed,
                               FastDivmod(p.points.rows),
                               p.points.total(),
                               static_cast<int64_t*>(p.dropped.data),
                               p.dropped.stride[0]};
  const int64_t blocks = ceilDiv(rays.total, kThreads);
  const bool wide = observed.long_places;
  cudaError_t error =
      launchBlocks(markVoxels<Storage>, &rays, blocks, kThreads, device, cuda_stream);
  if (error != cudaSuccess) return error;
  error = wide ? launchNumbers<uint64_t>(p, observed, device, cuda_stream)
               : launchNumbers<uint32_t>(p, observed, device, cuda_stream);
  if (error != cudaSuccess) return error;
  error = launchBlocks(observe<Storage>, &rays, blocks, kThreads, device, cuda_stream);
  if (error != cudaSuccess) return error;
  return wide ? launchAverage<uint64_t>(p, observed, device, cuda_stream)
              : launchAverage<uint32_t>(p, observed, device, cuda_stream);
}

size_t scratchBytes(const TsdfProblem& p, const LaunchDevice&) {
  return p.points.total() > 0 ? ObservedVoxels(p, nullptr).bytes : 0;
}

cudaError_t launch(const TsdfProblem& p, void* scratch, const LaunchDevice& device,
                   cudaStream_t cuda_stream, LaunchChoice* chosen) {
  if (p.points.total() == 0) return clearCounts(p.dropped, p.points.clouds, device, cuda_stream);
  *chosen = onlyKernel("tsdf", ceilDiv(p.points.total(), kThreads), kThreads);
  const ObservedVoxels observed(p, scratch);
  const cudaError_t error = cudaMemsetAsync(scratch, 0, observed.cleared, cuda_stream);
  if (error != cudaSuccess) return error;
  return visitFloat(p.points.dtype, [&](auto tag) {
    return launchAll<typename decltype(tag)::type>(p, observed, device, cuda_stream);
  });
}

}  // namespace
}  // namespace tsdf

extern const Operation<TsdfProblem> kVoxelizeTsdf = {bytesOn<TsdfProblem, tsdf::scratchBytes>,
                                                     launchOn<TsdfProblem, tsdf::launch>};
cudaError_t loadVoxelizeTsdf(const LaunchDevice&) {
  return loadKernelsBeside(tsdf::average<uint32_t>);
}

}  // namespace rbc::cuda
