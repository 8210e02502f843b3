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

// Of samples at one stride: through shared memory, if they are dense and no values are kept, for
// which there is no room beside.
template <class T>
cudaError_t launchPlainPass(PassKind kind, PassArguments& arguments, int64_t blocks,
                            const LaunchDevice& device, cudaStream_t cuda_stream) {
  if (kind == PassKind::kMoments && isDense(arguments.samples, arguments.plan, kBatch)) {
    return launchBlocks(passChannels<StagedReader<T>, true, false>, &arguments, blocks, kThreads,
                        device, cuda_stream);
  }
  return launchPassOf<PlainReader<T>>(kind, arguments, blocks, device, cuda_stream);
}

}  // namespace statistics
}  // namespace rbc::cuda
