// Poses of the elements of a window, one after the other.
#pragma once

#include <cstddef>

#include "runtime/simd.h"
#include "window_problem.h"

namespace rbc::cpu {

// What a segment knows from element to element of a window.
struct PoseState {
  alignas(16) std::byte bytes[320];
};

// Elements of a segment, kMaxPoseChannels numbers each.
struct PoseRows {
  const double* in;
  const bool* held;  // whether there are numbers: they may be those that a step begins at alone
  bool* own;         // whether the element has a value, before and after
  double* out;
  int count;
};

struct PoseFunctions {
  // Of a window; `reference` is null where there is none.
  void (*begin)(const WindowSegment& segment, const double* reference, PoseState* state);
  // The next elements.
  void (*run)(const WindowSegment& segment, const PoseRows& rows, PoseState* state);
};

PoseFunctions poseFunctions(SimdLevel level, const WindowSegment& segment);

}  // namespace rbc::cpu
