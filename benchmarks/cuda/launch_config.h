// How a kernel is launched that may begin while the one before it ends.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace bench {

struct LaunchConfig {
  cudaLaunchAttribute overlap = {};
  cudaLaunchConfig_t config = {};

  LaunchConfig(int64_t blocks, int threads, bool overlaps, cudaStream_t stream) {
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.stream = stream;
    config.attrs = &overlap;
    config.numAttrs = overlaps ? 1 : 0;
  }
  LaunchConfig(const LaunchConfig&) = delete;
};

}  // namespace bench
