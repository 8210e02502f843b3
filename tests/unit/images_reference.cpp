#include "unit/images_reference.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "robocache/images.h"

namespace images_reference {
namespace {

__extension__ typedef __int128 Wide;

struct Taps {
  std::vector<int64_t> pixels;
  std::vector<double> weights;
};
using Axis = std::vector<Taps>;

// ---- weights ------------------------------------------------------------------------------------

double sinc(double x) {
  constexpr double pi = 3.14159265358979323846;
  return x == 0 ? 1 : std::sin(x * pi) / (x * pi);
}

double kernel(int32_t filter, double x) {
  constexpr double pi = 3.14159265358979323846;
  const double d = std::fabs(x);
  switch (filter) {
    case RBC_IMAGES_FILTER_BOX: return x > -0.5 && x <= 0.5 ? 1 : 0;
    case RBC_IMAGES_FILTER_BILINEAR: return d < 1 ? 1 - d : 0;
    case RBC_IMAGES_FILTER_HAMMING:
      if (d == 0) return 1;
      return d < 1 ? sinc(d) * (static_cast<double>(0.54f) +
                                static_cast<double>(0.46f) * std::cos(d * pi))
                   : 0;
    case RBC_IMAGES_FILTER_BICUBIC:
      if (d < 1) return (1.5 * d - 2.5) * d * d + 1;
      return d < 2 ? (((d - 5) * d + 8) * d - 4) * -0.5 : 0;
    default: return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
  }
}

Axis filterAxis(int32_t filter, int64_t in, int64_t out) {
  const double radius = filter == RBC_IMAGES_FILTER_BOX        ? 0.5
                        : filter == RBC_IMAGES_FILTER_BICUBIC  ? 2
                        : filter == RBC_IMAGES_FILTER_LANCZOS3 ? 3
                                                               : 1;
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double stretch = std::max(scale, 1.0);
  const double support = radius * stretch;
  Axis axis;
  for (int64_t i = 0; i < out; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0);
    const auto end = std::min(static_cast<int64_t>(centre + support + 0.5), in);
    Taps taps;
    double total = 0;
    for (int64_t pixel = first; pixel < end; ++pixel) {
      const double w =
          kernel(filter, (static_cast<double>(pixel) - centre + 0.5) * (1.0 / stretch));
      taps.pixels.push_back(pixel);
      taps.weights.push_back(w);
      total += w;
    }
    for (double& w : taps.weights) w /= total;
    axis.push_back(taps);
  }
  return axis;
}

// torchvision without antialias.
Axis twoPixelAxis(int64_t in, int64_t out) {
  Axis axis;
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  for (int64_t i = 0; i < out; ++i) {
    const double at = std::max(scale * (static_cast<double>(i) + 0.5) - 0.5, 0.0);
    const auto first = std::min(static_cast<int64_t>(at), in - 1);
    const double share = std::min(at - static_cast<double>(first), 1.0);
    axis.push_back(first == in - 1 ? Taps{{first}, {1}}
                                   : Taps{{first, first + 1}, {1 - share, share}});
  }
  return axis;
}

void roundWeights(Axis* axis, int bits) {
  for (Taps& taps : *axis) {
    for (double& w : taps.weights) {
      w = std::trunc(std::ldexp(w, bits) + (w < 0 ? -0.5 : 0.5));
    }
  }
}

int sixteenBits(const Axis& axis) {
  double most = 0;
  for (const Taps& taps : axis) {
    for (const double w : taps.weights) most = std::max(most, w);
  }
  int bits = 22;
  while (bits > 0 && std::trunc(0.5 + std::ldexp(most, bits)) >= 32768) --bits;
  return bits;
}

// ---- sums ---------------------------------------------------------------------------------------

Image transposed(const Image& image) {
  Image other(image.width, image.height, image.channels);
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      for (int64_t c = 0; c < image.channels; ++c) other.at(x, y, c) = image.at(y, x, c);
    }
  }
  return other;
}

uint8_t toByte(int64_t x) { return static_cast<uint8_t>(std::clamp<int64_t>(x, 0, 255)); }

