// A block's part of a cloud that is too large for a multiprocessor, in the workspace: sorted into
// buckets, one per thread. The warps divide the buckets that points reach.
#pragma once

#include "points/farthest_buckets.cuh"
#include "runtime/aligned_vec.cuh"

namespace rbc::cuda {
namespace farthest {

// ---- Blocks agree on several points per round, if these are certain to be the same as when taken
// one by one.
//
// Each warp publishes its best point, and an upper bound of the distance of its other points once
// that one is taken. After the best of all is taken, the next best is the farthest of all as well
// if it is not nearer to the first than to the points before, and if no other point of the first
// one's warp may be as far.

constexpr int kMaxBatch = 8;  // points per round: a lane checks a pair of them

// The best of some points, and how far another may be once that one is taken.
template <class Number>
struct alignas(16) Entry {
  Number position[3];
  typename Order<Number>::Key rest;
  Candidate<Number> best;  // by index

  static __device__ Entry none() { return {{}, 0, kNoCandidate<Number>}; }

  // Joins the entry of other points.
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
  int first[2][kMaxBatch];  // the entries with the best points, in order
};

template <class Number, int kThreads>
class Batches {
 public:
  static constexpr int kWarps = kThreads / 32;

  // Bytes of the entries in shared memory; twice, since they alternate.
  __host__ __device__ static constexpr size_t entryBytes(int cluster) {
    return 2 * sizeof(Entry<Number>) * kWarps * cluster;
  }

  __device__ Batches(Blocks<kThreads>& blocks, BatchMemory* memory, Entry<Number>* entries)
      : blocks_(blocks), memory_(memory), entries_(entries) {
    pair_earlier_ = static_cast<int>(threadIdx.x) % 32;
    while (pair_earlier_ >= pair_later_) pair_earlier_ -= pair_later_++;
  }

  // Takes at least one point and at most `most` or kMaxBatch, given the entries of all points of
  // the cloud. Returns the number of points taken: 0 if no entry has a point.
  __device__ int takeSome(const Entry<Number>& own, int most) {
    blocks_.nextTurn();
    publish(own);
    const int points = sortFirst();
    __syncthreads();
    // A lane for each pair of the first ones: checks whether the later one can be taken after the
    // earlier one.
    int batch = min(points, kMaxBatch);
    if (pair_later_ < batch) {
      const Entry<Number>& earlier = taken(pair_earlier_);
      const Entry<Number>& later = taken(pair_later_);
      const auto apart = Order<Number>::keyOf(squaredDistance(later.position, earlier.position));
      if (apart < later.best.key || earlier.rest >= later.best.key) batch = pair_later_;
    }
    batch = __reduce_min_sync(~0u, batch);
    return min(most, batch);
  }

  // A point that the last takeSome() took, valid until the next one.
  __device__ const Entry<Number>& taken(int number) const {
    return entriesOfTurn()[memory_->first[blocks_.turn()][number]];
  }

 private:
  __device__ Entry<Number>* entriesOfTurn() const {
    return entries_ + blocks_.turn() * blocks_.count() * kWarps;
  }

