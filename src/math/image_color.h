// The steps of torchvision's ColorJitter for u8: each computes in f32 and truncates to u8.
// color_row-inl.h computes the same with vectors.
#pragma once

#include <cmath>
#include <cstdint>

#include "number.h"
#include "platform.h"

namespace rbc {

enum ColorStep : uint8_t { kBrightness, kContrast, kSaturation, kHue };
inline constexpr int kColorSteps = 4;

// The steps of an image in their order; steps without a factor are not among them.
struct ColorSteps {
  float factor[kColorSteps];
  float other[kColorSteps];  // f32(1 - factor)
  uint8_t step[kColorSteps];
  int8_t count;
  int8_t contrast;  // which of them is contrast; count: none
  uint8_t padding[2];
};

struct ImagePixel {
  uint8_t value[4];
};

RBC_HD uint8_t truncateToByte(float x) {
  return static_cast<uint8_t>(x > 0 ? (x < 255 ? static_cast<int32_t>(x) : 255) : 0);
}

// The gray of a pixel: of one channel, the channel.
template <int kChannels>
RBC_HD float grayOf(const ImagePixel& pixel) {
  const auto r = static_cast<float>(pixel.value[0]);
  if constexpr (kChannels != 3) return r;
  const float red = r * 0.2989f;
  return std::floor(mulAdd(static_cast<float>(pixel.value[2]), 0.114f,
                           mulAdd(static_cast<float>(pixel.value[1]), 0.587f, red)));
}

// The mean of the grays of an image, from their exact sum.
RBC_HD float meanGray(int64_t sum, int64_t pixels) {
  return static_cast<float>(static_cast<double>(sum) / static_cast<double>(pixels));
}

// Hue, of torchvision's functions v2: from RGB to hue, saturation and value, with each operation
// rounded to f32, and back.
inline constexpr float kHueScale = 1.0f / 255;
inline constexpr float kSixth = 1.0f / 6;
inline constexpr float kHueBytes = 255.999f;  // 255 + 1 - 1e-3

// The hue, in sixths of the circle from red: of `high`, the largest of three, and how far each one is
// below it, in parts of the range.
RBC_HD float hueOf(const float (&x)[3], float high, const float (&below)[3]) {
  if (high == x[0]) return below[2] - below[1];
  if (high == x[1]) return (below[0] + 2.0f) - below[2];
  return (below[1] + 4.0f) - below[0];
}

RBC_HD_CALLED void turnHue(float turn, ImagePixel* pixel) {
  float x[3];
  for (int c = 0; c < 3; ++c) x[c] = static_cast<float>(pixel->value[c]) * kHueScale;
  const float high = x[0] > x[1] ? (x[0] > x[2] ? x[0] : x[2]) : (x[1] > x[2] ? x[1] : x[2]);
  const float low = x[0] < x[1] ? (x[0] < x[2] ? x[0] : x[2]) : (x[1] < x[2] ? x[1] : x[2]);
  const float range = high - low;
  const bool gray = high == low;
  const float saturation = gray ? 0.0f : range / high;
  float below[3];
  for (int c = 0; c < 3; ++c) below[c] = gray ? high - x[c] : (high - x[c]) / range;
  float hue = hueOf(x, high, below) * kSixth + 1.0f;
  if (hue >= 1) hue = hue - 1.0f;
  hue = hue + turn;
  hue = hue < 0 ? hue + 1.0f : hue >= 1 ? hue - 1.0f : hue;
  const float sixths = hue * 6.0f;
  const float sector = std::floor(sixths);
  const float part = saturation * (sixths - sector);
  const float rest = 1.0f - saturation;
  const float q = (1.0f - part) * high;
  const float t = (part + rest) * high;
  const float p = rest * high;
  // 6 is 0: a hue just below 0 is rounded to 1.
  const int i = static_cast<int>(sector);
  const bool first = i == 0 || i == 6;
  const float red = first || i == 5 ? high : i == 1 ? q : i == 4 ? t : p;
  const float green = i == 1 || i == 2 ? high : first ? t : i == 3 ? q : p;
  const float blue = i == 3 || i == 4 ? high : i == 2 ? t : i == 5 ? q : p;
  pixel->value[0] = truncateToByte(red * kHueBytes);
  pixel->value[1] = truncateToByte(green * kHueBytes);
  pixel->value[2] = truncateToByte(blue * kHueBytes);
}

// Steps begin .. end - 1 of an image whose mean gray at its contrast is `mean`.
template <int kChannels>
RBC_HD void applyColors(const ColorSteps& steps, int begin, int end, float mean,
                        ImagePixel* pixel) {
  for (int i = begin; i < end; ++i) {
    const float factor = steps.factor[i];
    if (steps.step[i] == kBrightness) {
      for (int c = 0; c < kChannels; ++c) {
        pixel->value[c] = truncateToByte(static_cast<float>(pixel->value[c]) * factor);
      }
      continue;
    }
    const bool contrast = steps.step[i] == kContrast;
    if (!contrast && kChannels != 3) continue;
    if (steps.step[i] == kHue) {
      turnHue(factor, pixel);
      continue;
    }
    const float gray = contrast ? mean : grayOf<kChannels>(*pixel);
    for (int c = 0; c < kChannels; ++c) {
      pixel->value[c] = truncateToByte(
          mulAdd(gray, steps.other[i], static_cast<float>(pixel->value[c]) * factor));
    }
  }
}

// Whether a step has such a factor: hue from -1/2 to 1/2, the others finite and at least 0.
RBC_HD bool isFactor(uint8_t step, double factor) {
  if (step == kHue) return factor >= -0.5 && factor <= 0.5;
  return factor >= 0 && allFinite(static_cast<float>(factor));
}

// The steps of an image: `order` must be a permutation, else it counts as 0, 1, 2, 3. A factor that
// isFactor() refuses leaves its step out, and so does a hue of 0, which changes no pixel.
RBC_HD ColorSteps colorStepsOf(const double (&factors)[kColorSteps],
                               const uint8_t (&order)[kColorSteps]) {
  ColorSteps steps = {};
  unsigned seen = 0;
  for (int i = 0; i < kColorSteps; ++i) seen |= order[i] < kColorSteps ? 1u << order[i] : 0u;
  const bool permutation = seen == (1u << kColorSteps) - 1;
  steps.contrast = kColorSteps;
  for (int i = 0; i < kColorSteps; ++i) {
    const auto step = permutation ? order[i] : static_cast<uint8_t>(i);
    const double f = factors[step];
    if (!isFactor(step, f) || (step == kHue && f == 0)) continue;
    if (step == kContrast) steps.contrast = steps.count;
    steps.step[steps.count] = step;
    steps.factor[steps.count] = static_cast<float>(f);
    steps.other[steps.count] = static_cast<float>(1.0 - f);
    ++steps.count;
  }
  if (steps.contrast == kColorSteps) steps.contrast = steps.count;
  return steps;
}

}  // namespace rbc
