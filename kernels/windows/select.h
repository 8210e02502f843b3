// The choice of a kernel for windows, and how its work is cut: plain C++, also for tests without a GPU.
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

inline constexpr int kAnyWarps = 4;  // of a block

// Of the kernel of any windows: a warp does a unit, which is a part of a window of one stream.
struct AnyPlan {
  int64_t units;
  int64_t group[kMaxWindowStreams];       // offsets of a unit
  int64_t parts[kMaxWindowStreams];       // units of a window
  int64_t first_unit[kMaxWindowStreams];  // of the stream
};

// Whether a stream's windows are wanted: others are only referred to.
inline bool writes(const WindowStream& s) {
  return s.num_offsets > 0 && (s.out.data != nullptr || s.valid != nullptr || s.counted != nullptr);
}

}  // namespace windows

// A kernel, its launch, and how the work is cut. A grid of 0: there is nothing to do.
struct WindowChoice : LaunchChoice {
  WindowKernel family;
  bool poses;  // kRows: the form that has them
  union {      // by `family`
    windows::RowsLaunch rows;
    windows::AnyPlan any;
  };
};

WindowChoice selectWindows(const WindowProblem& problem, const LaunchDevice& device);

}  // namespace rbc::cuda
