// Fusion of many narrow streams on CUDA, where the search costs more than the interpolation.
//
// A block processes one recording and some neighbouring streams, whose channels fill whole sectors
// of out; a warp processes one of these streams. It copies the stream's times and values into
// shared memory, whole rows at once. There it searches the samples of its queries, and puts the
// results into the block's tile, which is then written row by row. Other blocks copy while one
// searches.
#pragma once

#include "element_of.h"
#include "fuse/find_sample.cuh"
#include "fuse/fuse_rows_instances.h"
#include "fuse/fuse_rows_methods.cuh"
#include "fuse/shared_recordings.cuh"
#include "runtime/fast_divmod.h"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace narrow_streams {

// ---- The arguments of the kernel of narrow streams.

template <class Time>
inline constexpr int kMostThreads = mostWarps(sizeof(Time)) * kWarp;

// Neighbouring streams, one warp each.
struct Group {
  BatchRows<char, int32_t> out;  // starting at their first channel
  BatchRows<uint8_t, int32_t> mask;
  FastDivmod vectors;  // per row of out
  FastDivmod members;
  int32_t count;    // columns per vector: 1, or as many as 16 bytes have
  int32_t first;    // first stream
  int32_t mask_at;  // offset of their mask tile in shared memory; the tile of values is at 0
};

template <class Time>
struct Task {
  SampleRows<int32_t> samples;
  BatchRows<const char, int32_t> values;
  Rules<Time> rules;
  Time clock_offset;
  uint64_t fill_bits;
  int32_t count;     // channels per vector: 1 or 2
  int32_t vectors;   // per row
  int32_t column;    // column of the group at which its channels begin
  int32_t times_at;  // offset in shared memory, in bytes
  int32_t values_at;
};

template <class Time>
struct Launch {
  QueryRows<int32_t> queries;
  int32_t most;      // queries per recording
  int32_t part;      // per block
  FastDivmod parts;  // per recording
  FastDivmod groups;
  Group group[rows::kManyStreams];
  Task<Time> tasks[rows::kManyStreams];
};

// ---- The copy of a recording's samples into shared memory by a warp of the kernel of narrow
// streams.

__device__ __forceinline__ int laneOf() { return static_cast<int>(threadIdx.x % kWarp); }

// The number of the warp's first thread: the compiler sees that it is the same for all.
__device__ __forceinline__ int32_t ofWarp(int32_t number) { return __shfl_sync(~0u, number, 0); }

// A recording's samples of one stream, in shared memory.
template <class In, class Time>
struct Samples {
  const Time* times;
  const In* values;
  int32_t count;
  int32_t left;  // timesLeftOf(count)

  __device__ __forceinline__ Ends<Time> ends() const { return {times[0], times[count - 1]}; }
};

// Starts copying the samples of a warp.
template <class In, class Time>
__device__ __forceinline__ Samples<In, Time> copySamples(const Task<Time>& task, int32_t b,
                                                         char* shared) {
  const Recording<Time, int32_t> recording = recordingOf<Time>(task.samples, b);
  const int32_t count = ofWarp(recording.count);
  const CopyRow<Time> times(recording.times.first, count, shared + task.times_at);
  const CopyRow<In> values(task.values.at(b, recording.begin), count * task.count * task.vectors,
                           shared + task.values_at);
  const int lane = laneOf();
  times.copyWords(lane, kWarp);
  values.copyWords(lane, kWarp);
  times.copyEnds(lane);
  values.copyEnds(lane);
  __pipeline_commit();
  return {times.row(), values.row(), count, timesLeftOf(count)};
}

using rows::Kind;

template <class Time>
using Position = SamplePosition<Time, int32_t>;

// The query times of a recording.
template <class Time>
struct Queries {
  const Time* times;
  int32_t end;  // one past the last query

  __device__ __forceinline__ Time operator[](int32_t t) const {
    return load<AlignedVec<Time, 1>>(times + t).element[0];
  }
  // Reads a thread's queries, from the t-th on, a warp's width apart.
  __device__ __forceinline__ void read(int32_t t, Time (&q)[kQueries]) const {
#pragma unroll
    for (int k = 0; k < kQueries; ++k)
      q[k] = t + k * kWarp < end ? (*this)[t + k * kWarp] : Time(0);
  }
};

// The cells of a tile that a thread fills: its own rows, in the columns of a stream.
template <class Out>
struct Cells {
  Out* values;
  uint8_t* mask;
  bool has_mask;
};

// A warp's part of a tile: some queries of a stream.
template <class In, class Out, class Time>
struct TilePart {
  const Task<Time>& task;
  const Samples<In, Time>& samples;
  const Queries<Time>& queries;
  Cells<Out> cells;

