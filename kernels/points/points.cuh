// Points of clouds: coordinates of voxels, and points read one by one or four at a time.
#pragma once

#include "points/select_voxels.h"
#include "runtime/aligned_vec.cuh"
#include "runtime/fast_divmod.h"
#include "visit_dtype.h"
#include "voxel_problem.h"

namespace rbc::cuda {

// ---- Converts a voxel's key to its coordinates, with divisors that are the same for the whole
// launch.

struct VoxelCoordsOf {
  FastDivmod per_column;  // voxels along z
  FastDivmod per_row;     // columns along y
  FastDivmod per_cloud;   // rows along x
  int64_t shape[3];

  VoxelCoordsOf() = default;
  explicit VoxelCoordsOf(const VoxelGrid& grid)
      : per_column(grid.shape[2]),
        per_row(grid.shape[1]),
        per_cloud(grid.shape[0]),
        shape{grid.shape[0], grid.shape[1], grid.shape[2]} {}

  __device__ VoxelCoords operator()(int64_t key) const {
    const int64_t column = per_column(key);
    const int64_t row = per_row(column);
    const int64_t cloud = per_cloud(row);
    return {cloud, row - cloud * shape[0], column - row * shape[1], key - column * shape[2]};
  }
};

// ---- Points as kernels read them: a few consecutive ones per thread, each with its cloud and its
// voxel.

// A kernel's arguments for the clouds and the grid.
template <class Number>
struct PointSource {
  PointClouds clouds;
  GridOf<Number> grid;
  VoxelGrid extents;
  FastDivmod per_cloud;  // rows of a padded cloud
  int64_t total;         // rows, valid or not
  int64_t* dropped;      // by cloud, cleared before; may be null
  int64_t dropped_stride;
};

template <class Number>
PointSource<Number> sourceOf(const PointClouds& clouds, const VoxelGrid& grid,
                             const Output<1>& dropped) {
  return {clouds,
          gridAs<Number>(grid),
          grid,
          FastDivmod(clouds.rows),
          clouds.total(),
          static_cast<int64_t*>(dropped.data),
          dropped.stride[0]};
}

// Loads the coordinates of kPoints consecutive points; RowLoader accepts any layout.
template <class Storage>
struct RowLoader {
  using Number = Compute<Storage>;
  static constexpr bool kOneCloud = false;
  static constexpr bool kWords = false;  // whole words are loaded

  static bool suits(const PointClouds&) { return true; }

  template <class Source>
  static __device__ void load(const Source& s, int64_t first, Number (&p)[kPoints][3]) {
    const auto* data = static_cast<const Storage*>(s.clouds.data);
    int64_t cloud = s.clouds.packed() ? 0 : s.per_cloud(first);
    int64_t row = first - cloud * s.clouds.rows;
#pragma unroll
    for (int k = 0; k < kPoints; ++k) {
      // After the last row, the last row again.
      const Storage* at = data + cloud * s.clouds.stride[0] + row * s.clouds.stride[1];
#pragma unroll
      for (int axis = 0; axis < 3; ++axis) p[k][axis] = widen(at[axis * s.clouds.stride[2]]);
      if (first + k + 1 >= s.total) continue;
      if (++row == s.clouds.rows && !s.clouds.packed()) {
        row = 0;
        ++cloud;
      }
    }
  }
};

// Contiguous [N,3] of f32: 48 bytes are three words.
struct TripleLoader {
  using Number = float;
  static constexpr bool kOneCloud = false;
  static constexpr bool kWords = true;

  static bool suits(const PointClouds& c) {
    return c.dtype == DType::F32 && c.stride[2] == 1 && c.stride[1] == 3 &&
           c.inOneLine(c.stride[0], 3) && reinterpret_cast<uintptr_t>(c.data) % 16 == 0;
  }

