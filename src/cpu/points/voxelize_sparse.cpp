// Sparse voxelization on the CPU. Points are grouped by voxel, and the groups of all buckets are
// counted, which gives every group its row. If rows are in the order of first points, a hash table
// numbers groups as they appear, unless it would be too large for the caches.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "ceil_div.h"
#include "points/clear_counts.h"
#include "points/group_points.h"
#include "points/point_rows.h"
#include "points/reduce_features.h"
#include "runtime/cpu_state.h"
#include "scratch_layout.h"
#include "voxel_problem.h"

namespace rbc::cpu {

// ---- Points grouped by voxel, in the order of the groups' first points, by a hash table.

// For up to as many points as the caches have room for in a table; more points are sorted faster
// (PointGroups).
class FirstPointGroups {
 public:
  explicit FirstPointGroups(const KeySpace& space);

  static bool suits(const PointClouds& points) { return points.total() <= kMaxPoints; }

  size_t bytes() const;

  // Call once, before the functions below. Writes `dropped`, unless its data is null.
  void group(CpuState& state, void* scratch, const Output<1>& dropped);

  int64_t count() const { return count_; }
  // The number of points in the groups before this one, which may be count().
  int64_t pointsBefore(int64_t group) const { return group == 0 ? 0 : parts_.ends[group - 1]; }
  PointGroup at(int64_t group) const {
    const int64_t begin = pointsBefore(group);
    const int32_t* points = parts_.points + begin;
    const int64_t key = wide_ ? static_cast<int64_t>(keysOf<uint64_t>()[points[0]])
                              : static_cast<int64_t>(keysOf<uint32_t>()[points[0]]);
    return {key, points, parts_.ends[group] - begin};
  }
  // The group of a point of the line, or -1.
  int32_t groupOf(int64_t point) const { return parts_.groups[point]; }

 private:
  static constexpr int64_t kMaxPoints = 1 << 18;
  static constexpr int64_t kChunkPoints = 1 << 12;

  struct Parts {
    std::byte* keys;
    std::byte* table;  // of Slot
    int32_t* groups;   // by point
    int32_t* ends;     // by group: the end of its points in the list
    int32_t* points;   // the list
  };
  template <class Key>
  struct Slot {
    Key key;  // kNoKey: empty
    int32_t group;
  };
  template <class Key>
  Key* keysOf() const {
    return reinterpret_cast<Key*>(parts_.keys);
  }
  int64_t keySize() const { return wide_ ? sizeof(uint64_t) : sizeof(uint32_t); }
  int64_t slotSize() const { return wide_ ? sizeof(Slot<uint64_t>) : sizeof(Slot<uint32_t>); }
  Parts partsOf(ScratchLayout* scratch) const;
  template <class Key>
  void groupBy(CpuState& state, const Output<1>& dropped);
  template <class Key>
  void number(const ThreadPool& pool);
  void list(const ThreadPool& pool);

  const KeySpace& space_;
  int64_t points_;
  bool wide_;  // keys of 64 bits
  int table_bits_ = 1;
  int64_t count_ = 0;
  Parts parts_ = {};
};

FirstPointGroups::FirstPointGroups(const KeySpace& space)
    : space_(space),
      points_(space.points.total()),
      wide_(space.voxels() > static_cast<int64_t>(kNoKey<uint32_t>)) {
  // At most half of the slots are used.
  while (int64_t{1} << table_bits_ < 2 * points_) ++table_bits_;
}

FirstPointGroups::Parts FirstPointGroups::partsOf(ScratchLayout* scratch) const {
  Parts parts;
  parts.keys = scratch->take<std::byte>(points_ * keySize());
  parts.table = scratch->take<std::byte>(slotSize() << table_bits_);
  parts.groups = scratch->take<int32_t>(points_);
  parts.ends = scratch->take<int32_t>(points_ + 1);
  parts.points = scratch->take<int32_t>(points_);
  return parts;
}

size_t FirstPointGroups::bytes() const {
  ScratchLayout scratch(nullptr);
  partsOf(&scratch);
  return scratch.used();
}

void FirstPointGroups::group(CpuState& state, void* scratch, const Output<1>& dropped) {
  ScratchLayout layout(scratch);
  parts_ = partsOf(&layout);
  clearCounts(dropped, space_.points.clouds);
  if (wide_) {
    groupBy<uint64_t>(state, dropped);
  } else {
    groupBy<uint32_t>(state, dropped);
  }
}

template <class Key>
void FirstPointGroups::groupBy(CpuState& state, const Output<1>& dropped) {
  const int64_t chunks = ceilDiv(points_, kChunkPoints);
  const int threads = static_cast<int>(std::clamp<int64_t>(chunks / 4, 1, state.pool.threads()));
  state.pool.parallelFor(chunks, threads, [&](int64_t chunk) {
    const int64_t begin = chunk * kChunkPoints;
    const int64_t end = std::min(points_, begin + kChunkPoints);
    findKeys(state.simd, space_, begin, end, keysOf<Key>() + begin, dropped);
  });
  state.pool.parallelFor(1, 1, [&](int64_t) {
    number<Key>(state.pool);
    list(state.pool);
  });
}

// Finds the group of each point, and the number of points of each group.
template <class Key>
void FirstPointGroups::number(const ThreadPool& pool) {
  const Key* keys = keysOf<Key>();
  auto* table = reinterpret_cast<Slot<Key>*>(parts_.table);
  const uint64_t last = (uint64_t{1} << table_bits_) - 1;
  std::memset(static_cast<void*>(table), 0xFF, static_cast<size_t>(slotSize() << table_bits_));
  int32_t groups = 0;
  pool.inPieces(points_, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Key key = keys[i];
      if (key == kNoKey<Key>) {
        parts_.groups[i] = -1;
        continue;
      }
      uint64_t at = uint64_t{key} * 0x9e3779b97f4a7c15u >> (64 - table_bits_);
      while (table[at].key != key && table[at].key != kNoKey<Key>) at = (at + 1) & last;
      // Branchless: whether a voxel is new cannot be predicted.
      const bool is_new = table[at].key != key;
      const int32_t group = is_new ? groups : table[at].group;
      table[at] = {key, group};
      parts_.groups[i] = group;
      parts_.ends[groups] = is_new ? 0 : parts_.ends[groups];
      groups += is_new ? 1 : 0;
      ++parts_.ends[group];
    }
  });
  count_ = groups;
}

