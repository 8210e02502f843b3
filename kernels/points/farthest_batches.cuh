// Blocks agree on several points a round, where that is certain to give what one after the other would.
//
// Each warp tells of its best point, and how far any other of its points may be once that one is taken. After
// the best of all is taken, the next best is the farthest of all as well if it is no nearer to the first than
// it was to those before, and if no other point of the first one's warp may be as far.
#pragma once

#include "points/farthest_blocks.cuh"

namespace rbc::cuda {
namespace farthest {

constexpr int kMaxBatch = 8;  // points that a round takes: a lane has a pair of them

// Some points: the best of them, and how far another may be once that one is taken.
template <class Number>
struct alignas(16) Entry {
  Number position[3];
  typename Order<Number>::Key rest;
  Candidate<Number> best;  // by index

  static __device__ Entry none() { return {{}, 0, kNoCandidate<Number>}; }

  // With other points.
  __device__ void join(const Entry& other) {
    const auto rest_then = max(rest, other.best.key);
    const auto rest_else = max(other.rest, best.key);
    if (isBefore(other.best, best)) {
      *this = other;
      rest = rest_else;
    } else {
      rest = rest_then;
    }
  }
};

template <class Number>
__device__ Entry<Number> shuffled(const Entry<Number>& own, int lane) {
  Entry<Number> entry;
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) {
    entry.position[axis] = __shfl_sync(~0u, own.position[axis], lane);
  }
  entry.rest = __shfl_sync(~0u, own.rest, lane);
  entry.best = {__shfl_sync(~0u, own.best.key, lane), __shfl_sync(~0u, own.best.label, lane)};
  return entry;
}

struct BatchMemory {
  int first[2][kMaxBatch];  // the entries whose points are the best, in order
};

template <class Number, int kThreads>
class Batches {
 public:
  static constexpr int kWarps = kThreads / 32;

  // Of entries in shared memory. Twice, in turns.
  __host__ __device__ static constexpr size_t entryBytes(int cluster) {
    return 2 * sizeof(Entry<Number>) * kWarps * cluster;
  }

  __device__ Batches(Blocks<kThreads>& blocks, BatchMemory* memory, Entry<Number>* entries)
      : blocks_(blocks), memory_(memory), entries_(entries) {
    pair_earlier_ = static_cast<int>(threadIdx.x) % 32;
    while (pair_earlier_ >= pair_later_) pair_earlier_ -= pair_later_++;
  }

  // Takes some points, one at least and `most` or kMaxBatch at most, by entries with which all of the cloud
  // have been told of. Returns how many: 0 where no entry has a point.
  __device__ int takeSome(const Entry<Number>& own, int most) {
    blocks_.nextTurn();
    tell(own);
    const int points = sortFirst();
    __syncthreads();
    // A lane for each pair of the first ones: may the later one be taken after the other?
    int batch = min(points, kMaxBatch);
    if (pair_later_ < batch) {
      const Entry<Number>& earlier = taken(pair_earlier_);
      const Entry<Number>& later = taken(pair_later_);
      const auto apart = Order<Number>::of(squaredDistance(later.position, earlier.position));
      if (apart < later.best.key || earlier.rest >= later.best.key) batch = pair_later_;
    }
    batch = __reduce_min_sync(~0u, batch);
    return min(most, batch);
  }

  // Of those that the last takeSome() took, until the next one.
  __device__ const Entry<Number>& taken(int number) const {
    return entriesOfTurn()[memory_->first[blocks_.turn()][number]];
  }

 private:
  __device__ Entry<Number>* entriesOfTurn() const {
    return entries_ + blocks_.turn() * blocks_.count() * kWarps;
  }

  // All blocks have all entries afterwards.
  __device__ void tell(const Entry<Number>& own) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    if (blocks_.count() == 1) {
      if (lane == 0) entriesOfTurn()[warp] = own;
      __syncthreads();
      return;
    }
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) {
      blocks_.expect(static_cast<uint32_t>(sizeof(Entry<Number>)) * kWarps * blocks_.count());
    }
    // A lane for each block to tell.
    const Entry<Number> of_warp = shuffled(own, 0);
    if (lane < blocks_.count()) {
      blocks_.send(of_warp, &entriesOfTurn()[blocks_.rank() * kWarps + warp], lane);
    }
    blocks_.await();
#endif
  }

  // Each warp finds the places of some entries. Returns how many have a point.
  __device__ int sortFirst() {
    constexpr int kOwn = 4;  // at once
    const Entry<Number>* entries = entriesOfTurn();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int count = blocks_.count() * kWarps;
    int points = 0;
    for (int first = static_cast<int>(threadIdx.x) / 32; first < count; first += kOwn * kWarps) {
      Candidate<Number> own[kOwn];
      int before[kOwn] = {};
#pragma unroll
      for (int i = 0; i < kOwn; ++i) own[i] = entries[min(first + i * kWarps, count - 1)].best;
      points = 0;
      for (int at = lane; at < count; at += 32) {
        const Candidate<Number> other = entries[at].best;
        points += other.key > 0 ? 1 : 0;
#pragma unroll
        for (int i = 0; i < kOwn; ++i) before[i] += isBefore(other, own[i]) ? 1 : 0;
      }
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        before[i] = __reduce_add_sync(~0u, before[i]);
        if (lane == 0 && first + i * kWarps < count && own[i].key > 0 && before[i] < kMaxBatch) {
          memory_->first[blocks_.turn()][before[i]] = first + i * kWarps;
        }
      }
    }
    return __reduce_add_sync(~0u, points);
  }

  Blocks<kThreads>& blocks_;
  BatchMemory* memory_;
  Entry<Number>* entries_;
  int pair_earlier_;  // of the lane, by place
  int pair_later_ = 1;
};

}  // namespace farthest
}  // namespace rbc::cuda
