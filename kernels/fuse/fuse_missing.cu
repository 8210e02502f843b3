// The kernel of any fusion where samples may be missing: a source file of its own, to compile beside the
// others.

#include "fuse/fuse_missing.h"

#include "fuse/fuse_any_launch.cuh"
#include "runtime/load_kernels.h"

namespace rbc::cuda {

using namespace any;

cudaError_t launchMissing(const FuseProblem& p, const LaunchDevice& device,
                          cudaStream_t cuda_stream) {
  const bool few = p.num_streams <= Few::kStreams && p.num_segments <= Few::kSegments;
  return visitOut(p.out_dtype, [&](auto tag) {
    using Out = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<Out, Words>) {
      if (few) return launch<Out, FewMasked>(p, device, cuda_stream);
    }
    return launch<Out, ManyMasked>(p, device, cuda_stream);
  });
}

cudaError_t loadFuseMissing() { return loadKernelsBeside(fuseKernel<Words, ManyMasked>); }

}  // namespace rbc::cuda
