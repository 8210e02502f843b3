// Farthest points: the parts that all kernels share. Blocks of a cluster, buckets of points, the
// winner of a round.
#pragma once

#include <cooperative_groups.h>
#include <cstdint>
#include <type_traits>

#include "farthest_problem.h"
#include "points/select_farthest.h"
#include "real.h"
#include "runtime/shared_memory.cuh"

namespace rbc::cuda {

// ---- Messages between the blocks of a cluster; a barrier counts their bytes.

#if __CUDA_ARCH__ >= 900
// Sends to the same address in another block, and signals its barrier.
template <class T>
__device__ void send(const T& value, T* to, uint64_t* barrier, int rank) {
  constexpr int kWords = sizeof(T) / 8;
  static_assert(alignof(T) % 16 == 0);
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
  for (int i = 0; i < kWords; i += 2) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];" ::
            "r"(remote + 8 * i),
        "l"(words.word[i]), "l"(words.word[i + 1]), "r"(remote_barrier)
        : "memory");
  }
}
#endif

namespace farthest {

// ---- The blocks that work on one cloud, a cluster or a single block, and the order of its points.

namespace cg = cooperative_groups;

// Orders points by a key: more is farther; 0 means no point. Distances are at least 0.
template <class Number>
struct Order {
  using Key = std::conditional_t<sizeof(Number) == sizeof(float), uint32_t, uint64_t>;
  static __device__ Key keyOf(Number distance) {
    return distance < 0 ? 0 : bitCast<Key>(distance) + 1;
  }
  static __device__ Key ofPoint(Number distance) { return bitCast<Key>(distance) + 1; }
  static __device__ Number distance(Key key) {
    return bitCast<Number>(key - 1);
  }  // NaN without a point
};

inline __device__ uint32_t mostOfWarp(uint32_t key) { return __reduce_max_sync(~0u, key); }
inline __device__ uint64_t mostOfWarp(uint64_t key) {
  const uint32_t high = __reduce_max_sync(~0u, static_cast<uint32_t>(key >> 32));
  const bool among = static_cast<uint32_t>(key >> 32) == high;
  const uint32_t low = __reduce_max_sync(~0u, among ? static_cast<uint32_t>(key) : 0u);
  return static_cast<uint64_t>(high) << 32 | low;
}

template <class Number>
__device__ Number squaredDistance(const Number (&point)[3], const Number (&taken)[3]) {
  return rbc::squaredDistance(point[0] - taken[0], point[1] - taken[1], point[2] - taken[2]);
}

// A point that may be taken next: the larger key wins, then the lower label. Labels ascend like
// indices in the cloud: within a bucket they identify its points, elsewhere they are these indices.
template <class Number>
struct Candidate {
  typename Order<Number>::Key key;
  uint32_t label;
};
template <class Number>
inline constexpr Candidate<Number> kNoCandidate = {0, ~0u};

inline __device__ bool isBefore(const Candidate<float>& a, const Candidate<float>& b) {
  const auto word = [](const Candidate<float>& c) { return uint64_t{c.key} << 32 | ~c.label; };
  return word(a) > word(b);
}
inline __device__ bool isBefore(const Candidate<double>& a, const Candidate<double>& b) {
  return a.key > b.key || (a.key == b.key && a.label < b.label);
}

template <class Number>
__device__ Candidate<Number> bestOfWarp(Candidate<Number> own) {
  const auto key = mostOfWarp(own.key);
  return {key, __reduce_min_sync(~0u, own.key == key ? own.label : ~0u)};
}

// The memory with which the blocks of a cluster synchronize.
struct Meeting {
  uint64_t arrived[2];  // messages, alternating
  int sums[kMaxCluster];
  int sum;
};

template <int kThreads>
class Blocks {
 public:
  // The caller must then call wait().
  __device__ Blocks(Meeting* meeting, int count) : meeting_(meeting), count_(count) {
    if (threadIdx.x == 0) meeting->sum = 0;
#if __CUDA_ARCH__ >= 900
    rank_ = count > 1 ? static_cast<int>(cg::this_cluster().block_rank()) : 0;
    if (count > 1 && threadIdx.x == 0) {
      initArrivals(&meeting->arrived[0]);
      initArrivals(&meeting->arrived[1]);
    }
#else
    rank_ = 0;
#endif
  }

  __device__ int rank() const { return rank_; }
  __device__ int count() const { return count_; }

