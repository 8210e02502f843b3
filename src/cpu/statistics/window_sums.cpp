#include "statistics/window_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "value_key.h"

namespace rbc::cpu {
namespace {

template <class Number>
void setWindow(WindowSums<Number>* s, int channel, int top) {
  using Rules = Window<Number>;
  s->top[channel] = top;
  s->open[channel] = true;
  for (int place = channel; place < s->width * s->lanes; place += s->width) {
    s->limit[place] = std::ldexp(Number(1), top);
    for (int i = 0; i < Rules::kPieces; ++i) {
      s->magic[i][place] = std::ldexp(Number(1.5), top - Rules::kUnit[i] + Rules::kMantissa);
    }
  }
}

// From some values of the tile: a window for most of them, ignoring rare outliers.
template <class Number>
void chooseWindow(WindowSums<Number>* s, int channel, const Number* values, int64_t rows) {
  constexpr int kMaxLooks = 64;
  constexpr int kAboveMedian = 8;
  int exponents[kMaxLooks];
  int count = 0;
  const int64_t step = std::max<int64_t>(rows / kMaxLooks, 1);
  for (int64_t row = 0; row < rows && count < kMaxLooks; row += step) {
    const Number x = values[row * s->width + channel];
    if (x != 0 && isFinite(x)) exponents[count++] = std::ilogb(x);
  }
  if (count == 0) return setWindow(s, channel, 0);  // zeros fit anywhere
  std::sort(exponents, exponents + count);
  const int highest = std::min(exponents[count - 1], exponents[count / 2] + kAboveMedian);
  setWindow(s, channel, std::clamp(highest + 2, Window<Number>::kLowest, Window<Number>::kHighest));
}

// Adds the lanes of a channel.
template <class Number>
int128 totalOf(const WindowSums<Number>& s, const int64_t* lanes, int channel, bool products) {
  int128 total = 0;
  for (int place = channel; place < s.width * s.lanes; place += s.width) {
    total += lanes[products ? productPlace(place, s.lanes, sizeof(Number)) : place];
  }
  return total;
}

template <class Limbs>
void addTotal(int64_t* limbs, int128 total, int exponent) {
  const bool negative = total < 0;
  const uint128 magnitude =
      negative ? 0 - static_cast<uint128>(total) : static_cast<uint128>(total);
  splitScaled128<Limbs>(magnitude, exponent, negative,
                        [&](int limb, int64_t amount) { limbs[limb] += amount; });
}

template <class Number>
void flush(WindowSums<Number>* s) {
  using Rules = Window<Number>;
  for (int c = 0; c < s->width; ++c) {
    if (!s->open[c]) continue;
    Moments& m = s->moments[c];
    int product = 0;
    for (int i = 0; i < Rules::kPieces; ++i) {
      const int unit = s->top[c] - Rules::kUnit[i];
      addTotal<SumLimbs>(m.sum, totalOf(*s, s->sums[i], c, false), unit);
      for (int k = i; k < Rules::kPieces; ++k) {
        const int other = s->top[c] - Rules::kUnit[k];
        addTotal<SquareLimbs>(m.squares, totalOf(*s, s->products[product++], c, true),
                              unit + other + (i == k ? 0 : 1));
      }
    }
  }
  for (auto& lanes : s->sums) std::fill_n(lanes, s->width * s->lanes, 0);
  for (auto& lanes : s->products) std::fill_n(lanes, s->width * s->lanes, 0);
  s->rows = 0;
  s->exact_additions += 16;
}

template <class Number>
void addSlow(WindowSums<Number>* s, int channel, Number x) {
  Moments& m = s->moments[channel];
  if (!isFinite(x)) {
    ++m.nonfinite;
    if (x < 0) ++s->negative_infinities[channel];
    return;
  }
  ++s->misses[channel];
  const auto value = static_cast<double>(x);
  m.min_key = std::min(m.min_key, valueKey(value));
  m.max_key = std::max(m.max_key, valueKey(value));
  splitValue(
      value, [&](int limb, int64_t amount) { m.sum[limb] += amount; },
      [&](int limb, int64_t amount) { m.squares[limb] += amount; });
}

}  // namespace

template <class Number>
void beginSums(WindowSums<Number>* s, SimdLevel level, int width, Moments* moments) {
  s->width = width;
  s->lanes = vectorLanes(level, sizeof(Number));
  s->moments = moments;
  s->exact_additions = 0;
  const int places = width * s->lanes;
  std::fill_n(s->limit, places, Number(-1));
  for (auto& lanes : s->magic) std::fill_n(lanes, places, Number(0));
  std::fill_n(s->min, places, std::numeric_limits<Number>::infinity());
  std::fill_n(s->max, places, -std::numeric_limits<Number>::infinity());
  std::fill_n(s->open, width, false);
  std::fill_n(s->negative_infinities, width, 0);
  flush(s);
}

template <class Number>
void addTile(WindowSums<Number>* s, SimdLevel level, const Number* values, int64_t rows,
             int32_t* slow) {
  if (s->rows + rows > Window<Number>::kMaxRows) flush(s);
  for (int c = 0; c < s->width; ++c) {
    if (!s->open[c]) chooseWindow(s, c, values, rows);
    s->misses[c] = 0;
  }
  s->rows += rows;
  const int64_t misses = sumTileFor<Number>(level)(s, values, rows, slow);
  if (misses == 0) return;
  for (int64_t i = 0; i < misses; ++i) addSlow(s, slow[i] % s->width, values[slow[i]]);
  s->exact_additions += rows * 2;
  if (s->exact_additions > kMaxLimbAdditions) {
    for (int c = 0; c < s->width; ++c) normalizeMoments(s->moments + c);
    s->exact_additions = 0;
  }
  // If many do not fit, the next tile chooses a new window.
  for (int c = 0; c < s->width; ++c) {
    if (s->misses[c] <= rows / 8) continue;
    flush(s);
    for (int k = c; k < s->width; ++k) s->open[k] = s->open[k] && s->misses[k] <= rows / 8;
    break;
  }
}

template <class Number>
void endSums(WindowSums<Number>* s) {
  flush(s);
  for (int c = 0; c < s->width; ++c) {
    Moments& m = s->moments[c];
    normalizeMoments(&m);
    for (int place = c; place < s->width * s->lanes; place += s->width) {
      if (s->min[place] > s->max[place]) continue;
      m.min_key = std::min(m.min_key, valueKey(static_cast<double>(s->min[place])));
      m.max_key = std::max(m.max_key, valueKey(static_cast<double>(s->max[place])));
    }
  }
}

#define RBC_INSTANCES(Number)                                                              \
  template void beginSums(WindowSums<Number>*, SimdLevel, int, Moments*);                  \
  template void addTile(WindowSums<Number>*, SimdLevel, const Number*, int64_t, int32_t*); \
  template void endSums(WindowSums<Number>*);
RBC_INSTANCES(float)
RBC_INSTANCES(double)
#undef RBC_INSTANCES

}  // namespace rbc::cpu
