// Dense voxelization on the CPU. Buckets of neighbouring voxels are written at once, each exactly
// once.

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "element_of.h"
#include "points/group_points.h"
#include "points/point_keys.h"
#include "points/reduce_features.h"
#include "points/sort_points.h"
#include "runtime/cpu_state.h"
#include "visit_dtype.h"
#include "voxel_problem.h"

namespace rbc::cpu {

// ---- The voxels of a dense output in memory order.

// Voxels begin .. begin + count - 1 by key, `stride` bytes apart.
struct VoxelLine {
  int64_t begin;
  int64_t count;
  std::byte* data;
  int64_t stride;
};

// Maps keys to voxels in memory. Axes with a larger stride come first in the keys, so that
// consecutive keys are close together for any layout of the output.
class DenseVoxels {
 public:
  explicit DenseVoxels(const VoxelizeProblem& p);

  const KeySpace& space() const { return space_; }

  // The longest line that starts at voxel `begin` and ends before `end`.
  VoxelLine lineAt(int64_t begin, int64_t end) const;

  // Writes the empty value to all features of the voxels begin .. end - 1.
  void clear(int64_t begin, int64_t end) const {
    while (begin < end) {
      const VoxelLine line = lineAt(begin, end);
      clear_(*this, line.data, line.count);
      begin += line.count;
    }
  }

 private:
  using Clear = void (*)(const DenseVoxels& voxels, std::byte* data, int64_t count);

  // The next smaller dimension; merged with the previous one if they adjoin.
  void addDimension(int64_t extent, int64_t stride);
  template <class Word>
  static void clear(const DenseVoxels& voxels, std::byte* data, int64_t count);

  KeySpace space_;
  std::byte* data_;
  int64_t size_;  // bytes of an element
  int64_t features_;
  int64_t feature_stride_;
  uint64_t empty_bits_;
  Clear clear_;
  int dims_ = 0;
  int64_t extent_[4] = {1, 1, 1, 1};
  int64_t stride_[4] = {0, 0, 0, 0};
};

// Defined before its use: Clang 14 does not instantiate a function that a generic lambda names
// before its definition.
template <class Word>
void DenseVoxels::clear(const DenseVoxels& voxels, std::byte* data, int64_t count) {
  const auto word = elementOf<Word>(voxels.empty_bits_);
  auto* out = reinterpret_cast<Word*>(data);
  const int64_t features = voxels.features_;
  const int64_t stride = voxels.stride_[std::max(voxels.dims_ - 1, 0)];
  if (stride == features && (features == 1 || voxels.feature_stride_ == 1)) {
    std::fill_n(out, count * features, word);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t f = 0; f < features; ++f) out[i * stride + f * voxels.feature_stride_] = word;
  }
}

DenseVoxels::DenseVoxels(const VoxelizeProblem& p)
    : space_{p.points, {}, {0, 1, 2}},
      data_(static_cast<std::byte*>(p.out.data)),
      size_(sizeOf(p.out.dtype)),
      features_(p.features.count),
      feature_stride_(p.out.stride[4]),
      empty_bits_(p.empty_bits) {
  const int64_t* strides = p.out.stride + 1;
  std::sort(space_.columns, space_.columns + 3,
            [&](int a, int b) { return std::abs(strides[a]) > std::abs(strides[b]); });
  addDimension(p.points.clouds, p.out.stride[0]);
  for (int i = 0; i < 3; ++i) {
    const int axis = space_.columns[i];
    space_.grid.origin[i] = p.grid.origin[axis];
    space_.grid.voxel_size[i] = p.grid.voxel_size[axis];
    space_.grid.shape[i] = p.grid.shape[axis];
    addDimension(p.grid.shape[axis], strides[axis]);
  }
  clear_ = visitWord(sizeOf(p.out.dtype),
                     [](auto tag) -> Clear { return clear<typename decltype(tag)::type>; });
}

void DenseVoxels::addDimension(int64_t extent, int64_t stride) {
  if (extent == 1) return;
  if (dims_ > 0 && stride_[dims_ - 1] == stride * extent) {
    extent_[dims_ - 1] *= extent;
    stride_[dims_ - 1] = stride;
  } else {
    extent_[dims_] = extent;
    stride_[dims_++] = stride;
  }
}

