// Kernels that calls are held against.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "robocache/voxelize.h"

namespace bench {

// A kernel that does nothing: what is left of a call without its work.
cudaError_t launchEmpty(cudaStream_t stream);
// The same with arguments, launched as the library does: it may begin while the one before it ends.
cudaError_t launchArguments(cudaStream_t stream, bool overlaps);

// Copies words of 16 bytes; where `overlaps`, it may begin while the launch before it ends.
cudaError_t launchCopy(const void* source, void* destination, int64_t words, bool overlaps,
                       cudaStream_t stream);

// Occupancy and count as a first kernel would have them: cleared, then one store or one atomic
// addition for each point. points: [N,C] f32; out: [X,Y,Z], u8 for occupancy, i32 for count.
cudaError_t launchPlain(const rbcVoxelGrid& grid, const rbcTensor& points, const rbcTensor& out,
                        cudaStream_t stream);

}  // namespace bench
