// Rows that only need conversions on input and output: linear, and unchanged samples.

#include <algorithm>

#include "fuse/rows.h"
#include "interpolate.h"
#include "real.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fuse/direct_rows.cpp"
#include "runtime/simd_targets.h"

#include "hwy/foreach_target.h"

#include "fuse/convert-inl.h"
#include "fuse/lanes-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "visit_dtype.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {

// Two rows of channels.
template <class In>
struct Pair {
  const In* left;
  const In* right;
};

// One channel of one query.
template <class In, class Out>
HWY_INLINE void writeOne(const In* left, const In* right, Compute<In> w, Out* out) {
  *out = narrow<Out>(w == 0 ? widen(*left) : rbc::lerp(widen(*left), widen(*right), w));
}

#if HWY_TARGET == HWY_STATIC_TARGET

template <class In, class Out>
void writeRow(const Pair<In>& rows, const Pair<In>&, Compute<In> w, Out* out, int64_t count, bool) {
  for (int64_t c = 0; c < count; ++c) writeOne(rows.left + c, rows.right + c, w, out + c);
}

#else

template <class In>
HWY_INLINE void prefetch(const Pair<In>& rows, int64_t c) {
  hwy::Prefetch(rows.left + c);
  hwy::Prefetch(rows.right + c);
}

// `next` is a pair of rows that will be needed soon.
template <bool kCopy, class In, class Out>
HWY_INLINE void writeVectors(const Pair<In>& rows, const Pair<In>& next, Compute<In> w, Out* out,
                             int64_t count, bool nontemporal) {
  const auto valueAt = [&](auto d, int64_t c) HWY_ATTR {
    using V = Lanes<decltype(d)>;
    const V left(HWY_NAMESPACE::loadWide(d, rows.left + c));
    if constexpr (kCopy) return left.lanes;
    return HWY_NAMESPACE::lerp(left, V(HWY_NAMESPACE::loadWide(d, rows.right + c)), V(w)).lanes;
  };
  const WidestTag<Compute<In>, Out> widest;
  constexpr int64_t kGroup = vectorsOfLine<decltype(widest)>(sizeof(In));
  const auto soon = [&](int64_t c) RBC_BODY_ATTR { prefetch(next, c); };
  if (nontemporal) {
    HWY_NAMESPACE::coverInGroups<kGroup>(widest, count, soon, [&](auto d, int64_t c) RBC_BODY_ATTR {
      HWY_NAMESPACE::storeNarrowNontemporal(d, valueAt(d, c), out + c);
    });
  } else {
    HWY_NAMESPACE::coverInGroups<kGroup>(widest, count, soon, [&](auto d, int64_t c) RBC_BODY_ATTR {
      HWY_NAMESPACE::storeNarrow(d, valueAt(d, c), out + c);
    });
  }
}

template <class In, class Out>
HWY_INLINE void writeRow(const Pair<In>& rows, const Pair<In>& next, Compute<In> w, Out* out,
                         int64_t count, bool nontemporal) {
  if (w == 0) {
    writeVectors<true>(rows, next, w, out, count, nontemporal);
  } else {
    writeVectors<false>(rows, next, w, out, count, nontemporal);
  }
}

#endif

template <class In>
Pair<In> pairOf(const RowTask& row) {
  return {reinterpret_cast<const In*>(row.sample), reinterpret_cast<const In*>(row.right)};
}

#if HWY_TARGET != HWY_STATIC_TARGET

