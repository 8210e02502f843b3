// The launch of a reader's kernel.
#pragma once

#include "statistics/channel_pass.cuh"
#include "statistics/channel_pass.h"

namespace rbc::cuda {
namespace statistics {

template <class Reader>
cudaError_t launchPassOf(PassKind kind, PassArguments& arguments, int64_t blocks,
                         const LaunchDevice& device, cudaStream_t cuda_stream) {
  const auto kernel = kind == PassKind::kMoments          ? passChannels<Reader, true, false>
                      : kind == PassKind::kMomentsAndKeep ? passChannels<Reader, true, true>
                                                          : passChannels<Reader, false, true>;
  return launchBlocks(kernel, &arguments, blocks, kThreads, device, cuda_stream);
}

}  // namespace statistics
}  // namespace rbc::cuda
