// Rows that need no more than a conversion on the way in and out: linear, and samples as they are.

#include <algorithm>

#include "interpolate.h"
#include "real.h"
#include "rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "direct_rows.cpp"
#include "simd_targets.h"

#include "hwy/foreach_target.h"

#include "convert-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rbc {
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
  *out = narrow<Out>(w == 0 ? widen(*left) : lerp(widen(*left), widen(*right), w));
}

#if HWY_TARGET == HWY_STATIC_TARGET

template <class In, class Out>
void writeRow(const Pair<In>& rows, const Pair<In>&, Compute<In> w, Out* out, int64_t count, bool) {
  for (int64_t c = 0; c < count; ++c) writeOne(rows.left + c, rows.right + c, w, out + c);
}

#else

template <bool kCopy, class D, class In>
HWY_INLINE hn::Vec<D> blend(D d, const Pair<In>& rows, int64_t c, hn::Vec<D> w) {
  const auto v0 = HWY_NAMESPACE::loadWide(d, rows.left + c);
  if constexpr (kCopy) return v0;
  return hn::MulAdd(w, hn::Sub(HWY_NAMESPACE::loadWide(d, rows.right + c), v0), v0);
}

template <class In>
HWY_INLINE void prefetch(const Pair<In>& rows, int64_t c) {
  hwy::Prefetch(rows.left + c);
  hwy::Prefetch(rows.right + c);
}

// Rows shorter than a vector of D go to narrower ones; others end with a vector that overlaps the
// one before. `next` is a pair of rows that will be needed soon.
template <bool kCopy, class D, class In, class Out>
HWY_INLINE void writeVectors(D d, const Pair<In>& rows, const Pair<In>& next, Compute<In> w,
                             Out* out, int64_t count, bool stream) {
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
  if (count < kLanes) {
    if constexpr (kLanes * sizeof(Compute<In>) > 16) {
      writeVectors<kCopy>(hn::Half<D>(), rows, next, w, out, count, false);
    } else {
      prefetch(next, 0);
      for (int64_t c = 0; c < count; ++c) writeOne(rows.left + c, rows.right + c, w, out + c);
    }
    return;
  }
  const auto weight = hn::Set(d, w);
  int64_t c = 0;
  if (stream) {
    for (; c + kLanes <= count; c += kLanes) {
      prefetch(next, c);
      streamNarrow(d, blend<kCopy>(d, rows, c, weight), out + c);
    }
  } else {
    for (; c + kLanes <= count; c += kLanes) {
      prefetch(next, c);
      storeNarrow(d, blend<kCopy>(d, rows, c, weight), out + c);
    }
  }
  if (c < count) {
    c = count - kLanes;
    storeNarrow(d, blend<kCopy>(d, rows, c, weight), out + c);
  }
}

template <class In, class Out>
HWY_INLINE void writeRow(const Pair<In>& rows, const Pair<In>& next, Compute<In> w, Out* out,
                         int64_t count, bool stream) {
  const WidestTag<Compute<In>, Out> d;
  if (w == 0) {
    writeVectors<true>(d, rows, next, w, out, count, stream);
  } else {
    writeVectors<false>(d, rows, next, w, out, count, stream);
  }
}

#endif

template <class In>
Pair<In> pairOf(const RowTask& row, const RowTile& tile) {
  const std::byte* right = row.weights.w == 0 ? row.sample : row.sample + tile.sample_bytes;
  return {reinterpret_cast<const In*>(row.sample), reinterpret_cast<const In*>(right)};
}

template <class In, class Out>
void directRows(const RowTile& tile) {
  for (int i = 0; i < tile.count; ++i) {
    const RowTask& row = tile.rows[i];
    auto* out = reinterpret_cast<Out*>(row.out);
    if (row.sample == nullptr) {
      std::fill_n(out, tile.channels, fillOf<Out>(tile));
      continue;
    }
    const RowTask& next = tile.rows[std::min(i + tile.ahead, tile.count - 1)];
    writeRow(pairOf<In>(row, tile), pairOf<In>(next.sample != nullptr ? next : row, tile),
             static_cast<Compute<In>>(row.weights.w), out, tile.channels, tile.stream);
  }
}

// Channel by channel: the tile's rows stay in the cache, and neighbouring queries may be neighbours
// in memory.
template <class In, class Out>
void stridedRows(const RowTile& tile) {
  struct Row {
    Pair<In> in;  // null: write the fill value
    Compute<In> w;
    Out* out;
  };
  Row rows[kMostRows];
  for (int i = 0; i < tile.count; ++i) {
    const RowTask& row = tile.rows[i];
    rows[i] = {row.sample != nullptr ? pairOf<In>(row, tile) : Pair<In>{nullptr, nullptr},
               static_cast<Compute<In>>(row.weights.w), reinterpret_cast<Out*>(row.out)};
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
}  // namespace rbc
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rbc {

RowsFunction directRows(SimdLevel level, DType in, DType out, bool contiguous) {
#if HWY_ARCH_X86_64
  if (level == SimdLevel::kAvx512) return N_AVX3::directRowsFor(in, out, contiguous);
  if (level == SimdLevel::kAvx2) return N_AVX2::directRowsFor(in, out, contiguous);
#endif
  static_cast<void>(level);
  return HWY_STATIC_DISPATCH(directRowsFor)(in, out, contiguous);
}

}  // namespace rbc
#endif  // HWY_ONCE