// Replaces counts by the ends of the groups in the list.
void FirstPointGroups::list(const ThreadPool& pool) {
  int32_t begin = 0;
  pool.inPieces(count_, [&](int64_t from, int64_t to) {
    for (int64_t g = from; g < to; ++g) {
      const int32_t size = parts_.ends[g];
      parts_.ends[g] = begin;
      begin += size;
    }
  });
  pool.inPieces(points_, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const int32_t group = parts_.groups[i];
      if (group >= 0) parts_.points[parts_.ends[group]++] = static_cast<int32_t>(i);
    }
  });
}

// ---- The rows of rbcVoxelizeSparse.

class SparseRows {
 public:
  SparseRows(const CpuState& state, const SparseProblem& p);

  // Prefetches the memory of a point that write() reads.
  __attribute__((always_inline)) void prefetch(int32_t point) const {
    if (p_.reduced.data != nullptr || p_.grouped.data != nullptr) reduced_.prefetch(point);
  }

  // Writes the row of a voxel.
  void write(int64_t row, const PointGroup& group) const;
  // Writes to point_to_voxel the row of a voxel's points.
  void writePoints(int64_t row, const PointGroup& group) const;
  // Clears rows begin .. end - 1, which have no voxel.
  void clear(int64_t begin, int64_t end) const;
  // Writes to point_to_voxel that points begin .. end - 1 of the line are in no row.
  void clearPoints(int64_t begin, int64_t end) const;
  // Writes to point_to_voxel the row of one point, which may be -1.
  void writePoint(int32_t point, int64_t row) const;

  // The number of a voxel's points that `counts` reports.
  int64_t counted(const PointGroup& group) const { return std::min(group.count, p_.max_points); }

 private:
  void writeCoords(int64_t row, const VoxelCoords& place) const;
  void writeCount(int64_t row, int64_t count) const;
  FeatureRow reducedAt(int64_t row) const;
  FeatureRow groupedAt(int64_t row, int64_t i) const;

  const ThreadPool& pool_;
  const SparseProblem& p_;
  FeatureReducer reduced_;
  FeatureReducer grouped_;
  PointRows points_;  // of point_to_voxel
};

// ----

namespace {

// Sets all bytes of the elements; adjoining ones at once.
void setBytes(std::byte* data, const int64_t* extent, const int64_t* stride, int rank, int64_t size,
              int byte) {
  int64_t run = 1;
  int outer = rank;
  while (outer > 0 && (extent[outer - 1] == 1 || stride[outer - 1] == run)) run *= extent[--outer];
  if (outer == 0) {
    std::memset(data, byte, static_cast<size_t>(run * size));
    return;
  }
  for (int64_t i = 0; i < extent[0]; ++i) {
    setBytes(data + i * stride[0] * size, extent + 1, stride + 1, rank - 1, size, byte);
  }
}

// Sets extent[0] rows of an output, starting at `begin`.
template <int Rank>
void setRows(const Output<Rank>& out, int64_t begin, const int64_t (&extent)[Rank], int byte) {
  if (out.data == nullptr) return;
  const int64_t size = sizeOf(out.dtype);
  setBytes(static_cast<std::byte*>(out.data) + begin * out.stride[0] * size, extent, out.stride,
           Rank, size, byte);
}

// An output that is not given has no dtype, and any will do.
template <int Rank>
DType floatOf(const Output<Rank>& out) {
  return out.data != nullptr ? out.dtype : DType::F32;
}

}  // namespace

