// The loop over values that fit into windows, for every SIMD level.

#include "statistics/window_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "statistics/sum_tile.cpp"
#include "runtime/simd_targets.h"

#include "hwy/foreach_target.h"

#include "dtype.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {

// Rows that do not fill vectors.
template <class Number>
int64_t sumRows(WindowSums<Number>* s, const Number* values, int64_t begin, int64_t rows,
                int32_t* slow) {
  int64_t misses = 0;
  for (int64_t row = begin; row < rows; ++row) {
    const int first = static_cast<int>((row - begin) % s->lanes) * s->width;
    for (int c = 0; c < s->width; ++c) {
      const int64_t i = row * s->width + c;
      if (!addOne(s, first + c, values[i])) slow[misses++] = static_cast<int32_t>(i);
    }
  }
  return misses;
}

#if HWY_TARGET == HWY_STATIC_TARGET

template <class Number>
constexpr int kLanes = 1;

template <class Number>
int64_t sumTile(WindowSums<Number>* s, const Number* values, int64_t rows, int32_t* slow) {
  return HWY_NAMESPACE::sumRows(s, values, 0, rows, slow);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

template <class Number>
using Tag = hn::ScalableTag<Number>;
template <class Number>
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag<Number>()));

using Tag64 = hn::ScalableTag<int64_t>;

HWY_INLINE void addTo(hn::Vec<Tag64> x, int64_t* to) {
  const Tag64 d;
  hn::StoreU(hn::Add(hn::LoadU(d, to), x), d, to);
}

// Sums of pieces of a vector's lanes over a tile.
struct FloatTotals {
  using Pieces = hn::Vec<hn::ScalableTag<int32_t>>;

  HWY_INLINE FloatTotals() {}  // GCC compiles an implicit one without the flags of the level
  HWY_INLINE void clear() {
    for (auto& sum : sums) sum = hn::Zero(hn::ScalableTag<int32_t>());
    for (auto& product : products) product = hn::Zero(Tag64());
  }
  HWY_INLINE void add(const Pieces (&p)[2]) {
    const hn::ScalableTag<int32_t> d;
    sums[0] = hn::Add(sums[0], p[0]);  // a tile of these fits in 32 bits
    sums[1] = hn::Add(sums[1], p[1]);
    const auto odd = [&](Pieces x) HWY_ATTR {
      return hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(hn::ScalableTag<uint64_t>(), x)));
    };
    const Pieces a = odd(p[0]);
    const Pieces b = odd(p[1]);
    products[0] = hn::Add(products[0], hn::MulEven(p[0], p[0]));
    products[1] = hn::Add(products[1], hn::MulEven(p[0], p[1]));
    products[2] = hn::Add(products[2], hn::MulEven(p[1], p[1]));
    products[3] = hn::Add(products[3], hn::MulEven(a, a));
    products[4] = hn::Add(products[4], hn::MulEven(a, b));
    products[5] = hn::Add(products[5], hn::MulEven(b, b));
  }
  HWY_INLINE void finish(WindowSums<float>* s, int place) {
    constexpr int kHalf = kLanes<float> / 2;
    const Tag64 d64;
    const hn::ScalableTag<int32_t> d;
    const hn::Half<decltype(d)> half;
    for (int i = 0; i < 2; ++i) {
      addTo(hn::PromoteTo(d64, hn::LowerHalf(half, sums[i])), s->sums[i] + place);
      addTo(hn::PromoteTo(d64, hn::UpperHalf(half, sums[i])), s->sums[i] + place + kHalf);
    }
    for (int i = 0; i < 3; ++i) {
      addTo(products[i], s->products[i] + place);
      addTo(products[3 + i], s->products[i] + place + kHalf);
    }
  }

  Pieces sums[2];
  hn::Vec<Tag64> products[6];  // of even lanes, then of odd ones
};

struct DoubleTotals {
  using Pieces = hn::Vec<Tag64>;

