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
