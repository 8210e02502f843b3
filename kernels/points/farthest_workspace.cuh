// A block's part of a cloud in the workspace, where it is too large for a multiprocessor: sorted by
// buckets, one for each thread, of which a warp does those of its lanes that a point reaches.
#pragma once

#include "points/farthest_buckets.cuh"
#include "runtime/aligned_vec.cuh"

namespace rbc::cuda {
namespace farthest {

constexpr uint32_t kFour = 4;               // points of a lane
constexpr uint32_t kTogether = 32 * kFour;  // points of a warp

// By place, and those of positions by axis.
template <class Number>
struct PointArrays {
  Number* position[3];
  Number* distance;  // negative where there is no point
  uint32_t* order;   // which of the block's points, as they come
};

template <class Number_, int kThreads_>
struct InWorkspace {
  using Number = Number_;
  static constexpr int kThreads = kThreads_;
  static constexpr uint32_t kRoom = 0;  // nothing is kept
};

// What a block has in shared memory.
template <class Form>
struct WorkspaceMemory {
  using Number = typename Form::Number;
  uint32_t cells[kCells];
  Number position[2][Form::kThreads / 32][3];  // of warps' best points, in turns
};

template <class Form>
class WorkspaceCloud {
 public:
  using Number = typename Form::Number;
  static constexpr int kThreads = Form::kThreads;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kEach = 1;  // candidates of a warp

  // `room` is a multiple of kThreads. pointAt(index, point) tells whether a point of the cloud is there,
  // and where.
  template <class PointAt>
  __device__ WorkspaceCloud(WorkspaceMemory<Form>* memory, SpatialMemory<Number>* spatial,
                            const Share<kThreads>& share, const PointArrays<Number>& arrays,
                            uint32_t room, PointAt&& pointAt)
      : memory_(memory), share_(share), arrays_(arrays), room_(room) {
    const auto pointOf = [&](uint32_t at, Number(&point)[3]) {
      return pointAt(share.indexOf(at), point);
    };
    orderInSpace<Number, kThreads>(room, pointOf, memory->cells, arrays.order, spatial);
    bucket_points_ = kTogether * ((room - 1) / (kTogether * kThreads) + 1);
    for (uint32_t first = kFour * threadIdx.x; first < room; first += kFour * kThreads) {
      // A lane's points ascend: of those equally far the first is the one to take.
      uint32_t at[kFour];
#pragma unroll
      for (uint32_t k = 0; k < kFour; ++k) at[k] = arrays.order[first + k];
      sortAscending(at);
#pragma unroll
      for (uint32_t k = 0; k < kFour; ++k) {
        Number point[3] = {};
        const bool is_there = pointOf(at[k], point);
        arrays.order[first + k] = at[k];
        for (int axis = 0; axis < 3; ++axis) arrays.position[axis][first + k] = point[axis];
        arrays.distance[first + k] = is_there ? static_cast<Number>(INFINITY) : Number(-1);
      }
    }
    __syncthreads();
    findBoxes();
  }

  // Once a point is taken: the warp's best, for its lane 0.
  __device__ Candidate<Number> lower(const Number (&taken)[3], int turn) {
    const unsigned reached = bucket_.reachedOfWarp(taken);
    if (reached != 0) {
      lowerBuckets(reached, taken);
      best_ = bestOfWarp<Number>(bucket_.best);
    }
    if (best_.key > 0 && bucket_.best.label == best_.label) {
#pragma unroll
      for (int axis = 0; axis < 3; ++axis) {
        memory_->position[turn][threadIdx.x / 32][axis] = farthest_[axis];
      }
    }
    return best_;
  }

  __device__ void look(uint32_t, int entry, int turn, Winner<Number>* winner) const {
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      winner->position[axis] = memory_->position[turn][entry][axis];
    }
  }

 private:
  // Neighbouring buckets belong to different warps: one point reaches them together.
  static __device__ uint32_t bucketOf(uint32_t lane) { return lane * kWarps + threadIdx.x / 32; }