// One pass along the rows.
Image roundedPass(const Image& image, int64_t width, const Axis& axis, int bits) {
  Image out(image.height, width, image.channels);
  const int64_t unit = int64_t{1} << bits;
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const Taps& taps = axis[static_cast<size_t>(x)];
      for (int64_t c = 0; c < image.channels; ++c) {
        int64_t sum = unit / 2;
        for (size_t j = 0; j < taps.pixels.size(); ++j) {
          sum += static_cast<int64_t>(taps.weights[j]) * image.at(y, taps.pixels[j], c);
        }
        out.at(y, x, c) = toByte(
            static_cast<int64_t>(std::floor(static_cast<double>(sum) / static_cast<double>(unit))));
      }
    }
  }
  return out;
}

Image passAlongRows(const Image& image, int64_t width, int32_t rule, int32_t filter) {
  if (width == image.width) return image;
  const bool two = filter == RBC_IMAGES_FILTER_LINEAR;
  Axis axis = two ? twoPixelAxis(image.width, width) : filterAxis(filter, image.width, width);
  const int bits = rule == RBC_IMAGES_RULE_TORCHVISION ? sixteenBits(axis) : 22;
  roundWeights(&axis, bits);
  return roundedPass(image, width, axis, bits);
}

Image passAlongColumns(const Image& image, int64_t height, int32_t rule, int32_t filter) {
  return transposed(passAlongRows(transposed(image), height, rule, filter));
}

// A sum over both axes for each value, with its rounding.
template <class Sum>
Image overBoth(const Image& image, const Axis& rows, const Axis& columns, const Sum& sum) {
  Image out(static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns.size()),
            image.channels);
  for (int64_t y = 0; y < out.height; ++y) {
    for (int64_t x = 0; x < out.width; ++x) {
      for (int64_t c = 0; c < out.channels; ++c) {
        out.at(y, x, c) =
            sum(rows[static_cast<size_t>(y)], columns[static_cast<size_t>(x)],
                [&](int64_t row, int64_t column) { return image.at(row, column, c); });
      }
    }
  }
  return out;
}

Image exact(const Image& image, int64_t height, int64_t width, int32_t filter) {
  Axis rows = filterAxis(filter, image.height, height);
  Axis columns = filterAxis(filter, image.width, width);
  roundWeights(&rows, 22);
  roundWeights(&columns, 22);
  return overBoth(image, rows, columns, [](const Taps& down, const Taps& across, auto pixel) {
    Wide sum = 0;
    for (size_t i = 0; i < down.pixels.size(); ++i) {
      for (size_t j = 0; j < across.pixels.size(); ++j) {
        sum += static_cast<Wide>(down.weights[i]) * static_cast<Wide>(across.weights[j]) *
               pixel(down.pixels[i], across.pixels[j]);
      }
    }
    const Wide unit = static_cast<Wide>(1) << 44;
    Wide whole = sum / unit;
    if (whole * unit > sum) --whole;  // towards minus infinity
    const Wide twice = 2 * (sum - whole * unit);
    if (twice > unit || (twice == unit && whole % 2 != 0)) ++whole;
    return toByte(static_cast<int64_t>(whole));
  });
}

// ---- OpenCV -------------------------------------------------------------------------------------

double cvScale(int64_t in, int64_t out) {
  return 1.0 / (static_cast<double>(out) / static_cast<double>(in));
}

Axis cvLinearAxis(int64_t in, int64_t out, bool columns, bool of_area) {
  Axis axis;
  const double scale = cvScale(in, out);
  for (int64_t i = 0; i < out; ++i) {
    int64_t s = 0;
    float f = 0;
    if (of_area) {
      s = static_cast<int64_t>(std::floor(static_cast<double>(i) * scale));
      f = static_cast<float>(static_cast<double>(i + 1) -
                             static_cast<double>(s + 1) *
                                 (static_cast<double>(out) / static_cast<double>(in)));
      f = f <= 0 ? 0 : f - std::floor(f);
    } else {
      const auto p = static_cast<float>((static_cast<double>(i) + 0.5) * scale - 0.5);
      s = static_cast<int64_t>(std::floor(p));
      f = p - static_cast<float>(s);
    }
    if (columns && s < 0) s = 0, f = 0;
    if (columns && s >= in - 1) s = in - 1, f = 0;
    axis.push_back({{std::clamp<int64_t>(s, 0, in - 1), std::clamp<int64_t>(s + 1, 0, in - 1)},
                    {static_cast<double>(std::rint((1.0f - f) * 2048.0f)),
                     static_cast<double>(std::rint(f * 2048.0f))}});
  }
  return axis;
}

