// The steps of image_color.h for a row of pixels, bit for bit, per SIMD level.

// Highway's include guard for code that is compiled once per target.
#if defined(RBC_CPU_COLOR_ROW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RBC_CPU_COLOR_ROW_INL_H
#undef RBC_CPU_COLOR_ROW_INL_H
#else
#define RBC_CPU_COLOR_ROW_INL_H
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "image_color.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_STATIC_TARGET

// Bytes as whole numbers in f32, one vector for each channel.
template <int kChannels>
struct ColorVectors {
  using Tag = hwy::HWY_NAMESPACE::CappedTag<float, 16>;
  using Vector = hwy::HWY_NAMESPACE::Vec<Tag>;
  Vector value[kChannels];

  static HWY_INLINE Vector toByte(Vector x) {
    namespace hn = hwy::HWY_NAMESPACE;
    const Tag tag;
    return hn::Trunc(hn::Min(hn::Max(x, hn::Zero(tag)), hn::Set(tag, 255.0f)));
  }

  HWY_INLINE Vector gray() const {
    namespace hn = hwy::HWY_NAMESPACE;
    const Tag tag;
    if constexpr (kChannels == 1) {
      return value[0];
    } else {
      const Vector red = hn::Mul(value[0], hn::Set(tag, 0.2989f));
      return hn::Floor(hn::MulAdd(value[2], hn::Set(tag, 0.114f),
                                  hn::MulAdd(value[1], hn::Set(tag, 0.587f), red)));
    }
  }

  // turnHue() of image_color.h.
  HWY_INLINE void turnHue(Vector turn) {
    namespace hn = hwy::HWY_NAMESPACE;
    const Tag tag;
    const auto number = [&](float x) { return hn::Set(tag, x); };
    const Vector one = number(1.0f);
    Vector x[3];
    for (int c = 0; c < 3; ++c) x[c] = hn::Mul(value[c], number(kHueScale));
    const Vector high = hn::Max(hn::Max(x[0], x[1]), x[2]);
    const Vector low = hn::Min(hn::Min(x[0], x[1]), x[2]);
    const Vector range = hn::Sub(high, low);
    const auto gray = hn::Eq(high, low);
    const Vector saturation = hn::IfThenZeroElse(gray, hn::Div(range, high));
    const Vector divisor = hn::IfThenElse(gray, one, range);
    Vector below[3];
    for (int c = 0; c < 3; ++c) below[c] = hn::Div(hn::Sub(high, x[c]), divisor);
    const Vector of_red = hn::Sub(below[2], below[1]);
    const Vector of_green = hn::Sub(hn::Add(below[0], number(2.0f)), below[2]);
    const Vector of_blue = hn::Sub(hn::Add(below[1], number(4.0f)), below[0]);
    Vector hue = hn::IfThenElse(hn::Eq(high, x[0]), of_red,
                                hn::IfThenElse(hn::Eq(high, x[1]), of_green, of_blue));
    hue = hn::Add(hn::Mul(hue, number(kSixth)), one);
    hue = hn::IfThenElse(hn::Ge(hue, one), hn::Sub(hue, one), hue);
    hue = hn::Add(hue, turn);
    hue = hn::IfThenElse(hn::Lt(hue, hn::Zero(tag)), hn::Add(hue, one),
                         hn::IfThenElse(hn::Ge(hue, one), hn::Sub(hue, one), hue));
    const Vector sixths = hn::Mul(hue, number(6.0f));
    const Vector i = hn::Floor(sixths);
    const Vector part = hn::Mul(saturation, hn::Sub(sixths, i));
    const Vector rest = hn::Sub(one, saturation);
    const Vector q = hn::Mul(hn::Sub(one, part), high);
    const Vector t = hn::Mul(hn::Add(part, rest), high);
    const Vector p = hn::Mul(rest, high);
    const auto is = [&](float k) { return hn::Eq(i, number(k)); };
    const auto first = hn::Or(is(0), is(6));
    const auto choose = [](auto mask, Vector yes, Vector no) {
      return hn::IfThenElse(mask, yes, no);
    };
    const Vector colors[3] = {
        choose(hn::Or(first, is(5)), high, choose(is(1), q, choose(is(4), t, p))),
        choose(hn::Or(is(1), is(2)), high, choose(first, t, choose(is(3), q, p))),
        choose(hn::Or(is(3), is(4)), high, choose(is(2), t, choose(is(5), q, p)))};
    for (int c = 0; c < 3; ++c) value[c] = toByte(hn::Mul(colors[c], number(kHueBytes)));
  }

