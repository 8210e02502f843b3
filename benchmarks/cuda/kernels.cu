#include "kernels.h"

namespace bench {
namespace {

constexpr int kThreads = 256;
constexpr int kWords = 4;  // per thread, all loaded before the first is stored

__global__ void emptyKernel() {}

// As large as the arguments of a call.
struct Arguments {
  char bytes[512];
};
__global__ void kernelOfArguments(const __grid_constant__ Arguments) {}

__global__ void __launch_bounds__(kThreads)
    copyWords(const uint4* source, uint4* destination, int64_t words) {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  const int64_t first = int64_t{blockIdx.x} * kThreads * kWords + threadIdx.x;
  uint4 loaded[kWords];
#pragma unroll
  for (int k = 0; k < kWords; ++k) {
    const int64_t at = first + k * kThreads;
    if (at < words) loaded[k] = __ldcs(source + at);
  }
#pragma unroll
  for (int k = 0; k < kWords; ++k) {
    const int64_t at = first + k * kThreads;
    if (at < words) __stcs(destination + at, loaded[k]);
  }
}

struct Grid {
  float origin[3];
  float voxel_size[3];
  int shape[3];
};

template <class Element>
__global__ void plainKernel(const float* points, int64_t count, int64_t columns, Grid grid,
                            Element* out) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int64_t voxel = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const float x = (points[i * columns + axis] - grid.origin[axis]) / grid.voxel_size[axis];
    if (!(x >= 0 && x < static_cast<float>(grid.shape[axis]))) return;
    voxel = voxel * grid.shape[axis] + static_cast<int>(x);
  }
  if constexpr (sizeof(Element) == 1) {
    out[voxel] = 1;
  } else {
    atomicAdd(&out[voxel], 1);
  }
}

template <class... Parameters, class... Given>
cudaError_t launch(void (*kernel)(Parameters...), int64_t blocks, int threads, bool overlaps,
                   cudaStream_t stream, Given... arguments) {
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = overlaps ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

template <class Element>
cudaError_t launchPlainKernel(const rbcVoxelGrid& grid, const rbcTensor& points,
                              const rbcTensor& out, cudaStream_t stream) {
  Grid narrow;
  for (int axis = 0; axis < 3; ++axis) {
    narrow.origin[axis] = static_cast<float>(grid.origin[axis]);
    narrow.voxel_size[axis] = static_cast<float>(grid.voxel_size[axis]);
    narrow.shape[axis] = static_cast<int>(grid.shape[axis]);
  }
  const auto voxels = static_cast<size_t>(grid.shape[0] * grid.shape[1] * grid.shape[2]);
  const cudaError_t error = cudaMemsetAsync(out.data, 0, voxels * sizeof(Element), stream);
  if (error != cudaSuccess) return error;
  const int64_t count = points.shape[0];
  return launch(plainKernel<Element>, (count + kThreads - 1) / kThreads, kThreads, false, stream,
                static_cast<const float*>(points.data), count, points.shape[1], narrow,
                static_cast<Element*>(out.data));
}

}  // namespace

cudaError_t launchEmpty(cudaStream_t stream) {
  emptyKernel<<<1, 32, 0, stream>>>();
  return cudaGetLastError();
}

cudaError_t launchArguments(cudaStream_t stream, bool overlaps) {
  return launch(kernelOfArguments, 1, 32, overlaps, stream, Arguments{});
}

cudaError_t launchCopy(const void* source, void* destination, int64_t words, bool overlaps,
                       cudaStream_t stream) {
  constexpr int64_t kBlockWords = int64_t{kThreads} * kWords;
  return launch(copyWords, (words + kBlockWords - 1) / kBlockWords, kThreads, overlaps, stream,
                static_cast<const uint4*>(source), static_cast<uint4*>(destination), words);
}

cudaError_t launchPlain(const rbcVoxelGrid& grid, const rbcTensor& points, const rbcTensor& out,
                        cudaStream_t stream) {
  return out.dtype.bits == 8 ? launchPlainKernel<uint8_t>(grid, points, out, stream)
                             : launchPlainKernel<int32_t>(grid, points, out, stream);
}

}  // namespace bench
