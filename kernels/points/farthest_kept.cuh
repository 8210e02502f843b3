// A block's part of a cloud that fits in a multiprocessor: distances in registers, and positions as
// well if there is room.
#pragma once

#include <cstddef>

#include "points/farthest_buckets.cuh"
#include "runtime/shared_memory.cuh"

namespace rbc::cuda {
namespace farthest {

// ---- The candidates of the buckets of a block for the next point: the farthest point of each.

// A rank is the upper bits of a distance, with a number below them. One instruction finds the
// maximum of a warp's ranks and its owner: only if another rank has the same upper bits, distances
// must be compared.
constexpr int32_t kRankNumbers = 64;

inline __device__ int32_t upperBits(float distance) { return bitCast<int32_t>(distance); }
inline __device__ int32_t upperBits(double distance) {
  return static_cast<int32_t>(bitCast<int64_t>(distance) >> 32);
}
template <class Number>
__device__ int32_t rankOf(Number distance, int number) {
  return (upperBits(distance) & -kRankNumbers) | number;
}
inline __device__ int numberOf(int32_t rank) { return rank & (kRankNumbers - 1); }

// Whether a rank is not the maximum, but its distance may be.
inline __device__ bool mayBeMost(int32_t rank, int32_t most) {
  return (rank >= (most & -kRankNumbers)) & (rank != most);
}

template <class Number>
struct alignas(4 * sizeof(Number)) IndexedPoint {
  Number position[3];
  typename Order<Number>::Key index;  // in the cloud
};

// For a block with kBuckets buckets.
template <class Number, int kThreads, int kBuckets>
struct OfferMemory {
  static_assert(kBuckets <= 32 && 2 * kBuckets <= kRankNumbers);
  struct alignas(8 * sizeof(Number)) Offer {
    IndexedPoint<Number> point;
    Candidate<Number> candidate;
  };
  // By place. A bucket has two and alternates between them: other threads may still read the
  // previous offer.
  Offer offers[2 * kBuckets];
  struct Turn {
    int32_t ranks[32];         // by bucket; their numbers are places
    int32_t unread[kThreads];  // written by threads without a rank, which saves a branch
  } turns[2];
};

template <class Number, int kThreads, int kBuckets>
class Offers {
 public:
  using Memory = OfferMemory<Number, kThreads, kBuckets>;

  // The thread publishes a bucket's rank, or none (-1). The caller must then synchronize.
  __device__ Offers(Memory* memory, int bucket) : memory_(memory) {
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < 32) memory->turns[0].ranks[thread] = memory->turns[1].ranks[thread] = INT32_MIN;
    for (int i = thread; i < 2 * kBuckets; i += kThreads) memory->offers[i] = {};
    typename Memory::Turn& turn = memory->turns[0];
    to_ = sharedAddress(bucket < 0 ? &turn.unread[thread] : &turn.ranks[bucket]);
    from_ = sharedAddress(&turn.ranks[thread % 32]);
  }

  // Called by one lane.
  __device__ void offer(bool does, int place, const IndexedPoint<Number>& point,
                        typename Order<Number>::Key key) const {
    using Offer = typename Memory::Offer;
    const uint32_t to = sharedAddress(memory_->offers + place);
    storeSharedIf(does, to, point.position, point.index);
    storeSharedIf(does, to + static_cast<uint32_t>(offsetof(Offer, candidate)), key,
                  static_cast<uint32_t>(point.index));
  }

  // Called by all threads, before a barrier.
  __device__ void publish(int32_t rank) const { storeShared(to_ + turn_, rank); }

  struct Ranks {
    int32_t own;  // of the lane's bucket
    int32_t most;

    __device__ bool mayOtherBeMost() const { return mayBeMost(own, most); }
  };
  // All published ranks; call once, after the barrier.
  __device__ Ranks ranks() {
    const int32_t own = loadShared(from_ + turn_);
    turn_ ^= sizeof(typename Memory::Turn);
    return {own, __reduce_max_sync(~0u, own)};
  }

