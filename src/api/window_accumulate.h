// Windows into accumulators: computed block by block, and counted.
#pragma once

#include "accumulator.h"
#include "window_problem.h"

namespace rbc {

// What a stream's windows go into.
struct WindowAccumulation {
  int32_t stream;
  rbcStatisticsAccumulator* accumulator;
  AccumulatorState state;
  DType dtype;      // of the values that it takes
  bool per_step;    // each offset has channels of its own
  int64_t samples;  // of a channel
};

// The workspace of accumulateWindows().
size_t accumulateBytes(const rbcContext& context, const WindowProblem& problem,
                       const WindowAccumulation& accumulation);

void accumulateWindows(rbcContext& context, const WindowProblem& problem,
                       const WindowAccumulation& accumulation, Scratch scratch);

}  // namespace rbc
