// The kernel of any fusion with missing samples: a separate source file, to compile in parallel.

#include "fuse/fuse_kernels.h"

#include "fuse/fuse_any_kernel.cuh"
#include "runtime/load_kernels.h"

namespace rbc::cuda {

using namespace any;

cudaError_t launchMissing(const FuseChoice& choice, const FuseProblem& p,
                          const LaunchDevice& device, cudaStream_t cuda_stream) {
  return visitOut(p.out_dtype, [&](auto tag) {
    return launch<typename decltype(tag)::type, Masked>(choice, p, device, cuda_stream);
  });
}

cudaError_t loadFuseMissing() { return loadKernelsBeside(fuseKernel<Words, Masked>); }

}  // namespace rbc::cuda