  __device__ void wait() const {
#if __CUDA_ARCH__ >= 900
    if (count_ > 1) {
      cg::this_cluster().sync();
      return;
    }
#endif
    __syncthreads();
  }

  // The sum of one number per thread; call once.
  __device__ int sum(int own) const {
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

  // Messages alternate between two buffers: a block may be one round ahead.
  __device__ int turn() const { return turn_; }
  __device__ void nextTurn() { turn_ ^= 1; }

#if __CUDA_ARCH__ >= 900
  // Once per round, by one thread.
  __device__ void expect(uint32_t bytes) const { expectBytes(&meeting_->arrived[turn_], bytes); }

  template <class T>
  __device__ void send(const T& value, T* to, int rank) const {
    cuda::send(value, to, &meeting_->arrived[turn_], rank);
  }

  // Waits for the messages of the round, by all threads.
  __device__ void await() {
    awaitBytes(&meeting_->arrived[turn_], parities_ >> turn_ & 1);
    parities_ ^= 1u << turn_;
  }
#endif

 private:
  Meeting* meeting_;
  int count_;
  int rank_;
  int turn_ = 0;
  uint32_t parities_ = 0;  // phases of both barriers
};

// ---- Orders the points of a block such that nearby points are close together: by the cells of a
// grid with 16 per side, along Morton's curve. The order within a cell is arbitrary.

inline constexpr int kCellBits = 4;  // per axis
inline constexpr int kCells = 1 << (3 * kCellBits);

// Spreads bits 0 .. 3 of a number to every third place.
inline __device__ uint32_t spread(uint32_t x) {
  return (x & 1) | (x & 2) << 2 | (x & 4) << 4 | (x & 8) << 6;
}

// For numbers that are not NaN: one instruction each.
inline __device__ float least(float a, float b) { return fminf(a, b); }
inline __device__ double least(double a, double b) { return fmin(a, b); }
inline __device__ float largest(float a, float b) { return fmaxf(a, b); }
inline __device__ double largest(double a, double b) { return fmax(a, b); }

// Over kLanes neighbouring lanes.
template <int kLanes, class Number>
__device__ Number leastOf(Number x) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) x = least(x, __shfl_xor_sync(~0u, x, step));
  return x;
}

template <int kLanes, class Number>
__device__ Number largestOf(Number x) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) x = largest(x, __shfl_xor_sync(~0u, x, step));
  return x;
}

// The sides of a box without points.
template <class Number>
inline constexpr Number kNowhere = static_cast<Number>(INFINITY);

// A box around points. Its upper sides are negative, so that both come from minima.
template <class Number>
struct Box {
  Number low[3];
  Number high[3];

  // A box without points.
  static __device__ Box none() {
    constexpr Number kFar = kNowhere<Number>;
    return {{kFar, kFar, kFar}, {kFar, kFar, kFar}};
  }

  __device__ void add(const Number (&point)[3]) {
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = least(point[axis], low[axis]);
      high[axis] = least(-point[axis], high[axis]);
    }
  }

  // Joins the boxes of kLanes neighbouring lanes.
  template <int kLanes = 32>
  __device__ void join() {
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = leastOf<kLanes>(low[axis]);
      high[axis] = leastOf<kLanes>(high[axis]);
    }
  }

  // The box of another lane.
  __device__ Box fromLane(int lane) const {
    Box box;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      box.low[axis] = __shfl_sync(~0u, low[axis], lane);
      box.high[axis] = __shfl_sync(~0u, high[axis], lane);
    }
    return box;
  }
};

template <class Number>
struct SpatialMemory {
  Box<Number> boxes[32];  // per warp
  uint32_t sums[32];
};

// Sorts `room` points; pointAt(at, point) returns whether a point exists, and its position. Those
// that do not exist come last. `cells` has room for kCells, `order` gets the sorted points. Called
// by all threads.
template <class Number, int kThreads, class PointAt, class Place>
__device__ void orderInSpace(uint32_t room, PointAt&& pointAt, uint32_t* cells, Place* order,
                             SpatialMemory<Number>* memory) {
  constexpr int kWarps = kThreads / 32;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  for (int i = thread; i < kCells; i += kThreads) cells[i] = 0;

  Box<Number> box = Box<Number>::none();
#pragma unroll 4
  for (uint32_t at = threadIdx.x; at < room; at += kThreads) {
    Number point[3];
    if (pointAt(at, point)) box.add(point);
  }
  box.join();
  if (lane == 0) memory->boxes[thread / 32] = box;
  __syncthreads();
  box = Box<Number>::none();
  if (lane < kWarps) box = memory->boxes[lane];
  box.join();
  Number scale[3];
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) {
    scale[axis] = Number(1 << kCellBits) / (-box.high[axis] - box.low[axis]);
  }

  // Points are counted by cell, then get their places.
  const auto cellOf = [&](uint32_t at) {
    Number point[3];
    if (!pointAt(at, point)) return static_cast<uint32_t>(kCells - 1);
    uint32_t cell = 0;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      // A side without length gives NaN or infinity, and these give cell 0 or the last one.
      const int along = static_cast<int>((point[axis] - box.low[axis]) * scale[axis]);
      cell |= spread(static_cast<uint32_t>(min(max(along, 0), (1 << kCellBits) - 1))) << axis;
    }
    return cell;
  };
