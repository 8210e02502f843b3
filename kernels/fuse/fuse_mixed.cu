// The launch of the kernel of mixed streams.

#include "fuse/fuse_kernels.h"

#include <algorithm>
#include <utility>

#include "fuse/fuse_mixed_kernel.cuh"
#include "fuse/shared_recordings.cuh"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "visit_dtype.h"

namespace rbc::cuda {
namespace mixed_streams {
namespace {

template <class Time>
Task<Time> taskOf(const FuseProblem& p, int n, int threads) {
  const FuseStream& s = p.streams[n];
  const int64_t out_size = sizeOf(p.out_dtype);
  const Contents contents = contentsOf(p, s, threads);
  Task<Time> task = {};
  task.samples = sampleRowsOf<Time, int32_t>(s, 0);
  task.values = batchRows<int32_t>(static_cast<const char*>(s.values), s.values_stride[0],
                                   s.values_stride[1], sizeOf(s.values_dtype));
  task.out = batchRows<int32_t>(static_cast<char*>(p.out) + s.out_begin * out_size, p.out_stride[0],
                                p.out_stride[1], out_size);
  if (p.valid != nullptr) {
    task.mask = batchRows<int32_t>(p.valid + n * p.valid_stride[2], p.valid_stride[0],
                                   p.valid_stride[1], 1);
  }
  task.shift = s.shift;
  task.scale = s.scale;
  task.clock_offset = offsetAs<Time>(s.clock_offset);
  task.fill_bits = s.fill_bits;
  task.dtype = s.values_dtype;
  task.has_affine = s.shift.data != nullptr || s.scale.data != nullptr;
  task.size = sizeOf(s.values_dtype);
  task.channels = static_cast<int32_t>(s.channels);
  task.across = FastDivmod(std::clamp<int64_t>(s.channels, 1, kWarp));
  task.first_segment = s.first_segment;
  task.end_segment = s.first_segment + s.num_segments;
  task.values_at = static_cast<int32_t>(contents.times);
  task.affine_at = static_cast<int32_t>(contents.copied());
  task.tiles_at = static_cast<int32_t>(contents.copied() + contents.affine);
  return task;
}

template <class Time>
Segment<Time> segmentOf(const FuseStream& s, const ChannelSegment& segment) {
  return {rulesOf<Time>(s, segment.method), static_cast<int32_t>(segment.begin),
          static_cast<int32_t>(segment.begin + segment.count)};
}

// Streams whose blocks take longest come first; the others follow from the shortest on, so that
// each multiprocessor gets both.
template <class Time>
void describe(const FuseChoice& choice, const FuseProblem& p, Launch<Time>* launch) {
  const int32_t part = choice.mixed_plan.part;
  const int64_t parts = ceilDiv(p.queries, part);
  launch->queries = queryRowsOf<Time, int32_t>(p);
  launch->most = static_cast<int32_t>(p.queries);
  launch->part = part;
  launch->blocks = FastDivmod(p.batch * parts);
  launch->parts = FastDivmod(parts);
  std::pair<int64_t, int> order[kStreams];  // minus the bytes to copy; stream
  for (int n = 0; n < p.num_streams; ++n) order[n] = {-contentsOf(p, p.streams[n], 0).copied(), n};
  std::sort(order, order + p.num_streams);
  std::reverse(order + (p.num_streams + 1) / 2, order + p.num_streams);
  for (int i = 0; i < p.num_streams; ++i) {
    const int n = order[i].second;
    const FuseStream& s = p.streams[n];
    launch->tasks[i] = taskOf<Time>(p, n, choice.threads);
    for (int k = s.first_segment; k < s.first_segment + s.num_segments; ++k)
      launch->segments[k] = segmentOf<Time>(s, p.segments[k]);
  }
}

// Calls visitor(Tag<Out>) for the dtypes of out that have kernels.
template <class Visitor>
cudaError_t visitOut(DType out, Visitor&& visitor) {
  return visitFloat(out, [&](auto tag) {
    if constexpr (std::is_same_v<typename decltype(tag)::type, double>) {
      return cudaErrorInvalidValue;
    } else {
      return visitor(tag);
    }
  });
}

template <class Out>
cudaError_t allowShared(const LaunchDevice& device) {
  cudaError_t error = cudaSuccess;
  for (const DType time : {DType::F32, DType::F64, DType::I64}) {
    visitTime(time, [&](auto tag) {
      const auto* kernel =
          reinterpret_cast<const void*>(fuseMixedKernel<Out, typename decltype(tag)::type>);
      if (error == cudaSuccess) {
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(sharedBudget(device, kBlocksWanted)));
      }
    });
  }
  return error;
}

}  // namespace

cudaError_t launch(const FuseChoice& choice, const FuseProblem& p, const LaunchDevice& device,
                   cudaStream_t cuda_stream) {
  return visitOut(p.out_dtype, [&](auto out) {
    return visitTime(p.time_dtype, [&](auto time) {
      using Time = typename decltype(time)::type;
      Launch<Time> arguments;
      describe(choice, p, &arguments);
      return launchBlocks(fuseMixedKernel<typename decltype(out)::type, Time>, &arguments,
                          choice.grid, choice.threads, device, cuda_stream, choice.shared_bytes);
    });
  });
}

}  // namespace mixed_streams

cudaError_t loadFuseMixed(const LaunchDevice& device) {
  using namespace mixed_streams;
  cudaError_t error = loadKernelsBeside(fuseMixedKernel<float, float>);
  if (error == cudaSuccess) error = allowShared<float>(device);
  if (error == cudaSuccess) error = allowShared<f16>(device);
  return error == cudaSuccess ? allowShared<bf16>(device) : error;
}

}  // namespace rbc::cuda
