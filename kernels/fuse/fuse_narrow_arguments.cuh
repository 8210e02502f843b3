// What the kernel of narrow streams is told.
#pragma once

#include "fuse/copy_row.cuh"
#include "fuse/find_sample.cuh"
#include "fuse/fuse_rows_instances.h"
#include "runtime/fast_divmod.cuh"

namespace rbc::cuda {
namespace narrow_streams {

inline constexpr int kWarp = 32;
inline constexpr int kQueries = 4;   // that a thread does at a time
inline constexpr int kChannels = 2;  // of a stream, at most

// Blocks that must fit on a multiprocessor, so that one copies while the other searches, and the
// most warps of a block. Times of 8 bytes take more registers.
inline constexpr int kBlocksWanted = 2;
constexpr int mostWarps(int time_bytes) { return time_bytes > 4 ? 12 : 16; }
template <class Time>
inline constexpr int kMostThreads = mostWarps(sizeof(Time)) * kWarp;

// Of dtypes there are those of training, the first ones.
inline constexpr int kNumPairs = 5;
static_assert(rows::kDTypePairs[kNumPairs - 1].least == rows::DTypes::kTraining &&
              rows::kDTypePairs[kNumPairs].least != rows::DTypes::kTraining);

// Queries that a warp does at a time, and elements of a column of a block's tile: the threads of a
// warp that write some rows of it then read in different banks.
inline constexpr int kTile = kWarp * kQueries;
inline constexpr int kColumn = kTile + 4;

// Neighbouring streams, a warp each.
struct Group {
  BatchRows<char, int32_t> out;  // from their first channel on
  BatchRows<uint8_t, int32_t> mask;
  FastDivmod vectors;  // of a row of out
  FastDivmod members;
  int32_t count;    // columns of a vector: 1, or those of 16 bytes
  int32_t first;    // of the streams
  int32_t mask_at;  // of their tile, in bytes of shared memory; that of values is at 0
};

template <class Time>
struct Task {
  SampleRows<int32_t> samples;
  BatchRows<const char, int32_t> values;
  Rules<Time> rules;
  Time clock_offset;
  uint64_t fill_bits;
  int32_t count;     // channels of a vector: 1 or 2
  int32_t vectors;   // of a row
  int32_t column;    // of the group's, where its channels begin
  int32_t times_at;  // in bytes of shared memory
  int32_t values_at;
};

template <class Time>
struct Launch {
  QueryRows<int32_t> queries;
  int32_t most;      // queries of a recording
  int32_t part;      // of a block
  FastDivmod parts;  // of a recording
  FastDivmod groups;
  Group group[rows::kManyStreams];
  Task<Time> tasks[rows::kManyStreams];
};

}  // namespace narrow_streams
}  // namespace rbc::cuda
