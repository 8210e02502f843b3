// Blocks agree on one point a round: the farthest of all candidates.
#pragma once

#include "points/farthest_blocks.cuh"

namespace rbc::cuda {
namespace farthest {

// A block's best, whose label is the index.
template <class Number>
struct alignas(16) Winner {
  Candidate<Number> candidate;
  Number position[3];
};

template <class Number>
struct WinnerMemory {
  static constexpr int kMaxEntries = 32;  // candidates of a block: a lane reads each
  Candidate<Number> entries[2][kMaxEntries];
  Winner<Number> blocks[2][kMaxCluster];
};

// The best of all candidates, of which the first kEach lanes of each warp have one each: entry lane * warps +
// warp. `look(label, winner)` gives index and position of a point of the block.
template <int kEach, int kThreads, class Number, class Look>
__device__ Winner<Number> bestOfAll(Blocks<kThreads>& blocks, WinnerMemory<Number>* memory,
                                    Candidate<Number> own, Look&& look) {
  constexpr int kWarps = kThreads / 32;
  static_assert(kEach * kWarps <= WinnerMemory<Number>::kMaxEntries);
  blocks.nextTurn();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  auto* entries = memory->entries[blocks.turn()];
  if (lane < kEach) entries[lane * kWarps + static_cast<int>(threadIdx.x) / 32] = own;
  __syncthreads();
  Candidate<Number> of_lane = kNoCandidate<Number>;
  if (lane < kEach * kWarps) of_lane = entries[lane];
  Winner<Number> winner = {bestOfWarp<Number>(of_lane), {}};
  if (winner.candidate.key > 0) look(winner.candidate.label, &winner);
  if (blocks.count() == 1) return winner;

  Winner<Number>* winners = memory->blocks[blocks.turn()];
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0) {
    blocks.expect(static_cast<uint32_t>(sizeof(Winner<Number>)) * blocks.count());
  }
  // One thread for each block to tell.
  if (static_cast<int>(threadIdx.x) < blocks.count()) {
    blocks.send(winner, &winners[blocks.rank()], static_cast<int>(threadIdx.x));
  }
  blocks.await();
#endif
  of_lane = kNoCandidate<Number>;
  if (lane < blocks.count()) of_lane = winners[lane].candidate;
  const Candidate<Number> best = bestOfWarp<Number>(of_lane);
  const unsigned holders =
      __ballot_sync(~0u, of_lane.key == best.key && of_lane.label == best.label);
  return winners[__ffs(holders) - 1];
}

}  // namespace farthest
}  // namespace rbc::cuda
