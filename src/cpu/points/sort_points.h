// Sorts the points of clouds by voxel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "points/point_keys.h"
#include "runtime/cpu_state.h"
#include "scratch_layout.h"

namespace rbc::cpu {

template <class Key>
struct PointEntry {
  Key key;
  int32_t point;
};

// Sorts the points that have a voxel by key, and points with equal keys by index. A bucket is a
// range of keys: one pass moves points to their buckets, and each bucket is then sorted by one
// thread.
class PointSort {
 public:
  // The lowest `unsorted_bits` of keys are ignored. Makes at least `least_buckets`, as far as the
  // keys allow it.
  PointSort(const KeySpace& space, int64_t least_buckets, int unsorted_bits, int threads);

  // The number of bits of a key that distinguish voxels of a bucket.
  static int bitsInBucket(const KeySpace& space, int64_t least_buckets);

  // The bytes of scratch that it needs.
  size_t bytes() const;

  // Call once, before the functions below. Writes `dropped`, unless its data is null: the number of
  // each cloud's points without a voxel.
  void sort(CpuState& state, void* scratch, const Output<1>& dropped);

  int64_t buckets() const { return buckets_; }
  // Threads that pay off for this number of points.
  int threads() const { return threads_; }
  // The keys of a bucket start here and end at the first key of the next bucket.
  int64_t firstKey(int64_t bucket) const {
    return bucket < buckets_ ? bucket << shift_ : space_.voxels();
  }
  // The number of a bucket's points.
  int64_t count(int64_t bucket) const { return begins_[bucket + 1] - begins_[bucket]; }

  // Calls visit(PointEntry<...>* entries, std::byte* free) for a bucket's points; `free` is memory
  // of the entries' size. The last reader of the entries may overwrite them.
  template <class Visitor>
  decltype(auto) visit(int64_t bucket, Visitor&& visitor) const {
    std::byte* free = free_ + begins_[bucket] * entrySize();
    return wide_ ? visitor(entriesOf<uint64_t>(bucket), free)
                 : visitor(entriesOf<uint32_t>(bucket), free);
  }

 private:
  struct Parts;

  template <class Key>
  PointEntry<Key>* entriesOf(int64_t bucket) const {
    return static_cast<PointEntry<Key>*>(sorted_) + begins_[bucket];
  }
  int64_t entrySize() const {
    return wide_ ? sizeof(PointEntry<uint64_t>) : sizeof(PointEntry<uint32_t>);
  }
  Parts partsOf(ScratchLayout* scratch) const;
  template <class Key>
  void sortAs(CpuState& state, const Parts& parts, const Output<1>& dropped);
  void placeBuckets(const Parts& parts);
  template <class Key>
  void sortBucket(const ThreadPool& pool, const Parts& parts, int64_t bucket) const;

  const KeySpace& space_;
  int64_t points_;
  bool wide_;  // keys of 64 bits
  int threads_;
  int shift_;  // maps a key to its bucket
  int64_t buckets_;
  int unsorted_bits_;
  int passes_;  // passes that sort a bucket
  int64_t chunk_points_;
  int64_t chunks_;
  // In the scratch.
  void* sorted_ = nullptr;  // entries
  std::byte* free_ = nullptr;
  int64_t* begins_ = nullptr;  // of buckets, and the end
};

}  // namespace rbc::cpu
