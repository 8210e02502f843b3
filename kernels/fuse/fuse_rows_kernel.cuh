// Rows of channels in vectors: the arguments, the kernel, and its launch.
#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>

#include "dtype.h"
#include "element_of.h"
#include "fuse/find_sample.cuh"
#include "fuse/fuse_kernels.h"
#include "fuse/fuse_rows_instances.h"
#include "fuse/fuse_rows_methods.cuh"
#include "fuse/stream_checks.h"
#include "runtime/fast_divmod.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace rows {

// ---- The arguments of a kernel of whole rows.

template <class Time>
struct RowsTask {
  SampleRows<int32_t> samples;
  BatchRows<const char, int32_t> values;
  BatchRows<char, int32_t> out;      // starting at the stream's first channel
  BatchRows<uint8_t, int32_t> mask;  // its column
  Rules<Time> rules;
  Time clock_offset;
  uint64_t fill_bits;
  const float* shift;  // may be null
  const float* scale;
  FastDivmod range;      // vectors per unit
  FastDivmod ranges;     // per row
  int32_t first_unit;    // in a turn
  int32_t groups;        // of queries in a turn
  int32_t group;         // queries per unit
  int32_t vectors;       // per row
  int32_t step_queries;  // distance of a block's next items in queries: kThreads / range
  int32_t step_vectors;  // kThreads % range
};

template <class Time>
struct MaskedRowsTask : RowsTask<Time> {
  BatchRows<const uint8_t, int32_t> sample_mask;  // may be null
};

template <class Time, int kStreams, bool kMasked>
struct RowsLaunch {
  using Task = std::conditional_t<kMasked, MaskedRowsTask<Time>, RowsTask<Time>>;

  QueryRows<int32_t> queries;
  int32_t flat_end;       // queries in the batch
  FastDivmod per_row;     // queries
  FastDivmod turns;       // units per turn
  FastDivmod per_stream;  // units per stream
  bool in_turns;          // more than one turn
  bool even;              // all streams have the same number of units
  Task tasks[kStreams];
};

// ---- Fusion on CUDA of similar rows: streams of one float dtype, each with methods of one kind,
// in rows of whole aligned vectors of channels, or of single channels if most rows have no such
// vectors. This is the case of training batches; fuse_any_kernel.cuh does the rest. Dtypes and the
// kind of method are known at compile time, which leaves registers for more warps; these hide the
// memory's latency.
//
// A block processes a group of up to 128 consecutive queries of the flattened [B,T] and a range of
// a stream's channels. First each thread finds the position of one query: one search per query.
// Then the block writes the group's output, 16 bytes per thread, consecutive threads on consecutive
// channels, with several independent loads in flight. No allocation, one launch.

// Query t of row b, for the channels starting at `channel`.
template <class In, class Out, class Time, Kind kKind>
__device__ __forceinline__ Query<Compute<In>, kKind> findQuery(const QueryRows<int32_t>& queries,
                                                               const RowsTask<Time>& task,
                                                               int32_t b, int32_t t,
                                                               int32_t channel) {
  prefetchTimes(task.samples, b, t);
  const auto samples = recordingOf<Time>(task.samples, b);
  int32_t guess = -1;
  const auto position = findSample(queries, b, t, task.clock_offset, &samples, task.rules, &guess);
  Query<Compute<In>, kKind> query;
  if constexpr (kKind == Kind::kQuaternions) {
    query.mask = position.mask;
  } else {
    if (task.mask.data != nullptr && channel == 0) *task.mask.at(b, t) = position.mask ? 1 : 0;
  }
  query.source = nullptr;
  if (position.index >= 0) {
    query.source =
        stepped(task.values.at(b, samples.begin + position.index), channel, int32_t{sizeof(In)});
  }
  query.target = stepped(task.out.at(b, t), channel, int32_t{sizeof(Out)});
  if constexpr (kKind == Kind::kFourRows) {
    const auto weights = weightsOf(task.rules.method, samples.times, samples.count, position);
    query.weight = {weights.template as<Compute<In>>()};
  } else {
    query.weight = {static_cast<Compute<In>>(position.weight)};
  }
  return query;
}