  HWY_INLINE void apply(const ColorSteps& steps, int begin, int end, float mean) {
    namespace hn = hwy::HWY_NAMESPACE;
    const Tag tag;
    for (int i = begin; i < end; ++i) {
      const Vector factor = hn::Set(tag, steps.factor[i]);
      if (steps.step[i] == kBrightness) {
        for (Vector& x : value) x = toByte(hn::Mul(x, factor));
        continue;
      }
      const bool contrast = steps.step[i] == kContrast;
      if (!contrast && kChannels == 1) continue;
      if constexpr (kChannels == 3) {
        if (steps.step[i] == kHue) {
          turnHue(factor);
          continue;
        }
      }
      const Vector target = contrast ? hn::Set(tag, mean) : gray();
      const Vector other = hn::Set(tag, steps.other[i]);
      for (Vector& x : value) x = toByte(hn::MulAdd(target, other, hn::Mul(x, factor)));
    }
  }
};

template <int kChannels, class Bytes>
HWY_INLINE void loadPixels(Bytes bytes, const uint8_t* from,
                           hwy::HWY_NAMESPACE::Vec<Bytes> (&x)[kChannels]) {
  namespace hn = hwy::HWY_NAMESPACE;
  if constexpr (kChannels == 1) {
    x[0] = hn::LoadU(bytes, from);
  } else {
    hn::LoadInterleaved3(bytes, from, x[0], x[1], x[2]);
  }
}

template <int kChannels, class Bytes>
HWY_INLINE void storePixels(Bytes bytes, const hwy::HWY_NAMESPACE::Vec<Bytes> (&x)[kChannels],
                            uint8_t* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  if constexpr (kChannels == 1) {
    hn::StoreU(x[0], bytes, to);
  } else {
    hn::StoreInterleaved3(x[0], x[1], x[2], bytes, to);
  }
}

#endif  // HWY_TARGET != HWY_STATIC_TARGET

// Steps begin .. end - 1 of pixels side by side. Returns the sum of their grays after these.
template <int kChannels>
int64_t colorPixels(const ColorSteps& steps, int begin, int end, float mean, int64_t count,
                    uint8_t* pixels) {
  int64_t sum = 0;
  int64_t i = 0;
#if HWY_TARGET != HWY_STATIC_TARGET
  namespace hn = hwy::HWY_NAMESPACE;
  using Colors = ColorVectors<kChannels>;
  const typename Colors::Tag tag;
  const hn::RebindToSigned<typename Colors::Tag> whole;
  const hn::Rebind<uint8_t, typename Colors::Tag> bytes;
  const auto size = static_cast<int64_t>(hn::MaxLanes(tag));
  auto grays = hn::Zero(whole);  // at most 255 for each of 2^23 vectors
  for (; i + size <= count; i += size, pixels += size * kChannels) {
    hn::Vec<decltype(bytes)> x[kChannels];
    loadPixels<kChannels>(bytes, pixels, x);
    Colors colors;
    for (int c = 0; c < kChannels; ++c) {
      colors.value[c] = hn::ConvertTo(tag, hn::PromoteTo(whole, x[c]));
    }
    colors.apply(steps, begin, end, mean);
    grays = hn::Add(grays, hn::ConvertTo(whole, colors.gray()));
    for (int c = 0; c < kChannels; ++c) {
      x[c] = hn::DemoteTo(bytes, hn::ConvertTo(whole, colors.value[c]));
    }
    storePixels<kChannels>(bytes, x, pixels);
  }
  alignas(64) int32_t lanes[16];
  hn::Store(grays, whole, lanes);
  for (int64_t k = 0; k < size; ++k) sum += lanes[k];
#endif
  for (; i < count; ++i, pixels += kChannels) {
    ImagePixel pixel = {};
    for (int c = 0; c < kChannels; ++c) pixel.value[c] = pixels[c];
    applyColors<kChannels>(steps, begin, end, mean, &pixel);
    for (int c = 0; c < kChannels; ++c) pixels[c] = pixel.value[c];
    sum += static_cast<int64_t>(grayOf<kChannels>(pixel));
  }
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
