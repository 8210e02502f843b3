// The launch of the kernel of narrow streams.

#include "fuse/fuse_kernels.h"

#include <utility>

#include "dtype.h"
#include "fuse/fuse_narrow_kernel.cuh"
#include "fuse/shared_recordings.cuh"
#include "fuse/stream_checks.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"

namespace rbc::cuda {
namespace narrow_streams {
namespace {

template <class Time>
Task<Time> taskOf(const FuseProblem& p, const FuseStream& s) {
  const int64_t size = sizeOf(s.values_dtype);
  Task<Time> task = {};
  task.samples = sampleRowsOf<Time, int32_t>(s, 0);
  task.values = batchRows<int32_t>(static_cast<const char*>(s.values), s.values_stride[0],
                                   s.values_stride[1], size);
  task.rules = rulesOf<Time>(s, p.segments[s.first_segment].method);
  task.clock_offset = offsetAs<Time>(s.clock_offset);
  task.fill_bits = s.fill_bits;
  task.count = kChannels;
  while (!isMultiple(s.channels, task.count) ||
         !suitsVecs(s.values, {s.values_stride[0], s.values_stride[1]}, size, task.count)) {
    task.count /= 2;
  }
  task.vectors = static_cast<int32_t>(s.channels / task.count);
  return task;
}

Group groupOf(const FuseProblem& p, int first, const Contents& contents) {
  const int64_t size = sizeOf(p.out_dtype);
  const int64_t count = kWordBytes / size;
  char* const out = static_cast<char*>(p.out) + p.streams[first].out_begin * size;
  const bool in_vecs = isMultiple(contents.columns, count) &&
                       suitsVecs(out, {p.out_stride[0], p.out_stride[1]}, size, count);
  uint8_t* const mask = p.valid != nullptr ? p.valid + first : nullptr;
  Group group = {};
  group.out = batchRows<int32_t>(out, p.out_stride[0], p.out_stride[1], size);
  group.mask = batchRows<int32_t>(mask, p.valid_stride[0], p.valid_stride[1], 1);
  group.count = static_cast<int32_t>(in_vecs ? count : 1);
  group.vectors = FastDivmod(contents.columns / group.count);
  group.members = FastDivmod(contents.streams);
  group.first = first;
  group.mask_at = static_cast<int32_t>(contents.maskAt(p));
  return group;
}

template <class Time, int... kPairs>
auto kernelIn(std::integer_sequence<int, kPairs...>, int pair) {
  static constexpr void (*kKernels[])(Launch<Time>) = {
      fuseNarrowKernel<typename StorageOf<rows::kDTypePairs[kPairs].in>::type,
                       typename StorageOf<rows::kDTypePairs[kPairs].out>::type, Time>...};
  return kKernels[pair];
}
template <class Time>
auto kernelOf(int pair) {
  return kernelIn<Time>(std::make_integer_sequence<int, kNumPairs>(), pair);
}

template <class Time>
cudaError_t launchPlan(const FuseChoice& choice, const FuseProblem& p, const LaunchDevice& device,
                       cudaStream_t cuda_stream) {
  const Plan& plan = choice.narrow_plan;
  const int64_t parts = ceilDiv(p.queries, plan.part);
  Launch<Time> arguments;
  arguments.queries = queryRowsOf<Time, int32_t>(p);
  arguments.most = static_cast<int32_t>(p.queries);
  arguments.part = plan.part;
  arguments.parts = FastDivmod(parts);
  arguments.groups = FastDivmod(plan.groups);
  for (int g = 0; g < plan.groups; ++g) {
    const Contents contents = contentsOf(p, plan.first[g], plan.first[g + 1]);
    arguments.group[g] = groupOf(p, plan.first[g], contents);
    int64_t column = 0;
    int64_t at = contents.slotsAt(p);
    for (int n = plan.first[g]; n < plan.first[g + 1]; ++n) {
      const FuseStream& s = p.streams[n];
      Task<Time>& task = arguments.tasks[n] = taskOf<Time>(p, s);
      task.column = static_cast<int32_t>(column);
      task.times_at = static_cast<int32_t>(at);
      task.values_at = static_cast<int32_t>(at + timesSlot(p, s));
      column += s.channels;
      at += timesSlot(p, s) + valuesSlot(s);
    }
  }
  return launchBlocks(kernelOf<Time>(choice.instance), &arguments, choice.grid, choice.threads,
                      device, cuda_stream, choice.shared_bytes);
}

template <class Time>
cudaError_t allowShared(const LaunchDevice& device) {
  cudaError_t error = cudaSuccess;
  for (int pair = 0; pair < kNumPairs && error == cudaSuccess; ++pair) {
    const auto* kernel = reinterpret_cast<const void*>(kernelOf<Time>(pair));
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(sharedBudget(device, kBlocksWanted)));
  }
  return error;
}

}  // namespace

cudaError_t launch(const FuseChoice& choice, const FuseProblem& p, const LaunchDevice& device,
                   cudaStream_t cuda_stream) {
  return visitTime(p.time_dtype, [&](auto time) {
    return launchPlan<typename decltype(time)::type>(choice, p, device, cuda_stream);
  });
}

}  // namespace narrow_streams

cudaError_t loadFuseNarrow(const LaunchDevice& device) {
  using namespace narrow_streams;
  cudaError_t error = loadKernelsBeside(fuseNarrowKernel<float, float, float>);
  if (error == cudaSuccess) error = allowShared<float>(device);
  if (error == cudaSuccess) error = allowShared<double>(device);
  return error == cudaSuccess ? allowShared<int64_t>(device) : error;
}

}  // namespace rbc::cuda
