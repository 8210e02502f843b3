#include "resample_rows.h"

#include <algorithm>
#include <cstring>

#include "interpolate.h"
#include "real.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "resample_rows.cpp"
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

template <class Out>
Out fillOf(const RowTile& tile) {
  Out fill;
  std::memcpy(&fill, &tile.fill_bits, sizeof fill);
  return fill;
}

template <class In>
Pair<In> pairOf(const RowTask& row) {
  return {static_cast<const In*>(row.left), static_cast<const In*>(row.right)};
}

template <class In, class Out>
void contiguousRows(const RowTile& tile) {
  for (int i = 0; i < tile.count; ++i) {
    const RowTask& row = tile.rows[i];
    Out* out = static_cast<Out*>(row.out);
    if (row.left == nullptr) {
      std::fill_n(out, tile.channels, fillOf<Out>(tile));
      continue;
    }
    const RowTask& next = tile.rows[std::min(i + tile.ahead, tile.count - 1)];
    writeRow(pairOf<In>(row), pairOf<In>(next.left != nullptr ? next : row),
             static_cast<Compute<In>>(row.weight), out, tile.channels, tile.stream);
  }
}

// Channel by channel: the tile's rows stay in the cache, and neighbouring queries may be neighbours
// in memory.
template <class In, class Out>
void stridedRows(const RowTile& tile) {
  const Out fill = fillOf<Out>(tile);
  for (int64_t c = 0; c < tile.channels; ++c) {
    const int64_t in_offset = c * tile.in_stride;
    const int64_t out_offset = c * tile.out_stride;
    for (int i = 0; i < tile.count; ++i) {
      const RowTask& row = tile.rows[i];
      Out* out = static_cast<Out*>(row.out) + out_offset;
      if (row.left == nullptr) {
        *out = fill;
      } else {
        writeOne(static_cast<const In*>(row.left) + in_offset,
                 static_cast<const In*>(row.right) + in_offset,
                 static_cast<Compute<In>>(row.weight), out);
      }
    }
  }
}

RowsFunction floatRows(const RowsKind& kind) {
  return visitFloat(kind.values, [&](auto in) {
    return visitFloat(kind.out, [&](auto out) -> RowsFunction {
      using In = typename decltype(in)::type;
      using Out = typename decltype(out)::type;
      return kind.contiguous ? contiguousRows<In, Out> : stridedRows<In, Out>;
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace rbc
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rbc {
namespace {

// Integers and bools are copied as they are.
template <class Word>
void copiedRows(const RowTile& tile) {
  Word fill;
  std::memcpy(&fill, &tile.fill_bits, sizeof fill);
  const bool contiguous = tile.in_stride == 1 && tile.out_stride == 1;
  for (int i = 0; i < tile.count; ++i) {
    const RowTask& row = tile.rows[i];
    const Word* left = static_cast<const Word*>(row.left);
    Word* out = static_cast<Word*>(row.out);
    if (left == nullptr) {
      for (int64_t c = 0; c < tile.channels; ++c) out[c * tile.out_stride] = fill;
    } else if (contiguous) {
      std::memcpy(out, left, static_cast<size_t>(tile.channels) * sizeof(Word));
    } else {
      for (int64_t c = 0; c < tile.channels; ++c)
        out[c * tile.out_stride] = left[c * tile.in_stride];
    }
  }
}

RowsFunction integerRows(DType dtype) {
  switch (sizeOf(dtype)) {
    case 1: return copiedRows<uint8_t>;
    case 2: return copiedRows<uint16_t>;
    case 4: return copiedRows<uint32_t>;
    default: return copiedRows<uint64_t>;
  }
}

}  // namespace

RowsFunction rowsFunction(SimdLevel level, const RowsKind& kind) {
  if (!isFloat(kind.values)) return integerRows(kind.values);
#if HWY_ARCH_X86_64
  if (level == SimdLevel::kAvx512) return N_AVX3::floatRows(kind);
  if (level == SimdLevel::kAvx2) return N_AVX2::floatRows(kind);
#endif
  return HWY_STATIC_DISPATCH(floatRows)(kind);
}

}  // namespace rbc
#endif  // HWY_ONCE
