// Farthest points on the CPU: one thread per cloud, whose points are in buckets.

#include <algorithm>
#include <atomic>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "points/farthest_points.cpp"
#include "runtime/simd_targets.h"
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "hwy/highway.h"
#include "number.h"
#include "points/point_buckets.h"
#include "runtime/cpu_state.h"
#include "visit_dtype.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {

// Groups have a fixed length, and there are no branches, so that compilers vectorize the loop.
template <class Number>
void lowerDistances(const PointBuckets<Number>& b, int64_t bucket, const Number (&taken)[3]) {
  using Bits = typename PointBuckets<Number>::Bits;
  const Number* __restrict x = b.position[0];
  const Number* __restrict y = b.position[1];
  const Number* __restrict z = b.position[2];
  Number* __restrict distance = b.distance;
  const Number at[3] = {taken[0], taken[1], taken[2]};
  Bits farthest[kGroup];
  for (int j = 0; j < kGroup; ++j) farthest[j] = -1;
  const int64_t end = b.endPlace(bucket);
  for (int64_t first = b.beginPlace(bucket); first < end; first += kGroup) {
    for (int j = 0; j < kGroup; ++j) {
      const int64_t i = first + j;
      const Number d = squaredDistance(x[i] - at[0], y[i] - at[1], z[i] - at[2]);
      const Number least = d < distance[i] ? d : distance[i];
      distance[i] = least;
      const auto bits = bitCast<Bits>(least);
      farthest[j] = bits > farthest[j] ? bits : farthest[j];
    }
  }
  Bits most = -1;
  for (int j = 0; j < kGroup; ++j) most = farthest[j] > most ? farthest[j] : most;
  b.farthest[bucket] = most;
}

// Takes a point: lowers the distances to it. Returns the number of steps.
template <class Number>
int64_t takePoint(const PointBuckets<Number>& b, const Number (&taken)[3]) {
  using Bits = typename PointBuckets<Number>::Bits;
  const Number at[3] = {taken[0], taken[1], taken[2]};
  int64_t steps = b.count;
  for (int64_t first = 0; first < b.count; first += kGroup) {
    Bits changes[kGroup];
    Bits any = 0;
    for (int j = 0; j < kGroup; ++j) {
      Number gap[3];
      for (int i = 0; i < 3; ++i) {
        const Number below = b.low[i][first + j] - at[i];
        const Number above = at[i] - b.high[i][first + j];
        const Number beyond = below > above ? below : above;
        gap[i] = beyond > 0 ? beyond : 0;
      }
      const auto bits = bitCast<Bits>(squaredDistance(gap[0], gap[1], gap[2]));
      changes[j] = bits < b.farthest[first + j] ? 1 : 0;
      any |= changes[j];
    }
    if (any == 0) continue;
    for (int j = 0; j < kGroup; ++j) {
      if (changes[j] == 0) continue;
      lowerDistances(b, first + j, taken);
      steps += b.endPlace(first + j) - b.beginPlace(first + j);
    }
  }
  return steps;
}

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rbc::cpu {
namespace {

constexpr int64_t kStepsToAsk = 1 << 18;  // 100 us between checks for an interrupt

// Collects the finite points of a cloud, in order, and the first one to take.
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
  if (*start < 0) *start = 0;  // wraps from the end to the first
  return count;
}

// Returns false if the call is interrupted.
template <class Storage, class Number>
bool takeFarthest(CpuState& state, const FarthestProblem& p, int64_t cloud,
                  PointBuckets<Number>* buckets) {
  const auto take = RBC_AT_LEVEL(state.simd, takePoint<Number>);
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

// Number of clouds that are processed at a time, each with room for the largest.
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
#endif  // HWY_ONCE
