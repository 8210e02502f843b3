// Fusion on CUDA where rows are alike: streams of one float dtype, each by methods of one kind, in
// rows that whole aligned packs of channels make up, or single channels where most make up none. It
// is the case of training batches; fuse.cu does the rest. What is known at compile time here -
// dtypes, the kind of method - leaves registers for more warps, and those hide the latency of the
// memory: fuse.cu took 1.3 times as long.
//
// A block takes a group of up to 128 consecutive queries of the flattened [B,T] and a range of a
// stream's channels. First each thread finds the position of one query: one search a query. Then the
// block walks the group's output, 16 bytes a thread, consecutive threads on consecutive channels,
// with several loads in flight that never wait for each other. No allocation, one launch.
#pragma once

#include <algorithm>
#include <type_traits>

#include "fuse/find_sample.cuh"
#include "interpolate.h"
#include "runtime/aligned_vec.cuh"
#include "runtime/fast_divmod.cuh"
#include "runtime/pdl.cuh"
#include "slerp.h"

namespace rbc::cuda {
namespace rows {

// Chosen by measurement on an H200, see docs/performance/experiments.md.
constexpr int kThreads = 128;

// The kBytes of kernels for any rows whose channels are neighbours.
constexpr int kSingle = 1;

// So few of them are written by the thread that finds their query. Of more streams than one only a
// single one, as rows of two lie far apart: 32 streams of two channels would take 127 us, not 90.
template <int kStreams>
constexpr int kOwnChannels = kStreams == 1 ? 4 : 1;

// Streams of a launch: arguments travel with it, so a few get a small struct.
constexpr int kFewStreams = 8;
constexpr int kManyStreams = 64;
static_assert(kManyStreams == kMaxStreams);

// Methods whose kernels are alike.
enum class Kind {
  kLine,      // a sample, or a line between two
  kTwoRows,   // any formula of two samples, and normalization
  kFourRows,  // any formula of four samples, and normalization
};

// Vectors in flight a thread. Lines of one stream: 1024,500,250,256 bf16 takes 94.9 us with 4, 95.7
// with 3, 101.4 with 2. Of several streams 3 would suit wide rows (B=512: 78.4 us, not 80.4) but not
// narrow ones (16 streams of 4 channels: 52.7, not 46.9). Of single channels more fit: 7 are what does
// not spill.
template <Kind kKind, class In, int kCount, int kStreams>
RBC_HD constexpr int vectorsInFlight() {
  if (kKind == Kind::kFourRows) return 1;
  if (kCount == 1) return sizeof(In) > 4 ? 2 : kStreams == 1 ? 7 : 4;
  return kKind == Kind::kLine && kStreams == 1 && sizeof(In) <= 4 ? 4 : 2;
}

// Blocks that must fit on a multiprocessor, which bounds the registers: as many as fit without
// spills. Of four rows eight, not seven: cubic takes 114 instead of 122 us, pchip 162 instead of 171.
// Of single channels of several streams ten, not nine: they search more than they load, and 32 streams
// of two channels take 89 us, not 99.
template <Kind kKind, int kStreams, int kBytes>
constexpr int blocksThatFit() {
  if (kStreams == 1) return 8;
  if (kKind == Kind::kTwoRows) return 7;
  return kKind == Kind::kLine && kBytes == kSingle ? 10 : 8;
}

// ---- arguments ----------------------------------------------------------------------------------

template <class Time>
struct RowsTask {
  SampleRows<int32_t> samples;
  BatchRows<const char, int32_t> values;
  BatchRows<char, int32_t> out;      // from the stream's first channel on
  BatchRows<uint8_t, int32_t> mask;  // its column
  Rules<Time> rules;
  Time clock_offset;
  uint64_t fill_bits;
  const float* mean;  // may be null
  const float* inv_std;
  FastDivmod range;      // vectors of a unit
  FastDivmod ranges;     // of a row
  int32_t first_unit;    // of a turn
  int32_t groups;        // of queries in a turn
  int32_t group;         // queries of a unit
  int32_t vectors;       // of a row
  int32_t step_queries;  // how far a block's next items are: kThreads / range
  int32_t step_vectors;  // kThreads % range
};

template <class Time, int kStreams>
struct RowsLaunch {
  QueryRows<int32_t> queries;
  int32_t flat_end;       // queries of the batch
  FastDivmod per_row;     // queries
  FastDivmod turns;       // units of a turn
  FastDivmod per_stream;  // the same of a stream
  bool in_turns;          // more than one turn
  bool even;              // as many units of each stream
  RowsTask<Time> tasks[kStreams];
};

// ---- methods ------------------------------------------------------------------------------------

// Channels of a vector: kBytes of the larger dtype, but one at least.
template <class In, class Out, int kBytes>
constexpr int kVecCount = std::max(kBytes / static_cast<int>(std::max(sizeof(In), sizeof(Out))), 1);

template <class Number, Kind kKind>
struct QueryWeight {
  Number w;
};
template <class Number>
struct QueryWeight<Number, Kind::kFourRows> : Weights<Number> {};

// What a block keeps of a query: where its sample and its output begin, at the unit's first channel.
template <class Number, Kind kKind>
struct Query {
  const char* source;  // null: write the fill value
  char* target;
  QueryWeight<Number, kKind> weight;
};

// The rows of values that make one of the output.
template <class P, Kind kKind>
struct RowPacks {
  P v1;
  P v2;
};
template <class P>
struct RowPacks<P, Kind::kFourRows> {
  P v0;
  P v1;
  P v2;
  P v3;
};

template <class P, class Number, Kind kKind>
__device__ __forceinline__ void loadRows(const Query<Number, kKind>& query, int v, int32_t step,
                                         RowPacks<P, kKind>* rows) {
  // No load waits for another: where a row is not needed, one that is loaded anyway stands for it.
  const char* source = stepped(query.source, v, int32_t{sizeof(P)});
  const int64_t ahead = query.weight.w != 0 ? step : 0;
  rows->v1 = load<P>(source);
  rows->v2 = load<P>(source + ahead);
  if constexpr (kKind == Kind::kFourRows) {
    rows->v0 = load<P>(source - (query.weight.before ? ahead : 0));
    rows->v3 = load<P>(source + (query.weight.after ? 2 * ahead : 0));
  }
}

template <class In, class Number, int kCount>
__device__ __forceinline__ void blend(const RowPacks<AlignedVec<In, kCount>, Kind::kLine>& rows,
                                      Method, const QueryWeight<Number, Kind::kLine>& weight,
                                      Number (&out)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const Number v1 = widen(rows.v1.element[i]);
    out[i] = weight.w == 0 ? v1 : lerp(v1, widen(rows.v2.element[i]), weight.w);
  }
}

template <class In, class Number, int kCount>
__device__ __forceinline__ void blend(const RowPacks<AlignedVec<In, kCount>, Kind::kTwoRows>& rows,
                                      Method method,
                                      const QueryWeight<Number, Kind::kTwoRows>& weight,
                                      Number (&out)[kCount]) {
  const Number w = weight.w;
  if (w == 0) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) out[i] = widen(rows.v1.element[i]);
  } else if (kCount % 4 == 0 && method == Method::kSlerp) {
#pragma unroll
    for (int i = 0; i + 4 <= kCount; i += 4) {
      Number q1[4];
      Number q2[4];
      Number q[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        q1[j] = widen(rows.v1.element[i + j]);
        q2[j] = widen(rows.v2.element[i + j]);
      }
      slerp(q1, q2, w, q);
#pragma unroll
      for (int j = 0; j < 4; ++j) out[i + j] = q[j];
    }
  } else if (method == Method::kAngle) {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      out[i] = lerpAngle(widen(rows.v1.element[i]), widen(rows.v2.element[i]), w);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      out[i] = lerp(widen(rows.v1.element[i]), widen(rows.v2.element[i]), w);
  }
}