  // Publishes an entry: afterwards all blocks have all entries.
  __device__ void publish(const Entry<Number>& own) {
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
    // A lane for each block to send to.
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

constexpr uint32_t kFour = 4;               // points per lane
constexpr uint32_t kTogether = 32 * kFour;  // points per warp

// By place; positions have an array per axis.
template <class Number>
struct PointArrays {
  Number* position[3];
  Number* distance;  // negative without a point
  uint32_t* order;   // the block's points by their original index
};

template <class Number_, int kThreads_>
struct InWorkspace {
  using Number = Number_;
  static constexpr int kThreads = kThreads_;
  static constexpr uint32_t kRoom = 0;  // nothing is kept
};

// The shared memory of a block.
template <class Form>
struct WorkspaceMemory {
  using Number = typename Form::Number;
  struct Reached {
    uint32_t bucket;
    uint32_t by;  // bits: which of the taken points reach it
  };
  struct Buckets {
    Entry<Number> farthest[Form::kThreads];
    Reached reached[Form::kThreads];  // in any order
    uint32_t count;                   // number of those
  };
  union {
    uint32_t cells[kCells];  // only until points are in order
    Buckets buckets;
  };
};

template <class Form>
class WorkspaceCloud {
 public:
  using Number = typename Form::Number;
  static constexpr int kThreads = Form::kThreads;
  static constexpr int kWarps = kThreads / 32;
  using Reached = typename WorkspaceMemory<Form>::Reached;

  // `room` is a multiple of kThreads. pointAt(at, point) returns whether a point of the block
  // exists, and its position.
  template <class PointAt>
  __device__ WorkspaceCloud(WorkspaceMemory<Form>* memory, SpatialMemory<Number>* spatial,
                            const Share& share, const PointArrays<Number>& arrays, uint32_t room,
                            PointAt&& pointAt)
      : buckets_(&memory->buckets), first_(share.first), arrays_(arrays), room_(room) {
    orderInSpace<Number, kThreads>(room, pointAt, memory->cells, arrays.order, spatial);
    bucket_points_ = kTogether * ((room - 1) / (kTogether * kThreads) + 1);
    for (uint32_t first = kFour * threadIdx.x; first < room; first += kFour * kThreads) {
      // A lane's points ascend: among equally far points the first one is taken.
      uint32_t at[kFour];
#pragma unroll
      for (uint32_t k = 0; k < kFour; ++k) at[k] = arrays.order[first + k];
      sortAscending(at);
#pragma unroll
      for (uint32_t k = 0; k < kFour; ++k) {
        Number point[3] = {};
        const bool is_there = pointAt(at[k], point);
        arrays.order[first + k] = at[k];
        for (int axis = 0; axis < 3; ++axis) arrays.position[axis][first + k] = point[axis];
        arrays.distance[first + k] = is_there ? static_cast<Number>(INFINITY) : Number(-1);
      }
    }
    __syncthreads();
    findBoxes();
  }

  __device__ bool isReached(const Number (&taken)[3]) const {
    return isReachedBy(taken, box_, reach_);
  }

  // Lowers distances by taken points; bits of `reaching` say which of them reach the lane's bucket.
  // If any does, the warp's entry, in its first lane, changes. Called by all threads.
  template <class Batches>
  __device__ void lower(unsigned reaching, const Batches& batches, Entry<Number>* entry) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const unsigned reached = __ballot_sync(~0u, reaching != 0);
    uint32_t place = 0;
    if (lane == 0 && reached != 0) place = atomicAdd(&buckets_->count, __popc(reached));
    place = __shfl_sync(~0u, place, 0) + __popc(reached & ((1u << lane) - 1));
    if (reaching != 0) buckets_->reached[place] = {bucketOf(lane), reaching};
    __syncthreads();
    lowerReached(batches);
    __syncthreads();
    if (threadIdx.x == 0) buckets_->count = 0;
    if (reached == 0) return;

    Entry<Number> own = buckets_->farthest[bucketOf(lane)];
    if (reaching != 0) reach_ = Order<Number>::distance(own.best.key);
    const Candidate<Number> best = bestOfWarp<Number>(own.best);
    const int holder = __ffs(__ballot_sync(~0u, own.best.label == best.label)) - 1;
    const auto rest = mostOfWarp(lane == holder ? own.rest : own.best.key);
    *entry = shuffled(own, holder);
    entry->rest = rest;
    if (lane != 0) *entry = Entry<Number>::none();
  }

 private:
  // Neighbouring buckets belong to different warps: one point often reaches several of them.
  static __device__ uint32_t bucketOf(uint32_t lane) { return lane * kWarps + threadIdx.x / 32; }

  // The end of a bucket's points; the bucket may begin after the last point.
  __device__ uint32_t endOf(uint32_t bucket) const {
    return min((bucket + 1) * bucket_points_, room_);
  }

  __device__ void findBoxes() {
    const uint32_t own_lane = threadIdx.x % 32;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const uint32_t bucket = bucketOf(lane);
      const uint32_t end = endOf(bucket);
      Box<Number> box = Box<Number>::none();
      for (uint32_t place = bucket * bucket_points_ + own_lane; place < end; place += 32) {
        const Number point[3] = {arrays_.position[0][place], arrays_.position[1][place],
                                 arrays_.position[2][place]};
        if (arrays_.distance[place] > 0) box.add(point);
      }
      box.join();
      if (own_lane == lane) box_ = box;
    }
    reach_ = reachAtFirst(box_);
    buckets_->farthest[threadIdx.x] = Entry<Number>::none();
    if (threadIdx.x == 0) buckets_->count = 0;
  }

