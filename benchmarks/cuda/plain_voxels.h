// Occupancy and count as a first kernel would have them: cleared, then one store or one atomic
// addition for each point.
#pragma once

#include <cuda_runtime_api.h>

#include "robocache/voxelize.h"

namespace bench {

// points: [N,C] f32; out: [X,Y,Z], u8 for occupancy, i32 for count.
cudaError_t launchPlain(const rbcVoxelGrid& grid, const rbcTensor& points, const rbcTensor& out,
                        cudaStream_t stream);

}  // namespace bench