  // Finds the positions of queries with samples on both sides; others get no position. Returns
  // whether any query is outside.
  __device__ __forceinline__ bool findInside(int32_t t, const Time (&q)[kQueries],
                                             Position<Time> (&position)[kQueries]) const {
    const int32_t n = samples.count;
    const Rules<Time>& rules = task.rules;
    const Ends<Time> ends = samples.ends();
    int32_t last[kQueries];
    lastBefore(samples.times, n, samples.left, q, last);
    bool any_outside = false;
    const auto each = [&](auto find) {
#pragma unroll
      for (int k = 0; k < kQueries; ++k) {
        const int32_t i = last[k];
        const Bracket<Time, int32_t> bracket = {i, samples.times[i],
                                                samples.times[min(i + 1, n - 1)]};
        const Position<Time> found = find(bracket, q[k]);
        const bool is_query = t + k * kWarp < queries.end;
        const bool outside = isOutside(ends, q[k]);
        position[k] = is_query & !outside ? found : Position<Time>::none();
        any_outside |= is_query & outside;
      }
    };
    if (isStep(rules.method) || rules.has_max_gap) {
      each([&](const auto& bracket, Time at) { return positionIn(bracket, n, at, rules); });
    } else {
      each([&](const auto& bracket, Time at) { return positionOnLine(bracket, n, at); });
    }
    return any_outside;
  }

  // Vector v of the result at a position, in rows of `vectors`. Without a position it is the fill
  // value, though some sample is read.
  template <int kCount>
  __device__ __forceinline__ AlignedVec<Out, kCount> valueAt(const Position<Time>& position, int v,
                                                             int vectors) const {
    using P = AlignedVec<In, kCount>;
    using Number = Compute<In>;
    const auto* const row =
        reinterpret_cast<const P*>(samples.values) + max(position.index, 0) * vectors + v;
    const rows::QueryWeight<Number, Kind::kLine> weight = {static_cast<Number>(position.weight)};
    const rows::RowVecs<P, Kind::kLine> pair = {row[0], row[weight.w != 0 ? vectors : 0]};
    Number blended[kCount];
    rows::blend(pair, task.rules.method, weight, blended);
    AlignedVec<Out, kCount> result = narrowVec<Out>(blended);
    const auto fill = elementOf<Out>(task.fill_bits);
#pragma unroll
    for (Out& element : result.element) element = position.index >= 0 ? element : fill;
    return result;
  }

  template <int kCount>
  __device__ __forceinline__ void writeValues(const Position<Time> (&position)[kQueries]) const {
    const int vectors = task.vectors;
    for (int v = 0; v < vectors; ++v) {
#pragma unroll
      for (int k = 0; k < kQueries; ++k) {
        const auto value = valueAt<kCount>(position[k], v, vectors);
#pragma unroll
        for (int i = 0; i < kCount; ++i)
          cells.values[(v * kCount + i) * kColumn + k * kWarp] = value.element[i];
      }
    }
  }

  // Queries before the first sample and after the last one, channel by channel.
  __device__ __forceinline__ void answerOutside(int32_t t) const {
    const Ends<Time> ends = samples.ends();
#pragma unroll 1
    for (int k = 0; k < kQueries; ++k) {
      if (t + k * kWarp >= queries.end) return;
      const Time q = TimeMath<Time>::shifted(queries[t + k * kWarp], task.clock_offset);
      if (!isOutside(ends, q)) continue;
      const Position<Time> position =
          positionOutside(samples.times, samples.count, ends, q, task.rules, AllSamples());
      if (cells.has_mask) cells.mask[k * kWarp] = position.mask ? 1 : 0;
      const int channels = task.count * task.vectors;
      for (int c = 0; c < channels; ++c)
        cells.values[c * kColumn + k * kWarp] = valueAt<1>(position, c, channels).element[0];
    }
  }

  // Fills the rows of a recording without samples.
  __device__ __forceinline__ void fillEmpty() const {
    const auto fill = elementOf<Out>(task.fill_bits);
    const int channels = task.count * task.vectors;
#pragma unroll
    for (int k = 0; k < kQueries; ++k) {
      if (cells.has_mask) cells.mask[k * kWarp] = 0;
      for (int c = 0; c < channels; ++c) cells.values[c * kColumn + k * kWarp] = fill;
    }
  }