// Rows of at most two vectors, which may overlap, of the widest type that they fill.
template <class D, class In, class Out>
HWY_INLINE void rowsOfTwo(D d, const RowTile& tile) {
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
  if constexpr (kLanes > 1) {
    if (tile.channels < kLanes) return rowsOfTwo<hn::Half<D>, In, Out>(hn::Half<D>(), tile);
  }
  using V = Lanes<D>;
  const int64_t second = tile.channels - kLanes;
  for (int i = 0; i < tile.count; ++i) {
    const RowTask& row = tile.rows[i];
    Out* out = reinterpret_cast<Out*>(row.out);
    if (row.sample == nullptr) {
      std::fill_n(out, tile.channels, fillOf<Out>(tile));
      continue;
    }
    if (tile.ahead > 0) {
      const RowTask& next = tile.rows[std::min(i + tile.ahead, tile.known - 1)];
      const Pair<In> soon = pairOf<In>(next.sample != nullptr ? next : row);
      prefetch(soon, 0);
      if (second > 0) prefetch(soon, second);
    }
    const Pair<In> in = pairOf<In>(row);
    const V w(static_cast<Compute<In>>(row.w));
    const auto none = w == V(0);
    const auto write = [&](int64_t c) RBC_BODY_ATTR {
      const V left(HWY_NAMESPACE::loadWide(d, in.left + c));
      const V between = HWY_NAMESPACE::lerp(left, V(HWY_NAMESPACE::loadWide(d, in.right + c)), w);
      const V value = select(none, left, between);
      if (tile.nontemporal) {
        HWY_NAMESPACE::storeNarrowNontemporal(d, value.lanes, out + c);
      } else {
        HWY_NAMESPACE::storeNarrow(d, value.lanes, out + c);
      }
    };
    write(0);
    if (second > 0) write(second);
  }
}

#endif

template <class In, class Out>
void directRows(const RowTile& tile) {
#if HWY_TARGET != HWY_STATIC_TARGET
  const WidestTag<Compute<In>, Out> widest;
  constexpr int64_t kTwoVectors =
      2 * static_cast<int64_t>(hn::MaxLanes(WidestTag<Compute<In>, Out>()));
  if (tile.channels > 0 && tile.channels <= kTwoVectors) {
    return rowsOfTwo<decltype(widest), In, Out>(widest, tile);
  }
#endif
  for (int i = 0; i < tile.count; ++i) {
    const RowTask& row = tile.rows[i];
    auto* out = reinterpret_cast<Out*>(row.out);
    if (row.sample == nullptr) {
      std::fill_n(out, tile.channels, fillOf<Out>(tile));
      continue;
    }
    const RowTask& next = tile.rows[std::min(i + tile.ahead, tile.known - 1)];
    writeRow(pairOf<In>(row), pairOf<In>(next.sample != nullptr ? next : row),
             static_cast<Compute<In>>(row.w), out, tile.channels, tile.nontemporal);
  }
}

// Channel by channel: the tile's rows stay in the cache, and neighbouring queries may be adjacent
// in memory.
template <class In, class Out>
void stridedRows(const RowTile& tile) {
  struct Row {
    Pair<In> in;  // null: write the fill value
    Compute<In> w;
    Out* out;
  };
  Row rows[kMaxRows];
  for (int i = 0; i < tile.count; ++i) {
    const RowTask& row = tile.rows[i];
    rows[i] = {row.sample != nullptr ? pairOf<In>(row) : Pair<In>{nullptr, nullptr},
               static_cast<Compute<In>>(row.w), reinterpret_cast<Out*>(row.out)};
  }
  const Out fill = fillOf<Out>(tile);
  for (int64_t c = 0; c < tile.channels; ++c) {
    const int64_t from = c * tile.in_stride;
    const int64_t to = c * tile.out_stride;
    for (int i = 0; i < tile.count; ++i) {
      const Row& row = rows[i];
      if (row.in.left == nullptr) {
        row.out[to] = fill;
      } else {
        writeOne(row.in.left + from, row.in.right + from, row.w, row.out + to);
      }
    }
  }
}

RowsFunction directRowsFor(DType in, DType out, bool contiguous) {
  return visitFloat(in, [&](auto in_tag) {
    return visitFloat(out, [&](auto out_tag) -> RowsFunction {
      using In = typename decltype(in_tag)::type;
      using Out = typename decltype(out_tag)::type;
      return contiguous ? directRows<In, Out> : stridedRows<In, Out>;
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rbc::cpu {

RowsFunction directRows(SimdLevel level, DType in, DType out, bool contiguous) {
  return RBC_AT_LEVEL(level, directRowsFor)(in, out, contiguous);
}

}  // namespace rbc::cpu
#endif  // HWY_ONCE
