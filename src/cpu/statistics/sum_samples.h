// Sums of samples: visits of samples, tiles of them, and the sums of a thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/cpu_state.h"
#include "runtime/row_line.h"
#include "statistics/window_sums.h"
#include "statistics_problem.h"

namespace rbc::cpu {

// ---- The samples of a row of the batch, as runs with one stride.

// Samples with one stride. The mask's bytes may be null.
struct SampleRun {
  const std::byte* data;  // of the first channel
  const uint8_t* mask;
  int64_t count;
  int64_t stride;  // in elements
  int64_t mask_stride;
};

// Calls visit(SampleRun) for the samples begin .. end - 1 of a row, in order.
template <class Visitor>
void visitRuns(const Samples& s, int64_t row, int64_t begin, int64_t end, Visitor&& visit) {
  const SampleAxis& inner = s.axis[s.axes - 1];
  const int64_t size = sizeOf(s.dtype);
  while (begin < end) {
    const int64_t rest = inner.extent - begin % inner.extent;
    const int64_t count = std::min(end - begin, rest);
    const SamplePlace place = placeOf(s, row, begin);
    visit(SampleRun{static_cast<const std::byte*>(s.data) + place.value * size,
                    s.mask != nullptr ? s.mask + place.mask : nullptr, count, inner.stride,
                    inner.mask_stride});
    begin += count;
  }
}

// ---- Samples as tiles: rows of some channels, contiguous, in the compute type.

// All samples as one line of rows, which is divided among threads.
inline RowLine lineOf(const Samples& s) { return {s.lengths, s.offsets, s.rows, s.batch}; }

// Number of channels at a time: few enough for a tile; one if a channel's samples are contiguous.
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

  // Calls visit(values, rows) for tiles of the samples of a row of the batch; finish() visits the
  // rest.
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

  // One sample many times: with a stride of 0, more than memory holds.
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

// The memory of a thread for tiles.
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

// ---- Moments of samples, tile by tile.

// Calls visit(row, begin, end) for the samples of each row of the batch in a range of the line.
template <class Visitor>
void visitSamples(const Samples& s, int64_t begin, int64_t end, Visitor&& visit) {
  if (begin >= end) return;
  const RowLine line = lineOf(s);
  visitPieces(line, begin, end, [&](const RowPiece& piece) {
    const int64_t first = line.packed() ? line.begin(piece.member) : 0;
    visit(piece.member, first + piece.begin, first + piece.end);
    return false;
  });
}

// Sets the moments of all channels to the moments of samples begin .. end - 1 of the line. Calls
// visit(channel, width, values, rows) for each tile, and then each(channel, negative infinities).
// Stops early if the call is interrupted.
template <class T, class Visitor, class Each>
void sumSamples(const Samples& s, const CpuState& state, ThreadMemory& thread, int64_t begin,
                int64_t end, Moments* moments, Visitor&& visit, Each&& each) {
  using Number = Compute<T>;
  auto* memory = thread.as<TileMemory<Number>>();
  const int widest = tileWidth(s);
  int width = 0;
  for (int64_t channel = 0; channel < s.channels; channel += width) {
    width = static_cast<int>(std::min<int64_t>(widest, s.channelsFrom(channel)));
    for (int c = 0; c < width; ++c) clearMoments(moments + channel + c);
    beginSums(&memory->sums, state.simd, width, moments + channel);
    TileReader<T> reader(s, channel, width, memory->buffer);
    int64_t samples = 0;
    const auto add = [&](const Number* values, int64_t rows) {
      samples += rows;
      addTile(&memory->sums, state.simd, values, rows, memory->slow);
      visit(channel, width, values, rows);
    };
    const bool all = state.pool.inPieces(end - begin, [&](int64_t first, int64_t last) {
      visitSamples(s, begin + first, begin + last,
                   [&](int64_t row, int64_t from, int64_t to) { reader.read(row, from, to, add); });
    });
    if (!all) return;
    reader.finish(add);
    endSums(&memory->sums);
    for (int c = 0; c < width; ++c) {
      moments[channel + c].count = samples - moments[channel + c].nonfinite;
      each(channel + c, memory->sums.negative_infinities[c]);
    }
  }
}

template <class T>
void sumSamples(const Samples& s, const CpuState& state, ThreadMemory& thread, int64_t begin,
                int64_t end, Moments* moments) {
  sumSamples<T>(
      s, state, thread, begin, end, moments, [](int64_t, int, const Compute<T>*, int64_t) {},
      [](int64_t, int64_t) {});
}

// Calls visit(x, times) for the values of a channel. Returns false if the call is interrupted.
template <class T, class Visitor>
bool visitChannel(const Samples& s, const ThreadPool& pool, int64_t channel, int64_t begin,
                  int64_t end, Visitor&& visit) {
  const auto visitRun = [&](const SampleRun& run) {
    const T* values = reinterpret_cast<const T*>(run.data) + channel * s.channel_stride;
    if (run.mask == nullptr && run.stride == 0) return visit(widen(*values), run.count);
    const uint8_t* mask = run.mask != nullptr ? run.mask + s.maskOffset(channel) : nullptr;
    for (int64_t i = 0; i < run.count; ++i) {
      if (mask != nullptr && mask[i * run.mask_stride] == 0) continue;
      visit(widen(values[i * run.stride]), int64_t{1});
    }
  };
  return pool.inPieces(end - begin, [&](int64_t first, int64_t last) {
    visitSamples(s, begin + first, begin + last, [&](int64_t row, int64_t from, int64_t to) {
      visitRuns(s, row, from, to, visitRun);
    });
  });
}

// Number of tasks that samples are divided into, each with its own sums.
inline int64_t sumTasks(int64_t samples, int threads) {
  constexpr int64_t kTaskSamples = 8192;
  return std::clamp<int64_t>(samples / kTaskSamples, 1, 2 * int64_t{threads});
}

// Where a task begins.
inline int64_t taskBegin(int64_t task, int64_t tasks, int64_t samples) {
  return static_cast<int64_t>(static_cast<uint128>(task) * static_cast<uint128>(samples) /
                              static_cast<uint128>(tasks));
}

}  // namespace rbc::cpu
