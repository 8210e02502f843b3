// The steps of staged rows: channels to the compute type, shift and scale, and channels to the type
// of out. Blocks are padded, so that the steps in between can use whole vectors.

// Highway's include guard for code that is compiled once per target.
#if defined(RBC_CPU_ROW_STEPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RBC_CPU_ROW_STEPS_INL_H
#undef RBC_CPU_ROW_STEPS_INL_H
#else
#define RBC_CPU_ROW_STEPS_INL_H
#endif

#include <algorithm>
#include <cstddef>

#include "fuse/convert-inl.h"
#include "fuse/lanes-inl.h"
#include "fuse/methods-inl.h"
#include "fuse/rows.h"
#include "hwy/highway.h"
#include "real.h"
#include "visit_dtype.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {

constexpr int64_t kBlock = 512;

// ---- conversions --------------------------------------------------------------------------------

#if HWY_TARGET == HWY_STATIC_TARGET

template <class In>
void widenRow(const In* from, int64_t count, Compute<In>* to) {
  for (int64_t c = 0; c < count; ++c) to[c] = widen(from[c]);
}

template <class Number, class Out>
void narrowRow(const Number* from, int64_t count, Out* to, bool) {
  for (int64_t c = 0; c < count; ++c) to[c] = narrow<Out>(from[c]);
}

#else

template <class In>
void widenRow(const In* from, int64_t count, Compute<In>* to) {
  if constexpr (std::is_integral_v<In>) {
    for (int64_t c = 0; c < count; ++c) to[c] = widen(from[c]);
  } else {
    HWY_NAMESPACE::cover(hn::ScalableTag<Compute<In>>(), count,
                         [&](auto d, int64_t c) RBC_BODY_ATTR {
                           hn::StoreU(HWY_NAMESPACE::loadWide(d, from + c), d, to + c);
                         });
  }
}

template <class Number, class Out>
void narrowRow(const Number* from, int64_t count, Out* to, bool nontemporal) {
  const WidestTag<Number, Out> widest;
  if (nontemporal) {
    HWY_NAMESPACE::cover(widest, count, [&](auto d, int64_t c) RBC_BODY_ATTR {
      HWY_NAMESPACE::storeNarrowNontemporal(d, hn::LoadU(d, from + c), to + c);
    });
  } else {
    HWY_NAMESPACE::cover(widest, count, [&](auto d, int64_t c) RBC_BODY_ATTR {
      HWY_NAMESPACE::storeNarrow(d, hn::LoadU(d, from + c), to + c);
    });
  }
}

#endif

// ---- shift and scale ---------------------------------------------------------------------------

template <class Number>
struct Affine {
  alignas(64) Number shift[kBlock];
  alignas(64) Number scale[kBlock];

  void read(const RowTile& tile, int64_t first, int64_t count) {
    fill(tile.shift, tile.first_channel + first, count, Number(0), shift);
    fill(tile.scale, tile.first_channel + first, count, Number(1), scale);
  }

  // Repeats the first `count` channels up to `total`.
  void repeat(int64_t count, int64_t total) {
    for (int64_t filled = count; filled < total; filled += count) {
      count = std::min(filled, total - filled);
      std::copy_n(shift, count, shift + filled);
      std::copy_n(scale, count, scale + filled);
    }
  }

  // `to` may be `from`.
  void apply(const Number* from, int64_t count, Number* to) const {
    using V = Wide<Number>;
    fillBlock<V>(count, to, [&](int64_t c) HWY_ATTR {
      return HWY_NAMESPACE::normalized(HWY_NAMESPACE::load<V>(from + c),
                                       HWY_NAMESPACE::load<V>(shift + c),
                                       HWY_NAMESPACE::load<V>(scale + c));
    });
  }

 private:
  static void fill(const RealArray& from, int64_t first, int64_t count, Number without,
                   Number* to) {
    if (from.data == nullptr) {
      std::fill_n(to, count, without);
    } else {
      for (int64_t c = 0; c < count; ++c) to[c] = from.at<Number>(first + c);
    }
  }
};

// ---- invalid quaternions ------------------------------------------------------------------------

// For `count` channels of row `i`: fills the quaternions of out that come from an invalid one.
template <class Number, class Out>
void fillInvalid(const RowTile& tile, int i, const Number* v1, const Number* v2, int64_t count,
                 Out* out) {
  for (int64_t c = 0; c < count; c += 4) {
    if (HWY_NAMESPACE::isRotation(v1 + c) && HWY_NAMESPACE::isRotation(v2 + c)) continue;
    std::fill_n(out + c, 4, fillOf<Out>(tile));
    if (tile.invalid != nullptr) tile.invalid[i] = true;
  }
}

// ---- to the compute type ------------------------------------------------------------------------

// Channels first .. first + count - 1 of a row, in the compute type: without a copy if they have
// that type and are whole vectors, else in the buffer.
template <class Number>
using Widen = const Number* (*)(const std::byte* row, int64_t first, int64_t count, bool whole,
                                Number* buffer);

template <class Number, class In>
const Number* widened(const std::byte* row, int64_t first, int64_t count, bool whole,
                      Number* buffer) {
  const In* from = reinterpret_cast<const In*>(row) + first;
  if constexpr (std::is_same_v<In, Number>) {
    if (whole) return from;
  }
  static_cast<void>(whole);
  widenRow(from, count, buffer);
  return buffer;
}

template <class Number>
Widen<Number> widenFunction(DType in) {
  const auto choose = [](auto tag) -> Widen<Number> {
    using In = typename decltype(tag)::type;
    if constexpr (std::is_same_v<Compute<In>, Number>) {
      return widened<Number, In>;
    } else {
      return nullptr;
    }
  };
  return visitDType(in, choose);
}

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
