// Random boxes, flips and colours as plain numbers: the input of a backend, and one draw.
#pragma once

#include <cmath>

#include "exponential.h"
#include "image_color.h"
#include "output.h"
#include "philox.h"
#include "ragged.h"
#include "real.h"
#include "robocache/images.h"

namespace rbc {

struct ImageDrawsProblem {
  int64_t count;
  IndexArray samples;
  Output<2> boxes;  // data is null: not drawn
  Output<1> flips;
  Output<2> colors;
  Output<2> color_order;
  uint64_t seed;
  uint32_t epoch;
  uint32_t camera;
  int32_t crop;
  int64_t frame[2];  // height, width
  int64_t size[2];   // of the boxes, unless their areas are drawn
  double area[2];
  double ratio[2];
  double log_ratio[2];
  double flip_probability;
  double low[kColorSteps];  // NaN: the step is not drawn
  double high[kColorSteps];
};

enum DrawPurpose : uint32_t { kDrawBox, kDrawFlip, kDrawColors, kDrawAreas };
inline constexpr uint32_t kDrawTries = 10;

RBC_HD PhiloxWords drawWords(const ImageDrawsProblem& p, int64_t sample, uint32_t purpose) {
  const auto number = static_cast<uint64_t>(sample);
  return philox({{static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), p.epoch,
                  p.camera << 8 | purpose}},
                p.seed);
}

struct DrawnBox {
  int64_t number[4];  // y, x, height, width
};

RBC_HD DrawnBox centredBox(const ImageDrawsProblem& p) {
  int64_t height = p.frame[0];
  int64_t width = p.frame[1];
  const auto h = static_cast<double>(height);
  const auto w = static_cast<double>(width);
  if (w / h < p.ratio[0]) {
    height = clampIndex(static_cast<int64_t>(roundEven(w / p.ratio[0])), 1, height);
  } else if (w / h > p.ratio[1]) {
    width = clampIndex(static_cast<int64_t>(roundEven(h * p.ratio[1])), 1, width);
  }
  return {{(p.frame[0] - height) / 2, (p.frame[1] - width) / 2, height, width}};
}

RBC_HD DrawnBox drawBox(const ImageDrawsProblem& p, int64_t sample) {
  if (p.crop == RBC_IMAGES_CROP_NONE) return {{0, 0, p.frame[0], p.frame[1]}};
  if (p.crop != RBC_IMAGES_CROP_AREA) {
    const PhiloxWords words = drawWords(p, sample, kDrawBox);
    return {{belowOf(words.word[0], p.frame[0] - p.size[0] + 1),
             belowOf(words.word[1], p.frame[1] - p.size[1] + 1), p.size[0], p.size[1]}};
  }
  const auto all = static_cast<double>(p.frame[0] * p.frame[1]);
  for (uint32_t i = 0; i < kDrawTries; ++i) {
    const PhiloxWords words = drawWords(p, sample, kDrawAreas + i);
    const double area = all * between(words.word[0], p.area[0], p.area[1]);
    const double ratio = exponential(between(words.word[1], p.log_ratio[0], p.log_ratio[1]));
    const double height = roundEven(std::sqrt(area / ratio));
    const double width = roundEven(std::sqrt(area * ratio));
    if (!(height > 0 && height <= static_cast<double>(p.frame[0]) && width > 0 &&
          width <= static_cast<double>(p.frame[1]))) {
      continue;
    }
    const auto h = static_cast<int64_t>(height);
    const auto w = static_cast<int64_t>(width);
    return {{belowOf(words.word[2], p.frame[0] - h + 1), belowOf(words.word[3], p.frame[1] - w + 1),
             h, w}};
  }
  return centredBox(p);
}

// Draws all that is wanted for number i.
RBC_HD void drawImage(const ImageDrawsProblem& p, int64_t i) {
  const int64_t sample = p.samples[i];
  if (p.boxes.data != nullptr) {
    const DrawnBox box = drawBox(p, sample);
    for (int k = 0; k < 4; ++k) {
      const int64_t at = i * p.boxes.stride[0] + k * p.boxes.stride[1];
      if (p.boxes.dtype == DType::I64) {
        static_cast<int64_t*>(p.boxes.data)[at] = box.number[k];
      } else {
        static_cast<int32_t*>(p.boxes.data)[at] = static_cast<int32_t>(box.number[k]);
      }
    }
  }
  const PhiloxWords words = drawWords(p, sample, kDrawFlip);
  if (p.flips.data != nullptr) {
    static_cast<uint8_t*>(p.flips.data)[i * p.flips.stride[0]] =
        unitOf(words.word[0]) < p.flip_probability ? 1 : 0;
  }
  if (p.color_order.data != nullptr) {
    uint8_t order[kColorSteps] = {0, 1, 2, 3};
    for (int k = kColorSteps - 1; k > 0; --k) {
      const auto j = static_cast<int>(belowOf(words.word[kColorSteps - k], k + 1));
      const uint8_t here = order[k];
      order[k] = order[j];
      order[j] = here;
    }
    for (int k = 0; k < kColorSteps; ++k) {
      static_cast<uint8_t*>(
          p.color_order.data)[i * p.color_order.stride[0] + k * p.color_order.stride[1]] = order[k];
    }
  }
  if (p.colors.data == nullptr) return;
  const PhiloxWords of_colors = drawWords(p, sample, kDrawColors);
  for (int k = 0; k < kColorSteps; ++k) {
    const auto factor = static_cast<float>(between(of_colors.word[k], p.low[k], p.high[k]));
    const int64_t at = i * p.colors.stride[0] + k * p.colors.stride[1];
    if (p.colors.dtype == DType::F64) {
      static_cast<double*>(p.colors.data)[at] = narrow<double>(factor);
    } else {
      static_cast<float*>(p.colors.data)[at] = narrow<float>(factor);
    }
  }
}

}  // namespace rbc
