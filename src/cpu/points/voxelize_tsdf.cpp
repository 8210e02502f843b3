// Integration into a truncated signed distance field on the CPU.
//
// Points are divided into chunks for the threads, which add the observations of each voxel. The
// sums are integers, so their order does not matter. Then the voxels with observations are
// averaged. The volume is divided into blocks, and a block's sums are cleared by the first ray that
// reaches it: a block that no ray reaches costs one byte.

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "ceil_div.h"
#include "points/clear_counts.h"
#include "points/point_rows.h"
#include "runtime/cpu_state.h"
#include "scratch_layout.h"
#include "tsdf_problem.h"
#include "visit_dtype.h"

namespace rbc::cpu {
namespace {

constexpr int64_t kBlock = 64;             // voxels
constexpr int64_t kChunkVisits = 1 << 12;  // voxels that a chunk's rays pass: about 40 us
constexpr int64_t kChunkBlocks = 1 << 10;  // about 10 us without observations
constexpr int64_t kChunksPerThread = 2;    // with fewer, another thread does not pay off

enum BlockState : uint8_t { kUntouched, kBeingCleared, kCleared };

struct Sums {
  TsdfSums* voxels;
  uint8_t* blocks;  // one BlockState each
  int64_t num_blocks;
  size_t bytes;
};

Sums sumsIn(void* scratch, const TsdfProblem& p) {
  const int64_t blocks = ceilDiv(p.grid.volume(), kBlock);
  ScratchLayout parts(scratch);
  auto* voxels = parts.take<TsdfSums>(blocks * kBlock);
  auto* states = parts.take<uint8_t>(blocks);
  return {voxels, states, blocks, parts.used()};
}

// The first ray clears the block; other threads wait.
template <bool kThreads>
void clearOnce(const Sums& sums, int64_t block) {
  uint8_t* state = sums.blocks + block;
  uint8_t seen = __atomic_load_n(state, __ATOMIC_ACQUIRE);
  if (seen == kCleared) return;
  if (!kThreads ||
      (seen == kUntouched && __atomic_compare_exchange_n(state, &seen, kBeingCleared, false,
                                                         __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))) {
    std::memset(sums.voxels + block * kBlock, 0, kBlock * sizeof(TsdfSums));
    __atomic_store_n(state, kCleared, __ATOMIC_RELEASE);
    return;
  }
  while (__atomic_load_n(state, __ATOMIC_ACQUIRE) != kCleared) sched_yield();
}

template <bool kThreads, class Integer>
void add(Integer* sum, Integer term) {
  if (kThreads) {
    __atomic_fetch_add(sum, term, __ATOMIC_RELAXED);
  } else {
    *sum += term;
  }
}

// The points begin .. end - 1 of the line.
template <bool kThreads, class Storage>
void observe(const TsdfProblem& p, const RayField<Compute<Storage>>& field, const Sums& sums,
             int64_t begin, int64_t end) {
  using Number = Compute<Storage>;
  const PointClouds& c = p.points;
  visitClouds(c, begin, end, [&](int64_t cloud, int64_t from, int64_t to) {
    Number sensor[3];
    sensorOf(p, cloud, sensor);
    const auto* rows = static_cast<const Storage*>(c.data) + cloud * c.stride[0];
    const int64_t first = c.packed() ? 0 : cloud * c.rows;
    int64_t dropped = 0;
    for (int64_t i = from; i < to; ++i) {
      const Storage* row = rows + (i - first) * c.stride[1];
      const Number point[] = {widen(row[0]), widen(row[c.stride[2]]), widen(row[2 * c.stride[2]])};
      TsdfRay<Number> ray;
      if (!aim(field, point, sensor, &ray)) {
        ++dropped;
        continue;
      }
      const auto weight = static_cast<uint64_t>(ray.weight);
      walk(field, ray, [&](int64_t voxel, int64_t distance) {
        clearOnce<kThreads>(sums, voxel / kBlock);
        add<kThreads>(&sums.voxels[voxel].distance, static_cast<uint64_t>(distance));
        add<kThreads>(&sums.voxels[voxel].weight, weight);
      });
    }
    if (dropped > 0 && p.dropped.data != nullptr) {
      add<kThreads>(static_cast<int64_t*>(p.dropped.data) + cloud * p.dropped.stride[0], dropped);
    }
  });
}

// An upper bound of the voxels that a ray passes, not counting steps across edges.
template <class Number>
double visitsOf(const RayField<Number>& field) {
  double visits = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const auto extent = static_cast<double>(field.extent[axis]);
    const double near = 2 * static_cast<double>(field.truncation) /
                        static_cast<double>(field.grid.voxel_size[axis]);
    visits += field.carve ? extent : std::min(extent, near);
  }
  return visits;
}

int usefulThreads(const CpuState& state, int64_t chunks) {
  return static_cast<int>(std::clamp<int64_t>(chunks / kChunksPerThread, 1, state.pool.threads()));
}

template <class Storage>
void observeAll(CpuState& state, const TsdfProblem& p, const Sums& sums) {
  const auto field = fieldAs<Compute<Storage>>(p);
  const int64_t total = p.points.total();
  const auto chunk = std::max<int64_t>(
      static_cast<int64_t>(static_cast<double>(kChunkVisits) / visitsOf(field)), 1);
  const int64_t chunks = ceilDiv(total, chunk);
  const int threads = usefulThreads(state, chunks);
  const auto observeChunk = threads == 1 ? observe<false, Storage> : observe<true, Storage>;
  state.pool.parallelFor(chunks, threads, [&](int64_t i) {
    observeChunk(p, field, sums, i * chunk, std::min(total, (i + 1) * chunk));
  });
}

void average(const TsdfProblem& p, const Sums& sums, int64_t block) {
  const int64_t end = std::min(p.grid.volume(), (block + 1) * kBlock);
  for (int64_t voxel = block * kBlock; voxel < end; ++voxel) {
    if (sums.voxels[voxel].weight != 0) {
      integrateAt(p, coordsOf(p.grid, voxel), sums.voxels[voxel]);
    }
  }
}

size_t bytes(const BackendState&, const TsdfProblem& p) { return sumsIn(nullptr, p).bytes; }

void run(BackendState& backend_state, const TsdfProblem& p, Scratch scratch) {
  CpuState& state = cpuState(backend_state);
  const Sums sums = sumsIn(scratch.data, p);
  std::memset(sums.blocks, kUntouched, static_cast<size_t>(sums.num_blocks));
  clearCounts(p.dropped, p.points.clouds);
  visitFloat(p.points.dtype,
             [&](auto storage) { observeAll<typename decltype(storage)::type>(state, p, sums); });
  const int64_t chunks = ceilDiv(sums.num_blocks, kChunkBlocks);
  state.pool.parallelFor(chunks, usefulThreads(state, chunks), [&](int64_t i) {
    const int64_t end = std::min(sums.num_blocks, (i + 1) * kChunkBlocks);
    for (int64_t block = i * kChunkBlocks; block < end; ++block) {
      if (sums.blocks[block] == kCleared) average(p, sums, block);
    }
  });
}

}  // namespace

extern const Operation<TsdfProblem> kVoxelizeTsdf = {bytes, run};

}  // namespace rbc::cpu
