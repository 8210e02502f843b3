// What the kernel of mixed streams is told.
#pragma once

#include "fuse/find_sample.cuh"
#include "runtime/fast_divmod.cuh"

namespace rbc::cuda {
namespace mixed_streams {

inline constexpr int kWarp = 32;
inline constexpr int kMostThreads = 512;  // of a block; a query each
// On a multiprocessor, so that one copies while the other searches.
inline constexpr int kBlocksWanted = 2;

// Streams of a launch, and segments of channels: a robot's. Arguments travel with it.
inline constexpr int kStreams = 16;
inline constexpr int kSegments = 32;

// Channels of a stream that share a method.
template <class Time>
struct Segment {
  Rules<Time> rules;
  int32_t begin;
  int32_t end;
};

template <class Time>
struct Task {
  SampleRows<int32_t> samples;
  BatchRows<const char, int32_t> values;
  BatchRows<char, int32_t> out;      // from the stream's first channel on
  BatchRows<uint8_t, int32_t> mask;  // its column; of no data: none is wanted
  RealArray mean;
  RealArray inv_std;
  Time clock_offset;
  uint64_t fill_bits;
  DType dtype;
  bool has_affine;
  int32_t size;  // of an element of values, in bytes
  int32_t channels;
  FastDivmod across;  // lanes of a row that is written
  int32_t first_segment;
  int32_t end_segment;
  // In bytes of shared memory; that of times is at 0.
  int32_t values_at;
  int32_t affine_at;
  int32_t tiles_at;
};

// Elements of a row of a tile: odd, so that a warp that writes a column writes to different banks.
RBC_HD int32_t pitchOf(int32_t channels) { return channels | 1; }

template <class Time>
struct Launch {
  QueryRows<int32_t> queries;
  int32_t most;       // queries of a recording
  int32_t part;       // of a block
  FastDivmod blocks;  // of a stream
  FastDivmod parts;   // of a recording
  Task<Time> tasks[kStreams];
  Segment<Time> segments[kSegments];
};

}  // namespace mixed_streams
}  // namespace rbc::cuda
