// The launch of the kernels of whole rows, for one dtype of times.
#pragma once

#include <algorithm>
#include <utility>

#include "fuse/fuse_rows_kernel.cuh"
#include "fuse/fuse_rows_launch.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/tiling.h"

namespace rbc::cuda {
namespace rows {

// What the task of stream n says of memory and of the rules.
template <class Time>
void describe(const FuseProblem& p, int n, RowsTask<Time>* task) {
  const FuseStream& s = p.streams[n];
  const int64_t in_size = sizeOf(s.values_dtype);
  const int64_t out_size = sizeOf(p.out_dtype);
  task->samples = sampleRowsOf<Time, int32_t>(s, paceOf(p, s));
  task->values = batchRows<int32_t>(static_cast<const char*>(s.values), s.values_stride[0],
                                    s.values_stride[1], in_size);
  task->out = batchRows<int32_t>(static_cast<char*>(p.out) + s.out_begin * out_size,
                                 p.out_stride[0], p.out_stride[1], out_size);
  uint8_t* mask = p.mask != nullptr ? p.mask + n * p.mask_stride[2] : nullptr;
  task->mask = batchRows<int32_t>(mask, p.mask_stride[0], p.mask_stride[1], 1);
  task->rules = rulesOf<Time>(s, p.segments[s.first_segment].method);
  task->clock_offset = offsetAs<Time>(s.clock_offset);
  task->fill_bits = s.fill_bits;
  task->mean = static_cast<const float*>(s.mean.data);
  task->inv_std = static_cast<const float*>(s.inv_std.data);
}

template <class Time>
void describe(const FuseProblem& p, int n, MaskedRowsTask<Time>* task) {
  describe(p, n, static_cast<RowsTask<Time>*>(task));
  task->sample_mask = sampleMaskOf<int32_t>(p.streams[n]);
}

// Whether units go by queries, all streams in turn, instead of stream by stream: what is written side
// by side leaves the cache as one. But the longest units should come first where there are few.
inline bool goesInTurns(const FuseProblem& p, const LaunchDevice& device, bool alike,
                        int64_t units) {
  constexpr int kManyUnits = 32;  // to a multiprocessor
  if (p.num_streams == 1) return false;
  return p.num_streams > kFewStreams || alike ||
         units > int64_t{kManyUnits} * device.multiprocessors;
}

// Cuts each stream's work into units of vectors of `count` channels, and returns how many these are.
template <class Time, int kStreams, bool kMasked>
int64_t cutUnits(const FuseProblem& p, int count, int unit_vectors, const LaunchDevice& device,
                 RowsLaunch<Time, kStreams, kMasked>* launch) {
  constexpr int kFewQueries = 32;
  constexpr int kBlocksWanted = 4;  // of a multiprocessor, above all
  const int64_t queries = p.batch * p.queries;
  int32_t most = 1;  // queries of a unit
  bool alike = true;
  int64_t units = 0;
  for (int n = 0; n < p.num_streams; ++n) {
    RowsTask<Time>& task = launch->tasks[n];
    const Tiling tiling = tilingOf(queries, p.streams[n].channels / count,
                                   {kThreads, kFewQueries, unit_vectors,
                                    device.multiprocessors * kBlocksWanted / p.num_streams});
    task.group = tiling.group;
    task.vectors = static_cast<int32_t>(tiling.vectors);
    task.step_queries = static_cast<int32_t>(kThreads / tiling.range);
    task.step_vectors = static_cast<int32_t>(kThreads % tiling.range);
    task.range = FastDivmod(tiling.range);
    task.ranges = FastDivmod(tiling.ranges);
    most = std::max(most, task.group);
    alike &= task.group == launch->tasks[0].group;
    units += tiling.groups * tiling.ranges;
  }
  const bool in_turns = goesInTurns(p, device, alike, units);
  const int64_t turns = in_turns ? ceilDiv(queries, most) : 1;
  units = 0;  // of a turn
  for (int n = 0; n < kStreams; ++n) {
    RowsTask<Time>& task = launch->tasks[n];
    task.first_unit = INT32_MAX;
    if (n >= p.num_streams) continue;
    task.first_unit = static_cast<int32_t>(units);
    task.groups = most / task.group;
    const int64_t groups = in_turns ? task.groups : ceilDiv(queries, task.group);
    units += groups * static_cast<int64_t>(task.ranges.divisor);
  }
  launch->in_turns = in_turns;
  launch->per_stream = FastDivmod(units / p.num_streams);
  launch->even = true;
  for (int n = 0; n < p.num_streams; ++n)
    launch->even &= int64_t{launch->tasks[n].first_unit} * p.num_streams == n * units;
  launch->turns = FastDivmod(units);
  return units * turns;
}

template <class In, class Out, class Time, int kForm>
cudaError_t launch(const FuseProblem& p, const LaunchDevice& device, cudaStream_t cuda_stream) {
  constexpr Form form = kForms[kForm];
  RowsLaunch<Time, form.streams, form.masked> arguments;
  arguments.queries = queryRowsOf<Time, int32_t>(p);
  arguments.flat_end = static_cast<int32_t>(p.batch * p.queries);
  arguments.per_row = FastDivmod(p.queries);
  for (int n = 0; n < p.num_streams; ++n) describe(p, n, &arguments.tasks[n]);
  const int64_t units =
      cutUnits(p, kVecCount<In, Out, form.bytes>, form.unit_vectors, device, &arguments);
  return launchBlocks(fuseRowsKernel<In, Out, Time, kForm>, &arguments, units, kThreads, device,
                      cuda_stream);
}

// Null, if it is not compiled.
template <class Time, int kInstance>
constexpr FuseLauncher launcherAt() {
  if constexpr (isCompiled(kInstance)) {
    return launch<typename StorageOf<dtypesOf(kInstance).in>::type,
                  typename StorageOf<dtypesOf(kInstance).out>::type, Time,
                  kInstance / kNumDTypePairs>;
  } else {
    return nullptr;
  }
}

template <class Time, int... kInstances>
FuseLauncher launcherIn(std::integer_sequence<int, kInstances...>, int instance) {
  static constexpr FuseLauncher kLaunchers[] = {launcherAt<Time, kInstances>()...};
  return kLaunchers[instance];
}

template <class Time>
FuseLauncher launcherOf(int instance) {
  return launcherIn<Time>(std::make_integer_sequence<int, kNumInstances>(), instance);
}

template <class Time>
cudaError_t loadKernels() {
  return loadKernelsBeside(fuseRowsKernel<float, float, Time, 0>);
}

}  // namespace rows
}  // namespace rbc::cuda
