// The points of clouds grouped by voxel, in the order of the groups' first points, by a hash table.
#pragma once

#include <cstddef>

#include "points/group_points.h"

namespace rbc::cpu {

// For as many points as the caches hold a table for: more are sorted sooner (PointGroups).
class FirstPointGroups {
 public:
  explicit FirstPointGroups(const KeySpace& space);

  static bool suits(const PointClouds& points) { return points.total() <= kMaxPoints; }

  size_t bytes() const;

  // To be called once, before all that follows. Writes `dropped`, unless its data is null.
  void group(CpuState& state, void* scratch, const Output<1>& dropped);

  int64_t count() const { return count_; }
  // Of the groups before this one, which may be count(): how many points they have.
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

  struct Parts {
    std::byte* keys;
    std::byte* table;  // of Slot
    int32_t* groups;   // by point
    int32_t* ends;     // by group: where its points end in the list
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

}  // namespace rbc::cpu
