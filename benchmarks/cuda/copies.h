// Copies from device memory to device memory: what the floors are made of, and what copies of the
// sizes of the cases attain.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace bench {

// Bytes read plus bytes written a second, by a copy of 2 GiB: measured once a run.
double copyBandwidth();

// Benchmarks named cuda/copy and cuda/copy/<bytes read plus written>/...
void addCopyBenchmarks(int64_t l2_bytes);

// Copies words of 16 bytes; where `overlaps`, it may begin while the launch before it ends, as the
// library's kernels do.
cudaError_t launchCopy(const void* source, void* destination, int64_t words, bool overlaps,
                       cudaStream_t stream);

}  // namespace bench