  using Four = AlignedVec<Number, kFour>;
  struct Loaded {
    Four position[3];
    Four distance;
    AlignedVec<uint32_t, kFour> order;
  };
  __device__ Loaded load(uint32_t place) const {
    const uint32_t first = place + kFour * (threadIdx.x % 32);
    Loaded loaded;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      loaded.position[axis] = *reinterpret_cast<const Four*>(arrays_.position[axis] + first);
    }
    loaded.distance = *reinterpret_cast<const Four*>(arrays_.distance + first);
    loaded.order = *reinterpret_cast<const AlignedVec<uint32_t, kFour>*>(arrays_.order + first);
    return loaded;
  }

  // The warp's share of the buckets that are reached, kTogether points at a time. The next part is
  // loaded while one is computed, to hide the memory's latency.
  template <class Batches>
  __device__ __forceinline__ void lowerReached(const Batches& batches) {
    const uint32_t count = buckets_->count;
    uint32_t number = threadIdx.x / 32;
    if (number >= count) return;
    Reached at = buckets_->reached[number];
    uint32_t place = at.bucket * bucket_points_;
    Loaded points = load(place);
    Entry<Number> farthest = Entry<Number>::none();
    while (number < count) {
      Reached next = at;
      uint32_t next_place = place + kTogether;
      const bool is_last = next_place >= endOf(at.bucket);
      if (is_last) number += kWarps;
      if (is_last && number < count) {
        next = buckets_->reached[number];
        next_place = next.bucket * bucket_points_;
      }
      Loaded coming;
      if (number < count) coming = load(next_place);
      farthest.join(lowerSome(place, points, at.by, batches));
      if (is_last) {
        if (threadIdx.x % 32 == 0) buckets_->farthest[at.bucket] = farthest;
        farthest = Entry<Number>::none();
      }
      at = next;
      place = next_place;
      points = coming;
    }
  }

  // Lowers a part of a bucket by taken points: bits of `by`.
  template <class Batches>
  __device__ __forceinline__ Entry<Number> lowerSome(uint32_t place, const Loaded& points,
                                                     unsigned by, const Batches& batches) {
    Number point[kFour][3];
    Four distance = points.distance;
#pragma unroll
    for (uint32_t k = 0; k < kFour; ++k) {
      for (int axis = 0; axis < 3; ++axis) point[k][axis] = points.position[axis].element[k];
    }
#pragma unroll 1
    for (; by != 0; by &= by - 1) {
      const auto& taken = batches.taken(__ffs(by) - 1).position;
      const Number position[3] = {taken[0], taken[1], taken[2]};
#pragma unroll
      for (uint32_t k = 0; k < kFour; ++k) {
        distance.element[k] = least(squaredDistance(point[k], position), distance.element[k]);
      }
    }
    *reinterpret_cast<Four*>(arrays_.distance + place + kFour * (threadIdx.x % 32)) = distance;
    // A lane's points ascend: among equally far points the first one is taken.
    Number most = distance.element[0];
    uint32_t number = points.order.element[0];
    Entry<Number> farthest;
    for (int axis = 0; axis < 3; ++axis) farthest.position[axis] = point[0][axis];
#pragma unroll
    for (uint32_t k = 1; k < kFour; ++k) {
      if (distance.element[k] > most) {
        most = distance.element[k];
        number = points.order.element[k];
        for (int axis = 0; axis < 3; ++axis) farthest.position[axis] = point[k][axis];
      }
    }
    const Candidate<Number> best = bestOfWarp<Number>({Order<Number>::keyOf(most), number});
    const int holder = __ffs(__ballot_sync(~0u, number == best.label)) - 1;
    Number rest[kFour];
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      farthest.position[axis] = __shfl_sync(~0u, farthest.position[axis], holder);
    }
#pragma unroll
    for (uint32_t k = 0; k < kFour; ++k) {
      rest[k] = least(squaredDistance(point[k], farthest.position), distance.element[k]);
    }
    farthest.rest = mostOfWarp(
        Order<Number>::keyOf(largest(largest(rest[0], rest[1]), largest(rest[2], rest[3]))));
    farthest.best = {best.key, first_ + best.label};
    return farthest;
  }

  typename WorkspaceMemory<Form>::Buckets* buckets_;
  uint32_t first_;  // of the block
  PointArrays<Number> arrays_;
  uint32_t room_;
  uint32_t bucket_points_;
  Box<Number> box_;  // of the lane's bucket
  Number reach_;     // its reach: see reachAtFirst()
};

}  // namespace farthest

}  // namespace rbc::cuda
