#include "fuse/ascending.h"

#include <type_traits>

#include "fuse_problem.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fuse/ascending.cpp"
#include "runtime/simd_targets.h"

#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_STATIC_TARGET

template <class Time>
bool stepsAscend(const Time* times, int64_t n) {
  bool bad = false;
  for (int64_t i = 1; i < n; ++i) bad |= badStep(times[i - 1], times[i]);
  return !bad;
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// Lanes whose step is bad. A NaN that comes first is bad as well: its own step is, one before.
template <class D, class Time>
HWY_INLINE hn::Mask<D> badSteps(D d, const Time* to) {
  const auto time = hn::LoadU(d, to);
  const auto previous = hn::LoadU(d, to - 1);
  if constexpr (std::is_integral_v<Time>) {
    return hn::Lt(time, previous);
  } else {
    return hn::Not(hn::Le(previous, time));
  }
}

template <class Time>
bool stepsAscend(const Time* times, int64_t n) {
  const hn::ScalableTag<Time> d;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<Time>()));
  if (n <= kLanes) {
    bool bad = false;
    for (int64_t i = 1; i < n; ++i) bad |= badStep(times[i - 1], times[i]);
    return !bad;
  }
  auto bad = badSteps(d, times + n - kLanes);  // the end, which what follows may take again
  int64_t i = 1;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    bad = hn::Or(bad, hn::Or(badSteps(d, times + i), badSteps(d, times + i + kLanes)));
  }
  if (i + kLanes <= n) bad = hn::Or(bad, badSteps(d, times + i));
  return hn::AllFalse(d, bad);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rbc::cpu {

template <class Time>
bool ascends(SimdLevel level, const Time* times, int64_t n) {
  if (TimeMath<Time>::isNaN(times[0])) return false;
  return RBC_AT_LEVEL(level, stepsAscend<Time>)(times, n);
}

template bool ascends(SimdLevel, const float*, int64_t);
template bool ascends(SimdLevel, const double*, int64_t);
template bool ascends(SimdLevel, const int64_t*, int64_t);

}  // namespace rbc::cpu
#endif  // HWY_ONCE
