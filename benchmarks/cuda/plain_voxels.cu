#include "plain_voxels.h"

namespace bench {
namespace {

struct Grid {
  float origin[3];
  float inverse[3];
  int shape[3];
};

template <class Element>
__global__ void plainKernel(const float* points, int64_t count, int64_t columns, Grid grid,
                            Element* out) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int64_t voxel = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const float x = (points[i * columns + axis] - grid.origin[axis]) * grid.inverse[axis];
    if (!(x >= 0 && x < static_cast<float>(grid.shape[axis]))) return;
    voxel = voxel * grid.shape[axis] + static_cast<int>(x);
  }
  if constexpr (sizeof(Element) == 1) {
    out[voxel] = 1;
  } else {
    atomicAdd(&out[voxel], 1);
  }
}

template <class Element>
cudaError_t launch(const rbcVoxelGrid& grid, const rbcTensor& points, const rbcTensor& out,
                   cudaStream_t stream) {
  constexpr int kThreads = 256;
  Grid narrow;
  for (int axis = 0; axis < 3; ++axis) {
    narrow.origin[axis] = static_cast<float>(grid.origin[axis]);
    narrow.inverse[axis] = static_cast<float>(1 / grid.voxel_size[axis]);
    narrow.shape[axis] = static_cast<int>(grid.shape[axis]);
  }
  const auto voxels = static_cast<size_t>(grid.shape[0] * grid.shape[1] * grid.shape[2]);
  const cudaError_t error = cudaMemsetAsync(out.data, 0, voxels * sizeof(Element), stream);
  if (error != cudaSuccess) return error;
  const int64_t count = points.shape[0];
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  plainKernel<<<blocks, kThreads, 0, stream>>>(static_cast<const float*>(points.data), count,
                                               points.shape[1], narrow,
                                               static_cast<Element*>(out.data));
  return cudaGetLastError();
}

}  // namespace

cudaError_t launchPlain(const rbcVoxelGrid& grid, const rbcTensor& points, const rbcTensor& out,
                        cudaStream_t stream) {
  return out.dtype.bits == 8 ? launch<uint8_t>(grid, points, out, stream)
                             : launch<int32_t>(grid, points, out, stream);
}

}  // namespace bench