  __device__ __forceinline__ void fill(int32_t t, Time (&q)[kQueries]) const {
    if (samples.count == 0) return fillEmpty();
#pragma unroll
    for (Time& each : q) each = TimeMath<Time>::shifted(each, task.clock_offset);
    Position<Time> position[kQueries];
    const bool any_outside = findInside(t, q, position);
    if (cells.has_mask) {  // every position found inside is valid
#pragma unroll
      for (int k = 0; k < kQueries; ++k) cells.mask[k * kWarp] = position[k].index >= 0 ? 1 : 0;
    }
    if (task.count == 1) {
      writeValues<1>(position);
    } else {
      writeValues<2>(position);
    }
    if (any_outside) answerOutside(t);
  }
};

// The part of a tile that a thread writes: vectors of some columns, in every `rows`-th row.
template <class Element>
struct Column {
  const Element* tile;
  char* out;  // the recording's first query
  int32_t step;
  int row;
  int rows;

  // Vectors of `count` elements, `vectors` of them per row.
  template <class Byte>
  __device__ __forceinline__ Column(const Element* block_tile, const FastDivmod& vectors, int count,
                                    const BatchRows<Byte, int32_t>& all, int32_t b) {
    const auto thread = static_cast<int>(threadIdx.x);
    rows = vectors(static_cast<int>(blockDim.x));
    row = vectors(thread);
    const int column = (thread - row * static_cast<int>(vectors.divisor)) * count;
    if (row >= rows) row = kTile;  // too few threads are left for another row
    tile = block_tile + column * kColumn;
    out = reinterpret_cast<char*>(
        stepped(steppedFar(all.data, b, all.batch_step), column, int32_t{sizeof(Element)}));
    step = all.step;
  }

  // Writes the first `count` rows, which are the queries from `first` on.
  template <int kCount>
  __device__ __forceinline__ void write(int32_t first, int count) const {
#pragma unroll 4
    for (int i = row; i < count; i += rows) {
      AlignedVec<Element, kCount> vec;
#pragma unroll
      for (int j = 0; j < kCount; ++j) vec.element[j] = tile[j * kColumn + i];
      store(stepped(out, first + i, step), vec);
    }
  }
};

template <class In, class Out, class Time>
__global__ void __launch_bounds__(kMostThreads<Time>, kBlocksWanted)
    fuseNarrowKernel(const __grid_constant__ Launch<Time> launch) {
  extern __shared__ __align__(kWordBytes) char shared[];
  const auto unit = static_cast<int32_t>(blockIdx.x);
  const int32_t part = launch.groups(unit);
  const Group& group = launch.group[unit - part * static_cast<int32_t>(launch.groups.divisor)];
  const int32_t b = launch.parts(part);
  const int32_t begin = (part - b * static_cast<int32_t>(launch.parts.divisor)) * launch.part;
  const int32_t end = min(begin + launch.part, launch.most);
  const int member = ofWarp(static_cast<int>(threadIdx.x / kWarp));
  const bool has_stream = member < static_cast<int>(group.members.divisor);
  const bool has_mask = group.mask.data != nullptr;
  const Task<Time>& task = launch.tasks[group.first + (has_stream ? member : 0)];
  auto* const values_tile = reinterpret_cast<Out*>(shared);
  auto* const mask_tile = reinterpret_cast<uint8_t*>(shared + group.mask_at);
  const int lane = laneOf();
  const Column<Out> column(values_tile, group.vectors, group.count, group.out, b);
  waitForLaunchesAhead();

  Samples<In, Time> samples = {};
  Queries<Time> queries = {reinterpret_cast<const Time*>(launch.queries.times.at(b, 0)), end};
  Time q[kQueries];
  if (has_stream) {
    samples = copySamples<In>(task, b, shared);
    if (launch.queries.lengths.data != nullptr)
      queries.end = static_cast<int32_t>(clampIndex(launch.queries.lengths[b], 0, end));
    queries.read(begin + lane, q);
    __pipeline_wait_prior(0);
    __syncwarp();
  }
  letNextLaunchBegin();
  const Cells<Out> cells = {values_tile + task.column * kColumn + lane,
                            mask_tile + member * kColumn + lane, has_mask};
  const TilePart<In, Out, Time> tile_part = {task, samples, queries, cells};
  for (int32_t first = begin; first < end; first += kTile) {
    if (has_stream) {
      tile_part.fill(first + lane, q);
      queries.read(first + kTile + lane, q);
    }
    __syncthreads();
    const int count = min(end - first, kTile);
    if (group.count == 1) {
      column.template write<1>(first, count);
    } else {
      column.template write<kWordBytes / sizeof(Out)>(first, count);
    }
    if (has_mask) {
      Column<uint8_t>(mask_tile, group.members, 1, group.mask, b).template write<1>(first, count);
    }
    __syncthreads();
  }
}

}  // namespace narrow_streams

}  // namespace rbc::cuda
