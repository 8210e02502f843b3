// Vectors as numbers: the functions that number.h requires, so that the formulas process as many
// channels at a time as a SIMD level has lanes. At the portable level a number is a scalar.

// Highway's include guard for code that is compiled once per target.
#if defined(RBC_CPU_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RBC_CPU_LANES_INL_H
#undef RBC_CPU_LANES_INL_H
#else
#define RBC_CPU_LANES_INL_H
#endif

#include <limits>

#include "hermite.h"
#include "hwy/highway.h"
#include "interpolate.h"
#include "number.h"
#include "slerp.h"

HWY_BEFORE_NAMESPACE();

#if HWY_TARGET == HWY_STATIC_TARGET

namespace rbc::cpu {
namespace HWY_NAMESPACE {

using rbc::cubic;
using rbc::isRotation;
using rbc::lerp;
using rbc::lerpAngle;
using rbc::lerpInTurn;
using rbc::normalized;
using rbc::pchip;
using rbc::slerp;

// The widest number for a scalar.
template <class S>
using Wide = S;
template <class V>
constexpr int64_t kLanes = 1;
template <class V>
constexpr bool kHasHalf = false;
template <class V>
using HalfOf = V;

template <class V>
HWY_INLINE V load(const Scalar<V>* from) {
  return *from;
}
template <class V>
HWY_INLINE void store(V x, Scalar<V>* to) {
  *to = x;
}
template <class V>
HWY_INLINE void loadQuaternions(const Scalar<V>* from, V (&q)[4]) {
  for (int i = 0; i < 4; ++i) q[i] = from[i];
}
template <class V>
HWY_INLINE void storeQuaternions(const V (&q)[4], Scalar<V>* to) {
  for (int i = 0; i < 4; ++i) to[i] = q[i];
}
// Whether the first `count` lanes are positive and finite.
template <class V>
HWY_INLINE bool allPositive(V x, int64_t) {
  return x > 0 && x < std::numeric_limits<V>::infinity();
}

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu

#else

namespace rbc::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class Tag>
struct Lanes {
  using D = Tag;
  using S = hn::TFromD<D>;

  Lanes() = default;
  HWY_INLINE explicit Lanes(S x) : lanes(hn::Set(D(), x)) {}
  HWY_INLINE explicit Lanes(hn::Vec<D> x) : lanes(x) {}

