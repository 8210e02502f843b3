// Dense voxelization on the CPU. Buckets of neighbouring voxels are written as a whole, each once.

#include <algorithm>
#include <cstddef>

#include "element_of.h"
#include "points/dense_voxels.h"
#include "points/group_points.h"
#include "points/reduce_features.h"
#include "points/sort_points.h"
#include "runtime/cpu_state.h"
#include "visit_dtype.h"

namespace rbc::cpu {

// ---- Occupancy and counts on a dense grid.

// Voxels whose points are counted at once, in counters that stay in the caches.
inline constexpr int kCounterBits = 14;
inline constexpr int64_t kCounters = int64_t{1} << kCounterBits;
struct Counters {
  uint32_t counts[kCounters];
};

// Writes a bucket's voxels. The points are sorted by all but the lowest kCounterBits of their keys.
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

// Before its use: Clang 14 forgets to instantiate what a generic lambda names ahead of its body.
template <class Out>
void PointCounter::write(const PointCounter& counter, const VoxelLine& line,
                         const uint32_t* counts) {
  const auto empty = elementOf<Out>(counter.empty_bits_);
  const auto valueOf = [empty, most = counter.most_](uint32_t count) {
    return count != 0 ? countAs<Out>(std::min(count, most)) : empty;
  };
  const int64_t count = line.count;  // bytes to write might be any object's
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
      most_(p.mode == VoxelMode::kOccupancy ? 1 : UINT32_MAX) {
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
      if (!whole) return;  // the next keys' counts would begin with what is left of these
      for (int64_t key = first; key < past;) {
        const VoxelLine line = voxels_.lineAt(key, past);
        write_(*this, line, counts + (key - first));
        key += line.count;
      }
    }
  });
}

namespace {

// Of out, that a bucket should write at most.
constexpr int64_t kBucketBytes = 128 << 10;
// Of out, worth one more thread: see fuse.cpp.
constexpr int64_t kThreadBytes = 1 << 20;

int64_t voxelBytes(const VoxelizeProblem& p) {
  return std::max<int64_t>(p.features.count * sizeOf(p.out.dtype), 1);
}

// That write all voxels, and read as many points as there are threads for in `sort`.
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
  if (p.features.count == 0) return;  // however many voxels there are
  const FeatureReducer reducer(state, p.points, p.features, p.mode, p.out.dtype);
  const PointSort& sort = groups.sort();
  state.pool.parallelFor(sort.buckets(), writingThreads(p, state.pool, sort), [&](int64_t bucket) {
    // All of a bucket at once, while it is in the caches: what lies between groups is short.
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