// The same if samples may be missing.
template <class In, class Out, class Time, Kind kKind>
__device__ __forceinline__ Query<Compute<In>, kKind, true> findQuery(
    const QueryRows<int32_t>& queries, const MaskedRowsTask<Time>& task, int32_t b, int32_t t,
    int32_t channel) {
  prefetchTimes(task.samples, b, t);
  auto samples = recordingOf<Time>(task.samples, task.sample_mask, b);
  int32_t guess = -1;
  const auto position = findSample(queries, b, t, task.clock_offset, &samples, task.rules, &guess);
  if (task.mask.data != nullptr && channel == 0) *task.mask.at(b, t) = position.mask ? 1 : 0;
  Query<Compute<In>, kKind, true> query;
  query.source = nullptr;
  query.weight = {static_cast<Compute<In>>(position.weight), 0};
  if (position.index >= 0) {
    query.source =
        stepped(task.values.at(b, samples.begin + position.index), channel, int32_t{sizeof(In)});
    if (query.weight.w != 0) {
      query.weight.ahead = rightOf(samples.valid, samples.count, position.index) - position.index;
    }
  }
  query.target = stepped(task.out.at(b, t), channel, int32_t{sizeof(Out)});
  return query;
}

// The stream that a unit of a turn belongs to. Unused tasks begin after all units.
template <class Time, int kStreams, bool kMasked>
__device__ __forceinline__ int streamOf(const RowsLaunch<Time, kStreams, kMasked>& launch,
                                        int32_t unit) {
  if (kStreams == 1) return 0;
  if (launch.even) return launch.per_stream(unit);
  int n = 0;
  if constexpr (kStreams <= kFewStreams) {
#pragma unroll
    for (int i = 1; i < kStreams; ++i) n += unit >= launch.tasks[i].first_unit ? 1 : 0;
  } else {
#pragma unroll
    for (int step = kStreams / 2; step > 0; step /= 2) {
      if (unit >= launch.tasks[n + step].first_unit) n += step;
    }
  }
  return n;
}

// A vector of channels of one query: its rows are loaded first, then it is written.
template <class In, class Out, Kind kKind, bool kMasked, int kCount>
struct Item {
  using Number = Compute<In>;

  char* target;
  bool valid;
  int channel;
  QueryWeight<Number, kKind, kMasked> weight;
  RowVecs<AlignedVec<In, kCount>, kKind> rows;

  // Reads vector v of the unit, whose first vector is `first_vector`.
  template <class Time>
  __device__ __forceinline__ void read(const RowsTask<Time>& task,
                                       const Query<Number, kKind, kMasked>& query, int v,
                                       int first_vector) {
    target = stepped(query.target, v, int32_t{sizeof(AlignedVec<Out, kCount>)});
    valid = query.source != nullptr;
    channel = (first_vector + v) * kCount;
    weight = query.weight;
    if (valid) loadRows(query, v, task.values.step, &rows);
  }

  // Returns false if an invalid quaternion was found.
  template <class Time>
  __device__ __forceinline__ bool write(const RowsTask<Time>& task) const {
    AlignedVec<Out, kCount> result;
    bool rotations = true;
    if (valid) {
      Number values[kCount];
      bool sure = true;
      const bool affine = kKind != Kind::kLine && (task.shift != nullptr || task.scale != nullptr);
      const DType angle_dtype = affine ? DType::F64 : kDTypeOf<Out>;
      if constexpr (kKind == Kind::kQuaternions) {
        sure = blend(rows, task.rules.method, weight, angle_dtype, values) ||
               task.rules.method != Method::kSlerp;
      } else if constexpr (kKind == Kind::kTwoRows) {
        blend(rows, task.rules.method, weight, angle_dtype, values);
      } else {
        blend(rows, task.rules.method, weight, values);
      }
      if (affine) normalize(task.shift, task.scale, channel, values);
      result = narrowVec<Out>(values);
      if constexpr (kKind == Kind::kQuaternions) {
#pragma unroll
        for (int i = 0; i < kCount; i += 4) {
          if (sure || areRotations(rows, i)) continue;
          rotations = false;
#pragma unroll
          for (int j = 0; j < 4; ++j) result.element[i + j] = elementOf<Out>(task.fill_bits);
        }
      }
    } else {
      const auto fill = elementOf<Out>(task.fill_bits);
      for (Out& element : result.element) element = fill;
    }
    store(target, result);
    return rotations;
  }
};

// Writes all vectors of a query, at most kMax.
template <class In, class Out, int kCount, int kMax, class Time, Kind kKind, bool kMasked>
__device__ __forceinline__ void writeQuery(const RowsTask<Time>& task,
                                           const Query<Compute<In>, kKind, kMasked>& query) {
  Item<In, Out, kKind, kMasked, kCount> items[kMax];
#pragma unroll
  for (int v = 0; v < kMax; ++v) {
    if (v < task.vectors) items[v].read(task, query, v, 0);
  }
#pragma unroll
  for (int v = 0; v < kMax; ++v) {
    if (v < task.vectors) items[v].write(task);
  }
}

