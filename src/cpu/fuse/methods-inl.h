// The methods on blocks of channels in the compute type, with all lanes of a level.
//
// Blocks are processed in whole vectors, for slerp four at a time.

// Highway's include guard for code that is compiled once per target.
#if defined(RBC_CPU_METHODS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RBC_CPU_METHODS_INL_H
#undef RBC_CPU_METHODS_INL_H
#else
#define RBC_CPU_METHODS_INL_H
#endif

#include "fuse/lanes-inl.h"
#include "hwy/highway.h"
#include "locate.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {

// Rows v0 .. v3 around a query, from the block's first channel on.
template <class Number>
struct Samples {
  const Number* v[4];
};

template <class Number>
using MethodFunction = void (*)(const Samples<Number>& samples, const Weights<Number>& k,
                                int64_t count, Number* to);

// Calls value(c) for the vector at each channel c; short vectors in groups of four while enough
// remain.
template <class V, class Value>
HWY_INLINE void fillBlock(int64_t count, Scalar<V>* to, Value&& value) {
  int64_t c = 0;
  if constexpr (kLanes < V >> 1 && kLanes<V> * sizeof(Scalar<V>) <= 16) {
    for (; c + 4 * kLanes<V> <= count; c += 4 * kLanes<V>) {
      for (int64_t v = 0; v < 4; ++v) {
        HWY_NAMESPACE::store<V>(value(c + v * kLanes<V>), to + (c + v * kLanes<V>));
      }
    }
  }
  for (; c < count; c += kLanes<V>) HWY_NAMESPACE::store<V>(value(c), to + c);
}

template <class V>
HWY_INLINE V valueAt(const Samples<Scalar<V>>& s, int sample, int64_t c) {
  return HWY_NAMESPACE::load<V>(s.v[sample] + c);
}

template <class Number, class V = Wide<Number>>
void linearBlock(const Samples<Number>& s, const Weights<Number>& k, int64_t count, Number* to) {
  const V w(k.w);
  fillBlock<V>(count, to, [&](int64_t c) HWY_ATTR {
    return HWY_NAMESPACE::lerp(valueAt<V>(s, 1, c), valueAt<V>(s, 2, c), w);
  });
}

template <class Number, class V = Wide<Number>>
void angleBlock(const Samples<Number>& s, const Weights<Number>& k, int64_t count, Number* to) {
  const V w(k.w);
  fillBlock<V>(count, to, [&](int64_t c) HWY_ATTR {
    return HWY_NAMESPACE::lerpAngle(valueAt<V>(s, 1, c), valueAt<V>(s, 2, c), w);
  });
}

// Also for a weight of 0.
template <class Number, class V = Wide<Number>>
void turnBlock(const Samples<Number>& s, Number weight, const Turn<Number>& turn, int64_t count,
               Number* to) {
  const V w(weight);
  fillBlock<V>(count, to, [&](int64_t c) HWY_ATTR {
    return HWY_NAMESPACE::lerpInTurn(valueAt<V>(s, 1, c), valueAt<V>(s, 2, c), w, turn);
  });
}

template <class Number, class V = Wide<Number>>
void cubicBlock(const Samples<Number>& s, const Weights<Number>& k, int64_t count, Number* to) {
  fillBlock<V>(count, to, [&](int64_t c) HWY_ATTR {
    return HWY_NAMESPACE::cubic(valueAt<V>(s, 0, c), valueAt<V>(s, 1, c), valueAt<V>(s, 2, c),
                                valueAt<V>(s, 3, c), k);
  });
}

template <class Number, class V = Wide<Number>>
void pchipBlock(const Samples<Number>& s, const Weights<Number>& k, int64_t count, Number* to) {
  fillBlock<V>(count, to, [&](int64_t c) HWY_ATTR {
    return HWY_NAMESPACE::pchip(valueAt<V>(s, 0, c), valueAt<V>(s, 1, c), valueAt<V>(s, 2, c),
                                valueAt<V>(s, 3, c), k);
  });
}

// Whether the quaternions of `count` channels are certainly rotations, by their squared norms. If
// these overflow or vanish, isRotation() must decide.
template <class Number, class V = Wide<Number>>
bool areRotations(const Number* channels, int64_t count) {
  bool sure = true;
  for (int64_t c = 0; c < count; c += 4 * kLanes<V>) {
    V q[4];
    HWY_NAMESPACE::loadQuaternions(channels + c, q);
    sure &= HWY_NAMESPACE::allPositive(detail::dot(q, q), (count - c) / 4);
  }
  return sure;
}

// The same for pairs of quaternions in vectors.
template <class V>
HWY_INLINE bool areRotations(const V (&q1)[4], const V (&q2)[4], int64_t count) {
  return HWY_NAMESPACE::allPositive(detail::dot(q1, q1) * detail::dot(q2, q2), count / 4);
}

// Few quaternions use shorter vectors, which are quicker to split and join. Returns areRotations()
// of both samples.
template <class Number, class V = Wide<Number>>
bool slerpBlock(const Samples<Number>& s, const Weights<Number>& k, int64_t count, Number* to) {
  constexpr int64_t kStep = 4 * kLanes<V>;
  if constexpr (kHasHalf<V>) {
    if (2 * count <= kStep) return slerpBlock<Number, HalfOf<V>>(s, k, count, to);
  }
  const V w(k.w);
  bool sure = true;
  for (int64_t c = 0; c < count; c += kStep) {
    V q1[4];
    V q2[4];
    V q[4];
    HWY_NAMESPACE::loadQuaternions(s.v[1] + c, q1);
    HWY_NAMESPACE::loadQuaternions(s.v[2] + c, q2);
    HWY_NAMESPACE::slerp(q1, q2, w, q);
    HWY_NAMESPACE::storeQuaternions(q, to + c);
    sure &= HWY_NAMESPACE::areRotations(q1, q2, count - c);
  }
  return sure;
}

// For all methods except slerp and angles in a turn, which need more arguments or results.
template <class Number>
MethodFunction<Number> methodFunction(Method method) {
  switch (method) {
    case Method::kCubic: return cubicBlock<Number>;
    case Method::kPchip: return pchipBlock<Number>;
    case Method::kAngle: return angleBlock<Number>;
    default: return linearBlock<Number>;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
