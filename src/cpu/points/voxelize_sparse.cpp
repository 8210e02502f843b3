// Sparse voxelization on the CPU. Points are grouped by voxel, the groups of all buckets counted,
// and with that every group has its row. Where rows are in the order of first points, a hash table
// numbers them as they come, unless it would be too large for the caches.

#include <algorithm>
#include <atomic>

#include "ceil_div.h"
#include "points/first_point_groups.h"
#include "points/sparse_rows.h"
#include "runtime/cpu_state.h"
#include "scratch_layout.h"

namespace rbc::cpu {
namespace {

constexpr int64_t kChunkRows = 1024;
constexpr int64_t kChunkPoints = 1 << 14;
constexpr int64_t kNumberedRows = 512;

KeySpace spaceOf(const SparseProblem& p) { return {p.points, p.grid, {0, 1, 2}}; }

// The scratch, by its parts.
struct Parts {
  Parts(void* data, const SparseProblem& p, const PointGroups& point_groups) : scratch(data) {
    groups = scratch.take<std::byte>(static_cast<int64_t>(point_groups.bytes()));
    if (p.order == VoxelOrder::kFirstPoint) rows = scratch.take<int32_t>(p.points.total());
  }

  ScratchLayout scratch;
  void* groups;
  int32_t* rows = nullptr;  // of voxels, by their first points; null: they have their groups' order
};

// Calls visit(begin, end) for chunks of 0 .. count - 1.
template <class Visitor>
void visitChunks(ThreadPool& pool, int64_t count, int64_t chunk, Visitor&& visit) {
  const int64_t chunks = ceilDiv(count, chunk);
  const int threads = static_cast<int>(std::clamp<int64_t>(chunks / 4, 1, pool.threads()));
  pool.parallelFor(chunks, threads,
                   [&](int64_t i) { visit(i * chunk, std::min(count, (i + 1) * chunk)); });
}

// Calls visit(number, group) for all groups.
template <class Rows, class Visitor>
void visitGroups(ThreadPool& pool, const PointGroups& groups, const Rows& rows, Visitor&& visit) {
  pool.parallelFor(groups.sort().buckets(), groups.sort().threads(),
                   [&](int64_t bucket) { groups.visit(pool, bucket, rows, visit); });
}

void orderByFirstPoint(ThreadPool& pool, const PointGroups& groups, int64_t points, int32_t* rows) {
  visitChunks(pool, points, kChunkPoints,
              [&](int64_t begin, int64_t end) { std::fill(rows + begin, rows + end, 0); });
  visitGroups(pool, groups, NoRows{},
              [&](int64_t, const PointGroup& group) { rows[group.points[0]] = 1; });
  int32_t row = 0;
  pool.parallelFor(ceilDiv(points, kChunkPoints), 1, [&](int64_t chunk) {
    const int64_t end = std::min(points, (chunk + 1) * kChunkPoints);
    for (int64_t i = chunk * kChunkPoints; i < end; ++i) {
      const int32_t next = row + rows[i];
      rows[i] = row;
      row = next;
    }
  });
}

bool numbersFirstPoints(const SparseProblem& p) {
  return p.order == VoxelOrder::kFirstPoint && FirstPointGroups::suits(p.points);
}

size_t bytes(const BackendState& state, const SparseProblem& p) {
  const KeySpace space = spaceOf(p);
  if (numbersFirstPoints(p)) return FirstPointGroups(space).bytes();
  const PointGroups groups(space, 1, static_cast<const CpuState&>(state).pool.threads());
  return Parts(nullptr, p, groups).scratch.used();
}

// What became of the voxels.
struct Tally {
  int64_t voxels;
  int64_t kept;
  int64_t points_beyond;    // the room
  int64_t points_left_out;  // of kept voxels
};

Tally writeSorted(CpuState& state, const SparseProblem& p, const SparseRows& rows, void* scratch) {
  ThreadPool& pool = state.pool;
  const KeySpace space = spaceOf(p);
  PointGroups groups(space, 1, pool.threads());
  const Parts parts(scratch, p, groups);
  groups.group(state, parts.groups, p.dropped);
  const int64_t voxels = groups.before(groups.sort().buckets());
  const int64_t kept = std::min(voxels, p.capacity);
  if (p.point_to_voxel.data != nullptr) {
    visitChunks(pool, p.points.total(), kChunkPoints,
                [&](int64_t begin, int64_t end) { rows.clearPoints(begin, end); });
  }
  if (parts.rows != nullptr) orderByFirstPoint(pool, groups, p.points.total(), parts.rows);
  std::atomic<int64_t> points_beyond{0};
  std::atomic<int64_t> points_left_out{0};
  visitGroups(pool, groups, rows, [&](int64_t number, const PointGroup& group) {
    const int64_t row = parts.rows != nullptr ? parts.rows[group.points[0]] : number;
    if (row >= kept) {
      points_beyond.fetch_add(group.count, std::memory_order_relaxed);
      return;
    }
    rows.write(row, group);
    rows.writePoints(row, group);
    const int64_t left_out = group.count - rows.counted(group);
    if (left_out > 0) points_left_out.fetch_add(left_out, std::memory_order_relaxed);
  });
  return {voxels, kept, points_beyond.load(std::memory_order_relaxed),
          points_left_out.load(std::memory_order_relaxed)};
}

Tally writeNumbered(CpuState& state, const SparseProblem& p, const SparseRows& rows,
                    void* scratch) {
  ThreadPool& pool = state.pool;
  const KeySpace space = spaceOf(p);
  FirstPointGroups groups(space);
  groups.group(state, scratch, p.dropped);
  const int64_t kept = std::min(groups.count(), p.capacity);
  if (p.point_to_voxel.data != nullptr) {
    visitChunks(pool, p.points.total(), kChunkPoints, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int32_t row = groups.groupOf(i);
        rows.writePoint(static_cast<int32_t>(i), row < kept ? row : -1);
      }
    });
  }
  std::atomic<int64_t> points_left_out{0};
  visitChunks(pool, kept, kNumberedRows, [&](int64_t begin, int64_t end) {
    int64_t left_out = 0;
    for (int64_t row = begin; row < end; ++row) {
      const PointGroup group = groups.at(row);
      rows.write(row, group);
      left_out += group.count - rows.counted(group);
    }
    points_left_out.fetch_add(left_out, std::memory_order_relaxed);
  });
  return {groups.count(), kept, groups.pointsBefore(groups.count()) - groups.pointsBefore(kept),
          points_left_out.load(std::memory_order_relaxed)};
}

void run(BackendState& backend_state, const SparseProblem& p, Scratch scratch) {
  CpuState& state = cpuState(backend_state);
  const SparseRows rows(state, p);
  const Tally tally = numbersFirstPoints(p) ? writeNumbered(state, p, rows, scratch.data)
                                            : writeSorted(state, p, rows, scratch.data);
  *static_cast<int64_t*>(p.num_voxels.data) = tally.kept;
  visitChunks(state.pool, p.capacity - tally.kept, kChunkRows, [&](int64_t begin, int64_t end) {
    rows.clear(tally.kept + begin, tally.kept + end);
  });
  if (p.overflow.data != nullptr) {
    auto* overflow = static_cast<int64_t*>(p.overflow.data);
    const int64_t stride = p.overflow.stride[0];
    overflow[0] = tally.voxels - tally.kept;
    overflow[stride] = tally.points_beyond;
    overflow[2 * stride] = tally.points_left_out;
  }
}

}  // namespace

extern const Operation<SparseProblem> kVoxelizeSparse = {bytes, run};

}  // namespace rbc::cpu
