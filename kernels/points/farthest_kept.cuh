// A block's part of a cloud that a multiprocessor holds: distances in registers, positions there as well or in
// shared memory.
#pragma once

#include "points/farthest_buckets.cuh"
#include "points/farthest_winner.cuh"

namespace rbc::cuda {
namespace farthest {

// How a block keeps its points. A warp has kBuckets, of kSlots points a lane.
template <class Number_, int kThreads_, int kBuckets_, int kSlots_, bool kInRegisters_>
struct Kept {
  using Number = Number_;
  static constexpr int kThreads = kThreads_;
  static constexpr int kBuckets = kBuckets_;
  static constexpr int kSlots = kSlots_;
  static constexpr bool kInRegisters = kInRegisters_;  // positions
  static constexpr int kPoints = kBuckets * kSlots;
  static constexpr uint32_t kRoom = kThreads * kPoints;
};

// What a block has in shared memory.
template <class Form>
struct KeptMemory {
  union {
    uint32_t cells[kCells];  // until points are in order
    typename Form::Number position[3][Form::kRoom];
  };
  uint16_t order[Form::kRoom];  // by place: which of the block's points, as they come
};

template <class Form>
class KeptCloud {
 public:
  using Number = typename Form::Number;
  static constexpr int kThreads = Form::kThreads;
  static constexpr int kBuckets = Form::kBuckets;
  static constexpr int kSlots = Form::kSlots;
  static constexpr int kEach = kBuckets;  // candidates of a warp

  // pointAt(at, point) tells whether a point of the block is there, and where.
  template <class PointAt>
  __device__ KeptCloud(KeptMemory<Form>* memory, SpatialMemory<Number>* spatial, const Share& share,
                       PointAt&& pointAt)
      : memory_(memory), first_(share.first) {
    orderInSpace<Number, kThreads>(Form::kRoom, pointAt, memory->cells, memory->order, spatial);
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int b = 0; b < kBuckets; ++b) {
      sortSlots(b);
      Box<Number> box = Box<Number>::none();
#pragma unroll
      for (int k = 0; k < kSlots; ++k) {
        Number point[3];
        const bool is_there = pointAt(memory->order[placeOf(b, k)], point);
        if (is_there) box.add(point);
        const int i = b * kSlots + k;
        distance_[i] = is_there ? static_cast<Number>(INFINITY) : Number(-1);
#pragma unroll
        for (int axis = 0; axis < 3; ++axis) {
          const Number x = is_there ? point[axis] : Number(0);
          if constexpr (Form::kInRegisters) position_[axis][i] = x;
          memory->position[axis][placeOf(b, k)] = x;
        }
      }
      box.joinWarp();
      if (lane == b) box_ = box;
    }
    if (lane >= kBuckets) box_ = Box<Number>::none();
    reach_ = reachAtFirst(box_);
  }

  // Once a point is taken: the best of lane b's bucket.
  __device__ Candidate<Number> lower(const Number (&taken)[3]) {
    const unsigned reached = __ballot_sync(~0u, isReachedBy(taken, box_, reach_));
#pragma unroll
    for (int b = 0; b < kBuckets; ++b) {
      if ((reached >> b & 1) != 0) lowerBucket(b, taken);
    }
    return best_;
  }

  __device__ void look(uint32_t label, Winner<Number>* winner) const {
    winner->candidate.label = first_ + (label >> 16);
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      winner->position[axis] = memory_->position[axis][label & 0xffff];
    }
  }

 private:
  // Neighbouring buckets belong to different warps: one point reaches them together.
  static __device__ int placeOf(int bucket, int slot) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    return ((bucket * (kThreads / 32) + warp) * kSlots + slot) * 32 + lane;
  }

  // A lane's points of a bucket ascend: of those equally far the first is the one to take.
  __device__ void sortSlots(int bucket) {
    uint32_t at[kSlots];
#pragma unroll
    for (int k = 0; k < kSlots; ++k) at[k] = memory_->order[placeOf(bucket, k)];
    sortAscending(at);
#pragma unroll
    for (int k = 0; k < kSlots; ++k) {
      memory_->order[placeOf(bucket, k)] = static_cast<uint16_t>(at[k]);
    }
  }

  __device__ __forceinline__ void lowerBucket(int b, const Number (&taken)[3]) {
    const int first = placeOf(b, 0);
    Number most = Number(-1);
#pragma unroll
    for (int k = 0; k < kSlots; ++k) {
      const int i = b * kSlots + k;
      Number x[3];
#pragma unroll
      for (int axis = 0; axis < 3; ++axis) {
        if constexpr (Form::kInRegisters) {
          x[axis] = position_[axis][i];
        } else {
          x[axis] = memory_->position[axis][first + k * 32];
        }
      }
      const Number other = squaredDistance(x, taken);
      distance_[i] = least(other, distance_[i]);
      most = largest(most, distance_[i]);
    }
    int slot = 0;
#pragma unroll
    for (int k = kSlots - 1; k >= 0; --k) slot = distance_[b * kSlots + k] == most ? k : slot;
    const int place = first + slot * 32;
    const uint32_t label = uint32_t{memory_->order[place]} << 16 | static_cast<uint32_t>(place);
    const Candidate<Number> best = bestOfWarp<Number>({Order<Number>::of(most), label});
    if (static_cast<int>(threadIdx.x) % 32 == b) {
      best_ = best;
      reach_ = Order<Number>::distance(best.key);
    }
  }

  KeptMemory<Form>* memory_;
  uint32_t first_;  // of the block
  Number position_[3][Form::kInRegisters ? Form::kPoints : 1];
  Number distance_[Form::kPoints];
  // Of the lane's bucket.
  Box<Number> box_;
  Number reach_;
  Candidate<Number> best_ = kNoCandidate<Number>;
};

}  // namespace farthest
}  // namespace rbc::cuda
