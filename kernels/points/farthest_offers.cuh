// What the buckets of a block offer to be taken next: each its farthest point.
#pragma once

#include <cstddef>

#include "points/farthest_winner.cuh"
#include "runtime/shared_memory.cuh"

namespace rbc::cuda {
namespace farthest {

// A rank is the upper bits of a distance, and a number below them. One instruction finds the most of a warp's
// ranks, and who has it: only where another one has the same upper bits, distances have to be compared.
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

// Whether a rank is not the most of all, but its distance may be.
inline __device__ bool mayBeMost(int32_t rank, int32_t most) {
  return (rank >= (most & -kRankNumbers)) & (rank != most);
}

template <class Number>
struct alignas(4 * sizeof(Number)) IndexedPoint {
  Number position[3];
  typename Order<Number>::Key index;  // in the cloud
};

// Of a block that has kBuckets.
template <class Number, int kThreads, int kBuckets>
struct OfferMemory {
  static_assert(kBuckets <= 32 && 2 * kBuckets <= kRankNumbers);
  struct alignas(8 * sizeof(Number)) Offer {
    IndexedPoint<Number> point;
    Candidate<Number> candidate;
  };
  // By place. A bucket has two, and takes the other one for another offer: some may still read the one before.
  Offer offers[2 * kBuckets];
  struct Turn {
    int32_t ranks[32];         // by bucket; their numbers are places
    int32_t unread[kThreads];  // of threads that have none to tell, so that nobody has to ask
  } turns[2];
};

template <class Number, int kThreads, int kBuckets>
class Offers {
 public:
  using Memory = OfferMemory<Number, kThreads, kBuckets>;

  // The thread tells a bucket's rank, or none (-1). To be followed by a barrier.
  __device__ Offers(Memory* memory, int bucket) : memory_(memory) {
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < 32) memory->turns[0].ranks[thread] = memory->turns[1].ranks[thread] = INT32_MIN;
    for (int i = thread; i < 2 * kBuckets; i += kThreads) memory->offers[i] = {};
    typename Memory::Turn& turn = memory->turns[0];
    to_ = sharedAddress(bucket < 0 ? &turn.unread[thread] : &turn.ranks[bucket]);
    from_ = sharedAddress(&turn.ranks[thread % 32]);
  }

  // By one lane.
  __device__ void offer(bool does, int place, const IndexedPoint<Number>& point,
                        typename Order<Number>::Key key) const {
    using Offer = typename Memory::Offer;
    const uint32_t to = sharedAddress(memory_->offers + place);
    storeSharedIf(does, to, point.position, point.index);
    storeSharedIf(does, to + static_cast<uint32_t>(offsetof(Offer, candidate)), key,
                  static_cast<uint32_t>(point.index));
  }

  // By all threads, before a barrier.
  __device__ void tell(int32_t rank) const { storeShared(to_ + turn_, rank); }

  struct Ranks {
    int32_t own;  // of the lane's bucket
    int32_t most;

    __device__ bool mayOtherBeMost() const { return mayBeMost(own, most); }
  };
  // What all have told, once behind the barrier.
  __device__ Ranks ranks() {
    const int32_t own = loadShared(from_ + turn_);
    turn_ ^= sizeof(typename Memory::Turn);
    return {own, __reduce_max_sync(~0u, own)};
  }

  // The farthest of all, unless another one may be.
  __device__ Winner<Number> best(const Ranks& ranks) const { return at(numberOf(ranks.most)); }

  // The first of the farthest of all.
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
  uint32_t turn_ = 0;  // added to them
};

}  // namespace farthest
}  // namespace rbc::cuda
