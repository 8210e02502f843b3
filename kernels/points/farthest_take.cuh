// Takes the points of a cloud one after the other, for any place in which they are kept.
#pragma once

#include "farthest_problem.h"

#include "points/farthest_buckets.cuh"
#include "points/farthest_workspace.cuh"

namespace rbc::cuda {
namespace farthest {

template <class Number>
__device__ Number coordinateAt(const PointClouds& c, int64_t at) {
  switch (c.dtype) {
    case DType::F16: return static_cast<Number>(widen(static_cast<const f16*>(c.data)[at]));
    case DType::BF16: return static_cast<Number>(widen(static_cast<const bf16*>(c.data)[at]));
    case DType::F32: return static_cast<Number>(static_cast<const float*>(c.data)[at]);
    default: return static_cast<Number>(static_cast<const double*>(c.data)[at]);
  }
}

template <class Number>
__device__ bool loadPoint(const PointClouds& c, int64_t cloud, int64_t row, Number (&point)[3]) {
  bool finite = true;
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t at = cloud * c.stride[0] + row * c.stride[1] + axis * c.stride[2];
    point[axis] = coordinateAt<Number>(c, at);
    finite = finite && isFinite(point[axis]);
  }
  return finite;
}

// The points of a block.
template <class Number>
struct Source {
  const FarthestProblem& problem;
  int64_t cloud;
  RowRange range;
  Share share;

  // Whether a point is finite, by its index in the block.
  __device__ bool operator()(uint32_t at, Number (&point)[3]) const {
    return at < share.count &&
           loadPoint(problem.points, cloud, range.begin + share.first + at, point);
  }
};

// The best candidate of a warp for the first point: the first finite one from the start on, then
// from 0. Counts the finite points of each thread.
template <int kThreads, class Number>
__device__ Candidate<Number> firstOfWarp(const Source<Number>& source, int* finite) {
  const int64_t points = source.range.count;
  const int64_t start = startOf(source.problem, source.cloud, points);
  Candidate<Number> first = kNoCandidate<Number>;
  for (uint32_t at = threadIdx.x; at < source.share.count; at += kThreads) {
    Number point[3];
    if (!source(at, point)) continue;
    ++*finite;
    const uint32_t i = source.share.first + at;
    const int64_t behind = i >= start ? i - start : i + points - start;
    const auto key = static_cast<typename Order<Number>::Key>(0x80000000u - behind);
    if (key > first.key) first = {key, i};
  }
  return bestOfWarp<Number>(first);
}

// The points taken so far, in order: some in shared memory, so that no round waits for a write.
template <class Number>
struct ResultMemory {
  static constexpr int kKept = 256;
  Candidate<Number> kept[kKept];
};

template <class Number, int kThreads>
class Results {
 public:
  __device__ Results(const Source<Number>& source, ResultMemory<Number>* memory, bool writes)
      : source_(source), memory_(memory), writes_(writes), to_(sharedAddress(memory->kept)) {}

  __device__ int count() const { return written_ + kept(); }
  // The number of further points that there is room for.
  __device__ int room() const { return ResultMemory<Number>::kKept - kept(); }

  // The value of mark() after `more` further points.
  __device__ uint32_t mark(int more = 0) const { return to_ + kBytes * more; }

  // Stored by one thread.
  __device__ void add(const Candidate<Number>& candidate) {
    storeSharedIf(threadIdx.x == 0, to_, candidate.key, candidate.label);
    to_ += kBytes;
  }

  // Adds `batch` points; candidateOf(i) returns each.
  template <class CandidateOf>
  __device__ void add(int batch, CandidateOf&& candidateOf) {
    const int own = static_cast<int>(threadIdx.x);
    if (own < batch) memory_->kept[kept() + own] = candidateOf(own);
    to_ += kBytes * batch;
  }

  __device__ void write() {
    static_assert(kThreads >= ResultMemory<Number>::kKept);
    const FarthestProblem& p = source_.problem;
    const int count = kept();
    __syncthreads();
    if (writes_ && static_cast<int>(threadIdx.x) < count) {
      const Candidate<Number> taken = memory_->kept[threadIdx.x];
      const int place = written_ + static_cast<int>(threadIdx.x);
      const Number distance =
          place == 0 ? static_cast<Number>(INFINITY) : Order<Number>::distance(taken.key);
      const int64_t first_row = p.points.packed() ? source_.range.begin : 0;
      putFarthest(p, source_.cloud, place, first_row + taken.label, static_cast<double>(distance));
    }
    written_ += count;
    to_ -= kBytes * count;
    __syncthreads();
  }