#pragma unroll 4
  for (uint32_t at = threadIdx.x; at < room; at += kThreads) atomicAdd(&cells[cellOf(at)], 1u);
  __syncthreads();
  constexpr int kOwn = kCells / kThreads;
  uint32_t own = 0;
  for (int i = 0; i < kOwn; ++i) own += cells[thread * kOwn + i];
  uint32_t before = own;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const uint32_t other = __shfl_up_sync(~0u, before, step);
    if (lane >= step) before += other;
  }
  if (lane == 31) memory->sums[thread / 32] = before;
  before -= own;
  __syncthreads();
  for (int w = 0; w < thread / 32; ++w) before += memory->sums[w];
  for (int i = 0; i < kOwn; ++i) {
    const uint32_t count = cells[thread * kOwn + i];
    cells[thread * kOwn + i] = before;
    before += count;
  }
  __syncthreads();
#pragma unroll 4
  for (uint32_t at = threadIdx.x; at < room; at += kThreads) {
    order[atomicAdd(&cells[cellOf(at)], 1u)] = static_cast<Place>(at);
  }
  __syncthreads();
}

// ---- Buckets of nearby points: a new point changes nothing in a bucket whose points are all
// nearer to the points taken before than its box is to the new one. No step of squaredDistance()
// rounds a smaller number to a larger one, so the result is exact.

// The points of a block: consecutive in the cloud, since clouds are often in some spatial order.
struct Share {
  uint32_t first;  // indices in the cloud
  uint32_t count;
};

// A point whose distance from a bucket's box is at least the bucket's reach changes nothing. The
// reach is the distance of the bucket's farthest point; less than any distance if the bucket has no
// point; NaN before the first point was taken, when distances may be infinite.
template <class Number>
__device__ Number reachAtFirst(const Box<Number>& box) {
  return box.low[0] < kNowhere<Number> ? static_cast<Number>(NAN) : Number(-1);
}

// Squared distance from a box to a point.
template <class Number>
__device__ Number squaredDistance(const Number (&taken)[3], const Box<Number>& box) {
  Number apart[3];
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) {
    apart[axis] = taken[axis] - largest(box.low[axis], least(taken[axis], -box.high[axis]));
  }
  return rbc::squaredDistance(apart[0], apart[1], apart[2]);
}

template <class Number>
__device__ bool isReachedBy(const Number (&taken)[3], const Box<Number>& box, Number reach) {
  return !(squaredDistance(taken, box) >= reach);
}

template <int kCount>
__device__ void sortAscending(uint32_t (&x)[kCount]) {
#pragma unroll
  for (int i = 1; i < kCount; ++i) {
#pragma unroll
    for (int k = 0; k < kCount - i; ++k) {
      const uint32_t one = x[k], two = x[k + 1];
      x[k] = min(one, two), x[k + 1] = max(one, two);
    }
  }
}

// ---- Blocks agree on one point per round: the farthest of all.

// The best point to take in a bucket, a block, or all. Its label is the index.
template <class Number>
struct Winner {
  Number position[3];
  Candidate<Number> candidate;
};

template <class Number>
struct WinnerMemory {
  // Whole words, like messages.
  struct alignas(8 * sizeof(Number)) Block {
    Number position[3];
    typename Order<Number>::Key words[5];  // key, label, and padding

    __device__ Candidate<Number> candidate() const {
      return {words[0], static_cast<uint32_t>(words[1])};
    }
  };
  Candidate<Number> warps[32];  // for the first point
  Block blocks[2][kMaxCluster];
};

// The best candidate of a block; each warp has one. Call once.
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
  // One thread for each block to send to.
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