SparseRows::SparseRows(const CpuState& state, const SparseProblem& p)
    : pool_(state.pool),
      p_(p),
      reduced_(state, p.points, p.features, p.reduce, floatOf(p.reduced)),
      grouped_(state, p.points, p.features, p.reduce, floatOf(p.grouped)),
      points_(p.points, p.point_to_voxel.stride[0], p.point_to_voxel.stride[1]) {}

void SparseRows::write(int64_t row, const PointGroup& group) const {
  writeCoords(row, coordsOf(p_.grid, group.key));
  writeCount(row, counted(group));
  if (p_.reduced.data != nullptr) reduced_.reduce(group.points, group.count, reducedAt(row));
  if (p_.grouped.data != nullptr) {
    const int64_t num_points = counted(group);
    const int64_t rest[] = {p_.max_points - num_points, p_.features.count};
    grouped_.copy(group.points, num_points, groupedAt(row, 0), p_.grouped.stride[1]);
    if (rest[0] > 0) {
      setBytes(groupedAt(row, num_points).data, rest, p_.grouped.stride + 1, 2,
               sizeOf(p_.grouped.dtype), 0);
    }
  }
}

void SparseRows::writePoints(int64_t row, const PointGroup& group) const {
  if (p_.point_to_voxel.data == nullptr) return;
  for (int64_t i = 0; i < group.count && !pool_.stopsAt(i); ++i) writePoint(group.points[i], row);
}

void SparseRows::clear(int64_t begin, int64_t end) const {
  constexpr int kMinusOne = 0xFF;  // for every byte; zeros of any dtype are bytes of 0
  const int64_t count = end - begin;
  setRows<2>(p_.coords, begin, {count, 4}, kMinusOne);
  setRows<1>(p_.counts, begin, {count}, 0);
  setRows<2>(p_.reduced, begin, {count, p_.features.count}, 0);
  setRows<3>(p_.grouped, begin, {count, p_.max_points, p_.features.count}, 0);
}

void SparseRows::clearPoints(int64_t begin, int64_t end) const {
  for (int64_t i = begin; i < end; ++i) writePoint(static_cast<int32_t>(i), -1);
}

void SparseRows::writeCoords(int64_t row, const VoxelCoords& place) const {
  auto* coords = static_cast<int32_t*>(p_.coords.data) + row * p_.coords.stride[0];
  const int64_t stride = p_.coords.stride[1];
  coords[0] = static_cast<int32_t>(place.cloud);
  coords[stride] = static_cast<int32_t>(place.x);
  coords[2 * stride] = static_cast<int32_t>(place.y);
  coords[3 * stride] = static_cast<int32_t>(place.z);
}

void SparseRows::writeCount(int64_t row, int64_t count) const {
  if (p_.counts.data == nullptr) return;
  static_cast<int32_t*>(p_.counts.data)[row * p_.counts.stride[0]] = static_cast<int32_t>(count);
}

void SparseRows::writePoint(int32_t point, int64_t row) const {
  const int64_t at = points_[point];
  if (p_.point_to_voxel.dtype == DType::I64) {
    static_cast<int64_t*>(p_.point_to_voxel.data)[at] = row;
  } else {
    static_cast<int32_t*>(p_.point_to_voxel.data)[at] = static_cast<int32_t>(row);
  }
}

FeatureRow SparseRows::reducedAt(int64_t row) const {
  const Output<2>& out = p_.reduced;
  return {static_cast<std::byte*>(out.data) + row * out.stride[0] * sizeOf(out.dtype),
          out.stride[1]};
}

FeatureRow SparseRows::groupedAt(int64_t row, int64_t i) const {
  const Output<3>& out = p_.grouped;
  return {static_cast<std::byte*>(out.data) +
              (row * out.stride[0] + i * out.stride[1]) * sizeOf(out.dtype),
          out.stride[2]};
}

namespace {

constexpr int64_t kChunkRows = 1024;
constexpr int64_t kChunkPoints = 1 << 14;
constexpr int64_t kNumberedRows = 512;

KeySpace spaceOf(const SparseProblem& p) { return {p.points, p.grid, {0, 1, 2}}; }

// The parts of the scratch.
struct Parts {
  Parts(void* data, const SparseProblem& p, const PointGroups& point_groups) : scratch(data) {
    groups = scratch.take<std::byte>(static_cast<int64_t>(point_groups.bytes()));
    if (p.order == VoxelOrder::kFirstPoint) rows = scratch.take<int32_t>(p.points.total());
  }

  ScratchLayout scratch;
  void* groups;
  int32_t* rows = nullptr;  // by first points; null: rows are in the order of groups
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

// The number of voxels and points by outcome.
struct Tally {
  int64_t voxels;
  int64_t kept;
  int64_t points_beyond;    // beyond the capacity
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
  if (p.voxels_over_capacity != nullptr) *p.voxels_over_capacity = tally.voxels - tally.kept;
  if (p.points_over_capacity != nullptr) *p.points_over_capacity = tally.points_beyond;
  if (p.points_over_group != nullptr) *p.points_over_group = tally.points_left_out;
}

}  // namespace

extern const Operation<SparseProblem> kVoxelizeSparse = {bytes, run};

}  // namespace rbc::cpu
