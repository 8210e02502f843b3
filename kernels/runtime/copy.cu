// Copies between strided tensors on the device.

#include "runtime/copy.h"

#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "visit_dtype.h"

namespace rbc::cuda {
namespace {

constexpr int kThreads = 256;

struct CopyProblem {
  const void* source;
  void* destination;
  int64_t count;
  int ndim;
  int64_t shape[RBC_TENSOR_MAX_NDIM];
  int64_t source_stride[RBC_TENSOR_MAX_NDIM];
  int64_t destination_stride[RBC_TENSOR_MAX_NDIM];
};

template <class W>
__global__ void __launch_bounds__(kThreads) copyKernel(const __grid_constant__ CopyProblem p) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < p.count;
       i += threads) {
    int64_t rest = i;
    int64_t from = 0;
    int64_t to = 0;
    for (int axis = p.ndim - 1; axis >= 0; --axis) {
      const int64_t coordinate = rest % p.shape[axis];
      rest /= p.shape[axis];
      from += coordinate * p.source_stride[axis];
      to += coordinate * p.destination_stride[axis];
    }
    static_cast<W*>(p.destination)[to] = static_cast<const W*>(p.source)[from];
  }
}

}  // namespace

cudaError_t launchCopy(const View& source, const View& destination, cudaStream_t cuda_stream) {
  CopyProblem p = {source.data, destination.data, source.count, source.ndim, {}, {}, {}};
  for (int i = 0; i < source.ndim; ++i) {
    p.shape[i] = source.shape[i];
    p.source_stride[i] = source.strides[i];
    p.destination_stride[i] = destination.strides[i];
  }
  const dim3 grid = gridOf(blocksFor(p.count, kThreads, 1 << 20));
  return visitWord(sizeOf(source.dtype), [&](auto tag) {
    return launchKernel(copyKernel<typename decltype(tag)::type>, grid, kThreads, cuda_stream, p);
  });
}

cudaError_t loadCopy() { return loadKernelsBeside(copyKernel<uint8_t>); }

}  // namespace rbc::cuda
