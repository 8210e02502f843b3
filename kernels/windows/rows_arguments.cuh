// What is told of gathered streams whose rows are copied, subtracted from and normalized in vectors.
//
// Arguments come through the constant caches, which are cold when a kernel begins: what every unit reads
// stands close together, what few need behind it.
#pragma once

#include "runtime/fast_divmod.cuh"
#include "window_problem.h"

namespace rbc::cuda {
namespace windows {

inline constexpr int kWarp = 32;
inline constexpr int kMostElements = 4;  // of a vector
inline constexpr int kItems = 2;         // vectors that a lane has on their way at once

// Bodies of the kernel: how many neighbouring channels a lane takes at once, 4, 2 or 1, and how wide
// they are on either side. Which of the 16-bit floats they are is told when it runs.
inline constexpr int kNumRowsBodies = 12;
template <int kBody>
struct RowsBody {
  static constexpr bool kNarrowIn = (kBody & 1) != 0;
  static constexpr bool kNarrowOut = (kBody & 2) != 0;
  static constexpr int kCount = 4 >> (kBody / 4);
};
inline int rowsBody(bool narrow_in, bool narrow_out, int count) {
  return (count == 4 ? 0 : count == 2 ? 4 : 8) + (narrow_out ? 2 : 0) + (narrow_in ? 1 : 0);
}

// A factor of each channel; data may be null.
struct ChannelFactor {
  const void* data;  // f32 in aligned vectors, or f64
  bool is_64;
};

// Channels from which something is subtracted.
struct RowsReference {
  int64_t at;  // the first channel's number of the reference, times its stride
  int64_t stride;
  int32_t begin;
  int32_t end;
  int32_t stream;
  int32_t offset;  // the number of it
  bool inverse;    // it is added
};

struct RowsTask {
  int64_t first_unit;
  FastDivmod parts;  // units of a window
  int32_t chunks;    // of 32 vectors in a row; each a unit
  int32_t group;     // offsets of a unit
  int32_t vectors;   // of a row
  int32_t step;      // rows that a warp takes at a time
  int8_t body;
  int8_t count;  // channels of a vector
  WindowPad pad;
  bool by_time;  // where the window stands, the times tell
  bool normalizes;
  bool clips;
  bool offsets_are_64;
  DType in;
  DType out_dtype;
  int32_t first_reference;
  int32_t num_references;
  int32_t num_offsets;

  const char* values;
  const char* offsets;
  char* out;
  uint8_t* valid;
  const uint8_t* sample_mask;
  IndexArray episode_offsets;
  int64_t rows;  // fewer than 2^31
  int64_t window_step;
  int64_t valid_window_step;
  int64_t sample_mask_step;
  int32_t row_step;  // in bytes, as all steps
  int32_t offset_stride;
  int32_t out_step;
  int32_t valid_step;
  uint64_t fill_bits;

  ChannelFactor shift;
  ChannelFactor scale;
  ChannelFactor bias;
  ChannelFactor low;
  ChannelFactor high;
};

// What few need of a stream.
struct RowsExtra {
  const void* times;
  int64_t times_stride;
  TimeOffset clock_offset;
  RealGrid neutral;
  const uint8_t* neutral_channels;
  int64_t neutral_channels_stride;
};

// Of all streams.
struct RowsShared {
  int64_t windows;
  int64_t episodes;
  IndexArray episode_of;
  const void* anchors;
  int64_t anchors_stride;
  int32_t anchor_stream;
  bool anchors_are_times;
  DType time_dtype;
};

struct RowsLaunch {
  RowsShared shared;
  int64_t units;
  int32_t num_streams;
  RowsTask tasks[kMaxWindowStreams];
  RowsReference references[kMaxWindowTransforms];
  RowsExtra extras[kMaxWindowStreams];
};

}  // namespace windows
}  // namespace rbc::cuda
