// The arguments for streams whose rows are copied, subtracted from and normalized in vectors.
//
// Arguments come through the constant caches, which are cold when a kernel begins: fields that
// every unit reads are close together, the others follow.
#pragma once

#include "runtime/fast_divmod.h"
#include "window_problem.h"

namespace rbc::cuda {
namespace windows {

inline constexpr int kWarp = 32;
inline constexpr int kItems = 4;     // vectors that a lane has in flight at once
inline constexpr int kRowWarps = 4;  // per block

// They are part of the launch: calls with more use the kernel of any windows.
inline constexpr int kMaxRowsTasks = 16;
inline constexpr int kMaxRowsReferences = 32;
inline constexpr int kMaxRowsPoses = 8;

// The operation of a body on the rows.
enum class RowsKind : uint8_t {
  kCopy,
  kLine,        // interpolates between two rows; also steps and angles
  kQuaternion,  // the same on the sphere; an element is a vector
};

// Bodies of the kernel: the dtypes of values and out, and the number of adjacent channels that a
// lane processes at once. Vectors of 8 are neither clipped nor subtracted from, to save registers.
struct RowsBody {
  RowsKind kind;
  DType in;
  DType out;
  int count;
};
#define RBC_ROWS_OF(X, kind, count) \
  X(kind, F32, F32, count)          \
  X(kind, F32, BF16, count)         \
  X(kind, BF16, BF16, count)        \
  X(kind, BF16, F32, count)
#define RBC_HALF_ROWS_OF(X, kind, count) \
  X(kind, F32, F16, count)               \
  X(kind, F16, F32, count)               \
  X(kind, F16, F16, count)
#define RBC_ROWS_BODIES(X)       \
  X(kCopy, BF16, BF16, 8)        \
  RBC_ROWS_OF(X, kCopy, 4)       \
  RBC_ROWS_OF(X, kCopy, 2)       \
  RBC_ROWS_OF(X, kCopy, 1)       \
  RBC_ROWS_OF(X, kLine, 2)       \
  RBC_ROWS_OF(X, kLine, 1)       \
  RBC_ROWS_OF(X, kQuaternion, 4) \
  X(kCopy, F16, F16, 8)          \
  RBC_HALF_ROWS_OF(X, kCopy, 4)  \
  RBC_HALF_ROWS_OF(X, kCopy, 2)  \
  RBC_HALF_ROWS_OF(X, kCopy, 1)
inline constexpr RowsBody kRowsBodies[] = {
#define RBC_BODY(kind, in, out, count) {RowsKind::kind, DType::in, DType::out, count},
    RBC_ROWS_BODIES(RBC_BODY)
#undef RBC_BODY
};

constexpr int rowsBodyOf(RowsKind kind, DType in, DType out, int count) {
  int i = 0;
  for (const RowsBody& body : kRowsBodies) {
    if (body.kind == kind && body.in == in && body.out == out && body.count == count) return i;
    ++i;
  }
  return -1;
}
template <RowsKind kKind, DType kIn, DType kOut, int kCount>
inline constexpr int kBodyOf = rowsBodyOf(kKind, kIn, kOut, kCount);
// For a task with the poses of a stream: any dtypes.
inline constexpr int kPosesBody = -1;

// Bits of RowsTask::flags.
inline constexpr uint32_t kNormalizes = 1;
inline constexpr uint32_t kClips = 2;
inline constexpr uint32_t kSubtracts = 4;
inline constexpr uint32_t kFills = 8;           // the pad is fill
inline constexpr uint32_t kNeutral = 16;        // the pad is neutral
inline constexpr uint32_t kByTime = 32;         // the window is located by the times
inline constexpr uint32_t kHasMask = 64;        // samples may be missing
inline constexpr uint32_t kWideOffsets = 128;   // offsets are i64
inline constexpr uint32_t kWideEpisodes = 256;  // episode_offsets are i64
inline constexpr uint32_t kInterpolates = 512;
inline constexpr uint32_t kAngles = 1024;   // by the shorter way around
inline constexpr uint32_t kDivides = 2048;  // by the scale

// Adjacent channels of a stream.
struct RowsTask {
  FastDivmod chunks;   // per row, of `width` vectors; each is a unit
  FastDivmod parts;    // per window, if units do not extend to the next window; else 1
  FastDivmod offsets;  // per window
  uint32_t flags;
  int32_t body;
  uint32_t per_width;  // 2^16 / width, rounded up
  int32_t group;       // rows per unit
  int32_t all_rows;    // of all windows
  int32_t vectors;     // per row
  int32_t width;       // vectors of a row that a warp processes
  int32_t step;        // rows that a warp processes at a time
  int32_t row_step;    // in bytes, like all steps
  int32_t offset_step;
  int32_t out_step;
  int32_t rows;
  int32_t episode_step;
  int32_t valid_step;
  const char* values;
  const char* offset_of;
  const char* episode_offsets;
  char* out;
  int64_t window_step;
  uint8_t* valid;
  int64_t valid_window_step;

  // A factor per channel, f32 in aligned vectors or f64; data may be null.
  const void* shift;
  const void* scale;
  const void* bias;
  const void* low;
  const void* high;
  uint32_t wide_factors;  // a bit for each factor that is f64, in order
};

// Fields of a task that few need.
struct RowsExtra {
  const uint8_t* sample_mask;
  int64_t sample_mask_step;
  const void* times;
  int64_t times_stride;
  TimeOffset clock_offset;
  TimeLimit max_gap;
  TimeLimit tolerance;
  RealGrid neutral;
  const uint8_t* neutral_channels;
  int64_t neutral_channels_stride;
  uint64_t fill_bits;
  Method method;
  Outside outside;
  DType in;
  DType out;
  int32_t out_size;
  int32_t count;        // channels per vector; 0: nothing is written
  int32_t channel;      // first channel
  int32_t out_channel;  // first channel of out
  int32_t first_reference;
  int32_t num_references;
  int32_t first_pose;
  int32_t num_poses;
};

// Channels with a reference to subtract.
struct RowsReference {
  int64_t at;  // offset in the reference task's values: its first channel times the stride
  int64_t stride;
  int32_t begin;
  int32_t end;
  int32_t task;    // task of the reference
  int32_t offset;  // its offset
  bool inverse;    // it is added instead
};

struct RowsPose {
  WindowSegment segment;
  int32_t task;  // task of the reference
  int64_t stride;
  int64_t reference_stride;
};

struct RowsLaunch {
  int32_t units;
  int32_t num_tasks;
  int32_t first_unit[kMaxRowsTasks];
  const char* episode_of;
  const char* anchors;
  int64_t episodes;
  int32_t episode_step;
  int32_t anchor_step;
  bool wide_episodes;
  bool anchors_are_times;
  DType time_dtype;
  int32_t anchor_task;
  RowsTask tasks[kMaxRowsTasks];
  RowsReference references[kMaxRowsReferences];
  RowsExtra extras[kMaxRowsTasks];
  RowsPose poses[kMaxRowsPoses];
};

}  // namespace windows
}  // namespace rbc::cuda
