// Moments of samples, tile by tile.
#pragma once

#include "runtime/cpu_state.h"
#include "statistics/sample_tiles.h"

namespace rbc::cpu {

// Calls visit(row, begin, end) for samples of each row of the batch among those of the line.
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

// Sets the moments of all channels to those of samples begin .. end - 1 of the line, and calls
// visit(channel, width, values, rows) for each tile meanwhile, and then each(channel, negative
// infinities). Gives up half way where the call is interrupted.
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

// Calls visit(x, times) for the values of a channel. Returns false if the call is interrupted
// meanwhile.
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

// Into how many tasks samples are cut, each with sums of its own.
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
