#include "points/sort_points.h"

#include <algorithm>
#include <cstddef>

#include "ceil_div.h"
#include "points/clear_counts.h"

namespace rbc::cpu {
namespace {

// Points of a bucket that can be sorted in the first-level cache.
constexpr int64_t kBucketPoints = 1024;
// The maximum number of buckets that points are scattered to at once.
constexpr int64_t kMaxBuckets = 1024;
constexpr int kMaxDigitBits = 8;  // of a pass
// Work that pays off for one more thread: see kThreadBytes in fuse.cpp.
constexpr int64_t kThreadPoints = 2048;
constexpr int64_t kChunksPerThread = 4;
constexpr int64_t kMinChunk = 512;
constexpr int64_t kMaxChunk = 1 << 20;  // about 10 ms, between checks for an interrupt

// The bits of the numbers 0 .. count - 1.
int bitsOf(int64_t count) {
  int bits = 0;
  while ((count - 1) >> bits != 0) ++bits;
  return bits;
}

bool isWide(const KeySpace& space) {
  return space.voxels() > static_cast<int64_t>(kNoKey<uint32_t>);
}

}  // namespace

struct PointSort::Parts {
  std::byte* entries[2];  // sorted from one to the other and back
  uint32_t* counts;       // [chunks][buckets]: number of points, then the place of the next one
  int64_t* begins;
};

PointSort::PointSort(const KeySpace& space, int64_t least_buckets, int unsorted_bits, int threads)
    : space_(space), points_(space.points.total()) {
  const int64_t voxels = std::max<int64_t>(space.voxels(), 1);
  wide_ = isWide(space);
  threads_ = static_cast<int>(std::clamp<int64_t>(points_ / kThreadPoints, 1, threads));
  shift_ = bitsInBucket(space, least_buckets);
  buckets_ = ((voxels - 1) >> shift_) + 1;
  unsorted_bits_ = std::min(unsorted_bits, shift_);
  passes_ = static_cast<int>(ceilDiv(shift_ - unsorted_bits_, kMaxDigitBits));
  // No more counts than points.
  chunk_points_ = std::max(
      {std::min(ceilDiv(points_, threads_ * kChunksPerThread), kMaxChunk), buckets_, kMinChunk});
  chunks_ = ceilDiv(points_, chunk_points_);
}

int PointSort::bitsInBucket(const KeySpace& space, int64_t least_buckets) {
  const int64_t voxels = std::max<int64_t>(space.voxels(), 1);
  const int64_t points = space.points.total();
  const int64_t wanted = std::max<int64_t>({points / kBucketPoints, least_buckets, 1});
  // A shift by all bits of a key is undefined: keys of at least 2^31, in 32 bits, need two buckets.
  const int most_shift = (isWide(space) ? 64 : 32) - 1;
  return std::clamp(bitsOf(voxels) - bitsOf(std::min(wanted, kMaxBuckets)), 0, most_shift);
}

PointSort::Parts PointSort::partsOf(ScratchLayout* scratch) const {
  Parts parts;
  parts.entries[0] = scratch->take<std::byte>(points_ * entrySize());
  parts.entries[1] = scratch->take<std::byte>(points_ * entrySize());
  parts.counts = scratch->take<uint32_t>(chunks_ * buckets_);
  parts.begins = scratch->take<int64_t>(buckets_ + 1);
  return parts;
}

size_t PointSort::bytes() const {
  ScratchLayout scratch(nullptr);
  partsOf(&scratch);
  return scratch.used();
}

void PointSort::sort(CpuState& state, void* scratch, const Output<1>& dropped) {
  ScratchLayout taken(scratch);
  const Parts parts = partsOf(&taken);
  sorted_ = parts.entries[passes_ % 2];
  free_ = parts.entries[(passes_ + 1) % 2];
  begins_ = parts.begins;
  clearCounts(dropped, space_.points.clouds);
  if (wide_) {
    sortAs<uint64_t>(state, parts, dropped);
  } else {
    sortAs<uint32_t>(state, parts, dropped);
  }
}

template <class Key>
void PointSort::sortAs(CpuState& state, const Parts& parts, const Output<1>& dropped) {
  auto* keys = reinterpret_cast<Key*>(parts.entries[1]);  // of all points
  const auto endOf = [&](int64_t chunk) { return std::min(points_, (chunk + 1) * chunk_points_); };
  state.pool.parallelFor(chunks_, threads_, [&](int64_t chunk) {
    const int64_t begin = chunk * chunk_points_;
    findKeys(state.simd, space_, begin, endOf(chunk), keys + begin, dropped);
    uint32_t* counts = parts.counts + chunk * buckets_;
    std::fill_n(counts, buckets_, 0u);
    for (int64_t i = begin; i < endOf(chunk); ++i) {
      if (keys[i] != kNoKey<Key>) ++counts[keys[i] >> shift_];
    }
  });
  placeBuckets(parts);
  auto* entries = reinterpret_cast<PointEntry<Key>*>(parts.entries[0]);
  state.pool.parallelFor(chunks_, threads_, [&](int64_t chunk) {
    uint32_t* places = parts.counts + chunk * buckets_;
    for (int64_t i = chunk * chunk_points_; i < endOf(chunk); ++i) {
      if (keys[i] == kNoKey<Key>) continue;
      entries[places[keys[i] >> shift_]++] = {keys[i], static_cast<int32_t>(i)};
    }
  });
  if (passes_ == 0) return;
  state.pool.parallelFor(buckets_, threads_,
                         [&](int64_t bucket) { sortBucket<Key>(state.pool, parts, bucket); });
}

// Replaces counts by places: by bucket, then by chunk.
void PointSort::placeBuckets(const Parts& parts) {
  std::fill_n(begins_, buckets_ + 1, 0);
  for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
    uint32_t* counts = parts.counts + chunk * buckets_;
    for (int64_t b = 0; b < buckets_; ++b) {
      const uint32_t count = counts[b];
      counts[b] = static_cast<uint32_t>(begins_[b]);  // of earlier chunks
      begins_[b] += count;
    }
  }
  int64_t begin = 0;
  for (int64_t b = 0; b <= buckets_; ++b) {
    const int64_t count = begins_[b];
    begins_[b] = begin;
    begin += count;
  }
  for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
    uint32_t* places = parts.counts + chunk * buckets_;
    for (int64_t b = 0; b < buckets_; ++b) places[b] += static_cast<uint32_t>(begins_[b]);
  }
}

