// Kernels for comparison with calls.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "robocache/voxelize.h"

namespace bench {

// A kernel that does nothing: the cost of a call without its work.
cudaError_t launchEmpty(cudaStream_t stream);
// The same with arguments, launched like the library's kernels: it may begin before the previous
// one has ended.
cudaError_t launchArguments(cudaStream_t stream, bool overlaps);

// Copies words of 16 bytes; if `overlaps`, it may begin before the previous launch has ended.
cudaError_t launchCopy(const void* source, void* destination, int64_t words, bool overlaps,
                       cudaStream_t stream);

// Occupancy and count by the simplest kernel: clears, then one store or one atomic addition per
// point. points: [N,C] f32; out: [X,Y,Z], u8 for occupancy, i32 for count.
cudaError_t launchPlain(const rbcVoxelGrid& grid, const rbcTensor& points, const rbcTensor& out,
                        cudaStream_t stream);

}  // namespace bench
