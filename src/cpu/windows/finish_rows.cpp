#include "windows/finish_rows.h"

#include <algorithm>

#include "element_of.h"
#include "real.h"
#include "window.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "windows/finish_rows.cpp"
#include "runtime/simd_targets.h"

#include "hwy/foreach_target.h"

#include "fuse/convert-inl.h"
#include "hwy/highway.h"
#include "visit_dtype.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_STATIC_TARGET

template <class In, class Out>
void finishRow(const FinishTile<Compute<In>>& tile, const RowConstants<Compute<In>>& k,
               const In* from, Out* to) {
  for (int64_t c = 0; c < tile.channels; ++c) {
    auto x = widen(from[c]);
    if (tile.reference != nullptr) x = x - tile.reference[c];
    if (k.shift != nullptr) x = normalized(x, k.shift[c], k.scale[c], k.bias[c], tile.divides);
    if (k.low != nullptr) x = clipped(x, k.low[c], k.high[c]);
    to[c] = narrow<Out>(x);
  }
}

#else

template <class V>
HWY_INLINE V scaled(V x, V scale, bool divides) {
  return divides ? hn::Div(x, scale) : hn::Mul(x, scale);
}

template <class In, class Out>
HWY_INLINE void finishRow(const FinishTile<Compute<In>>& tile,
                          const RowConstants<Compute<In>>& constants, const In* from, Out* to) {
  const RowConstants<Compute<In>> k = constants;
  const Compute<In>* const reference = tile.reference;
  const bool divides = tile.divides;
  const auto finish = [&](auto d, int64_t c) RBC_BODY_ATTR {
    auto x = HWY_NAMESPACE::loadWide(d, from + c);
    if (reference != nullptr) x = hn::Sub(x, hn::LoadU(d, reference + c));
    if (k.shift != nullptr) {
      x = hn::Sub(x, hn::LoadU(d, k.shift + c));
      x = scaled(x, hn::LoadU(d, k.scale + c), divides);
      x = hn::Add(x, hn::LoadU(d, k.bias + c));
    }
    if (k.low != nullptr) {
      const auto low = hn::LoadU(d, k.low + c);
      const auto high = hn::LoadU(d, k.high + c);
      x = hn::IfThenElse(hn::Lt(x, low), low, x);
      x = hn::IfThenElse(hn::Gt(x, high), high, x);
    }
    HWY_NAMESPACE::storeNarrow(d, x, to + c);
  };
  HWY_NAMESPACE::cover(WidestTag<Compute<In>, Out>(), tile.channels, finish);
}

#endif

template <class In, class Out>
void finishRows(const FinishTile<Compute<In>>& tile) {
  RowConstants<Compute<In>> k = tile.constants;
  const auto advance = [&](const Compute<In>** at) {
    if (*at != nullptr) *at += tile.constants_step;
  };
  for (int i = 0; i < tile.count; ++i) {
    auto* out = reinterpret_cast<Out*>(tile.out + i * tile.out_step);
    if (tile.rows[i] == nullptr) {
      std::fill_n(out, tile.channels, elementOf<Out>(tile.fill_bits));
    } else if (tile.channels > 0) {
      finishRow(tile, k, reinterpret_cast<const In*>(tile.rows[i]), out);
    }
    if (tile.constants_step == 0) continue;
    advance(&k.shift);
    advance(&k.scale);
    advance(&k.bias);
    advance(&k.low);
    advance(&k.high);
  }
}

template <class Number>
FinishFunction<Number> finishFunctionFor(DType in, DType out) {
  return visitFloat(in, [&](auto in_tag) {
    return visitFloat(out, [&](auto out_tag) -> FinishFunction<Number> {
      using In = typename decltype(in_tag)::type;
      using Out = typename decltype(out_tag)::type;
      if constexpr (std::is_same_v<Compute<In>, Number>) {
        return finishRows<In, Out>;
      } else {
        return nullptr;
      }
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rbc::cpu {

template <class Number>
FinishFunction<Number> finishFunction(SimdLevel level, DType in, DType out) {
  return RBC_AT_LEVEL(level, finishFunctionFor<Number>)(in, out);
}

template FinishFunction<float> finishFunction(SimdLevel, DType, DType);
template FinishFunction<double> finishFunction(SimdLevel, DType, DType);

}  // namespace rbc::cpu
#endif  // HWY_ONCE