Image cvLinear(const Image& image, int64_t height, int64_t width, bool of_area) {
  return overBoth(image, cvLinearAxis(image.height, height, false, of_area),
                  cvLinearAxis(image.width, width, true, of_area),
                  [](const Taps& down, const Taps& across, auto pixel) {
                    int64_t sum = 2;
                    for (size_t i = 0; i < 2; ++i) {
                      int64_t along = 0;
                      for (size_t j = 0; j < 2; ++j) {
                        along += static_cast<int64_t>(across.weights[j]) *
                                 pixel(down.pixels[i], across.pixels[j]);
                      }
                      sum += (static_cast<int64_t>(down.weights[i]) * (along / 16)) / 65536;
                    }
                    return toByte(sum / 4);
                  });
}

Axis cvExactAxis(int64_t in, int64_t out) {
  Axis axis;
  for (int64_t i = 0; i < out; ++i) {
    const double p = (static_cast<double>(i) + 0.5) * cvScale(in, out) - 0.5;
    const auto s = static_cast<int64_t>(std::floor(p));
    if (s < 0 || s >= in - 1) {
      axis.push_back({{s < 0 ? 0 : in - 1}, {256}});
    } else {
      const double c = std::rint(256 * (p - static_cast<double>(s)));
      axis.push_back({{s, s + 1}, {256 - c, c}});
    }
  }
  return axis;
}

Image cvExact(const Image& image, int64_t height, int64_t width) {
  return overBoth(image, cvExactAxis(image.height, height), cvExactAxis(image.width, width),
                  [](const Taps& down, const Taps& across, auto pixel) {
                    double sum = 32768;
                    for (size_t i = 0; i < down.pixels.size(); ++i) {
                      for (size_t j = 0; j < across.pixels.size(); ++j) {
                        sum += down.weights[i] * across.weights[j] *
                               pixel(down.pixels[i], across.pixels[j]);
                      }
                    }
                    return toByte(static_cast<int64_t>(sum / 65536));
                  });
}

Axis cvCells(int64_t in, int64_t out) {
  Axis axis;
  const double scale = cvScale(in, out);
  for (int64_t i = 0; i < out; ++i) {
    const double a = static_cast<double>(i) * scale;
    const double b = a + scale;
    const double cell = std::min(scale, static_cast<double>(in) - a);
    const auto last = std::min(static_cast<int64_t>(std::floor(b)), in - 1);
    const auto first = std::min(static_cast<int64_t>(std::ceil(a)), last);
    Taps taps;
    const auto add = [&](int64_t pixel, double w) {
      taps.pixels.push_back(pixel);
      taps.weights.push_back(static_cast<double>(static_cast<float>(w)));
    };
    const double before = static_cast<double>(first) - a;
    const double after = b - static_cast<double>(last);
    if (before > 1e-3) add(first - 1, before / cell);
    for (int64_t s = first; s < last; ++s) add(s, 1 / cell);
    if (after > 1e-3) add(last, std::min(std::min(after, 1.0), cell) / cell);
    axis.push_back(taps);
  }
  return axis;
}

Image cvArea(const Image& image, int64_t height, int64_t width) {
  if (image.height < height || image.width < width) return cvLinear(image, height, width, true);
  const double down = cvScale(image.height, height);
  const double across = cvScale(image.width, width);
  const auto whole = [](double x) { return std::fabs(x - std::rint(x)) < 0x1p-52; };
  if (whole(down) && whole(across)) {
    const auto h = static_cast<int64_t>(std::rint(down));
    const auto w = static_cast<int64_t>(std::rint(across));
    Image out(height, width, image.channels);
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        for (int64_t c = 0; c < image.channels; ++c) {
          int64_t sum = 0;
          for (int64_t i = 0; i < h; ++i) {
            for (int64_t j = 0; j < w; ++j) sum += image.at(y * h + i, x * w + j, c);
          }
          out.at(y, x, c) =
              h == 2 && w == 2
                  ? toByte((sum + 2) / 4)
                  : toByte(static_cast<int64_t>(
                        std::rint(static_cast<float>(sum) * (1.0f / static_cast<float>(h * w)))));
        }
      }
    }
    return out;
  }
  return overBoth(image, cvCells(image.height, height), cvCells(image.width, width),
                  [](const Taps& rows, const Taps& columns, auto pixel) {
                    float sum = 0;
                    for (size_t i = 0; i < rows.pixels.size(); ++i) {
                      float along = 0;
                      for (size_t j = 0; j < columns.pixels.size(); ++j) {
                        const float x = pixel(rows.pixels[i], columns.pixels[j]);
                        const float product = x * static_cast<float>(columns.weights[j]);
                        along = along + product;
                      }
                      const float product = along * static_cast<float>(rows.weights[i]);
                      sum = sum + product;
                    }
                    return toByte(static_cast<int64_t>(std::rint(sum)));
                  });
}

