// The weights of a resize along one axis, for every rule: which pixels an output pixel is made of,
// and their integer or f32 weights. Both backends fill their tables with tapsOf().
//
// An output pixel has the pixels first .. first + count - 1, each clamped to the axis: OpenCV's
// rules read beyond the edge.
#pragma once

#include <cmath>
#include <cstdint>

#include "number.h"
#include "platform.h"
#include "trig.h"

namespace rbc {

enum class ResizeFilter : int32_t {
  kBox,
  kBilinear,
  kHamming,
  kBicubic,
  kLanczos3,
  kLinear,
  kLinearExact,
  kArea,
};

// How an axis gets its weights.
enum class ResizeTaps : int32_t {
  kFilter,        // a filter with a radius
  kTwoPixels,     // torchvision without antialias
  kCvLinear,      // OpenCV
  kCvLinearArea,  // OpenCV's area where an axis is enlarged
  kCvLinearExact,
  kCvBlocks,
  kCvCells,
};

struct TapRange {
  int64_t first;
  int64_t count;
};

inline constexpr int kFilterBits = 22;  // of the fraction of a weight

RBC_HD double radiusOf(ResizeFilter filter) {
  switch (filter) {
    case ResizeFilter::kBox: return 0.5;
    case ResizeFilter::kBicubic: return 2;
    case ResizeFilter::kLanczos3: return 3;
    default: return 1;
  }
}

namespace detail {

RBC_HD double sinc(double x) {
  if (x == 0) return 1;
  constexpr double kPi = 3.141592653589793;
  const double angle = x * kPi;
  return sineCosine<double>(reduce(angle)).sine / angle;
}

}  // namespace detail

namespace detail {

// The filters that are not lines: long, so not a part of every caller.
RBC_HD_CALLED double curvedFilterAt(ResizeFilter filter, double x) {
  const double size = std::fabs(x);
  switch (filter) {
    case ResizeFilter::kHamming: {
      if (size == 0) return 1;
      if (size >= 1) return 0;
      constexpr double kPi = 3.141592653589793;
      constexpr double kHigh = 0.54f;
      constexpr double kLow = 0.46f;
      const double angle = size * kPi;
      const SineCosine<double> at = sineCosine<double>(reduce(angle));
      return at.sine / angle * (kHigh + kLow * at.cosine);
    }
    case ResizeFilter::kBicubic: {
      constexpr double a = -0.5;
      if (size < 1) return ((a + 2) * size - (a + 3)) * size * size + 1;
      return size < 2 ? (((size - 5) * size + 8) * size - 4) * a : 0;
    }
    default: return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;  // kLanczos3
  }
}

}  // namespace detail

RBC_HD double filterAt(ResizeFilter filter, double x) {
  switch (filter) {
    case ResizeFilter::kBox: return x > -0.5 && x <= 0.5 ? 1 : 0;
    case ResizeFilter::kHamming:
    case ResizeFilter::kBicubic:
    case ResizeFilter::kLanczos3: return detail::curvedFilterAt(filter, x);
    default: {
      const double size = std::fabs(x);
      return size < 1 ? 1 - size : 0;
    }
  }
}

// An axis of `in` pixels that becomes `out` pixels.
struct ResizeAxis {
  ResizeTaps taps;
  ResizeFilter filter;
  int64_t in;
  int64_t out;
  int32_t bits;   // of the fraction of weights of kFilter and kTwoPixels
  bool columns;   // OpenCV clamps differently along rows and along columns
  double scale;   // in / out; OpenCV's 1 / (out / in)
  double shrink;  // 1 / max(scale, 1)
  double support;
};

RBC_HD ResizeAxis axisOf(ResizeTaps taps, ResizeFilter filter, int64_t in, int64_t out,
                         bool columns) {
  ResizeAxis axis = {taps, filter, in, out, kFilterBits, columns, 0, 0, 0};
  const auto n = static_cast<double>(in);
  const auto m = static_cast<double>(out);
  const bool cv = taps != ResizeTaps::kFilter && taps != ResizeTaps::kTwoPixels;
  axis.scale = cv ? 1.0 / (m / n) : n / m;
  const double stretch = axis.scale > 1 ? axis.scale : 1.0;
  axis.shrink = 1.0 / stretch;
  axis.support = radiusOf(filter) * stretch;
  return axis;
}

// The number of weights that every output pixel has room for.
RBC_HD int64_t tapRoom(const ResizeAxis& axis) {
  switch (axis.taps) {
    case ResizeTaps::kFilter: {
      const int64_t room = static_cast<int64_t>(2 * axis.support) + 2;
      return room < axis.in ? room : axis.in;
    }
    case ResizeTaps::kCvBlocks: return axis.in / axis.out;
    case ResizeTaps::kCvCells: return static_cast<int64_t>(axis.scale) + 3;
    default: return 2;
  }
}

// An upper limit of out * tapRoom() for any part of an axis of `in` pixels, if at most `out` of the
// pixels that it becomes are needed.
RBC_HD int64_t tapLimit(ResizeFilter filter, int64_t in, int64_t out) {
  const auto reach = static_cast<int64_t>(2 * radiusOf(filter));
  return reach * (in > out ? in : out) + 4 * out + 8;
}

namespace detail {

// An axis that keeps its size has one pixel of weight 1 everywhere: no pass changes it.
RBC_HD bool keepsSize(const ResizeAxis& axis) {
  return axis.in == axis.out && axis.taps == ResizeTaps::kFilter;
}

struct CvPosition {
  int64_t pixel;
  float share;  // of the pixel after it
};

RBC_HD CvPosition cvPosition(const ResizeAxis& axis, int64_t i) {
  CvPosition at;
  if (axis.taps == ResizeTaps::kCvLinearArea) {
    at.pixel = static_cast<int64_t>(std::floor(static_cast<double>(i) * axis.scale));
    const double ratio = static_cast<double>(axis.out) / static_cast<double>(axis.in);
    const auto f =
        static_cast<float>(static_cast<double>(i + 1) - static_cast<double>(at.pixel + 1) * ratio);
    at.share = f <= 0 ? 0.0f : f - std::floor(f);
  } else {
    const auto p = static_cast<float>((static_cast<double>(i) + 0.5) * axis.scale - 0.5);
    const float whole = std::floor(p);
    at.pixel = static_cast<int64_t>(whole);
    at.share = p - whole;
  }
  if (axis.columns && at.pixel < 0) at = {0, 0.0f};
  if (axis.columns && at.pixel >= axis.in - 1) at = {axis.in - 1, 0.0f};
  return at;
}

// The cell of OpenCV's area, and its whole pixels.
struct CvCell {
  double begin;
  double end;
  double width;
  int64_t first;
  int64_t last;
};

RBC_HD CvCell cvCell(const ResizeAxis& axis, int64_t i) {
  CvCell cell;
  cell.begin = static_cast<double>(i) * axis.scale;
  cell.end = cell.begin + axis.scale;
  const double rest = static_cast<double>(axis.in) - cell.begin;
  cell.width = axis.scale < rest ? axis.scale : rest;
  cell.first = static_cast<int64_t>(std::ceil(cell.begin));
  const auto last = static_cast<int64_t>(std::floor(cell.end));
  cell.last = last < axis.in - 1 ? last : axis.in - 1;
  if (cell.first > cell.last) cell.first = cell.last;
  return cell;
}

RBC_HD bool cvCellHasStart(const CvCell& cell) {
  return static_cast<double>(cell.first) - cell.begin > 1e-3;
}
RBC_HD bool cvCellHasEnd(const CvCell& cell) {
  return cell.end - static_cast<double>(cell.last) > 1e-3;
}

RBC_HD double cvExactPosition(const ResizeAxis& axis, int64_t i) {
  return (static_cast<double>(i) + 0.5) * axis.scale - 0.5;
}

RBC_HD double twoPixelPosition(const ResizeAxis& axis, int64_t i) {
  const double at = axis.scale * (static_cast<double>(i) + 0.5) - 0.5;
  return at > 0 ? at : 0.0;
}

}  // namespace detail

// The pixels of an output pixel.
RBC_HD TapRange tapRange(const ResizeAxis& axis, int64_t i) {
  switch (axis.taps) {
    case ResizeTaps::kFilter: {
      if (detail::keepsSize(axis)) return {i, 1};
      const double centre = (static_cast<double>(i) + 0.5) * axis.scale;
      const auto low = static_cast<int64_t>(centre - axis.support + 0.5);
      const auto high = static_cast<int64_t>(centre + axis.support + 0.5);
      const int64_t first = low > 0 ? low : 0;
      return {first, (high < axis.in ? high : axis.in) - first};
    }
    case ResizeTaps::kTwoPixels: {
      const auto at = static_cast<int64_t>(detail::twoPixelPosition(axis, i));
      if (at >= axis.in - 1) return {axis.in - 1, 1};
      return {at, 2};
    }
    case ResizeTaps::kCvLinear:
    case ResizeTaps::kCvLinearArea: return {detail::cvPosition(axis, i).pixel, 2};
    case ResizeTaps::kCvLinearExact: {
      const auto at = static_cast<int64_t>(std::floor(detail::cvExactPosition(axis, i)));
      if (at < 0) return {0, 1};
      if (at >= axis.in - 1) return {axis.in - 1, 1};
      return {at, 2};
    }
    case ResizeTaps::kCvBlocks: {
      const int64_t each = axis.in / axis.out;
      return {i * each, each};
    }
    default: {
      const detail::CvCell cell = detail::cvCell(axis, i);
      const int64_t first = cell.first - (detail::cvCellHasStart(cell) ? 1 : 0);
      return {first, cell.last + (detail::cvCellHasEnd(cell) ? 1 : 0) - first};
    }
  }
}

namespace detail {

// The weights of a filter: it computes each one once if they are few, else twice.
class FilterWeights {
 public:
  RBC_HD FilterWeights(const ResizeAxis& axis, int64_t i, const TapRange& range)
      : axis_(axis), range_(range) {
    centre_ = (static_cast<double>(i) + 0.5) * axis.scale;
    for (int64_t j = 0; j < range.count; ++j) {
      const double w = raw(j);
      if (j < kKept) kept_[j] = w;
      total_ += w;
    }
  }
  RBC_HD double operator()(int64_t j) const {
    const double w = j < kKept ? kept_[j] : raw(j);
    return total_ != 0 ? w / total_ : w;
  }

