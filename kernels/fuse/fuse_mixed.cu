// When the kernel of mixed streams suits, and its launch.

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

// ---- shared memory ------------------------------------------------------------------------------

// What a stream's block holds, in this order.
struct Contents {
  int64_t times;
  int64_t values;
  int64_t affine;
  int64_t tiles;

  int64_t copied() const { return times + values; }
  int64_t bytes() const { return copied() + affine + tiles; }
};

Contents contentsOf(const FuseProblem& p, const FuseStream& s, int64_t threads) {
  const int64_t pitch = pitchOf(static_cast<int32_t>(s.channels));
  return {slotBytes(s.samples, p.time_dtype), slotBytes(s.samples * s.channels, s.values_dtype),
          wholeWords(s.channels * int64_t{sizeof(Affine)}),
          wholeWords(threads * pitch * sizeOf(p.out_dtype))};
}

// ---- the plan -----------------------------------------------------------------------------------

bool suitsStream(const FuseProblem& p, const FuseStream& s) {
  const bool whole_times = s.samples == 0 || s.times_stride[1] == 1;
  const bool whole_values = s.samples == 0 || s.channels == 0 ||
                            (s.values_stride[2] == 1 && s.values_stride[1] == s.channels);
  return s.samples <= kMaxSearched && s.sample_mask == nullptr &&
         !computesInDouble(s.values_dtype) && suitsShortIndexes(p, s) && whole_times &&
         whole_values;
}

bool suitsStreams(const FuseProblem& p) {
  return p.queries > 0 && p.num_streams <= kStreams && p.num_segments <= kSegments &&
         isFloat(p.out_dtype) && p.out_dtype != DType::F64 && p.out_stride[2] == 1 &&
         std::all_of(p.streams, p.streams + p.num_streams,
                     [&](const FuseStream& s) { return suitsStream(p, s); });
}

// A block's queries: all of a recording's, or fewer for more blocks. Returns whether to copy all samples
// pays: the kernel of any streams reads no more than it needs, but takes longer for little as well.
bool cutQueries(const FuseProblem& p, const LaunchDevice& device, Plan* plan) {
  constexpr int64_t kCopiedOfQuery = 256;  // bytes of each stream
  constexpr int64_t kLittle = int64_t{4} << 20;
  int64_t copied = 0;
  for (int n = 0; n < p.num_streams; ++n) copied += contentsOf(p, p.streams[n], 0).copied();
  const int64_t least = std::max<int64_t>(kWarp, ceilDiv(copied, kCopiedOfQuery * p.num_streams));
  const auto blocks = [&](int64_t part) {
    return p.batch * p.num_streams * ceilDiv(p.queries, part);
  };
  int64_t part = p.queries;
  while (part / 2 >= least && blocks(part) < device.multiprocessors) part = ceilDiv(part, 2);
  plan->part = static_cast<int32_t>(part);
  plan->threads =
      static_cast<int32_t>(std::min<int64_t>(ceilDiv(part, kWarp) * kWarp, kMostThreads));
  if (p.queries >= least) return blocks(part) <= INT32_MAX;
  return blocks(part) <= kBlocksWanted * device.multiprocessors && p.batch * copied <= kLittle;
}

// ---- the launch ---------------------------------------------------------------------------------

template <class Time>
Task<Time> taskOf(const Plan& plan, const FuseProblem& p, int n) {
  const FuseStream& s = p.streams[n];
  const int64_t out_size = sizeOf(p.out_dtype);
  const Contents contents = contentsOf(p, s, plan.threads);
  Task<Time> task = {};
  task.samples = sampleRowsOf<Time, int32_t>(s, 0);
  task.values = batchRows<int32_t>(static_cast<const char*>(s.values), s.values_stride[0],
                                   s.values_stride[1], sizeOf(s.values_dtype));
  task.out = batchRows<int32_t>(static_cast<char*>(p.out) + s.out_begin * out_size, p.out_stride[0],
                                p.out_stride[1], out_size);
  if (p.mask != nullptr) {
    task.mask =
        batchRows<int32_t>(p.mask + n * p.mask_stride[2], p.mask_stride[0], p.mask_stride[1], 1);
  }
  task.mean = s.mean;
  task.inv_std = s.inv_std;
  task.clock_offset = offsetAs<Time>(s.clock_offset);
  task.fill_bits = s.fill_bits;
  task.dtype = s.values_dtype;
  task.has_affine = s.mean.data != nullptr || s.inv_std.data != nullptr;
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

// Streams whose blocks take longest come first; of the rest those that take least, so that each
// multiprocessor gets some of both.
template <class Time>
void describe(const Plan& plan, const FuseProblem& p, Launch<Time>* launch) {
  const int64_t parts = ceilDiv(p.queries, plan.part);
  launch->queries = queryRowsOf<Time, int32_t>(p);
  launch->most = static_cast<int32_t>(p.queries);
  launch->part = plan.part;
  launch->blocks = FastDivmod(p.batch * parts);
  launch->parts = FastDivmod(parts);
  std::pair<int64_t, int> order[kStreams];  // bytes to copy, less than 0; stream
  for (int n = 0; n < p.num_streams; ++n) order[n] = {-contentsOf(p, p.streams[n], 0).copied(), n};
  std::sort(order, order + p.num_streams);
  std::reverse(order + (p.num_streams + 1) / 2, order + p.num_streams);
  for (int i = 0; i < p.num_streams; ++i) {
    const int n = order[i].second;
    const FuseStream& s = p.streams[n];
    launch->tasks[i] = taskOf<Time>(plan, p, n);
    for (int k = s.first_segment; k < s.first_segment + s.num_segments; ++k)
      launch->segments[k] = segmentOf<Time>(s, p.segments[k]);
  }
}

// Calls visitor(Tag<Out>) for the dtypes of out that there are kernels for.
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

bool suits(const FuseProblem& p, const LaunchDevice& device, Plan* plan) {
  if (!suitsStreams(p) || !cutQueries(p, device, plan)) return false;
  int64_t shared = 0;
  for (int n = 0; n < p.num_streams; ++n) {
    shared = std::max(shared, contentsOf(p, p.streams[n], plan->threads).bytes());
  }
  plan->shared = static_cast<int32_t>(shared);
  return shared <= sharedBudget(device, kBlocksWanted);
}

cudaError_t launch(const Plan& plan, const FuseProblem& p, const LaunchDevice& device,
                   cudaStream_t cuda_stream) {
  const int64_t blocks = p.batch * p.num_streams * ceilDiv(p.queries, plan.part);
  return visitOut(p.out_dtype, [&](auto out) {
    return visitTime(p.time_dtype, [&](auto time) {
      using Time = typename decltype(time)::type;
      Launch<Time> arguments;
      describe(plan, p, &arguments);
      return launchBlocks(fuseMixedKernel<typename decltype(out)::type, Time>, &arguments, blocks,
                          plan.threads, device, cuda_stream, plan.shared);
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