// A block's unit, and its thread's place in it: vector v of query k.
template <class In, class Out, class Time, Kind kKind, bool kMasked, int kCount>
struct Walk {
  const RowsTask<Time>& task;
  Query<Compute<In>, kKind, kMasked>* queries;
  int32_t first_vector;  // in the rows' vectors
  int last_query;
  int k;
  int v;

  // kItems items, spaced by the number of threads: first all loads, then the rest. After the last
  // query, that query is repeated, which is cheaper than a branch.
  template <int kItems>
  __device__ __forceinline__ void step() {
    Item<In, Out, kKind, kMasked, kCount> items[kItems];
    int query[kItems];
    const auto range = static_cast<int>(task.range.divisor);
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
      query[u] = min(k, last_query);
      items[u].read(task, queries[query[u]], v, first_vector);
      k += task.step_queries;
      v += task.step_vectors;
      if (v >= range) {
        v -= range;
        ++k;
      }
    }
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
      const bool rotations = items[u].write(task);
      if constexpr (kKind == Kind::kQuaternions) {
        if (!rotations) queries[query[u]].mask = false;
      }
    }
  }

  // All `items` of the block, in steps of kItems while more than half a step is left, then in
  // smaller steps: an unused item costs as much as any.
  template <int kItems>
  __device__ __forceinline__ void run(int items) {
    constexpr int kFewer = kItems / 2;
    for (; items > kFewer * kThreads; items -= kItems * kThreads) step<kItems>();
    if constexpr (kFewer > 0) {
      if (items > 0) run<kFewer>(items);
    }
  }

  // Checks the quaternions after the unit's part of the row, which affect the masks of its queries.
  // Called for the first unit of a row.
  __device__ __forceinline__ void readBehind() {
    const auto range = static_cast<int>(task.range.divisor);
    for (int i = 0; i <= last_query && range < task.vectors; ++i) {
      if (queries[i].source == nullptr) continue;
#pragma unroll 4
      for (int u = range + static_cast<int>(threadIdx.x); u < task.vectors; u += kThreads) {
        RowVecs<AlignedVec<In, kCount>, kKind> rows;
        loadRows(queries[i], u, task.values.step, &rows);
#pragma unroll
        for (int j = 0; j < kCount; j += 4) {
          if (!areRotations(rows, j)) queries[i].mask = false;
        }
      }
    }
  }
};

// As in vecCountOf().
template <class In, class Out, int kBytes>
constexpr int kVecCount = std::max(kBytes / static_cast<int>(std::max(sizeof(In), sizeof(Out))), 1);

// The kernel of the form with the given number.
template <class In, class Out, class Time, int kForm>
__global__ void __launch_bounds__(kThreads, kForms[kForm].blocks) fuseRowsKernel(
    const __grid_constant__ RowsLaunch<Time, kForms[kForm].streams, kForms[kForm].masked> launch) {
  constexpr Kind kKind = kForms[kForm].kind;
  constexpr bool kMasked = kForms[kForm].masked;
  constexpr int kStreams = kForms[kForm].streams;
  constexpr int kBytes = kForms[kForm].bytes;
  constexpr int kOwnChannels = kForms[kForm].own_channels;
  constexpr int kInFlight =
      sizeof(In) == 8 ? kForms[kForm].in_flight_of_doubles : kForms[kForm].in_flight;
  constexpr int kCount = kVecCount<In, Out, kBytes>;
  __shared__ Query<Compute<In>, kKind, kMasked> queries[kThreads];
  const auto thread = static_cast<int>(threadIdx.x);

  // One unit only: a loop over units would keep their common values in registers, so that two
  // blocks fewer would fit on a multiprocessor.
  auto unit = static_cast<int32_t>(blockIdx.x);
  int32_t turn = 0;
  if (kStreams > 1 && launch.in_turns) {
    turn = launch.turns(unit);
    unit -= turn * static_cast<int32_t>(launch.turns.divisor);
  }
  const auto& task = launch.tasks[streamOf(launch, unit)];
  const auto range = static_cast<int>(task.range.divisor);
  const int32_t own = unit - task.first_unit;
  const int32_t group = task.ranges(own);
  // The last range begins such that it has as many vectors as the others: some are written twice.
  const int32_t first_vector =
      min((own - group * static_cast<int32_t>(task.ranges.divisor)) * range, task.vectors - range);
  const int32_t flat_group = (turn * task.groups + group) * task.group;
  const int32_t flat = flat_group + thread;
  const bool has_query = thread < task.group && flat < launch.flat_end;
  const int32_t b = launch.per_row(flat);
  const int32_t t = flat - b * static_cast<int32_t>(launch.per_row.divisor);
  waitForLaunchesAhead();  // nothing is read or written before the preceding launches have finished
  Query<Compute<In>, kKind, kMasked> query;
  if (has_query) {
    query = findQuery<In, Out, Time, kKind>(launch.queries, task, b, t, first_vector * kCount);
  }
  letNextLaunchBegin();
  if (kBytes == kSingle && task.vectors <= kOwnChannels) {
    if (has_query) writeQuery<In, Out, kCount, kOwnChannels>(task, query);
    return;
  }
  if (has_query) queries[thread] = query;
  __syncthreads();

  const int32_t left = launch.flat_end - flat_group;
  const int count = left < task.group ? left : task.group;
  const int k = task.range(thread);
  Walk<In, Out, Time, kKind, kMasked, kCount> walk = {task,      queries, first_vector,
                                                      count - 1, k,       thread - k * range};
  walk.template run<kInFlight>(count * range);
  if constexpr (kKind == Kind::kQuaternions) {
    if (task.mask.data == nullptr || first_vector != 0) return;
    __syncthreads();  // masks of queries that other threads have written
    if (task.rules.method == Method::kSlerp) {
      walk.readBehind();
      __syncthreads();
    }
    if (has_query) *task.mask.at(b, t) = queries[thread].mask ? 1 : 0;
  }
}

