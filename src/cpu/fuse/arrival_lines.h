// The arrivals of streams, with minima that searches skip by.
#pragma once

#include <cstddef>

#include "fuse_problem.h"
#include "runtime/cpu_state.h"

namespace rbc::cpu {

// The minima of a stream's arrivals, in workspace.
struct ArrivalLines {
  const void* minima = nullptr;  // null: none
  int64_t line = 0;              // from a row of the batch to the next; 0: they share one
};

size_t arrivalBytes(const FuseProblem& problem);

// Writes `lines`, one per stream, and the minima that they point to.
void findArrivalLines(CpuState& state, const FuseProblem& problem, Scratch scratch,
                      ArrivalLines* lines);

// The samples of row b that had arrived, without a mask; `until` is not set.
template <class Time>
ArrivedSamples<Time, int64_t> arrivedSamples(const Arrivals& arrivals, int64_t b,
                                             const RowRange& samples, int64_t line_samples,
                                             const ArrivalLines* lines) {
  constexpr int64_t kSize = sizeof(Time);
  ArrivedSamples<Time, int64_t> arrived = {};
  arrived.arrivals = arrivals.at(b, samples.begin, kSize);
  arrived.step = arrivals.stride[1] * kSize;
  arrived.origin = samples.begin;
  if (lines != nullptr && lines->minima != nullptr) {
    arrived.minima = {static_cast<const Time*>(lines->minima) + b * lines->line, line_samples};
  }
  return arrived;
}

}  // namespace rbc::cpu
