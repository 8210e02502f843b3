// The blocks that work on one cloud, a cluster or one alone: they agree on the point that is farthest.
#pragma once

#include <cooperative_groups.h>

#include <type_traits>

#include "real.h"

namespace rbc::cuda {
namespace farthest {

namespace cg = cooperative_groups;

constexpr int kMaxCluster = 16;
constexpr int kMaxWarps = 32;

// What orders points: more is farther; 0 is none. Of distances that are 0 or more.
template <class Number>
struct Order {
  using Key = std::conditional_t<sizeof(Number) == sizeof(float), uint32_t, uint64_t>;
  static __device__ Key of(Number distance) {
    return distance < 0 ? 0 : bitCast<Key>(distance) + 1;
  }
  static __device__ Number distance(Key key) { return bitCast<Number>(key - 1); }
};

inline __device__ uint32_t mostOfWarp(uint32_t key) { return __reduce_max_sync(~0u, key); }
inline __device__ uint64_t mostOfWarp(uint64_t key) {
  const uint32_t high = __reduce_max_sync(~0u, static_cast<uint32_t>(key >> 32));
  const bool among = static_cast<uint32_t>(key >> 32) == high;
  const uint32_t low = __reduce_max_sync(~0u, among ? static_cast<uint32_t>(key) : 0u);
  return static_cast<uint64_t>(high) << 32 | low;
}

// A point that may be taken next: the larger key wins, then the lower index.
template <class Number>
struct Candidate {
  typename Order<Number>::Key key;
  uint32_t index;
};

template <class Number>
__device__ Candidate<Number> bestOfWarp(Candidate<Number> own) {
  const auto key = mostOfWarp(own.key);
  return {key, __reduce_min_sync(~0u, own.key == key ? own.index : ~0u)};
}

template <class Number>
struct Winner {
  Candidate<Number> candidate;
  Number position[3];
};

// Where the blocks of a cloud meet. Twice, in turns: a block may be one round ahead.
template <class Number>
struct Meeting {
  Candidate<Number> warps[2][kMaxWarps];
  Winner<Number> blocks[2][kMaxCluster];
  int finite[kMaxCluster];
};

template <class Number, int kThreads>
class Blocks {
 public:
  __device__ Blocks(Meeting<Number>* meeting, int count) : meeting_(meeting), count_(count) {
#if __CUDA_ARCH__ >= 900
    rank_ = count > 1 ? static_cast<int>(cg::this_cluster().block_rank()) : 0;
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

  // The best of all warps' candidates, with its position, which the block that has it looks up.
  template <class Position>
  __device__ Winner<Number> best(Candidate<Number> own, Position&& positionOf) {
    turn_ ^= 1;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane == 0) meeting_->warps[turn_][threadIdx.x / 32] = own;
    __syncthreads();
    Candidate<Number> of_block = {0, ~0u};
    if (lane < kThreads / 32) of_block = meeting_->warps[turn_][lane];
    of_block = bestOfWarp<Number>(of_block);
    if (count_ == 1) {
      Winner<Number> winner = {of_block, {}};
      if (of_block.key > 0) positionOf(of_block.index, winner.position);
      return winner;
    }
#if __CUDA_ARCH__ >= 900
    if (static_cast<int>(threadIdx.x) < count_) {  // one thread for each block to tell
      Winner<Number> winner = {of_block, {}};
      if (of_block.key > 0) positionOf(of_block.index, winner.position);
      cg::this_cluster().map_shared_rank(meeting_, threadIdx.x)->blocks[turn_][rank_] = winner;
    }
    cg::this_cluster().sync();
#endif
    Candidate<Number> of_all = {0, ~0u};
    if (lane < count_) of_all = meeting_->blocks[turn_][lane].candidate;
    const Candidate<Number> best = bestOfWarp<Number>(of_all);
    const unsigned holders =
        __ballot_sync(~0u, lane < count_ && of_all.key == best.key && of_all.index == best.index);
    return meeting_->blocks[turn_][__ffs(holders) - 1];
  }

  // The sum of a number of each block.
  __device__ int sum(int own) {
    if (count_ == 1) return own;
#if __CUDA_ARCH__ >= 900
    if (static_cast<int>(threadIdx.x) < count_) {
      cg::this_cluster().map_shared_rank(meeting_, threadIdx.x)->finite[rank_] = own;
    }
    cg::this_cluster().sync();
#endif
    int all = 0;
    for (int i = 0; i < count_; ++i) all += meeting_->finite[i];
    return all;
  }

 private:
  Meeting<Number>* meeting_;
  int count_;
  int rank_;
  int turn_ = 0;
};

}  // namespace farthest
}  // namespace rbc::cuda