VoxelLine DenseVoxels::lineAt(int64_t begin, int64_t end) const {
  const int last = std::max(dims_ - 1, 0);
  int64_t offset = 0;
  int64_t rest = begin;
  for (int i = last; i >= 0; --i) {
    offset += rest % extent_[i] * stride_[i];
    rest /= extent_[i];
  }
  const int64_t count = std::min(end - begin, extent_[last] - begin % extent_[last]);
  return {begin, count, data_ + offset * size_, stride_[last] * size_};
}

// Iterates over the voxels begin .. end - 1, in order.
class DenseCursor {
 public:
  DenseCursor(const DenseVoxels& voxels, int64_t begin, int64_t end)
      : voxels_(voxels), line_(voxels.lineAt(begin, end)), end_(end) {}

  // The address of the voxel.
  std::byte* moveTo(int64_t key) {
    while (key - line_.begin >= line_.count) {
      line_ = voxels_.lineAt(line_.begin + line_.count, end_);
    }
    return line_.data + (key - line_.begin) * line_.stride;
  }

 private:
  const DenseVoxels& voxels_;
  VoxelLine line_;
  int64_t end_;
};

// ---- Occupancy and counts on a dense grid.

// Bits of the voxels that are counted at once, in counters that stay in the caches.
inline constexpr int kCounterBits = 14;
inline constexpr int64_t kCounters = int64_t{1} << kCounterBits;
struct Counters {
  uint32_t counts[kCounters];
};

// Writes a bucket's voxels. The points are sorted by all bits of their keys except the lowest
// kCounterBits.
class PointCounter {
 public:
  PointCounter(const ThreadPool& pool, const VoxelizeProblem& problem, const DenseVoxels& voxels,
               const PointSort& sort);

  void count(int64_t bucket, Counters* counters) const;

 private:
  using Write = void (*)(const PointCounter& counter, const VoxelLine& line,
                         const uint32_t* counts);
  template <class Out>
  static void write(const PointCounter& counter, const VoxelLine& line, const uint32_t* counts);

  const ThreadPool& pool_;
  const DenseVoxels& voxels_;
  const PointSort& sort_;
  uint64_t empty_bits_;
  uint32_t most_;  // 1 for occupancy
  Write write_;
};

// ----

// Defined before its use: Clang 14 does not instantiate a function that a generic lambda names
// before its definition.
template <class Out>
void PointCounter::write(const PointCounter& counter, const VoxelLine& line,
                         const uint32_t* counts) {
  const auto empty = elementOf<Out>(counter.empty_bits_);
  const auto valueOf = [empty, most = counter.most_](uint32_t count) {
    return count != 0 ? countAs<Out>(std::min(count, most)) : empty;
  };
  const int64_t count = line.count;  // a local: stores of bytes might alias any object
  if (line.stride == sizeof(Out)) {
    auto* out = reinterpret_cast<Out*>(line.data);
    for (int64_t i = 0; i < count; ++i) out[i] = valueOf(counts[i]);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    *reinterpret_cast<Out*>(line.data + i * line.stride) = valueOf(counts[i]);
  }
}

PointCounter::PointCounter(const ThreadPool& pool, const VoxelizeProblem& p,
                           const DenseVoxels& voxels, const PointSort& sort)
    : pool_(pool),
      voxels_(voxels),
      sort_(sort),
      empty_bits_(p.empty_bits),
      most_(p.mode == Reduction::kOccupancy ? 1 : UINT32_MAX) {
  const auto writeOf = [](auto tag) -> Write { return write<typename decltype(tag)::type>; };
  write_ = visitDType(p.out.dtype, writeOf);
}

void PointCounter::count(int64_t bucket, Counters* counters) const {
  const int64_t end = sort_.firstKey(bucket + 1);
  sort_.visit(bucket, [&](const auto* entry, const std::byte*) {
    const auto* last = entry + sort_.count(bucket);
    for (int64_t first = sort_.firstKey(bucket); first < end; first += kCounters) {
      const int64_t past = std::min(first + kCounters, end);
      if (entry == last || static_cast<int64_t>(entry->key) >= past) {
        voxels_.clear(first, past);
        continue;
      }
      uint32_t* counts = counters->counts;
      std::fill_n(counts, past - first, 0u);
      const auto* const begin = entry;
      const bool whole = pool_.inPieces(last - begin, [&](int64_t, int64_t piece_end) {
        const auto* const piece_last = begin + piece_end;
        for (; entry != piece_last && static_cast<int64_t>(entry->key) < past; ++entry) {
          ++counts[static_cast<int64_t>(entry->key) - first];
        }
      });
      if (!whole) return;  // the next keys' counts would begin with the rest of these
      for (int64_t key = first; key < past;) {
        const VoxelLine line = voxels_.lineAt(key, past);
        write_(*this, line, counts + (key - first));
        key += line.count;
      }
    }
  });
}