// ---- colours ------------------------------------------------------------------------------------

uint8_t truncated(float x) { return static_cast<uint8_t>(std::clamp(x, 0.0f, 255.0f)); }

float gray(const Image& image, int64_t y, int64_t x) {
  if (image.channels == 1) return image.at(y, x, 0);
  const float red = static_cast<float>(image.at(y, x, 0)) * 0.2989f;
  const float green = std::fma(static_cast<float>(image.at(y, x, 1)), 0.587f, red);
  return std::floor(std::fma(static_cast<float>(image.at(y, x, 2)), 0.114f, green));
}

// One pixel by the formulas of torchvision's adjust_hue of uint8, with its masks and its order.
void turnHue(uint8_t (&pixel)[3], float turn) {
  float x[3];
  for (int c = 0; c < 3; ++c) x[c] = static_cast<float>(pixel[c]) * static_cast<float>(1.0 / 255);
  const float high = std::max({x[0], x[1], x[2]});
  const float low = std::min({x[0], x[1], x[2]});
  const float range = high - low;
  const float s = range / (high == low ? 1.0f : high);
  const float divisor = high == low ? 1.0f : range;
  const float rc = (high - x[0]) / divisor;
  const float gc = (high - x[1]) / divisor;
  const float bc = (high - x[2]) / divisor;
  const float hg = ((rc + 2.0f) - bc) * (high == x[1] && high != x[0] ? 1.0f : 0.0f);
  const float hr = (bc - gc) * (high == x[0] ? 1.0f : 0.0f);
  const float hb = ((gc + 4.0f) - rc) * (high != x[0] && high != x[1] ? 1.0f : 0.0f);
  float h = (hr + hg) + hb;
  h = std::fmod(h * static_cast<float>(1.0 / 6) + 1.0f, 1.0f);
  h = std::fmod(h + turn, 1.0f);
  if (h < 0) h = h + 1.0f;
  const float h6 = h * 6.0f;
  const float i = std::floor(h6);
  const float f = h6 - i;
  const float sxf = s * f;
  const float rest = 1.0f - s;
  const auto unit = [](float v) { return std::clamp(v, 0.0f, 1.0f); };
  const float vpqt[4] = {high, unit(rest * high), unit((1.0f - sxf) * high),
                         unit((sxf + rest) * high)};
  constexpr size_t kSelect[3][6] = {{0, 2, 1, 1, 3, 0}, {3, 0, 0, 2, 1, 1}, {1, 1, 3, 0, 0, 2}};
  for (size_t c = 0; c < 3; ++c) {
    const float v = vpqt[kSelect[c][static_cast<size_t>(i) % 6]];
    pixel[c] = static_cast<uint8_t>(v * static_cast<float>(255 + 1.0 - 1e-3));
  }
}

void color(Image* image, const Options& options) {
  for (const int step : options.order) {
    const double f = options.factors[static_cast<size_t>(step)];
    if (std::isnan(f) || (step >= 2 && image->channels == 1)) continue;
    if (step == 3) {
      for (size_t i = 0; i < image->bytes.size(); i += 3) {
        uint8_t pixel[3] = {image->bytes[i], image->bytes[i + 1], image->bytes[i + 2]};
        turnHue(pixel, static_cast<float>(f));
        std::copy_n(pixel, 3, &image->bytes[i]);
      }
      continue;
    }
    const auto factor = static_cast<float>(f);
    const auto other = static_cast<float>(1.0 - f);
    float mean = 0;
    if (step == 1) {
      double sum = 0;
      for (int64_t y = 0; y < image->height; ++y) {
        for (int64_t x = 0; x < image->width; ++x) sum += static_cast<double>(gray(*image, y, x));
      }
      mean = static_cast<float>(sum / static_cast<double>(image->height * image->width));
    }
    for (int64_t y = 0; y < image->height; ++y) {
      for (int64_t x = 0; x < image->width; ++x) {
        const float with = step == 1 ? mean : step == 2 ? gray(*image, y, x) : 0;
        for (int64_t c = 0; c < image->channels; ++c) {
          uint8_t& byte = image->at(y, x, c);
          const float product = static_cast<float>(byte) * factor;
          byte = truncated(step == 0 ? product : std::fma(with, other, product));
        }
      }
    }
  }
}