  // The farthest of all, if no other one may be farther.
  __device__ Winner<Number> best(const Ranks& ranks) const { return at(numberOf(ranks.most)); }

  // The first among the farthest of all.
  __device__ Winner<Number> firstBest(const Ranks& ranks) const {
    Candidate<Number> own = kNoCandidate<Number>;
    const int place = numberOf(ranks.own);
    if (ranks.own == ranks.most || ranks.mayOtherBeMost()) own = memory_->offers[place].candidate;
    const Candidate<Number> best = bestOfWarp<Number>(own);
    const unsigned holders = __ballot_sync(~0u, own.key == best.key && own.label == best.label);
    return at(__shfl_sync(~0u, place, __ffs(holders) - 1));
  }

 private:
  __device__ Winner<Number> at(int place) const {
    const typename Memory::Offer& offer = memory_->offers[place];
    const Number(&x)[3] = offer.point.position;
    return {{x[0], x[1], x[2]}, offer.candidate};
  }

  Memory* memory_;
  uint32_t to_;  // addresses of ranks
  uint32_t from_;
  uint32_t turn_ = 0;  // added to these
};

// The layout of a block's points. A warp has kBuckets buckets, with kSlots points per lane.
template <class Number_, int kThreads_, int kBuckets_, int kSlots_, bool kInRegisters_>
struct Kept {
  using Number = Number_;
  static constexpr int kThreads = kThreads_;
  static constexpr int kBuckets = kBuckets_;
  static constexpr int kSlots = kSlots_;
  static constexpr bool kInRegisters = kInRegisters_;  // positions as well
  static constexpr int kPoints = kBuckets * kSlots;
  static constexpr uint32_t kRoom = kThreads * kPoints;
};

// The points of a block by place: for offers only, or also for computing.
template <class Form, bool = Form::kInRegisters>
struct KeptPoints {
  using Number = typename Form::Number;
  IndexedPoint<Number> points[Form::kRoom];

  __device__ void set(int place, const Number (&x)[3], uint32_t first, uint32_t at) {
    points[place] = {{x[0], x[1], x[2]}, first + at};
  }
  __device__ IndexedPoint<Number> get(int place, uint32_t) const { return points[place]; }
};
template <class Form>
struct KeptPoints<Form, false> {
  using Number = typename Form::Number;
  Number position[3][Form::kRoom];
  uint16_t order[Form::kRoom];  // the block's points by their original index

  __device__ void set(int place, const Number (&x)[3], uint32_t, uint32_t at) {
    for (int axis = 0; axis < 3; ++axis) position[axis][place] = x[axis];
    order[place] = static_cast<uint16_t>(at);
  }
  __device__ IndexedPoint<Number> get(int place, uint32_t first) const {
    return {{position[0][place], position[1][place], position[2][place]}, first + order[place]};
  }
};

// The shared memory of a block.
template <class Form>
struct KeptMemory {
  union {
    struct {  // only until points are in order
      uint32_t cells[kCells];
      uint16_t order[Form::kRoom];
    } sorting;
    KeptPoints<Form> kept;
  };
  OfferMemory<typename Form::Number, Form::kThreads, Form::kThreads / 32 * Form::kBuckets> offers;
};

template <class Form>
class KeptCloud {
 public:
  using Number = typename Form::Number;
  static constexpr int kThreads = Form::kThreads;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kBuckets = Form::kBuckets;
  static constexpr int kSlots = Form::kSlots;
  // Boxes per bucket, each around the points that kBuckets neighbouring lanes have in it. So a warp
  // has 32 boxes: each lane checks one of them.
  static constexpr int kBoxes = 32 / kBuckets;
  using AllOffers = Offers<Number, kThreads, kWarps * kBuckets>;

