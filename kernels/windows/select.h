// The choice of a kernel for windows, and how its work is divided: plain C++, also for tests
// without a GPU.
#pragma once

#include "launch_choice.h"
#include "runtime/launch_device.h"
#include "windows/rows_arguments.h"

namespace rbc::cuda {

// In the order of preference.
enum class WindowKernel : uint8_t {
  kRows,  // rows_kernel.cuh: gathered or interpolated rows of floats, in vectors
  kAny,   // any_kernel.cuh
};

namespace windows {

inline constexpr int kAnyWarps = 4;  // per block

// The kernel of any windows: a warp processes a unit, which is a part of a window of one stream.
struct AnyPlan {
  int64_t units;
  int64_t group[kMaxWindowStreams];       // offsets per unit
  int64_t parts[kMaxWindowStreams];       // units per window
  int64_t first_unit[kMaxWindowStreams];  // per stream
};

// Whether a stream's windows are written: other streams only serve as references.
inline bool writes(const WindowStream& s) {
  return s.num_offsets > 0 && (s.out.data != nullptr || s.valid != nullptr || s.counted != nullptr);
}

}  // namespace windows

// A kernel, its launch, and how the work is divided. A grid of 0: there is nothing to do.
struct WindowChoice : LaunchChoice {
  WindowKernel family;
  bool poses;      // kRows: the form with poses
  bool divisions;  // kRows: the form in which a scale may divide
  union {          // by `family`
    windows::RowsLaunch rows;
    windows::AnyPlan any;
  };
};

WindowChoice selectWindows(const WindowProblem& problem, const LaunchDevice& device);

}  // namespace rbc::cuda
