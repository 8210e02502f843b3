// Farthest points on the CPU: a thread a cloud, whose points lie in buckets.

#include <algorithm>
#include <atomic>

#include "points/point_buckets.h"
#include "runtime/cpu_state.h"
#include "visit_dtype.h"

namespace rbc::cpu {
namespace {

constexpr int64_t kStepsToAsk = 1 << 18;  // 100 us: whether the call is interrupted

// The finite points of a cloud, in order, and which of them is the first to take.
template <class Storage, class Number>
int64_t gather(const FarthestProblem& p, int64_t cloud, const RowRange& range,
               CloudPoint<Number>* points, int64_t* start) {
  const PointClouds& c = p.points;
  const auto* data = static_cast<const Storage*>(c.data) + cloud * c.stride[0];
  const int64_t wanted = startOf(p, cloud, range.count);
  int64_t count = 0;
  *start = -1;
  for (int64_t i = 0; i < range.count; ++i) {
    const Storage* at = data + (range.begin + i) * c.stride[1];
    CloudPoint<Number>& point = points[count];
    bool finite = true;
    for (int axis = 0; axis < 3; ++axis) {
      point.position[axis] = widen(at[axis * c.stride[2]]);
      finite = finite && isFinite(point.position[axis]);
    }
    point.index = static_cast<int32_t>(i);
    if (!finite) continue;
    if (i >= wanted && *start < 0) *start = count;
    ++count;
  }
  if (*start < 0) *start = 0;  // from the end on to the first
  return count;
}

// Returns false where the call is interrupted.
template <class Storage, class Number>
bool takeFarthest(CpuState& state, const FarthestProblem& p, int64_t cloud,
                  PointBuckets<Number>* buckets) {
  const TakePoint<Number> take = takePointFor<Number>(state.simd);
  const RowRange range = pointsOf(p.points, cloud);
  const int64_t first_row = p.points.packed() ? range.begin : 0;
  int64_t start = 0;
  const int64_t count =
      range.count == 0 ? 0 : gather<Storage>(p, cloud, range, buckets->points, &start);
  const int64_t taken = std::min(count, p.count);
  if (taken > 0) {
    CloudPoint<Number> next = buckets->points[start];
    double distance = static_cast<double>(INFINITY);
    int64_t steps = 0;
    if (taken > 1) buckets->build(count);
    for (int64_t k = 0;; ++k) {
      putFarthest(p, cloud, k, first_row + next.index, distance);
      if (k + 1 == taken) break;
      steps += take(*buckets, next.position);
      if (steps >= kStepsToAsk) {
        steps = 0;
        if (state.pool.stopsAt(-1)) return false;
      }
      const int64_t place = buckets->farthestPlace();
      for (int i = 0; i < 3; ++i) next.position[i] = buckets->position[i][place];
      next.index = buckets->index[place];
      distance = static_cast<double>(buckets->distance[place]);
    }
  }
  for (int64_t k = taken; k < p.count; ++k) putFarthest(p, cloud, k, -1, 0);
  return true;
}

// Clouds that are worked on at a time, each with room for the largest.
int64_t slotsOf(const CpuState& state, const FarthestProblem& p) {
  return std::min<int64_t>(p.points.clouds, state.pool.threads());
}

template <class Number>
PointBuckets<Number> slot(ScratchLayout* layout, const FarthestProblem& p) {
  return PointBuckets<Number>::in(layout, std::max<int64_t>(1, p.points.rows));
}

size_t bytes(const BackendState& backend_state, const FarthestProblem& p) {
  ScratchLayout layout(nullptr);
  visitNumber(p.points.dtype, [&](auto tag) {
    const int64_t slots = slotsOf(static_cast<const CpuState&>(backend_state), p);
    for (int64_t i = 0; i < slots; ++i) slot<typename decltype(tag)::type>(&layout, p);
  });
  return layout.used();
}

void run(BackendState& backend_state, const FarthestProblem& p, Scratch scratch) {
  CpuState& state = cpuState(backend_state);
  std::atomic<int64_t> next{0};
  const int64_t slots = slotsOf(state, p);
  visitFloat(p.points.dtype, [&](auto tag) {
    using Storage = typename decltype(tag)::type;
    using Number = Compute<Storage>;
    state.pool.parallelFor(slots, state.pool.threads(), [&](int64_t i) {
      ScratchLayout layout(scratch.data);
      PointBuckets<Number> buckets = slot<Number>(&layout, p);
      for (int64_t k = 0; k < i; ++k) buckets = slot<Number>(&layout, p);
      for (int64_t cloud; (cloud = next.fetch_add(1)) < p.points.clouds;) {
        if (!takeFarthest<Storage>(state, p, cloud, &buckets)) return;
      }
    });
  });
}

}  // namespace

extern const Operation<FarthestProblem> kFarthestPoints = {bytes, run};

}  // namespace rbc::cpu