  HWY_INLINE DoubleTotals() {}
  HWY_INLINE void clear() {
    for (auto& sum : sums) sum = hn::Zero(Tag64());
    for (auto& product : products) product = hn::Zero(Tag64());
  }
  HWY_INLINE void add(const Pieces (&p)[3]) {
    const hn::ScalableTag<int32_t> d;  // the low half of a piece is the whole piece
    int product = 0;
    for (int i = 0; i < 3; ++i) {
      sums[i] = hn::Add(sums[i], p[i]);
      for (int k = i; k < 3; ++k) {
        products[product] =
            hn::Add(products[product], hn::MulEven(hn::BitCast(d, p[i]), hn::BitCast(d, p[k])));
        ++product;
      }
    }
  }
  HWY_INLINE void finish(WindowSums<double>* s, int place) {
    for (int i = 0; i < 3; ++i) addTo(sums[i], s->sums[i] + place);
    for (int i = 0; i < 6; ++i) addTo(products[i], s->products[i] + place);
  }

  Pieces sums[3];
  hn::Vec<Tag64> products[6];
};

template <class Number>
using Totals = std::conditional_t<sizeof(Number) == 4, FloatTotals, DoubleTotals>;

// Lists the places of the lanes that do not fit.
template <class Number, class Mask>
HWY_NOINLINE int64_t listMisses(Mask fits, int64_t first, int32_t* slow) {
  uint8_t bits[8] = {};
  hn::StoreMaskBits(Tag<Number>(), fits, bits);
  int64_t misses = 0;
  for (int lane = 0; lane < kLanes<Number>; ++lane) {
    if ((bits[lane / 8] >> (lane % 8) & 1) == 0) {
      slow[misses++] = static_cast<int32_t>(first + lane);
    }
  }
  return misses;
}

template <class Number>
int64_t sumTile(WindowSums<Number>* s, const Number* values, int64_t rows, int32_t* slow) {
  constexpr int kPieces = Window<Number>::kPieces;
  const Tag<Number> d;
  const hn::RebindToSigned<Tag<Number>> di;
  const int64_t groups = rows / kLanes<Number>;
  const int64_t step = int64_t{s->width} * kLanes<Number>;
  int64_t misses = 0;
  for (int place = 0; place < step; place += kLanes<Number>) {
    const auto limit = hn::Load(d, s->limit + place);
    hn::Vec<Tag<Number>> magic[kPieces];
    for (int i = 0; i < kPieces; ++i) magic[i] = hn::Load(d, s->magic[i] + place);
    auto min = hn::Load(d, s->min + place);
    auto max = hn::Load(d, s->max + place);
    Totals<Number> totals;
    totals.clear();
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t first = group * step + place;
      const auto x = hn::LoadU(d, values + first);
      auto rest = x;
      typename Totals<Number>::Pieces pieces[kPieces];
      for (int i = 0; i < kPieces; ++i) {
        const auto shifted = hn::Add(rest, magic[i]);
        pieces[i] = hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, magic[i]));
        rest = hn::Sub(rest, hn::Sub(shifted, magic[i]));
      }
      const auto fits = hn::And(hn::Le(hn::Abs(x), limit), hn::Eq(rest, hn::Zero(d)));
      if (HWY_UNLIKELY(!hn::AllTrue(d, fits))) {
        misses += HWY_NAMESPACE::listMisses<Number>(fits, first, slow + misses);
        const auto keep = hn::RebindMask(di, fits);
        for (auto& piece : pieces) piece = hn::IfThenElseZero(keep, piece);
        min = hn::Min(min, hn::IfThenElse(fits, x, min));
        max = hn::Max(max, hn::IfThenElse(fits, x, max));
      } else {
        min = hn::Min(min, x);
        max = hn::Max(max, x);
      }
      totals.add(pieces);
    }
    hn::Store(min, d, s->min + place);
    hn::Store(max, d, s->max + place);
    totals.finish(s, place);
  }
  return misses + HWY_NAMESPACE::sumRows(s, values, groups * kLanes<Number>, rows, slow + misses);
}

#endif

int lanesOf(size_t size) { return size == 4 ? kLanes<float> : kLanes<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rbc::cpu {

int vectorLanes(SimdLevel level, size_t number_size) {
  return RBC_AT_LEVEL(level, lanesOf)(number_size);
}

template <>
SumTile<float> sumTileFor(SimdLevel level) {
  return RBC_AT_LEVEL(level, sumTile<float>);
}
template <>
SumTile<double> sumTileFor(SimdLevel level) {
  return RBC_AT_LEVEL(level, sumTile<double>);
}

}  // namespace rbc::cpu
#endif  // HWY_ONCE
