// The blocks that work on one cloud, a cluster or one alone: they agree on the point that is farthest.
#pragma once

#include <cooperative_groups.h>

#include <type_traits>

#include "real.h"

namespace rbc::cuda {
namespace farthest {

namespace cg = cooperative_groups;

constexpr int kMaxCluster = 16;
constexpr int kMaxEntries = 32;  // candidates of a block: a lane reads each

// What orders points: more is farther; 0 is none. Of distances that are 0 or more.
template <class Number>
struct Order {
  using Key = std::conditional_t<sizeof(Number) == sizeof(float), uint32_t, uint64_t>;
  static __device__ Key of(Number distance) {
    return distance < 0 ? 0 : bitCast<Key>(distance) + 1;
  }
  static __device__ Number distance(Key key) { return bitCast<Number>(key - 1); }  // NaN of none
};

inline __device__ uint32_t mostOfWarp(uint32_t key) { return __reduce_max_sync(~0u, key); }
inline __device__ uint64_t mostOfWarp(uint64_t key) {
  const uint32_t high = __reduce_max_sync(~0u, static_cast<uint32_t>(key >> 32));
  const bool among = static_cast<uint32_t>(key >> 32) == high;
  const uint32_t low = __reduce_max_sync(~0u, among ? static_cast<uint32_t>(key) : 0u);
  return static_cast<uint64_t>(high) << 32 | low;
}

// A point that may be taken next: the larger key wins, then the lower label. Labels ascend as indexes in
// the cloud do: among blocks they are these, and within a block what its points are found by.
template <class Number>
struct Candidate {
  typename Order<Number>::Key key;
  uint32_t label;
};
template <class Number>
inline constexpr Candidate<Number> kNoCandidate = {0, ~0u};

template <class Number>
__device__ Candidate<Number> bestOfWarp(Candidate<Number> own) {
  const auto key = mostOfWarp(own.key);
  return {key, __reduce_min_sync(~0u, own.key == key ? own.label : ~0u)};
}

// A block's best, whose label is the index.
template <class Number>
struct alignas(8) Winner {
  Candidate<Number> candidate;
  Number position[3];
};

// ---- messages from block to block ---------------------------------------------------------------

// A barrier that waits for bytes from other blocks of the cluster. Unlike the cluster's barrier, it does
// not wait for what a block has written to global memory.
#if __CUDA_ARCH__ >= 900
inline __device__ uint32_t sharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

inline __device__ void initArrivals(uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sharedAddress(barrier)) : "memory");
}

inline __device__ void expectBytes(uint64_t* barrier, uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sharedAddress(barrier)),
      "r"(bytes)
      : "memory");
}

inline __device__ void awaitBytes(uint64_t* barrier, uint32_t parity) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
        " selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(sharedAddress(barrier)), "r"(parity)
        : "memory");
  }
}

// To the same address in another block, and its barrier.
template <class T>
__device__ void send(const T& value, T* to, uint64_t* barrier, int rank) {
  constexpr int kWords = sizeof(T) / 8;
  static_assert(sizeof(T) % 8 == 0 && alignof(T) == 8);
  struct Words {
    uint64_t word[kWords];
  };
  const auto words = bitCast<Words>(value);
  uint32_t remote, remote_barrier;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(sharedAddress(to)), "r"(rank));
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(remote_barrier)
      : "r"(sharedAddress(barrier)), "r"(rank));
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(
            remote + 8 * i),
        "l"(words.word[i]), "r"(remote_barrier)
        : "memory");
  }
}
#endif

// ---- blocks -------------------------------------------------------------------------------------

// Where the blocks of a cloud meet. Twice, in turns: a block may be one round ahead.
template <class Number>
struct Meeting {
  Candidate<Number> entries[2][kMaxEntries];
  Winner<Number> blocks[2][kMaxCluster];
  uint64_t arrived[2];
  int sums[kMaxCluster];
  int sum;
};

