// The kernel of any fusion where each query has samples of its own: a separate source file, to
// compile in parallel.

#include "fuse/fuse_kernels.h"

#include "fuse/fuse_any_kernel.cuh"
#include "runtime/load_kernels.h"

namespace rbc::cuda {

using namespace any;

cudaError_t launchCausal(const FuseChoice& choice, const FuseProblem& p, const LaunchDevice& device,
                         cudaStream_t cuda_stream) {
  return visitOut(p.out_dtype, [&](auto tag) {
    return launch<typename decltype(tag)::type, Causal>(choice, p, device, cuda_stream);
  });
}

cudaError_t loadFuseCausal() { return loadKernelsBeside(fuseKernel<Words, Causal>); }

}  // namespace rbc::cuda
