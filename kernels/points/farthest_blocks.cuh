// The blocks that work on one cloud, a cluster or one alone, and what orders its points.
#pragma once

#include <cooperative_groups.h>

#include <type_traits>

#include "farthest_problem.h"
#include "points/cluster_messages.cuh"
#include "real.h"

namespace rbc::cuda {
namespace farthest {

namespace cg = cooperative_groups;

constexpr int kMaxCluster = 16;

// What orders points: more is farther; 0 is none. Of distances that are 0 or more.
template <class Number>
struct Order {
  using Key = std::conditional_t<sizeof(Number) == sizeof(float), uint32_t, uint64_t>;
  static __device__ Key of(Number distance) {
    return distance < 0 ? 0 : bitCast<Key>(distance) + 1;
  }
  static __device__ Key ofPoint(Number distance) { return bitCast<Key>(distance) + 1; }
  static __device__ Number distance(Key key) { return bitCast<Number>(key - 1); }  // NaN of none
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

// A point that may be taken next: the larger key wins, then the lower label. Labels ascend as indexes in
// the cloud do: within a bucket they are what its points are found by, and elsewhere these indexes.
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

// Where the blocks of a cluster meet.
struct Meeting {
  uint64_t arrived[2];  // messages, in turns
  int sums[kMaxCluster];
  int sum;
};

template <int kThreads>
class Blocks {
 public:
  // To be followed by wait().
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

  // The sum of a number of each thread, once.
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

  // Messages go round by round, of which two take turns: a block may be one round ahead.
  __device__ int turn() const { return turn_; }
  __device__ void nextTurn() { turn_ ^= 1; }

#if __CUDA_ARCH__ >= 900
  // Once in a round, by one thread.
  __device__ void expect(uint32_t bytes) const { expectBytes(&meeting_->arrived[turn_], bytes); }

  template <class T>
  __device__ void send(const T& value, T* to, int rank) const {
    cuda::send(value, to, &meeting_->arrived[turn_], rank);
  }

  // For the messages of the round, by all threads.
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
  uint32_t parities_ = 0;  // of both barriers' phases
};

}  // namespace farthest
}  // namespace rbc::cuda