Image part(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width) {
  Image out(height, width, image.channels);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < image.channels; ++c) out.at(y, x, c) = image.at(top + y, left + x, c);
    }
  }
  return out;
}

}  // namespace

Image resize(const Image& image, int64_t height, int64_t width, int32_t rule, int32_t filter) {
  if (rule == RBC_IMAGES_RULE_EXACT) return exact(image, height, width, filter);
  if (rule == RBC_IMAGES_RULE_OPENCV) {
    if (filter == RBC_IMAGES_FILTER_LINEAR_EXACT) return cvExact(image, height, width);
    const bool halves = image.height == 2 * height && image.width == 2 * width;
    if (filter == RBC_IMAGES_FILTER_AREA || halves) return cvArea(image, height, width);
    return cvLinear(image, height, width, false);
  }
  const bool of_13 = rule == RBC_IMAGES_RULE_PILLOW_13 && image.height - height > 0 &&
                     image.height - height > 2 * (image.width - width);
  const bool of_12 = rule == RBC_IMAGES_RULE_PILLOW_12 && image.height - height > 0 &&
                     image.height > 100 * image.width;
  if (of_12 || of_13) {
    return passAlongRows(passAlongColumns(image, height, rule, filter), width, rule, filter);
  }
  return passAlongColumns(passAlongRows(image, width, rule, filter), height, rule, filter);
}

Image expected(const Image& frame, int64_t height, int64_t width, const Options& options) {
  Image image = frame;
  if (options.colored && options.color_first) color(&image, options);
  const auto& [top, left, box_height, box_width] = options.box;
  image = part(image, top, left, box_height, box_width);
  int64_t h = height;
  int64_t w = width;
  if (options.fit == RBC_IMAGES_FIT_PAD) {
    const double ratio = std::max(static_cast<double>(box_width) / static_cast<double>(width),
                                  static_cast<double>(box_height) / static_cast<double>(height));
    h = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(box_height) / ratio));
    w = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(box_width) / ratio));
  } else if (options.fit == RBC_IMAGES_FIT_COVER) {
    if (box_width * height <= box_height * width) {
      h = static_cast<int64_t>(static_cast<double>(width * box_height) /
                               static_cast<double>(box_width));
    } else {
      w = static_cast<int64_t>(static_cast<double>(height * box_width) /
                               static_cast<double>(box_height));
    }
  }
  image = resize(image, h, w, options.rule, options.filter);
  if (options.fit == RBC_IMAGES_FIT_COVER) {
    image = part(image, (h - height) / 2, (w - width) / 2, height, width);
  }
  Image flipped = image;
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      for (int64_t c = 0; c < image.channels; ++c) {
        flipped.at(y, x, c) = image.at((options.flips & 2) != 0 ? image.height - 1 - y : y,
                                       (options.flips & 1) != 0 ? image.width - 1 - x : x, c);
      }
    }
  }
  if (options.colored && !options.color_first) color(&flipped, options);
  const auto begin = [&](int64_t room) {
    return options.pad_anchor == RBC_IMAGES_PAD_START ? 0
           : options.pad_anchor == RBC_IMAGES_PAD_END ? room
                                                      : room / 2;
  };
  const int64_t y0 = begin(height - flipped.height);
  const int64_t x0 = begin(width - flipped.width);
  Image out(height, width, frame.channels);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const bool inside = y >= y0 && y < y0 + flipped.height && x >= x0 && x < x0 + flipped.width;
      for (int64_t c = 0; c < frame.channels; ++c) {
        out.at(y, x, c) =
            inside ? flipped.at(y - y0, x - x0, c) : options.pad_value[static_cast<size_t>(c)];
      }
    }
  }
  return out;
}

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = static_cast<uint64_t>(counter[0]) * 0xD2511F53u;
    const uint64_t second = static_cast<uint64_t>(counter[2]) * 0xCD9E8D57u;
    counter = {
        static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
        static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

}  // namespace images_reference
