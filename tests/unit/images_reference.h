// rbcImages by its definition in images.h and docs/concepts/images.md: one image at a time, in plain
// loops, without code of the library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace images_reference {

struct Image {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  std::vector<uint8_t> bytes;  // [height,width,channels]

  Image() = default;
  Image(int64_t h, int64_t w, int64_t c)
      : height(h), width(w), channels(c), bytes(static_cast<size_t>(h * w * c)) {}

  uint8_t& at(int64_t y, int64_t x, int64_t c) {
    return bytes[static_cast<size_t>((y * width + x) * channels + c)];
  }
  uint8_t at(int64_t y, int64_t x, int64_t c) const {
    return bytes[static_cast<size_t>((y * width + x) * channels + c)];
  }
};

// The options of one image, with the constants of images.h.
struct Options {
  int32_t rule = 0;
  int32_t filter = 1;
  int32_t fit = 0;
  int32_t pad_anchor = 0;
  std::array<uint8_t, 4> pad_value = {};
  std::array<int64_t, 4> box = {};  // y, x, height, width
  int flips = 0;
  bool colored = false;
  bool color_first = false;
  std::array<double, 4> factors = {};
  std::array<int, 4> order = {0, 1, 2, 3};
};

Image resize(const Image& image, int64_t height, int64_t width, int32_t rule, int32_t filter);
Image expected(const Image& frame, int64_t height, int64_t width, const Options& options);

// Four words of Philox4x32-10.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

}  // namespace images_reference
