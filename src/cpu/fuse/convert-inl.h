// Loads and stores vectors of floats: the conversions of real.h, bit for bit, per SIMD level.
//
// A tag D has the lanes of a vector in the compute type; vectors of other types have as many.

// Highway's include guard for code that is compiled once per target.
#if defined(RBC_CPU_CONVERT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RBC_CPU_CONVERT_INL_H
#undef RBC_CPU_CONVERT_INL_H
#else
#define RBC_CPU_CONVERT_INL_H
#endif

#include <cstdint>
#include <type_traits>

#include "dtype.h"
#include "hwy/highway.h"
#include "real.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_STATIC_TARGET

namespace hn = hwy::HWY_NAMESPACE;

// The widest tag for which both the compute type and the storage type Out fit a vector.
template <class Number, class Out>
using WidestTag =
    hn::Rebind<Number,
               hn::ScalableTag<std::conditional_t<(sizeof(Out) > sizeof(Number)), Out, Number>>>;

// Number of vectors in a cache line of 64 bytes, for a type of `bytes`.
template <class D>
constexpr int64_t vectorsOfLine(size_t bytes) {
  const auto line = static_cast<int64_t>(64 / (hn::MaxLanes(D()) * bytes));
  return line > 1 ? line : 1;
}

// Calls body(tag, c) for vectors at c that cover 0 .. count - 1. The last may begin in the one
// before; they are shorter than D if D has more than `count` lanes. They are processed in groups
// while enough remain, which saves short vectors most of the loop; before(c) is called for each
// group.
template <int64_t kGroup, class D, class Before, class Body>
HWY_INLINE void coverInGroups(D d, int64_t count, Before&& before, Body&& body) {
  constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(D()));
  if constexpr (kStep > 1) {
    if (count < kStep) {
      HWY_NAMESPACE::coverInGroups<1>(hn::Half<D>(), count, before, body);
      return;
    }
  }
  int64_t c = 0;
  if constexpr (kGroup > 1) {
    for (; c + kGroup * kStep <= count; c += kGroup * kStep) {
      before(c);
      for (int64_t v = 0; v < kGroup; ++v) body(d, c + v * kStep);
    }
  }
  for (; c + kStep <= count; c += kStep) {
    before(c);
    body(d, c);
  }
  if (c < count) {
    before(count - kStep);
    body(d, count - kStep);
  }
}

template <class D, class Body>
HWY_INLINE void cover(D d, int64_t count, Body&& body) {
  HWY_NAMESPACE::coverInGroups<vectorsOfLine<D>(sizeof(hn::TFromD<D>))>(
      d, count, [](int64_t) HWY_ATTR {}, body);
}

// ---- load to the compute type -------------------------------------------------------------------

template <class D>
HWY_INLINE hn::Vec<D> loadWide(D d, const hn::TFromD<D>* from) {
  return hn::LoadU(d, from);
}

template <class D>
HWY_INLINE hn::Vec<D> loadWide(D d, const bf16* from) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<uint32_t, D> d32;
  const auto bits = hn::LoadU(d16, &from->bits);
#if HWY_ARCH_ARM_A64
  if constexpr (hn::MaxLanes(D()) == 4) {  // a single instruction
    return hn::BitCast(d, hn::Vec<decltype(d32)>(vshll_n_u16(bits.raw, 16)));
  }
#endif
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
}

template <class D>
HWY_INLINE hn::Vec<D> loadWide(D d, const f16* from) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<hwy::float16_t, D> half;
  return hn::PromoteTo(d, hn::BitCast(half, hn::LoadU(d16, &from->bits)));
}

// ---- store from the compute type ----------------------------------------------------------------

template <class D>
HWY_INLINE hn::Vec<D> oneNaN(D d, hn::Vec<D> x) {
  using Bits = hn::TFromD<hn::RebindToUnsigned<D>>;
  const auto nan =
      hn::BitCast(d, hn::Set(hn::RebindToUnsigned<D>(), static_cast<Bits>(~Bits{0} >> 1)));
  return hn::IfThenElse(hn::Eq(x, x), x, nan);  // NEON has no comparison for "unequal"
}