 private:
  static constexpr int64_t kKept = 24;

  RBC_HD double raw(int64_t j) const {
    return filterAt(axis_.filter,
                    (static_cast<double>(range_.first + j) - centre_ + 0.5) * axis_.shrink);
  }

  const ResizeAxis& axis_;
  const TapRange range_;
  double centre_ = 0;
  double total_ = 0;
  double kept_[kKept];
};

RBC_HD int32_t awayFromZero(double scaled) {
  return static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

}  // namespace detail

// The largest weight of an output pixel, for kFilter and kTwoPixels.
RBC_HD double largestWeight(const ResizeAxis& axis, int64_t i) {
  const TapRange range = tapRange(axis, i);
  if (range.count == 1) return 1;
  if (axis.taps == ResizeTaps::kTwoPixels) {
    const double at = detail::twoPixelPosition(axis, i);
    const double share = at - static_cast<double>(range.first);
    return share > 0.5 ? share : 1.0 - share;
  }
  const detail::FilterWeights weights(axis, i, range);
  double most = 0;
  for (int64_t j = 0; j < range.count; ++j) most = weights(j) > most ? weights(j) : most;
  return most;
}

// The number of bits of the fraction of 16-bit weights: the most that keep the largest below 2^15.
RBC_HD int32_t sixteenBits(double largest) {
  for (int32_t bits = 22; bits > 0; --bits) {
    if (static_cast<int64_t>(0.5 + largest * static_cast<double>(int64_t{1} << bits)) < 1 << 15) {
      return bits;
    }
  }
  return 0;
}

// Calls put(j, weight) for each pixel of the range. Weights of kCvCells are the bits of an f32.
template <class Put>
RBC_HD void tapsOf(const ResizeAxis& axis, int64_t i, const TapRange& range, Put&& put) {
  const auto unit = static_cast<double>(int64_t{1} << axis.bits);
  switch (axis.taps) {
    case ResizeTaps::kFilter: {
      if (detail::keepsSize(axis)) {
        put(0, static_cast<int32_t>(unit));
        break;
      }
      const detail::FilterWeights weights(axis, i, range);
      for (int64_t j = 0; j < range.count; ++j) put(j, detail::awayFromZero(weights(j) * unit));
      break;
    }
    case ResizeTaps::kTwoPixels: {
      if (range.count == 1) {
        put(0, static_cast<int32_t>(unit));
        break;
      }
      const double share = detail::twoPixelPosition(axis, i) - static_cast<double>(range.first);
      put(0, detail::awayFromZero((1.0 - share) * unit));
      put(1, detail::awayFromZero(share * unit));
      break;
    }
    case ResizeTaps::kCvLinear:
    case ResizeTaps::kCvLinearArea: {
      const float share = detail::cvPosition(axis, i).share;
      put(0, static_cast<int32_t>(roundEven((1.0f - share) * 2048.0f)));
      put(1, static_cast<int32_t>(roundEven(share * 2048.0f)));
      break;
    }
    case ResizeTaps::kCvLinearExact: {
      if (range.count == 1) {
        put(0, 256);
        break;
      }
      const double share = detail::cvExactPosition(axis, i) - static_cast<double>(range.first);
      const auto c = static_cast<int32_t>(roundEven(256.0 * share));
      put(0, 256 - c);
      put(1, c);
      break;
    }
    case ResizeTaps::kCvBlocks:
      for (int64_t j = 0; j < range.count; ++j) put(j, 1);
      break;
    default: {
      const detail::CvCell cell = detail::cvCell(axis, i);
      int64_t j = 0;
      const auto add = [&](double w) { put(j++, bitCast<int32_t>(static_cast<float>(w))); };
      if (detail::cvCellHasStart(cell)) {
        add((static_cast<double>(cell.first) - cell.begin) / cell.width);
      }
      for (int64_t s = cell.first; s < cell.last; ++s) add(1.0 / cell.width);
      if (detail::cvCellHasEnd(cell)) {
        const double rest = cell.end - static_cast<double>(cell.last);
        const double whole = rest < 1 ? rest : 1.0;
        add((whole < cell.width ? whole : cell.width) / cell.width);
      }
      break;
    }
  }
}

}  // namespace rbc