  // Where a bucket's points end; it may begin behind the last one.
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
      box.joinWarp();
      if (own_lane == lane) bucket_.box = box;
    }
    bucket_.begin();
  }

  // Goes through the points of some lanes' buckets, kTogether at a time.
  struct Cursor {
    unsigned left;  // lanes, with the one that it is at
    uint32_t place;
    uint32_t end;  // of the bucket
  };
  __device__ Cursor beginOf(unsigned lanes) const {
    const uint32_t bucket = bucketOf(static_cast<uint32_t>(__ffs(lanes) - 1));
    return {lanes, bucket * bucket_points_, endOf(bucket)};
  }
  __device__ Cursor next(const Cursor& cursor) const {
    if (cursor.place + kTogether < cursor.end) {
      return {cursor.left, cursor.place + kTogether, cursor.end};
    }
    const unsigned left = cursor.left & (cursor.left - 1);
    return left == 0 ? Cursor{0, 0, 0} : beginOf(left);
  }

  using Four = AlignedVec<Number, kFour>;
  struct Loaded {
    Four position[3];
    Four distance;
    AlignedVec<uint32_t, kFour> order;
  };
  __device__ Loaded load(const Cursor& cursor) const {
    const uint32_t first = cursor.place + kFour * (threadIdx.x % 32);
    Loaded loaded;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      loaded.position[axis] = *reinterpret_cast<const Four*>(arrays_.position[axis] + first);
    }
    loaded.distance = *reinterpret_cast<const Four*>(arrays_.distance + first);
    loaded.order = *reinterpret_cast<const AlignedVec<uint32_t, kFour>*>(arrays_.order + first);
    return loaded;
  }

  // What comes next is on its way while a part is computed: memory is far away.
  __device__ __forceinline__ void lowerBuckets(unsigned reached, const Number (&taken)[3]) {
    Cursor at = beginOf(reached);
    Loaded points = load(at);
    Farthest farthest = kNone;
    while (at.left != 0) {
      const Cursor after = next(at);
      Loaded coming;
      if (after.left != 0) coming = load(after);
      lowerSome(at, points, taken, &farthest);
      if (after.left != at.left) {
        keep(__ffs(at.left) - 1, farthest);
        farthest = kNone;
      }
      at = after;
      points = coming;
    }
  }

  // A lane's farthest point of a bucket.
  struct Farthest {
    Number distance;
    uint32_t number;
    Number position[3];
  };
  static constexpr Farthest kNone = {Number(-1), ~0u, {}};

  __device__ __forceinline__ void lowerSome(const Cursor& at, const Loaded& points,
                                            const Number (&taken)[3], Farthest* farthest) {
    Four distance = points.distance;
#pragma unroll
    for (uint32_t k = 0; k < kFour; ++k) {
      const Number point[3] = {points.position[0].element[k], points.position[1].element[k],
                               points.position[2].element[k]};
      const Number lowered =
          least(squaredDistance(point[0] - taken[0], point[1] - taken[1], point[2] - taken[2]),
                distance.element[k]);
      distance.element[k] = lowered;
      const uint32_t number = points.order.element[k];
      if (lowered > farthest->distance ||
          (lowered == farthest->distance && number < farthest->number)) {
        *farthest = {lowered, number, {point[0], point[1], point[2]}};
      }
    }
    *reinterpret_cast<Four*>(arrays_.distance + at.place + kFour * (threadIdx.x % 32)) = distance;
  }

  // Of all lanes' the best becomes that of one lane's bucket.
  __device__ void keep(int lane, const Farthest& own) {
    const Candidate<Number> best =
        bestOfWarp<Number>({Order<Number>::of(own.distance), own.number});
    const unsigned holders = __ballot_sync(~0u, own.number == best.label);
    Number position[3];
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      position[axis] = __shfl_sync(~0u, own.position[axis], __ffs(holders) - 1);
    }
    if (static_cast<int>(threadIdx.x) % 32 != lane) return;
    bucket_.lower({best.key, share_.indexOf(best.label)});
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) farthest_[axis] = position[axis];
  }

  WorkspaceMemory<Form>* memory_;
  Share<kThreads> share_;
  PointArrays<Number> arrays_;
  uint32_t room_;
  uint32_t bucket_points_;
  // Of a lane's bucket.
  Bucket<Number> bucket_;
  Number farthest_[3];
  Candidate<Number> best_ = kNoCandidate<Number>;  // of the warp
};

}  // namespace farthest
}  // namespace rbc::cuda
