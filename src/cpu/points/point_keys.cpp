#include "points/point_keys.h"

#include <algorithm>
#include <cstddef>

#include "points/point_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "points/point_keys.cpp"
#include "runtime/simd_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "visit_dtype.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {

// The keys of `count` points of a cloud, starting at `first`. Returns the number of points without
// a voxel. Branchless, so that compilers vectorize it.
template <class In, class Key>
int64_t keysOfCloud(const KeySpace& space, int64_t cloud, const void* first, int64_t count,
                    Key* keys) {
  using Number = Compute<In>;
  const VoxelGrid grid = space.grid;
  const auto rounded = gridAs<Number>(grid);
  const auto* points = static_cast<const In*>(first);
  const int64_t next = space.points.stride[1];
  const int64_t x = space.columns[0] * space.points.stride[2];
  const int64_t y = space.columns[1] * space.points.stride[2];
  const int64_t z = space.columns[2] * space.points.stride[2];
  int64_t inside = 0;
  for (int64_t i = 0; i < count; ++i) {
    const In* p = points + i * next;
    const Number position[3] = {widen(p[x]), widen(p[y]), widen(p[z])};
    VoxelIndex voxel;
    const Key one = voxelOf(rounded, position, &voxel) ? 1 : 0;
    keys[i] = voxelKey<Key>(grid, cloud, voxel) | (one - 1);  // all bits if outside
    inside += static_cast<int64_t>(one);
  }
  return count - inside;
}

template <class Key>
auto keysOfCloudFor(DType points) {
  return visitFloat(points,
                    [](auto tag) { return keysOfCloud<typename decltype(tag)::type, Key>; });
}

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rbc::cpu {
namespace {

template <class Key>
auto keysOfCloudFor(SimdLevel level, DType points) {
  return RBC_AT_LEVEL(level, keysOfCloudFor<Key>)(points);
}

}  // namespace

template <class Key>
void findKeys(SimdLevel level, const KeySpace& space, int64_t begin, int64_t end, Key* keys,
              const Output<1>& dropped) {
  const PointClouds& points = space.points;
  const auto keysOfCloud = keysOfCloudFor<Key>(level, points.dtype);
  int64_t done = begin;
  visitClouds(points, begin, end, [&](int64_t cloud, int64_t from, int64_t to) {
    std::fill(keys + (done - begin), keys + (from - begin), kNoKey<Key>);
    done = to;
    const int64_t row = points.packed() ? from : from - cloud * points.rows;
    const int64_t offset = cloud * points.stride[0] + row * points.stride[1];
    const auto* first = static_cast<const std::byte*>(points.data) + offset * sizeOf(points.dtype);
    const int64_t outside = keysOfCloud(space, cloud, first, to - from, keys + (from - begin));
    if (dropped.data != nullptr && outside > 0) {
      // Threads may share a cloud.
      __atomic_fetch_add(static_cast<int64_t*>(dropped.data) + cloud * dropped.stride[0], outside,
                         __ATOMIC_RELAXED);
    }
  });
  std::fill(keys + (done - begin), keys + (end - begin), kNoKey<Key>);
}

template void findKeys(SimdLevel level, const KeySpace& space, int64_t begin, int64_t end,
                       uint32_t* keys, const Output<1>& dropped);
template void findKeys(SimdLevel level, const KeySpace& space, int64_t begin, int64_t end,
                       uint64_t* keys, const Output<1>& dropped);

}  // namespace rbc::cpu
#endif  // HWY_ONCE