  template <class Source>
  static __device__ void load(const Source& s, int64_t first, float (&p)[kPoints][3]) {
    if (first + kPoints > s.total) return RowLoader<float>::load(s, first, p);
    const auto* words =
        reinterpret_cast<const float4*>(static_cast<const float*>(s.clouds.data) + 3 * first);
    const float4 a = __ldg(words);
    const float4 b = __ldg(words + 1);
    const float4 c = __ldg(words + 2);
    p[0][0] = a.x, p[0][1] = a.y, p[0][2] = a.z;
    p[1][0] = a.w, p[1][1] = b.x, p[1][2] = b.y;
    p[2][0] = b.z, p[2][1] = b.w, p[2][2] = c.x;
    p[3][0] = c.y, p[3][1] = c.z, p[3][2] = c.w;
  }
};

// [N,4] of f32, as in LiDAR files, or other rows of whole words: one word per point.
struct QuadLoader {
  using Number = float;
  static constexpr bool kOneCloud = false;
  static constexpr bool kWords = true;

  static bool suits(const PointClouds& c) {
    return c.dtype == DType::F32 && c.columns >= 4 && c.stride[2] == 1 && c.stride[1] % 4 == 0 &&
           c.inOneLine(c.stride[0], c.stride[1]) && reinterpret_cast<uintptr_t>(c.data) % 16 == 0;
  }

  template <class Source>
  static __device__ void load(const Source& s, int64_t first, float (&p)[kPoints][3]) {
    const auto* data = static_cast<const float*>(s.clouds.data);
#pragma unroll
    for (int k = 0; k < kPoints; ++k) {
      const int64_t i = first + k < s.total ? first + k : s.total - 1;
      const float4 word = __ldg(reinterpret_cast<const float4*>(data + i * s.clouds.stride[1]));
      p[k][0] = word.x, p[k][1] = word.y, p[k][2] = word.z;
    }
  }
};

// The same for one cloud in which all points are valid: no lookup is needed.
template <class Loader>
struct OneCloud : Loader {
  static constexpr bool kOneCloud = true;

  static bool suits(const PointClouds& c) {
    return Loader::suits(c) && c.clouds == 1 && !c.packed() && c.lengths.data == nullptr;
  }
};

// Calls visitor(Tag<Loader>) for the loader that accepts the points.
template <class Visitor>
decltype(auto) visitLoader(const PointClouds& clouds, Visitor&& visitor) {
  if (OneCloud<TripleLoader>::suits(clouds)) return visitor(Tag<OneCloud<TripleLoader>>{});
  if (OneCloud<QuadLoader>::suits(clouds)) return visitor(Tag<OneCloud<QuadLoader>>{});
  if (TripleLoader::suits(clouds)) return visitor(Tag<TripleLoader>{});
  if (QuadLoader::suits(clouds)) return visitor(Tag<QuadLoader>{});
  return visitFloat(clouds.dtype, [&](auto tag) {
    return visitor(Tag<RowLoader<typename decltype(tag)::type>>{});
  });
}

// The cloud that a packed row may belong to.
__device__ inline int64_t cloudAround(const PointClouds& c, int64_t row) {
  return memberAround(c.offsets, c.clouds, row);
}

// The rows of a cloud's points.
struct ValidRows {
  int32_t begin;
  int32_t end;

  __device__ ValidRows(const PointClouds& c, int64_t cloud) {
    const RowRange range = pointsOf(c, cloud);
    begin = static_cast<int32_t>(range.begin);
    end = static_cast<int32_t>(range.begin + range.count);
  }
};

// Counts the points of one thread without a voxel, by cloud.
template <class Source>
class DropCounter {
 public:
  __device__ explicit DropCounter(const Source& source) : s_(source) {}

  __device__ void add(int64_t cloud) {
    if (s_.dropped == nullptr) return;
    if (cloud != cloud_) flush();
    cloud_ = cloud;
    ++count_;
  }

  // If there is only one cloud.
  __device__ void addIf(bool condition) { count_ += condition ? 1 : 0; }

  // Called by all threads of a warp together: mostly they count for one cloud.
  __device__ void finish() {
    if (s_.dropped == nullptr) return;
    const unsigned counting = __ballot_sync(~0u, count_ > 0);
    if (counting == 0) return;
    const int64_t first = __shfl_sync(~0u, cloud_, __ffs(counting) - 1);
    if (__all_sync(~0u, count_ == 0 || cloud_ == first)) {
      const unsigned sum = __reduce_add_sync(~0u, count_);
      if ((threadIdx.x & 31) == 0) put(first, sum);
    } else {
      flush();
    }
  }

