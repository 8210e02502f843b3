// A point is taken: what that changes of the distances in buckets.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "points/take_point.cpp"
#include "runtime/simd_targets.h"
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "hwy/highway.h"
#include "number.h"
#include "points/point_buckets.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {

// Groups have a length that is known, and no branches: compilers make vectors of them.
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

template <class Number>
TakePoint<Number> takePointFor(SimdLevel level) {
  return RBC_AT_LEVEL(level, takePoint<Number>);
}

template TakePoint<float> takePointFor(SimdLevel level);
template TakePoint<double> takePointFor(SimdLevel level);

}  // namespace rbc::cpu
#endif
