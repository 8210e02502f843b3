// What a warp keeps in shared memory while it does windows of any kind.
#pragma once

#include "window_transforms.h"
#include "windows/rows_arguments.cuh"

namespace rbc::cuda {
namespace windows {

inline constexpr int kPitch = kMaxPoseChannels + 1;  // odd: rows lie in different banks
inline constexpr int kReferences = 64;  // channels whose references are fetched at once

inline constexpr int kMaxWarps = 4;  // of a block

// Of up to 32 neighbouring offsets of a window, which are called rows here.
struct WarpMemory {
  WindowPlace places[kWarp];
  double poses[kWarp][kPitch];
  double before[kWarp][kPitch];   // the poses that steps begin at
  double reference[kReferences];  // channels of a reference
  bool referred[kReferences];     // whether they have values
  bool valid[kWarp];
  bool whole[kWarp];  // all channels have values
  bool after[kWarp];  // past the end
  bool posed[kWarp];  // the pose, and that before, have values
};

// What functions that need not know the dtype of times are told.
struct WindowPart {
  const WindowStream& s;
  WarpMemory& memory;
  int64_t window;
  int64_t first;   // offset
  int count;       // of rows
  int word_bytes;  // of an output of integers, which are copied; else 0
};

__device__ __forceinline__ int laneOfWarp() { return static_cast<int>(threadIdx.x % kWarp); }

// Calls visit(row, i) for i < width of each row, neighbouring lanes on neighbours.
template <class Visitor>
__device__ __forceinline__ void visitItems(int rows, int width, Visitor&& visit) {
  const int step_rows = kWarp / width;
  const int step_items = kWarp - step_rows * width;
  int k = laneOfWarp() / width;
  int i = laneOfWarp() - k * width;
  while (k < rows) {
    visit(k, i);
    k += step_rows;
    i += step_items;
    if (i >= width) {
      i -= width;
      ++k;
    }
  }
}

}  // namespace windows
}  // namespace rbc::cuda