template <class Number, int kThreads>
class Blocks {
 public:
  // To be followed by wait().
  __device__ Blocks(Meeting<Number>* meeting, int count) : meeting_(meeting), count_(count) {
    if (threadIdx.x == 0) meeting->sum = 0;
#if __CUDA_ARCH__ >= 900
    rank_ = count > 1 ? static_cast<int>(cg::this_cluster().block_rank()) : 0;
    if (count > 1 && threadIdx.x == 0) {
      initArrivals(&meeting->arrived[0]);
      initArrivals(&meeting->arrived[1]);
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
#else
    rank_ = 0;
#endif
  }

  __device__ int rank() const { return rank_; }

  __device__ void wait() const {
#if __CUDA_ARCH__ >= 900
    if (count_ > 1) {
      cg::this_cluster().sync();
      return;
    }
#endif
    __syncthreads();
  }

  // Which of two turns the next best() has.
  __device__ int nextTurn() const { return turn_ ^ 1; }

  // The best of all candidates, of which the first kEach lanes of each warp have one each: entry lane *
  // warps + warp. `look(label, entry, winner)` gives index and position of a point of the block.
  template <int kEach, class Look>
  __device__ Winner<Number> best(Candidate<Number> own, Look&& look) {
    constexpr int kWarps = kThreads / 32;
    static_assert(kEach * kWarps <= kMaxEntries);
    turn_ ^= 1;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    auto* entries = meeting_->entries[turn_];
    if (lane < kEach) entries[lane * kWarps + static_cast<int>(threadIdx.x) / 32] = own;
    __syncthreads();
    Candidate<Number> of_lane = kNoCandidate<Number>;
    if (lane < kEach * kWarps) of_lane = entries[lane];
    Winner<Number> winner = {bestOfWarp<Number>(of_lane), {}};
    if (winner.candidate.key > 0) {
      const unsigned holders = __ballot_sync(
          ~0u, of_lane.key == winner.candidate.key && of_lane.label == winner.candidate.label);
      look(winner.candidate.label, __ffs(holders) - 1, &winner);
    }
    return count_ == 1 ? winner : bestOfBlocks(winner);
  }

  // The sum of a number of each thread, once.
  __device__ int sum(int own) {
    own = __reduce_add_sync(~0u, own);
    if (threadIdx.x % 32 == 0) atomicAdd(&meeting_->sum, own);
    __syncthreads();
    own = meeting_->sum;
    if (count_ == 1) return own;
#if __CUDA_ARCH__ >= 900
    if (static_cast<int>(threadIdx.x) < count_) {
      cg::this_cluster().map_shared_rank(meeting_, threadIdx.x)->sums[rank_] = own;
    }
    cg::this_cluster().sync();
#endif
    int all = 0;
    for (int i = 0; i < count_; ++i) all += meeting_->sums[i];
    return all;
  }

 private:
  __device__ Winner<Number> bestOfBlocks(const Winner<Number>& own) {
    Winner<Number>* blocks = meeting_->blocks[turn_];
#if __CUDA_ARCH__ >= 900
    uint64_t* arrived = &meeting_->arrived[turn_];
    if (threadIdx.x == 0) {
      expectBytes(arrived, static_cast<uint32_t>(sizeof(Winner<Number>)) * count_);
    }
    // One thread for each block to tell.
    if (static_cast<int>(threadIdx.x) < count_) {
      send(own, &blocks[rank_], arrived, static_cast<int>(threadIdx.x));
    }
    awaitBytes(arrived, parities_ >> turn_ & 1);
    parities_ ^= 1u << turn_;
#endif
    const int lane = static_cast<int>(threadIdx.x) % 32;
    Candidate<Number> of_lane = kNoCandidate<Number>;
    if (lane < count_) of_lane = blocks[lane].candidate;
    const Candidate<Number> best = bestOfWarp<Number>(of_lane);
    const unsigned holders =
        __ballot_sync(~0u, of_lane.key == best.key && of_lane.label == best.label);
    return blocks[__ffs(holders) - 1];
  }

  Meeting<Number>* meeting_;
  int count_;
  int rank_;
  int turn_ = 0;
  uint32_t parities_ = 0;  // of both barriers' phases
};

}  // namespace farthest
}  // namespace rbc::cuda