 private:
  __device__ void flush() {
    if (count_ > 0) put(cloud_, count_);
    count_ = 0;
  }
  __device__ void put(int64_t cloud, unsigned count) {
    atomicAdd(reinterpret_cast<unsigned long long*>(s_.dropped + cloud * s_.dropped_stride),
              static_cast<unsigned long long>(count));
  }

  const Source& s_;
  int64_t cloud_ = 0;
  unsigned count_ = 0;
};

// The keys of the points first .. first + kPoints - 1: -1 for points without a voxel. Key is i64,
// or i32 if that holds every key.
template <class Loader, class Key, class Source>
__device__ __forceinline__ void loadKeys(const Source& s, int64_t first, Key (&keys)[kPoints],
                                         DropCounter<Source>* drops) {
#pragma unroll
  for (int k = 0; k < kPoints; ++k) keys[k] = -1;
  if (first >= s.total) return;
  typename Loader::Number p[kPoints][3];
  Loader::load(s, first, p);

  if constexpr (Loader::kOneCloud) {
    const bool whole = first + kPoints <= s.total;
#pragma unroll
    for (int k = 0; k < kPoints; ++k) {
      VoxelIndex voxel;
      const bool inside = voxelOf(s.grid, p[k], &voxel);
      const bool valid = whole || first + k < s.total;
      if (inside && valid) keys[k] = voxelKey<Key>(s.extents, 0, voxel);
      drops->addIf(!inside && valid);
    }
  } else {
    // The number of rows fits in 32 bits.
    const PointClouds& c = s.clouds;
    const auto rows = static_cast<int32_t>(c.rows);
    int64_t cloud = c.packed() ? cloudAround(c, first) : s.per_cloud(static_cast<int32_t>(first));
    int32_t row = static_cast<int32_t>(c.packed() ? first : first - cloud * rows);
    ValidRows valid(c, cloud);
#pragma unroll
    for (int k = 0; k < kPoints; ++k) {
      if (first + k >= s.total) break;
      if (c.packed()) {
        if (row >= valid.end && cloud + 1 < c.clouds) {
          cloud = cloudAround(c, row);
          valid = ValidRows(c, cloud);
        }
      } else if (row == rows) {
        row = 0;
        valid = ValidRows(c, ++cloud);
      }
      if (row >= valid.begin && row < valid.end) {
        VoxelIndex voxel;
        if (voxelOf(s.grid, p[k], &voxel)) {
          keys[k] = voxelKey<Key>(s.extents, cloud, voxel);
        } else {
          drops->add(cloud);
        }
      }
      ++row;
    }
  }
}

namespace grouping {

// ---- Four consecutive points of a thread, and arrays by point.

inline constexpr int kWarps = kThreads / 32;
// Blocks per multiprocessor, at least: by default the compiler spills to fit one more.
inline constexpr int kBlocks = 4;

__device__ __forceinline__ int64_t firstOfThread() {
  return (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kPoints;
}

template <class T>
__device__ __forceinline__ void storeFour(T* array, int64_t first, int64_t count,
                                          const T (&four)[kPoints]) {
  if (first + kPoints <= count) {
    AlignedVec<T, kPoints> vec;
#pragma unroll
    for (int k = 0; k < kPoints; ++k) vec.element[k] = four[k];
    *reinterpret_cast<AlignedVec<T, kPoints>*>(array + first) = vec;
    return;
  }
#pragma unroll
  for (int k = 0; k < kPoints; ++k) {
    if (first + k < count) array[first + k] = four[k];
  }
}

// The elements first .. first + kPoints - 1 of an array, with one load if all exist; `none` after
// the last. The kernel may write the array, which load() does not allow.
template <class T>
__device__ __forceinline__ void loadFour(const T* array, int64_t first, int64_t count,
                                         T (&four)[kPoints], T none) {
  if (first + kPoints <= count) {
    const auto vec = *reinterpret_cast<const AlignedVec<T, kPoints>*>(array + first);
#pragma unroll
    for (int k = 0; k < kPoints; ++k) four[k] = vec.element[k];
    return;
  }
#pragma unroll
  for (int k = 0; k < kPoints; ++k) four[k] = first + k < count ? array[first + k] : none;
}

}  // namespace grouping

}  // namespace rbc::cuda
