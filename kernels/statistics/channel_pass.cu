#include "statistics/channel_pass.h"

#include "statistics/keep_between.cuh"
#include "statistics/sample_readers.cuh"

namespace rbc::cuda {
namespace statistics {

cudaError_t launchPass(PassKind kind, PassArguments arguments, int64_t groups,
                       const LaunchDevice& device, cudaStream_t cuda_stream) {
  const Samples& s = arguments.samples;
  const bool wide = computesInDouble(s.dtype);
  const int of_multiprocessor = wide ? blocksOfPass<double>() : blocksOfPass<float>();
  arguments.plan =
      planPass(s, groups, int64_t{device.multiprocessors} * of_multiprocessor, kThreads,
               kind == PassKind::kMoments ? kThreads : kMaxKeepWidth, kBatch);
  const int64_t blocks = arguments.plan.units();
  if (wide) return launchPassDouble(kind, arguments, blocks, device, cuda_stream);
  if (isPlain(s, arguments.per_row)) {
    if (s.dtype == DType::F32) {
      return launchPassFloat(kind, arguments, blocks, device, cuda_stream);
    }
    if (s.dtype == DType::F16 || s.dtype == DType::BF16) {
      return launchPassHalf(kind, arguments, blocks, device, cuda_stream);
    }
  }
  return launchPassAnyFloat(kind, arguments, blocks, device, cuda_stream);
}

}  // namespace statistics
}  // namespace rbc::cuda
