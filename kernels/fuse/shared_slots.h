// Room for whole rows in a block's shared memory.
#pragma once

#include <cstdint>

#include "ceil_div.h"
#include "dtype.h"
#include "fuse/copy_row.cuh"
#include "runtime/launch_device.h"

namespace rbc::cuda {

// Of a block, so that `blocks` of them fit on a multiprocessor: that has what one may ask for and
// what CUDA takes of each.
inline int64_t sharedBudget(const LaunchDevice& device, int64_t blocks) {
  constexpr int64_t kTaken = 1024;
  return (device.block_memory + kTaken) / blocks - kTaken;
}

inline int64_t wholeWords(int64_t bytes) { return ceilDiv(bytes, kWordBytes) * kWordBytes; }

// Of a row that may begin anywhere in a word.
inline int64_t slotBytes(int64_t count, DType dtype) {
  return wholeWords(count * sizeOf(dtype)) + kWordBytes;
}

}  // namespace rbc::cuda
