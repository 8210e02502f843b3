// Whether the kernel of rows suits a problem.
#pragma once

#include "runtime/launch_device.h"
#include "windows/rows_arguments.cuh"

namespace rbc::cuda {
namespace windows {

// Whether a stream's windows are wanted: others are only referred to.
inline bool writes(const WindowStream& s) {
  return s.num_offsets > 0 && (s.out.data != nullptr || s.valid != nullptr || s.counted != nullptr);
}

bool hasPoses(const WindowProblem& p, const WindowStream& s);
bool hasPoses(const WindowProblem& p);

// Fills in the launch; false, if some stream needs the kernel of any.
bool planRows(const WindowProblem& p, const LaunchDevice& device, RowsLaunch* launch);

}  // namespace windows
}  // namespace rbc::cuda
