// Dense voxelization on the CPU. Buckets of neighbouring voxels are written as a whole, each once.

#include <algorithm>

#include "points/count_points.h"
#include "points/dense_voxels.h"
#include "points/group_points.h"
#include "points/reduce_features.h"
#include "runtime/cpu_state.h"

namespace rbc::cpu {
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
