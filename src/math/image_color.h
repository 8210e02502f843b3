// The steps of torchvision's ColorJitter for u8: each computes in f32 and truncates to u8.
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
    const float gray = contrast ? mean : grayOf<kChannels>(*pixel);
    for (int c = 0; c < kChannels; ++c) {
      pixel->value[c] = truncateToByte(
          mulAdd(gray, steps.other[i], static_cast<float>(pixel->value[c]) * factor));
    }
  }
}

// The steps of an image: `order` must be a permutation, else it counts as 0, 1, 2, 3. A factor that
// is no finite number of at least 0 leaves its step out, and so does hue.
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
    if (step == kHue || !(f >= 0) || !allFinite(static_cast<float>(f))) continue;
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