  // Called when no more points follow.
  __device__ void finish() {
    write();
    const FarthestProblem& p = source_.problem;
    if (!writes_) return;
    for (int64_t k = int64_t{written_} + threadIdx.x; k < p.count; k += kThreads) {
      putFarthest(p, source_.cloud, k, -1, 0);
    }
  }

 private:
  static constexpr uint32_t kBytes = sizeof(Candidate<Number>);

  __device__ int kept() const {
    return static_cast<int>((to_ - sharedAddress(memory_->kept)) / kBytes);
  }

  const Source<Number>& source_;
  ResultMemory<Number>* memory_;
  bool writes_;  // one block writes
  int written_ = 0;
  uint32_t to_;  // address of the next point
};

// One point per round: if multiprocessors keep all points, several take longer (see the log of
// experiments).
template <class Cloud, class Number, int kThreads>
__device__ void takeOneByOne(const Source<Number>& source, Blocks<kThreads>& blocks, Cloud& points,
                             WinnerMemory<Number>* memory, Results<Number, kThreads>& results) {
  int finite = 0;
  const Candidate<Number> first =
      bestOfBlock<kThreads>(memory, firstOfWarp<kThreads>(source, &finite));
  const int count =
      static_cast<int>(min(static_cast<int64_t>(blocks.sum(finite)), source.problem.count));
  if (count == 0) return;
  Winner<Number> next = {{}, first};
  if (first.key > 0) source(first.label - source.share.first, next.position);
  next = bestOfBlocks(blocks, memory, next);
  const bool is_alone = blocks.count() == 1;
  while (results.count() < count - 1) {
    const uint32_t end = results.mark(min(count - 1 - results.count(), results.room()));
    while (results.mark() != end) {
      const uint32_t until = is_alone ? end : results.mark(1);
      auto reached = points.reachedBy(next.position);
      typename Cloud::AllOffers::Ranks ranks;
      bool goes_on;
      do {
        points.lower(next.position, reached);
        __syncthreads();
        ranks = points.offers().ranks();
        results.add(next.candidate);
        goes_on = __all_sync(~0u, (results.mark() != until) & !ranks.mayOtherBeMost());
        next = points.offers().best(ranks);
        reached = points.reachedBy(next.position);
      } while (goes_on);
      // One branch for all rare cases.
      if (__any_sync(~0u, ranks.mayOtherBeMost())) next = points.offers().firstBest(ranks);
      if (!is_alone) next = bestOfBlocks(blocks, memory, next);
    }
    if (results.room() == 0) results.write();
  }
  results.add(next.candidate);
}

// Several points per round, if they are certain.
template <class Cloud, class Number, int kThreads>
__device__ void takeBatches(const Source<Number>& source, Blocks<kThreads>& blocks, Cloud& points,
                            BatchMemory* memory, Entry<Number>* entries,
                            Results<Number, kThreads>& results) {
  int finite = 0;
  Entry<Number> own = Entry<Number>::none();
  own.best = firstOfWarp<kThreads>(source, &finite);
  if (own.best.key > 0) source(own.best.label - source.share.first, own.position);
  own.rest = ~typename Order<Number>::Key{0};  // the others are not known yet
  const int count =
      static_cast<int>(min(static_cast<int64_t>(blocks.sum(finite)), source.problem.count));
  Batches<Number, kThreads> batches(blocks, memory, entries);
  while (results.count() < count) {
    const bool is_first = results.count() == 0;
    const int batch = batches.takeSome(own, count - results.count());
    if (batch == 0) break;  // offsets overlap, and another cloud has overwritten the points
    results.add(batch, [&](int i) { return batches.taken(i).best; });
    if (results.room() < kMaxBatch) results.write();
    unsigned reaching = 0;  // points that change the thread's bucket
    for (int i = 0; i < batch; ++i) {
      const auto& taken = batches.taken(i).position;
      const Number position[3] = {taken[0], taken[1], taken[2]};
      reaching |= (points.isReached(position) ? 1u : 0u) << i;
    }
    if (is_first) own = Entry<Number>::none();  // only the first point had an entry
    if (results.count() < count) points.lower(reaching, batches, &own);
  }
}

}  // namespace farthest
}  // namespace rbc::cuda
