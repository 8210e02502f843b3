// Samples as tiles: rows of some channels, one row after the other, in the type that is computed in.
#pragma once

#include <algorithm>
#include <type_traits>

#include "runtime/row_line.h"
#include "statistics/visit_samples.h"
#include "statistics/window_sums.h"

namespace rbc::cpu {

// All samples as one line of rows: what threads share out.
inline RowLine lineOf(const Samples& s) { return {s.lengths, s.offsets, s.rows, s.batch}; }

// How many channels at a time: few enough for a tile; one where a channel's samples lie together.
inline int tileWidth(const Samples& s) {
  if (s.channel_stride != 1 && s.axis[s.axes - 1].stride == 1) return 1;
  const int64_t blocks = (s.channels + kMaxWidth - 1) / kMaxWidth;
  return blocks > 0 ? static_cast<int>((s.channels + blocks - 1) / blocks) : 1;
}

template <class T>
class TileReader {
 public:
  using Number = Compute<T>;

  // `buffer` has room for kTileElements. The channels share a mask.
  TileReader(const Samples& s, int64_t channel, int width, Number* buffer)
      : s_(s), channel_(channel), width_(width), buffer_(buffer) {
    const int64_t rows = kTileElements<Number> / width;
    tile_rows_ = rows >= 16 ? rows / 16 * 16 : rows;  // whole vectors
  }

  // Calls visit(values, rows) for tiles of the samples of a row of the batch; finish() for the rest.
  template <class Visitor>
  void read(int64_t row, int64_t begin, int64_t end, Visitor&& visit) {
    visitRuns(s_, row, begin, end, [&](const SampleRun& run) { readRun(run, visit); });
  }
  template <class Visitor>
  void finish(Visitor&& visit) {
    if (held_ > 0) visit(static_cast<const Number*>(buffer_), held_);
    held_ = 0;
  }

 private:
  template <class Visitor>
  void readRun(const SampleRun& run, Visitor&& visit) {
    const T* values = reinterpret_cast<const T*>(run.data) + channel_ * s_.channel_stride;
    const uint8_t* mask = run.mask != nullptr ? run.mask + s_.maskOffset(channel_) : nullptr;
    const bool dense = width_ == 1 || s_.channel_stride == 1;
    if (mask == nullptr && run.stride == 0 && run.count > tile_rows_) {
      return repeat(values, run.count, visit);
    }
    if constexpr (std::is_same_v<T, Number>) {
      if (mask == nullptr && dense && run.stride == width_) {
        for (int64_t i = 0; i < run.count; i += tile_rows_) {
          visit(values + i * width_, std::min(tile_rows_, run.count - i));
        }
        return;
      }
    }
    for (int64_t i = 0; i < run.count;) {
      if (held_ == tile_rows_) finish(visit);
      const int64_t count = std::min(run.count - i, tile_rows_ - held_);
      if (mask == nullptr) {
        copyRows(values + i * run.stride, run.stride, count);
      } else {
        for (int64_t k = i; k < i + count; ++k) {
          if (mask[k * run.mask_stride] != 0) copyRows(values + k * run.stride, 0, 1);
        }
      }
      i += count;
    }
  }

  void copyRows(const T* from, int64_t stride, int64_t count) {
    Number* to = buffer_ + held_ * width_;
    held_ += count;
    if (width_ == 1) {
      for (int64_t i = 0; i < count; ++i) to[i] = widen(from[i * stride]);
    } else if (s_.channel_stride == 1) {
      for (int64_t i = 0; i < count; ++i, from += stride, to += width_) {
        for (int c = 0; c < width_; ++c) to[c] = widen(from[c]);
      }
    } else {
      for (int64_t i = 0; i < count; ++i, from += stride, to += width_) {
        for (int c = 0; c < width_; ++c) to[c] = widen(from[c * s_.channel_stride]);
      }
    }
  }

  // One sample many times over: by a stride of 0, more than memory holds.
  template <class Visitor>
  void repeat(const T* values, int64_t count, Visitor&& visit) {
    finish(visit);
    copyRows(values, 0, tile_rows_);
    held_ = 0;
    for (int64_t i = 0; i < count; i += tile_rows_) {
      visit(static_cast<const Number*>(buffer_), std::min(tile_rows_, count - i));
    }
  }

  const Samples& s_;
  int64_t channel_;
  int width_;
  Number* buffer_;
  int64_t tile_rows_;
  int64_t held_ = 0;
};

// What a thread needs for tiles, in its own memory.
template <class Number>
struct TileMemory {
  WindowSums<Number> sums;
  alignas(64) Number buffer[kTileElements<Number>];
  alignas(64) Number column[kTileElements<Number>];
  union {
    int32_t slow[kTileElements<Number>];
    alignas(64) Number kept[kTileElements<Number> + 16];
  };
};

}  // namespace rbc::cpu
