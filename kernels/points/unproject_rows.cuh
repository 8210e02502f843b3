// The rows of points that a tile of pixels has, written from shared memory.
#pragma once

#include <type_traits>

#include "points/tile_prefix.cuh"
#include "runtime/fast_divmod.cuh"
#include "unproject_problem.h"

namespace rbc::cuda {
namespace unprojection {

inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / 32;
// Pixels of a thread, one after the other: what shared memory holds of f64 is half.
template <class Element>
inline constexpr int kRun = sizeof(Element) <= 4 ? 8 : 4;
template <class Element>
inline constexpr int kTile = kThreads*(kRun<Element>);

template <class Number>
struct Arguments {
  UnprojectProblem problem;
  DepthRules<Number> rules;
  int64_t pixels;  // of an image that are looked at
  int64_t tiles;   // of an image
  FastDivmod per_image;
  FastDivmod per_row;
  TileState* states;  // by image and tile; cleared
  bool in_line;       // all pixels of an image are looked at, and lie one after the other
  bool in_vecs;       // likewise, and a thread's can be loaded as words
};

inline __device__ void putPixel(const UnprojectProblem& p, int64_t image, int64_t place,
                                int64_t pixel) {
  const int64_t at = image * p.pixels.stride[0] + place * p.pixels.stride[1];
  if (p.pixels.dtype == DType::I64) {
    static_cast<int64_t*>(p.pixels.data)[at] = pixel;
  } else {
    static_cast<int32_t*>(p.pixels.data)[at] = static_cast<int32_t>(pixel);
  }
}

// Positions in shared memory: a word is left free behind each eight, which a thread may have, so that
// threads write to different banks.
template <class Element>
struct Staged {
  static constexpr int kGroup = 3 * 8 + 1;
  static constexpr int kMostChannels = 8;

  Element positions[kTile<Element> / 8 * kGroup];
  uint16_t pixels[kTile<Element>];  // by point, in the tile

  __device__ static unsigned at(unsigned point) { return 3 * point + point / 8; }

  // What is kept is a number: nothing has to be done so that NaN is the one NaN.
  template <class Number>
  __device__ __forceinline__ void put(unsigned point, const Number (&position)[3]) {
    Element* to = positions + at(point);
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      if constexpr (std::is_same_v<Element, Number>) {
        to[i] = position[i];
      } else {
        to[i] = narrow<Element>(position[i]);
      }
    }
  }
};

// The points of a tile, by place, behind those of the tiles before: rows of nothing else.
template <class Element>
__device__ void copyPositions(const Staged<Element>& staged, int count, Element* to) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  // A warp takes 32 points at a time, that is 96 numbers of four groups.
  constexpr int kNumbers = 96;
  constexpr int kGroups = 4 * Staged<Element>::kGroup;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const Element* from = staged.positions + warp * kGroups + lane;
  const Element* first = from + lane / 24;
  const Element* second = from + 32 + (32 + lane) / 24;
  const Element* third = from + 64 + (64 + lane) / 24;
  Element* line = to + warp * kNumbers + lane;
  int left = 3 * count - warp * kNumbers - lane;
  for (; left > 64; left -= kWarps * kNumbers) {
    line[0] = *first;
    line[32] = *second;
    line[64] = *third;
    line += kWarps * kNumbers;
    first += kWarps * kGroups, second += kWarps * kGroups, third += kWarps * kGroups;
  }
  if (left > 0) line[0] = *first;
  if (left > 32) line[32] = *second;
}

// What colours are divided by.
template <class Number>
struct Divisor {
  Number value;
  Number reciprocal;
  bool suits;  // quotientByProducts() of bytes

  __device__ explicit Divisor(Number by) : value(by), reciprocal(1 / by), suits(isModerate(by)) {}
};
template <class Number>
__device__ Number divideByte(Number byte, const Divisor<Number>& by) {
  return by.suits ? quotientByProducts(byte, by.value, by.reciprocal) : byte / by.value;
}

// The colours of a point, some of them on their way at once.
template <class Number, class Element, class ColorAt>
__device__ void putColors(const Arguments<Number>& a, Element* to, int64_t stride,
                          ColorAt&& colorOf) {
  constexpr int kSome = 3;
  for (int64_t first = 0; first < a.problem.channels; first += kSome) {
    Number color[kSome];
#pragma unroll
    for (int k = 0; k < kSome; ++k) {
      if (first + k < a.problem.channels) color[k] = colorOf(first + k);
    }
#pragma unroll
    for (int k = 0; k < kSome; ++k) {
      if (first + k < a.problem.channels) to[(first + k) * stride] = narrow<Element>(color[k]);
    }
  }
}

// The same with colours and pixels, in any layout. Rows without gaps are put together in `rows`, 32 for
// each warp, and written as lines.
template <class Number, class Element>
__device__ void writeRows(const Arguments<Number>& a, const Staged<Element>& staged, int64_t image,
                          int64_t first_pixel, int64_t before, int count, Element* rows) {
  const UnprojectProblem& p = a.problem;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const auto channels = static_cast<int>(min(3 + p.channels, int64_t{INT32_MAX}));
  const bool compact = p.points.stride[2] == 1 && p.points.stride[1] == channels &&
                       channels <= Staged<Element>::kMostChannels;
  auto* out = static_cast<Element*>(p.points.data) + image * p.points.stride[0] +
              before * p.points.stride[1];
  Element* of_warp = rows + warp * 32 * Staged<Element>::kMostChannels;
  const Divisor<Number> scale(static_cast<Number>(p.color_scale));
  for (int turn = warp * 32; turn < count; turn += kThreads) {
    const int point = turn + lane;
    if (point < count) {
      Element* to = compact ? of_warp + lane * channels : out + point * p.points.stride[1];
      const int64_t stride = compact ? 1 : p.points.stride[2];
#pragma unroll
      for (int i = 0; i < 3; ++i) {
        to[i * stride] = staged.positions[staged.at(static_cast<unsigned>(point)) + i];
      }
      const int64_t pixel = first_pixel + staged.pixels[point];
      const int64_t line = a.per_row(pixel);
      const int64_t row = line * p.step;
      const int64_t column = (pixel - line * p.columns()) * p.step;
      if (p.pixels.data != nullptr) putPixel(p, image, before + point, row * p.width + column);
      const int64_t color =
          image * p.colors.stride[0] + row * p.colors.stride[1] + column * p.colors.stride[2];
      if (p.colors.dtype == DType::U8) {
        const auto* bytes = static_cast<const uint8_t*>(p.colors.data);
        putColors(a, to + 3 * stride, stride, [&](int64_t c) {
          return divideByte(static_cast<Number>(bytes[color + c * p.colors.stride[3]]), scale);
        });
      } else {
        putColors(a, to + 3 * stride, stride, [&](int64_t c) {
          return colorAt<Number>(p.colors, color + c * p.colors.stride[3]) / scale.value;
        });
      }
    }
    if (!compact) continue;
    __syncwarp();
    const int numbers = min(count - turn, 32) * channels;
    Element* line = out + int64_t{turn} * channels;
    for (int i = lane; i < numbers; i += 32) line[i] = of_warp[i];
    __syncwarp();
  }
}

}  // namespace unprojection
}  // namespace rbc::cuda