// ---- The launch of the kernels of whole rows, for one dtype of times.

// The part of the task of stream n about memory and rules.
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
  uint8_t* mask = p.valid != nullptr ? p.valid + n * p.valid_stride[2] : nullptr;
  task->mask = batchRows<int32_t>(mask, p.valid_stride[0], p.valid_stride[1], 1);
  task->rules = rulesOf<Time>(s, p.segments[s.first_segment].method);
  task->clock_offset = offsetAs<Time>(s.clock_offset);
  task->fill_bits = s.fill_bits;
  task->shift = static_cast<const float*>(s.shift.data);
  task->scale = static_cast<const float*>(s.scale.data);
}

template <class Time>
void describe(const FuseProblem& p, int n, MaskedRowsTask<Time>* task) {
  describe(p, n, static_cast<RowsTask<Time>*>(task));
  task->sample_mask = sampleMaskOf<int32_t>(p.streams[n]);
}

// The units of each task.
template <class Time, int kStreams, bool kMasked>
void describe(const Plan& plan, const FuseProblem& p, RowsLaunch<Time, kStreams, kMasked>* launch) {
  launch->even = true;
  for (int n = 0; n < kStreams; ++n) {
    RowsTask<Time>& task = launch->tasks[n];
    task.first_unit = INT32_MAX;
    if (n >= p.num_streams) continue;
    const Tiling& tiling = plan.tiling[n];
    task.group = tiling.group;
    task.vectors = static_cast<int32_t>(tiling.vectors);
    task.step_queries = static_cast<int32_t>(kThreads / tiling.range);
    task.step_vectors = static_cast<int32_t>(kThreads % tiling.range);
    task.range = FastDivmod(tiling.range);
    task.ranges = FastDivmod(tiling.ranges);
    task.first_unit = plan.first_unit[n];
    task.groups = plan.groups[n];
    launch->even &= int64_t{task.first_unit} * p.num_streams == n * plan.units;
  }
  launch->in_turns = plan.in_turns;
  launch->per_stream = FastDivmod(plan.units / p.num_streams);
  launch->turns = FastDivmod(plan.units);
}

template <class In, class Out, class Time, int kForm>
cudaError_t launch(const FuseChoice& choice, const FuseProblem& p, const LaunchDevice& device,
                   cudaStream_t cuda_stream) {
  constexpr Form form = kForms[kForm];
  RowsLaunch<Time, form.streams, form.masked> arguments;
  arguments.queries = queryRowsOf<Time, int32_t>(p);
  arguments.flat_end = static_cast<int32_t>(p.batch * p.queries);
  arguments.per_row = FastDivmod(p.queries);
  for (int n = 0; n < p.num_streams; ++n) describe(p, n, &arguments.tasks[n]);
  describe(choice.rows_plan, p, &arguments);
  return launchBlocks(fuseRowsKernel<In, Out, Time, kForm>, &arguments, choice.grid, choice.threads,
                      device, cuda_stream);
}

// Null if it is not compiled.
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