  // pointAt(at, point) returns whether a point of the block exists, and its position.
  template <class PointAt>
  __device__ KeptCloud(KeptMemory<Form>* memory, SpatialMemory<Number>* spatial, const Share& share,
                       PointAt&& pointAt)
      : kept_(&memory->kept),
        first_(share.first),
        first_place_(bucketOf(0) * kSlots * 32 + lane()),
        offers_(&memory->offers, lane() % kBoxes == 0 ? bucketOf(lane() / kBoxes) : -1) {
    asm volatile("" : "+r"(first_place_));  // keeps the compiler from recomputing it
    auto& sorting = memory->sorting;
    orderInSpace<Number, kThreads>(Form::kRoom, pointAt, sorting.cells, sorting.order, spatial);
    uint32_t at[kBuckets][kSlots];
#pragma unroll
    for (int b = 0; b < kBuckets; ++b) {
#pragma unroll
      for (int k = 0; k < kSlots; ++k) at[b][k] = sorting.order[orderOf(b, k)];
      sortAscending(at[b]);  // among equally far points the first one is taken
    }
    __syncthreads();
#pragma unroll
    for (int b = 0; b < kBuckets; ++b) {
      Box<Number> box = Box<Number>::none();
#pragma unroll
      for (int k = 0; k < kSlots; ++k) {
        Number x[3];
        const bool is_there = pointAt(at[b][k], x);
        if (is_there) box.add(x);
        const int i = b * kSlots + k;
        distance_[i] = is_there ? static_cast<Number>(INFINITY) : Number(-1);
#pragma unroll
        for (int axis = 0; axis < 3; ++axis) {
          if (!is_there) x[axis] = 0;
          if constexpr (Form::kInRegisters) position_[axis][i] = x[axis];
        }
        memory->kept.set(placeOf(b, k), x, share.first, at[b][k]);
      }
      box.template join<kBuckets>();
      box = box.fromLane(firstOfBox());
      const Number reach = reachAtFirst(box);
      place_[b] = 2 * bucketOf(b);
      const int32_t rank = rankOf(Number(-1), place_[b]);  // no point
      const bool is_own = lane() / kBoxes == b;
      own_[b] = is_own ? -1 : 0;
      asm volatile("" : "+r"(own_[b]));  // keeps it out of predicate registers, which are few
      reach_[b] = is_own ? reach : Number(-1);
      if (is_own) box_ = box, rank_ = rank;
    }
    __syncthreads();
  }

  // The warp's buckets that a point changes.
  struct Reached {
    bool bucket[kBuckets];
  };
  __device__ __forceinline__ Reached reachedBy(const Number (&taken)[3]) const {
    const Number apart = squaredDistance(taken, box_);
    Reached reached;
#pragma unroll
    for (int b = 0; b < kBuckets; ++b) {
      reached.bucket[b] = __any_sync(~0u, !(apart >= reach_[b]));
    }
    return reached;
  }

  // Call once the point is taken; the caller must then synchronize.
  __device__ __forceinline__ void lower(const Number (&taken)[3], const Reached& reached) {
#pragma unroll
    for (int b = 0; b < kBuckets; ++b) {
      if (reached.bucket[b]) lowerBucket(b, taken);
    }
    offers_.publish(rank_);
  }

  __device__ AllOffers& offers() { return offers_; }

 private:
  static __device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static __device__ int warp() { return static_cast<int>(threadIdx.x) / 32; }
  static __device__ int bucketOf(int b) { return warp() * kBuckets + b; }
  // The first of the lanes with the points of the lane's box.
  static __device__ int firstOfBox() { return lane() % kBoxes * kBuckets; }

  // The index of a point in spatial order. Buckets that one point may reach together (neighbours,
  // also in the next row) belong to different warps.
  static __device__ int orderOf(int b, int slot) {
    const int bucket = b * kWarps + ((warp() - 5 * b) & (kWarps - 1));
    return (bucket * 32 + lane()) * kSlots + slot;
  }

  __device__ int placeOf(int b, int slot) const { return first_place_ + (b * kSlots + slot) * 32; }