  hn::Vec<D> lanes;
};

// Outside of the class: GCC compiles friends defined in a class without the flags of the level.
template <class D>
HWY_INLINE Lanes<D> operator+(Lanes<D> a, Lanes<D> b) {
  return Lanes<D>(hn::Add(a.lanes, b.lanes));
}
template <class D>
HWY_INLINE Lanes<D> operator-(Lanes<D> a, Lanes<D> b) {
  return Lanes<D>(hn::Sub(a.lanes, b.lanes));
}
template <class D>
HWY_INLINE Lanes<D> operator*(Lanes<D> a, Lanes<D> b) {
  return Lanes<D>(hn::Mul(a.lanes, b.lanes));
}
template <class D>
HWY_INLINE Lanes<D> operator/(Lanes<D> a, Lanes<D> b) {
  return Lanes<D>(hn::Div(a.lanes, b.lanes));
}
template <class D>
HWY_INLINE hn::Mask<D> operator<(Lanes<D> a, Lanes<D> b) {
  return hn::Lt(a.lanes, b.lanes);
}
template <class D>
HWY_INLINE hn::Mask<D> operator>(Lanes<D> a, Lanes<D> b) {
  return hn::Gt(a.lanes, b.lanes);
}
template <class D>
HWY_INLINE hn::Mask<D> operator==(Lanes<D> a, Lanes<D> b) {
  return hn::Eq(a.lanes, b.lanes);
}

template <class D>
HWY_INLINE Lanes<D> mulAdd(Lanes<D> a, Lanes<D> b, Lanes<D> c) {
  return Lanes<D>(hn::MulAdd(a.lanes, b.lanes, c.lanes));
}

template <class D>
HWY_INLINE Lanes<D> divide(Lanes<D> a, Lanes<D> b) {
  return a / b;
}

template <class D>
HWY_INLINE Lanes<D> roundEven(Lanes<D> x) {
  return Lanes<D>(hn::Round(x.lanes));
}

template <class D>
HWY_INLINE Lanes<D> select(hn::Mask<D> condition, Lanes<D> yes, Lanes<D> no) {
  return Lanes<D>(hn::IfThenElse(condition, yes.lanes, no.lanes));
}

template <class D>
HWY_INLINE bool allFinite(Lanes<D> x) {
  return hn::AllTrue(D(), hn::IsFinite(x.lanes));
}

template <class D>
HWY_INLINE bool areWithin(Lanes<D> x, Lanes<D> y, hn::TFromD<D> limit) {
  const auto most = hn::Set(D(), limit);
  return hn::AllTrue(D(), hn::And(hn::Le(hn::Abs(x.lanes), most), hn::Le(hn::Abs(y.lanes), most)));
}

template <class D>
HWY_INLINE Lanes<D> clamp(Lanes<D> x, Lanes<D> low, Lanes<D> high) {
  const Lanes<D> at_least = select(x < low, low, x);
  return select(at_least > high, high, at_least);
}

template <class D>
HWY_INLINE Lanes<D> toUnit(Lanes<D> x) {
  using Bits = FloatBits<hn::TFromD<D>>;
  const hn::RebindToUnsigned<D> d;
  const auto bits = hn::BitCast(d, x.lanes);
  const auto exponent = hn::And(bits, hn::Set(d, Bits::kExponent));
  const auto sign = hn::And(bits, hn::Set(d, Bits::kSign));
  const auto turned = hn::Sub(hn::Set(d, Bits::kTwiceOne), exponent);
  return Lanes<D>(hn::BitCast(D(), hn::Or(turned, sign)));
}

template <class D>
HWY_INLINE Lanes<D> rootGuess(Lanes<D> x) {
  using Bits = FloatBits<hn::TFromD<D>>;
  const hn::RebindToUnsigned<D> d;
  const auto half = hn::ShiftRight<1>(hn::BitCast(d, x.lanes));
  return Lanes<D>(hn::BitCast(D(), hn::Sub(hn::Set(d, Bits::kRoot), half)));
}

// The widest number for a scalar.
template <class S>
using Wide = Lanes<hn::ScalableTag<S>>;
template <class V>
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(typename V::D()));
// Half of it, but at least 16 bytes.
template <class V>
constexpr bool kHasHalf = kLanes<V> * sizeof(Scalar<V>) > 16;
template <class V>
using HalfOf = Lanes<hn::Half<typename V::D>>;

template <class V>
HWY_INLINE V load(const Scalar<V>* from) {
  return V(hn::LoadU(typename V::D(), from));
}
template <class V>
HWY_INLINE void store(V x, Scalar<V>* to) {
  hn::StoreU(x.lanes, typename V::D(), to);
}

// As many quaternions as lanes, each component in a separate vector.
template <class V>
HWY_INLINE void loadQuaternions(const Scalar<V>* from, V (&q)[4]) {
  hn::LoadInterleaved4(typename V::D(), from, q[0].lanes, q[1].lanes, q[2].lanes, q[3].lanes);
}
template <class V>
HWY_INLINE void storeQuaternions(const V (&q)[4], Scalar<V>* to) {
  hn::StoreInterleaved4(q[0].lanes, q[1].lanes, q[2].lanes, q[3].lanes, typename V::D(), to);
}
template <class V>
HWY_INLINE bool allPositive(V x, int64_t count) {
  const typename V::D d;
  auto holds = hn::And(hn::Gt(x.lanes, hn::Zero(d)), hn::Lt(x.lanes, hn::Inf(d)));
  if (count < kLanes<V>) {
    holds = hn::Or(holds, hn::Not(hn::FirstN(d, static_cast<size_t>(count))));
  }
  return hn::AllTrue(d, holds);
}

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu

template <class D>
struct rbc::ScalarOf<rbc::cpu::HWY_NAMESPACE::Lanes<D>> {
  using type = hwy::HWY_NAMESPACE::TFromD<D>;
};

// The formulas, once more in this level's namespace.
#define RBC_FORMULAS_AGAIN
#undef RBC_FORMULAS
#define RBC_FORMULAS rbc::cpu::HWY_NAMESPACE
#include "hermite.h"  // and interpolate.h
#include "slerp.h"
#undef RBC_FORMULAS_AGAIN
#undef RBC_FORMULAS
#define RBC_FORMULAS rbc

#endif  // HWY_TARGET == HWY_STATIC_TARGET

HWY_AFTER_NAMESPACE();

#endif  // include guard