template <class In, class Number, int kCount>
__device__ __forceinline__ void blend(const RowPacks<AlignedVec<In, kCount>, Kind::kFourRows>& rows,
                                      Method method,
                                      const QueryWeight<Number, Kind::kFourRows>& weight,
                                      Number (&out)[kCount]) {
  const auto each = [&](auto formula) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      out[i] = formula(widen(rows.v0.element[i]), widen(rows.v1.element[i]),
                       widen(rows.v2.element[i]), widen(rows.v3.element[i]));
    }
  };
  if (weight.w == 0) {
    each([](Number, Number v1, Number, Number) { return v1; });
  } else if (method == Method::kCubic) {
    each([&](Number v0, Number v1, Number v2, Number v3) { return cubic(v0, v1, v2, v3, weight); });
  } else if (weight.before & weight.after) {
    each([&](Number v0, Number v1, Number v2, Number v3) {
      return pchipInside(v0, v1, v2, v3, weight);
    });
  } else {
    // Of two samples it is a line: that of the streams which take no more.
    each([&](Number v0, Number v1, Number v2, Number v3) {
      return pchipAtEnd(v0, v1, v2, v3, weight);
    });
  }
}

template <class Number, int kCount>
__device__ __forceinline__ void normalize(const float* means, const float* inv_stds, int channel,
                                          Number (&values)[kCount]) {
  using P = AlignedVec<float, kCount>;
  P mean = {};
  P inv_std;
#pragma unroll
  for (int i = 0; i < kCount; ++i) inv_std.element[i] = 1;
  if (means != nullptr) mean = load<P>(means + channel);
  if (inv_stds != nullptr) inv_std = load<P>(inv_stds + channel);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    values[i] = normalized(values[i], static_cast<Number>(mean.element[i]),
                           static_cast<Number>(inv_std.element[i]));
  }
}