  __device__ Number position(int b, int slot, int axis) const {
    if constexpr (Form::kInRegisters) {
      return position_[axis][b * kSlots + slot];
    } else {
      return kept_->position[axis][placeOf(b, slot)];
    }
  }

  struct Farthest {
    Number distance;
    int place;  // after the place of the bucket's first point
  };
  // The farthest of the lane's points of a bucket, or the first of equally far ones: by halves.
  template <int kFirst = 0, int kCount = kSlots>
  __device__ __forceinline__ Farthest farthestOf(int b) const {
    if constexpr (kCount == 1) {
      return {distance_[b * kSlots + kFirst], kFirst * 32};
    } else {
      const Farthest one = farthestOf<kFirst, kCount / 2>(b);
      const Farthest two = farthestOf<kFirst + kCount / 2, kCount - kCount / 2>(b);
      return {largest(one.distance, two.distance),
              one.distance >= two.distance ? one.place : two.place};
    }
  }

  __device__ __forceinline__ void lowerBucket(int b, const Number (&taken)[3]) {
#pragma unroll
    for (int k = 0; k < kSlots; ++k) {
      Number& distance = distance_[b * kSlots + k];
      const Number x[3] = {position(b, k, 0), position(b, k, 1), position(b, k, 2)};
      distance = least(squaredDistance(x, taken), distance);
    }
    const Farthest farthest = farthestOf(b);
    const int32_t own = rankOf(farthest.distance, lane());
    const int32_t rank = __reduce_max_sync(~0u, own);
    // Meanwhile: the reach of the box, and the point to offer.
    const Number reach = __shfl_sync(~0u, largestOf<kBuckets>(farthest.distance), firstOfBox());
    const IndexedPoint<Number> point = kept_->get(placeOf(b, 0) + farthest.place, first_);
    place_[b] ^= 1;
    offers_.offer(own == rank, place_[b], point, Order<Number>::ofPoint(farthest.distance));
    rank_ = chosen(own_[b], (rank & -kRankNumbers) | place_[b], rank_);
    reach_[b] = chosen(own_[b], reach, Number(-1));
    if (__any_sync(~0u, mayBeMost(own, rank))) settle(b, farthest.distance, point);
  }

  // Makes a bucket's offer if ranks do not decide.
  __device__ void settle(int b, Number distance, const IndexedPoint<Number>& point) const {
    __syncwarp();
    const Candidate<Number> own = {Order<Number>::keyOf(distance),
                                   static_cast<uint32_t>(point.index)};
    const Candidate<Number> best = bestOfWarp<Number>(own);
    offers_.offer(own.key == best.key && own.label == best.label, place_[b], point, own.key);
  }

  // Selects the bits of one number or the other.
  template <class T>
  static __device__ T chosen(int32_t all_bits, T one, T other) {
    using Bits = std::conditional_t<sizeof(T) == sizeof(uint32_t), uint32_t, uint64_t>;
    const auto mask = static_cast<Bits>(static_cast<int64_t>(all_bits));
    return bitCast<T>((bitCast<Bits>(one) & mask) | (bitCast<Bits>(other) & ~mask));
  }

  KeptPoints<Form>* kept_;
  uint32_t first_;   // of the block's points, in the cloud
  int first_place_;  // of the lane's
  AllOffers offers_;
  Number position_[3][Form::kInRegisters ? Form::kPoints : 1];
  Number distance_[Form::kPoints];
  // Each lane is responsible for one of the warp's buckets, number lane() / kBoxes: its box is a
  // part of that bucket's.
  int place_[kBuckets];     // of each bucket's offer
  Box<Number> box_;         // of the bucket that the lane is responsible for
  int32_t own_[kBuckets];   // all bits for that bucket, else none
  Number reach_[kBuckets];  // of the box for that bucket, else -1: see reachAtFirst()
  int32_t rank_;            // of that bucket's offer: the place below the upper bits
};

}  // namespace farthest

}  // namespace rbc::cuda
