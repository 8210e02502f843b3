// Fusion on CUDA: by the kernel of narrow streams, by one of whole rows or by that of mixed streams
// where these suit, else by the kernel of any streams.

#include "fuse/fuse_any_kernel.cuh"
#include "fuse/fuse_kernels.h"
#include "runtime/cuda_state.h"
#include "runtime/load_kernels.h"

namespace rbc::cuda {
namespace {

using namespace any;

cudaError_t launchAny(const FuseProblem& p, const LaunchDevice& device, cudaStream_t cuda_stream) {
  const bool few = p.num_streams <= Few::kStreams && p.num_segments <= Few::kSegments;
  bool doubles = false;
  bool short_indexes = true;
  for (int n = 0; n < p.num_streams; ++n) {
    doubles |= computesInDouble(p.streams[n].values_dtype);
    short_indexes &= suitsShortIndexes(p, p.streams[n]);
  }
  return visitOut(p.out_dtype, [&](auto tag) {
    using Out = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<Out, Words>) {
      if (few && !doubles && short_indexes) return launch<Out, FewFloats>(p, device, cuda_stream);
      if (few) return launch<Out, Few>(p, device, cuda_stream);
    }
    return launch<Out, Many>(p, device, cuda_stream);
  });
}

cudaError_t launchFuse(const FuseProblem& p, void*, const LaunchDevice& device,
                       cudaStream_t cuda_stream) {
  narrow_streams::Plan plan;
  if (narrow_streams::suits(p, device, &plan)) {
    return narrow_streams::launch(plan, p, device, cuda_stream);
  }
  const FuseLauncher rows = rowsLauncherOf(p);
  if (rows != nullptr) return rows(p, device, cuda_stream);
  mixed_streams::Plan mixed;
  if (mixed_streams::suits(p, device, &mixed)) {
    return mixed_streams::launch(mixed, p, device, cuda_stream);
  }
  return (hasSampleMasks(p) ? launchMissing : launchAny)(p, device, cuda_stream);
}

}  // namespace

extern const Operation<FuseProblem> kFuse = {noBytes, launchOn<FuseProblem, launchFuse>};
cudaError_t loadFuse() { return loadKernelsBeside(fuseKernel<Words, Many>); }

}  // namespace rbc::cuda