// From the lowest digit up, each pass stable.
template <class Key>
void PointSort::sortBucket(const ThreadPool& pool, const Parts& parts, int64_t bucket) const {
  const int64_t count = this->count(bucket);
  if (count == 0) return;
  auto* from = reinterpret_cast<PointEntry<Key>*>(parts.entries[0]) + begins_[bucket];
  auto* to = reinterpret_cast<PointEntry<Key>*>(parts.entries[1]) + begins_[bucket];
  int low = unsorted_bits_;
  for (int pass = 1; pass <= passes_; ++pass) {
    const int high = unsorted_bits_ + (shift_ - unsorted_bits_) * pass / passes_;
    const int digits = 1 << (high - low);
    const auto digitOf = [&](const PointEntry<Key>& entry) {
      return static_cast<uint32_t>(entry.key >> low) & static_cast<uint32_t>(digits - 1);
    };
    uint32_t places[1 << kMaxDigitBits];
    std::fill_n(places, digits, 0u);
    const bool counted = pool.inPieces(count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++places[digitOf(from[i])];
    });
    if (!counted) return;
    uint32_t place = 0;
    for (int digit = 0; digit < digits; ++digit) {
      const uint32_t next = place + places[digit];
      places[digit] = place;
      place = next;
    }
    const bool taken = pool.inPieces(count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[places[digitOf(from[i])]++] = from[i];
    });
    if (!taken) return;
    std::swap(from, to);
    low = high;
  }
}

}  // namespace rbc::cpu
