// The loop over values around a bracket, for every SIMD level.

#include "statistics/bracket_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "statistics/bracket_tile.cpp"
#include "runtime/simd_targets.h"

#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {

template <class Number>
int64_t bracketRest(const Number* values, int64_t begin, int64_t end, Number low, Number high,
                    BracketCounts* counts, Number* kept) {
  int64_t within = 0;
  for (int64_t i = begin; i < end; ++i) {
    const Number x = values[i];
    counts->below_low += x < low ? 1 : 0;
    counts->up_to_low += x <= low ? 1 : 0;
    counts->up_to_high += x <= high ? 1 : 0;
    if (x > low && x < high) kept[within++] = x;
  }
  return within;
}

#if HWY_TARGET == HWY_STATIC_TARGET

template <bool kWithEnds, class Number>
int64_t bracketTile(const Number* values, int64_t count, Number low, Number high,
                    BracketCounts* counts, Number* kept) {
  return HWY_NAMESPACE::bracketRest(values, 0, count, low, high, counts, kept);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

template <bool kWithEnds, class Number>
int64_t bracketTile(const Number* values, int64_t count, Number low, Number high,
                    BracketCounts* counts, Number* kept) {
  const hn::ScalableTag<Number> d;
  const hn::RebindToSigned<decltype(d)> di;
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<Number>()));
  const auto lower = hn::Set(d, low);
  const auto upper = hn::Set(d, high);
  auto below_low = hn::Zero(di);
  auto up_to_low = hn::Zero(di);
  auto up_to_high = hn::Zero(di);
  int64_t within = 0;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const auto x = hn::LoadU(d, values + i);
    up_to_low = hn::Sub(up_to_low, hn::VecFromMask(di, hn::RebindMask(di, hn::Le(x, lower))));
    if constexpr (kWithEnds) {
      below_low = hn::Sub(below_low, hn::VecFromMask(di, hn::RebindMask(di, hn::Lt(x, lower))));
      up_to_high = hn::Sub(up_to_high, hn::VecFromMask(di, hn::RebindMask(di, hn::Le(x, upper))));
    }
    // Not CompressStore(): where compressing to memory is slow, it takes at least 100 cycles. No
    // branch for empty masks either: it could not be predicted.
    const auto inside = hn::And(hn::Gt(x, lower), hn::Lt(x, upper));
    hn::StoreU(hn::Compress(x, inside), d, kept + within);
    within += static_cast<int64_t>(hn::CountTrue(d, inside));
  }
  counts->below_low += hn::GetLane(hn::SumOfLanes(di, below_low));
  counts->up_to_low += hn::GetLane(hn::SumOfLanes(di, up_to_low));
  counts->up_to_high += hn::GetLane(hn::SumOfLanes(di, up_to_high));
  return within + HWY_NAMESPACE::bracketRest(values, i, count, low, high, counts, kept + within);
}

#endif

template <class Number>
BracketTile<Number> tileFor(bool with_ends) {
  return with_ends ? bracketTile<true, Number> : bracketTile<false, Number>;
}

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rbc::cpu {

template <>
BracketTile<float> bracketTileFor(SimdLevel level, bool with_ends) {
  return RBC_AT_LEVEL(level, tileFor<float>)(with_ends);
}
template <>
BracketTile<double> bracketTileFor(SimdLevel level, bool with_ends) {
  return RBC_AT_LEVEL(level, tileFor<double>)(with_ends);
}

}  // namespace rbc::cpu
#endif  // HWY_ONCE