namespace {

// The most bytes of out that a bucket should write.
constexpr int64_t kBucketBytes = 128 << 10;
// Bytes of out that pay off for one more thread: see fuse.cpp.
constexpr int64_t kThreadBytes = 1 << 20;

int64_t voxelBytes(const VoxelizeProblem& p) {
  return std::max<int64_t>(p.features.count * sizeOf(p.out.dtype), 1);
}

// Threads that write all voxels and read as many points as `sort` has threads for.
int writingThreads(const VoxelizeProblem& p, const ThreadPool& pool, const PointSort& sort) {
  const int64_t bytes = p.points.clouds * p.grid.volume() * voxelBytes(p);
  return static_cast<int>(
      std::clamp<int64_t>(bytes / kThreadBytes, sort.threads(), pool.threads()));
}

PointSort sortFor(const DenseVoxels& voxels, int threads) {
  return {voxels.space(), voxels.space().voxels() >> kCounterBits, kCounterBits, threads};
}

PointGroups groupsFor(const VoxelizeProblem& p, const DenseVoxels& voxels, int threads) {
  const int64_t bucket_voxels = std::max<int64_t>(kBucketBytes / voxelBytes(p), 1);
  return {voxels.space(), voxels.space().voxels() / bucket_voxels, threads};
}

void countPoints(CpuState& state, const VoxelizeProblem& p, const DenseVoxels& voxels,
                 void* scratch) {
  PointSort sort = sortFor(voxels, state.pool.threads());
  sort.sort(state, scratch, p.dropped);
  const PointCounter counter(state.pool, p, voxels, sort);
  state.pool.parallelFor(
      sort.buckets(), writingThreads(p, state.pool, sort),
      [&](int64_t bucket, ThreadMemory& memory) { counter.count(bucket, memory.as<Counters>()); });
}

void reduceFeatures(CpuState& state, const VoxelizeProblem& p, const DenseVoxels& voxels,
                    void* scratch) {
  PointGroups groups = groupsFor(p, voxels, state.pool.threads());
  groups.group(state, scratch, p.dropped);
  if (p.features.count == 0) return;  // for any number of voxels
  const FeatureReducer reducer(state, p.points, p.features, p.mode, p.out.dtype);
  const PointSort& sort = groups.sort();
  state.pool.parallelFor(sort.buckets(), writingThreads(p, state.pool, sort), [&](int64_t bucket) {
    // All of a bucket at once, while it is in the caches: the gaps between groups are short.
    const int64_t begin = sort.firstKey(bucket);
    const int64_t end = sort.firstKey(bucket + 1);
    voxels.clear(begin, end);
    DenseCursor cursor(voxels, begin, end);
    groups.visit(state.pool, bucket, reducer, [&](int64_t, const PointGroup& group) {
      reducer.reduce(group.points, group.count, {cursor.moveTo(group.key), p.out.stride[4]});
    });
  });
}

size_t bytes(const BackendState& state, const VoxelizeProblem& p) {
  const int threads = static_cast<const CpuState&>(state).pool.threads();
  const DenseVoxels voxels(p);
  return reducesFeatures(p.mode) ? groupsFor(p, voxels, threads).bytes()
                                 : sortFor(voxels, threads).bytes();
}

void run(BackendState& state, const VoxelizeProblem& p, Scratch scratch) {
  const DenseVoxels voxels(p);
  (reducesFeatures(p.mode) ? reduceFeatures : countPoints)(cpuState(state), p, voxels,
                                                           scratch.data);
}

}  // namespace

extern const Operation<VoxelizeProblem> kVoxelize = {bytes, run};

}  // namespace rbc::cpu
