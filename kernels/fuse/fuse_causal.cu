// The kernel of any fusion where each query has samples of its own: a separate source file, to
// compile in parallel.

#include "fuse/fuse_kernels.h"

#include <algorithm>

#include "fuse/arrival_minima.h"
#include "fuse/fuse_any_kernel.cuh"
#include "runtime/load_kernels.h"

namespace rbc::cuda {

using namespace any;

namespace {

cudaError_t launchSome(const FuseProblem& p, const ArrivalLines* lines, const LaunchDevice& device,
                       cudaStream_t cuda_stream) {
  const FuseChoice choice = selectFuse(p, device);
  return visitOut(p.out_dtype, [&](auto tag) {
    FuseLaunch<Causal> arguments;
    describe(choice.any_plan, p, &arguments);
    std::copy_n(lines, p.num_streams, arguments.lines);
    return launchBlocks(fuseKernel<typename decltype(tag)::type, Causal>, &arguments, choice.grid,
                        choice.threads, device, cuda_stream);
  });
}

}  // namespace

// Some streams at a time, if they are too many for one launch.
cudaError_t launchCausal(const FuseProblem& p, void* scratch, const LaunchDevice& device,
                         cudaStream_t cuda_stream) {
  ArrivalLines lines[kMaxStreams];
  cudaError_t error = findArrivals(p, scratch, lines, device, cuda_stream);
  for (int first = 0; first < p.num_streams && error == cudaSuccess; first += Causal::kStreams) {
    const int count = std::min(Causal::kStreams, p.num_streams - first);
    const int segment = p.streams[first].first_segment;
    FuseStream streams[Causal::kStreams];
    std::copy_n(p.streams + first, count, streams);
    FuseProblem part = p;
    part.num_streams = count;
    part.num_segments = 0;
    for (int n = 0; n < count; ++n) {
      streams[n].first_segment -= segment;
      part.num_segments += streams[n].num_segments;
    }
    part.streams = streams;
    part.segments = p.segments + segment;
    if (p.valid != nullptr) part.valid = p.valid + first * p.valid_stride[2];
    const CausalFuse causal = {p.causal->lag, p.causal->arrivals + first, p.causal->ages + segment};
    part.causal = &causal;
    error = launchSome(part, lines + first, device, cuda_stream);
  }
  return error;
}

cudaError_t loadFuseCausal() { return loadKernelsBeside(fuseKernel<Words, Causal>); }

}  // namespace rbc::cuda