// ---- the kernel ---------------------------------------------------------------------------------

// Query t of row b, for the channels from `channel` on.
template <class In, class Out, class Time, Kind kKind>
__device__ __forceinline__ Query<Compute<In>, kKind> findQuery(const QueryRows<int32_t>& queries,
                                                               const RowsTask<Time>& task,
                                                               int32_t b, int32_t t,
                                                               int32_t channel) {
  prefetchTimes(task.samples, b, t);
  const auto samples = recordingOf<Time>(task.samples, b);
  int32_t guess = -1;
  const auto position = findSample(queries, b, t, task.clock_offset, samples, task.rules, &guess);
  if (task.mask.data != nullptr && channel == 0) *task.mask.at(b, t) = position.mask ? 1 : 0;
  Query<Compute<In>, kKind> query;
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

// The stream that a unit of a turn belongs to. Tasks that are not there begin past all units.
template <class Time, int kStreams>
__device__ __forceinline__ int streamOf(const RowsLaunch<Time, kStreams>& launch, int32_t unit) {
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

// A vector of channels of one query: first its rows are loaded, then it is written.
template <class In, class Out, Kind kKind, int kCount>
struct Item {
  using Number = Compute<In>;

  char* target;
  bool valid;
  int channel;
  QueryWeight<Number, kKind> weight;
  RowPacks<AlignedVec<In, kCount>, kKind> rows;

  // Vector v of the unit's, whose first is `first_vector`.
  template <class Time>
  __device__ __forceinline__ void read(const RowsTask<Time>& task,
                                       const Query<Number, kKind>& query, int v, int first_vector) {
    target = stepped(query.target, v, int32_t{sizeof(AlignedVec<Out, kCount>)});
    valid = query.source != nullptr;
    channel = (first_vector + v) * kCount;
    weight = query.weight;
    if (valid) loadRows(query, v, task.values.step, &rows);
  }

  template <class Time>
  __device__ __forceinline__ void write(const RowsTask<Time>& task) const {
    AlignedVec<Out, kCount> result;
    if (valid) {
      Number values[kCount];
      blend(rows, task.rules.method, weight, values);
      if (kKind != Kind::kLine && (task.mean != nullptr || task.inv_std != nullptr))
        normalize(task.mean, task.inv_std, channel, values);
      result = narrowPack<Out>(values);
    } else {
      Out fill;
      memcpy(&fill, &task.fill_bits, sizeof fill);
      for (Out& element : result.element) element = fill;
    }
    store(target, result);
  }
};

// Writes all vectors of a query, kMax or fewer.
template <class In, class Out, int kCount, int kMax, class Time, Kind kKind>
__device__ __forceinline__ void writeQuery(const RowsTask<Time>& task,
                                           const Query<Compute<In>, kKind>& query) {
  Item<In, Out, kKind, kCount> items[kMax];
#pragma unroll
  for (int v = 0; v < kMax; ++v) {
    if (v < task.vectors) items[v].read(task, query, v, 0);
  }
#pragma unroll
  for (int v = 0; v < kMax; ++v) {
    if (v < task.vectors) items[v].write(task);
  }
}

// A block's unit, and where its thread is in it: at vector v of query k.
template <class In, class Out, class Time, Kind kKind, int kCount>
struct Walk {
  const RowsTask<Time>& task;
  const Query<Compute<In>, kKind>* queries;
  int32_t first_vector;  // of the rows' that the unit has
  int last_query;
  int k;
  int v;

  // kItems items, as many apart as there are threads: all their loads, then the rest. Past the last
  // query that one is done once more, which is cheaper than a branch.
  template <int kItems>
  __device__ __forceinline__ void step() {
    Item<In, Out, kKind, kCount> items[kItems];
    const auto range = static_cast<int>(task.range.divisor);
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
      items[u].read(task, queries[min(k, last_query)], v, first_vector);
      k += task.step_queries;
      v += task.step_vectors;
      if (v >= range) {
        v -= range;
        ++k;
      }
    }
#pragma unroll
    for (int u = 0; u < kItems; ++u) items[u].write(task);
  }

  // All `items` of the block, in steps of kItems while there are more than half a step takes, then
  // in smaller ones: an item that is none costs as much as any.
  template <int kItems>
  __device__ __forceinline__ void run(int items) {
    constexpr int kFewer = kItems / 2;
    for (; items > kFewer * kThreads; items -= kItems * kThreads) step<kItems>();
    if constexpr (kFewer > 0) {
      if (items > 0) run<kFewer>(items);
    }
  }
};

template <class In, class Out, class Time, Kind kKind, int kStreams, int kBytes>
__global__ void __launch_bounds__(kThreads, blocksThatFit<kKind, kStreams, kBytes>())
    fuseRowsKernel(const __grid_constant__ RowsLaunch<Time, kStreams> launch) {
  constexpr int kCount = kVecCount<In, Out, kBytes>;
  __shared__ Query<Compute<In>, kKind> queries[kThreads];
  const auto thread = static_cast<int>(threadIdx.x);

  // A unit and no more: a loop over units would keep in registers what all of them share, so that
  // two blocks fewer fit on a multiprocessor.
  auto unit = static_cast<int32_t>(blockIdx.x);
  int32_t turn = 0;
  if (kStreams > 1 && launch.in_turns) {
    turn = launch.turns(unit);
    unit -= turn * static_cast<int32_t>(launch.turns.divisor);
  }
  const RowsTask<Time>& task = launch.tasks[streamOf(launch, unit)];
  const auto range = static_cast<int>(task.range.divisor);
  const int32_t own = unit - task.first_unit;
  const int32_t group = task.ranges(own);
  // The last range begins where it has as many vectors as the others: some are written twice.
  const int32_t first_vector =
      min((own - group * static_cast<int32_t>(task.ranges.divisor)) * range, task.vectors - range);
  const int32_t flat_group = (turn * task.groups + group) * task.group;
  const int32_t flat = flat_group + thread;
  const bool has_query = thread < task.group && flat < launch.flat_end;
  const int32_t b = launch.per_row(flat);
  const int32_t t = flat - b * static_cast<int32_t>(launch.per_row.divisor);
  waitForLaunchesAhead();  // nothing is read or written before the launches ahead are done
  Query<Compute<In>, kKind> query;
  if (has_query) {
    query = findQuery<In, Out, Time, kKind>(launch.queries, task, b, t, first_vector * kCount);
  }
  letNextLaunchBegin();
  if (kBytes == kSingle && task.vectors <= kOwnChannels<kStreams>) {
    if (has_query) writeQuery<In, Out, kCount, kOwnChannels<kStreams>>(task, query);
    return;
  }
  if (has_query) queries[thread] = query;
  __syncthreads();

  const int32_t left = launch.flat_end - flat_group;
  const int count = left < task.group ? left : task.group;
  const int k = task.range(thread);
  Walk<In, Out, Time, kKind, kCount> walk = {task,      queries, first_vector,
                                             count - 1, k,       thread - k * range};
  walk.template run<vectorsInFlight<kKind, In, kCount, kStreams>()>(count * range);
}

}  // namespace rows
}  // namespace rbc::cuda
