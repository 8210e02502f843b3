// The rays of a call, a thread each, and the first walk along them: which voxels they observe.
#pragma once

#include "points/points.cuh"
#include "points/tsdf_voxels.cuh"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace tsdf {

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

// The ray of the i-th point. False if there is none; drop(cloud) if the point is dropped.
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

// What a ray sets of the bits of a brick, and the groups that it marks.
class Marker {
 public:
  __device__ explicit Marker(const ObservedVoxels& observed) : observed_(observed) {}

  // Bits of a brick that looked like `seen`. Another thread may have set them since: then they are set once
  // more. Whoever sets the first bit of a brick has seen none, and marks its group without a look: that would
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
  uint64_t bits = 0;  // that the ray observes in the brick
  uint64_t seen = 0;  // read when the ray came to it
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

}  // namespace tsdf
}  // namespace rbc::cuda
