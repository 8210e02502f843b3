// Fusion on CUDA, by the kernel that select.h chooses. The kernel of any streams is launched here.

#include "arrival_lines.h"
#include "fuse/fuse_any_kernel.cuh"
#include "fuse/fuse_kernels.h"
#include "runtime/cuda_state.h"
#include "runtime/load_kernels.h"

namespace rbc::cuda {
namespace {

using namespace any;

cudaError_t launchAny(const FuseChoice& choice, const FuseProblem& p, const LaunchDevice& device,
                      cudaStream_t cuda_stream) {
  return visitOut(p.out_dtype, [&](auto tag) {
    using Out = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<Out, Words>) {
      if (choice.any_plan.form == FormId::kFewFloats) {
        return launch<Out, FewFloats>(choice, p, device, cuda_stream);
      }
      if (choice.any_plan.form == FormId::kFew)
        return launch<Out, Few>(choice, p, device, cuda_stream);
    }
    return launch<Out, Many>(choice, p, device, cuda_stream);
  });
}

cudaError_t launchRows(const FuseChoice& choice, const FuseProblem& p, const LaunchDevice& device,
                       cudaStream_t cuda_stream) {
  return visitTime(p.time_dtype, [&](auto time) {
    const FuseLauncher launch = rows::launcherOf<typename decltype(time)::type>(choice.instance);
    return launch(choice, p, device, cuda_stream);
  });
}

cudaError_t launchFuse(const FuseProblem& p, void* scratch, const LaunchDevice& device,
                       cudaStream_t cuda_stream, LaunchChoice* chosen) {
  const FuseChoice choice = selectFuse(p, device);
  *chosen = choice;
  switch (choice.family) {
    case FuseKernel::kNarrow: return narrow_streams::launch(choice, p, device, cuda_stream);
    case FuseKernel::kRows: return launchRows(choice, p, device, cuda_stream);
    case FuseKernel::kMixed: return mixed_streams::launch(choice, p, device, cuda_stream);
    case FuseKernel::kAny: break;
  }
  switch (choice.any_plan.form) {
    case FormId::kMasked: return launchMissing(choice, p, device, cuda_stream);
    case FormId::kCausal: return launchCausal(p, scratch, device, cuda_stream);
    default: return launchAny(choice, p, device, cuda_stream);
  }
}

size_t bytes(const BackendState&, const FuseProblem& p) { return arrivalBytes(p); }

}  // namespace

extern const Operation<FuseProblem> kFuse = {bytes, launchOn<FuseProblem, launchFuse>};
cudaError_t loadFuse(const LaunchDevice&) { return loadKernelsBeside(fuseKernel<Words, Many>); }

cudaError_t loadFuseRows() {
  for (const auto load :
       {rows::loadKernels<float>, rows::loadKernels<double>, rows::loadKernels<int64_t>}) {
    const cudaError_t error = load();
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace rbc::cuda