// toOdd of real.h; D is a tag of doubles.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<float, D>> toOddFloat(D d, hn::Vec<D> x) {
  const hn::Rebind<float, D> d32;
  const hn::Rebind<uint32_t, D> u32;
  const hn::Rebind<uint64_t, D> u64;
  const auto nearest = hn::DemoteTo(d32, x);
  const auto back = hn::PromoteTo(d, nearest);
  const auto lossy = hn::VecFromMask(d, hn::Ne(back, x));
  const auto away = hn::VecFromMask(d, hn::Gt(hn::Abs(back), hn::Abs(x)));
  const auto down = hn::TruncateTo(u32, hn::BitCast(u64, away));  // -1 where it rounded away from 0
  const auto odd = hn::ShiftRight<31>(hn::TruncateTo(u32, hn::BitCast(u64, lossy)));
  return hn::BitCast(d32, hn::Or(hn::Add(hn::BitCast(u32, nearest), down), odd));
}

template <class D>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, D>> narrow16(D d, hn::Vec<D> x, Tag<f16>) {
  const hn::Rebind<hwy::float16_t, D> half;
  const hn::Rebind<uint16_t, D> d16;
  return hn::BitCast(d16, hn::DemoteTo(half, HWY_NAMESPACE::oneNaN(d, x)));
}

template <class D>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, D>> narrow16(D, hn::Vec<D> x, Tag<bf16>) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<uint32_t, D> d32;
  const auto bits = hn::BitCast(d32, x);
  const auto half = hn::Set(d32, 0x7fffu);
  const auto nan = hn::Set(d32, 0x7fff0000u);
  const auto is_number = hn::RebindMask(d32, hn::Eq(x, x));
#if HWY_ARCH_ARM_A64
  if constexpr (hn::MaxLanes(D()) == 4) {  // fewer instructions
    const hn::Vec<decltype(d32)> rounded(
        vsraq_n_u32(hn::Add(bits, half).raw, hn::ShiftLeft<15>(bits).raw, 31));
    const auto chosen = hn::IfThenElse(is_number, rounded, nan);
    return hn::Vec<decltype(d16)>(vshrn_n_u32(chosen.raw, 16));
  }
#endif
  const auto last = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1u));
  const auto rounded = hn::Add(bits, hn::Add(last, half));
  return hn::TruncateTo(d16, hn::ShiftRight<16>(hn::IfThenElse(is_number, rounded, nan)));
}

// As a vector of Out; if Out is a 16-bit float, as a vector of its bits.
template <class Out, class D>
HWY_INLINE auto narrowed(D d, hn::Vec<D> x) {
  using Number = hn::TFromD<D>;
  if constexpr (std::is_same_v<Out, Number>) {
    return HWY_NAMESPACE::oneNaN(d, x);
  } else if constexpr (std::is_same_v<Out, double>) {
    const hn::Rebind<double, D> d64;
    return HWY_NAMESPACE::oneNaN(d64, hn::PromoteTo(d64, x));
  } else if constexpr (std::is_same_v<Out, float>) {
    const hn::Rebind<float, D> d32;
    return HWY_NAMESPACE::oneNaN(d32, hn::DemoteTo(d32, x));
  } else if constexpr (std::is_same_v<Number, double>) {
    const hn::Rebind<float, D> d32;
    return HWY_NAMESPACE::narrow16(d32, HWY_NAMESPACE::toOddFloat(d, x), Tag<Out>());
  } else {
    return HWY_NAMESPACE::narrow16(d, x, Tag<Out>());
  }
}

// The element type in memory of a vector for Out.
template <class T>
HWY_INLINE T* lanesAt(T* to) {
  return to;
}
HWY_INLINE uint16_t* lanesAt(f16* to) { return &to->bits; }
HWY_INLINE uint16_t* lanesAt(bf16* to) { return &to->bits; }

template <class D, class Out>
HWY_INLINE void storeNarrow(D d, hn::Vec<D> x, Out* to) {
  auto* lanes = HWY_NAMESPACE::lanesAt(to);
  hn::StoreU(HWY_NAMESPACE::narrowed<Out>(d, x), hn::Rebind<std::decay_t<decltype(*lanes)>, D>(),
             lanes);
}

// Stores past the caches, if the vector has at least 16 bytes; `to` is aligned to it.
template <class D, class Out>
HWY_INLINE void storeNarrowNontemporal(D d, hn::Vec<D> x, Out* to) {
  if constexpr (hn::MaxLanes(D()) * sizeof(Out) < 16) {
    HWY_NAMESPACE::storeNarrow(d, x, to);
  } else {
    auto* lanes = HWY_NAMESPACE::lanesAt(to);
    const hn::Rebind<std::decay_t<decltype(*lanes)>, D> storage;
    hn::Stream(HWY_NAMESPACE::narrowed<Out>(d, x), storage, lanes);
  }
}

#endif  // HWY_TARGET != HWY_STATIC_TARGET
}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
