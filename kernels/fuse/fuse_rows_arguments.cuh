// What a kernel of whole rows is told.
#pragma once

#include <type_traits>

#include "fuse/find_sample.cuh"
#include "fuse/fuse_rows_instances.h"
#include "runtime/fast_divmod.cuh"

namespace rbc::cuda {
namespace rows {

// Of a block.
inline constexpr int kThreads = 128;

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

template <class Time>
struct MaskedRowsTask : RowsTask<Time> {
  BatchRows<const uint8_t, int32_t> sample_mask;  // may be null
};

template <class Time, int kStreams, bool kMasked>
struct RowsLaunch {
  using Task = std::conditional_t<kMasked, MaskedRowsTask<Time>, RowsTask<Time>>;

  QueryRows<int32_t> queries;
  int32_t flat_end;       // queries of the batch
  FastDivmod per_row;     // queries
  FastDivmod turns;       // units of a turn
  FastDivmod per_stream;  // the same of a stream
  bool in_turns;          // more than one turn
  bool even;              // as many units of each stream
  Task tasks[kStreams];
};

}  // namespace rows
}  // namespace rbc::cuda
