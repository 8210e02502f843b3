// Blocks agree on one point a round: the farthest of all.
#pragma once

#include "points/farthest_blocks.cuh"

namespace rbc::cuda {
namespace farthest {

// The best point to take, of a bucket, a block, or all. Its label is the index.
template <class Number>
struct Winner {
  Number position[3];
  Candidate<Number> candidate;
};

template <class Number>
struct WinnerMemory {
  // Whole words, as messages are.
  struct alignas(8 * sizeof(Number)) Block {
    Number position[3];
    typename Order<Number>::Key words[5];  // key, label, and none

    __device__ Candidate<Number> candidate() const {
      return {words[0], static_cast<uint32_t>(words[1])};
    }
  };
  Candidate<Number> warps[32];  // for the first point
  Block blocks[2][kMaxCluster];
};

// The best candidate of a block, of which each warp has one. To be called once.
template <int kThreads, class Number>
__device__ Candidate<Number> bestOfBlock(WinnerMemory<Number>* memory, Candidate<Number> of_warp) {
  constexpr int kWarps = kThreads / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane == 0) memory->warps[threadIdx.x / 32] = of_warp;
  __syncthreads();
  Candidate<Number> of_lane = kNoCandidate<Number>;
  if (lane < kWarps) of_lane = memory->warps[lane];
  return bestOfWarp<Number>(of_lane);
}

// The best of all blocks' winners.
template <int kThreads, class Number>
__device__ Winner<Number> bestOfBlocks(Blocks<kThreads>& blocks, WinnerMemory<Number>* memory,
                                       const Winner<Number>& own) {
  if (blocks.count() == 1) return own;
  blocks.nextTurn();
  using Block = typename WinnerMemory<Number>::Block;
  Block* winners = memory->blocks[blocks.turn()];
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0) {
    blocks.expect(static_cast<uint32_t>(sizeof(Block)) * blocks.count());
  }
  // One thread for each block to tell.
  if (static_cast<int>(threadIdx.x) < blocks.count()) {
    const Block message = {{own.position[0], own.position[1], own.position[2]},
                           {own.candidate.key, own.candidate.label, 0, 0, 0}};
    blocks.send(message, &winners[blocks.rank()], static_cast<int>(threadIdx.x));
  }
  blocks.await();
#endif
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Candidate<Number> of_lane = kNoCandidate<Number>;
  if (lane < blocks.count()) of_lane = winners[lane].candidate();
  const Candidate<Number> best = bestOfWarp<Number>(of_lane);
  const unsigned holders =
      __ballot_sync(~0u, of_lane.key == best.key && of_lane.label == best.label);
  const Block& winner = winners[__ffs(holders) - 1];
  return {{winner.position[0], winner.position[1], winner.position[2]}, best};
}

}  // namespace farthest
}  // namespace rbc::cuda
