// One stream's part in windows: finds the rows for a tile of a window's offsets, then fetches,
// transforms and finishes panels of channels.
#pragma once

#include <algorithm>
#include <cstddef>

#include "fuse/stream_run.h"
#include "interrupt.h"
#include "runtime/simd.h"
#include "scratch_layout.h"
#include "thread_pool.h"
#include "window_problem.h"
#include "window_transforms.h"
#include "windows/finish_rows.h"

namespace rbc::cpu {

// ---- Normalization and limits of a stream, once per call: by channel, in the compute type.

// Arrays [rows, channels]; null if not used.
struct StreamConstants {
  void* shift = nullptr;
  void* scale = nullptr;
  void* bias = nullptr;
  void* low = nullptr;
  void* high = nullptr;
  int64_t step = 0;  // from offset to offset: 0, or the number of channels

  // For offset o, starting at channel d.
  template <class Number>
  RowConstants<Number> at(int64_t o, int64_t d) const {
    const auto array = [&](const void* all) {
      return all != nullptr ? static_cast<const Number*>(all) + o * step + d : nullptr;
    };
    return {array(shift), array(scale), array(bias), array(low), array(high)};
  }
};

// ---- A stream's channels in panels: few enough for a thread's memory. Poses are not split.

inline constexpr int64_t kPanelChannels = 256;

// Channels of a segment: `count` channels, starting at its channel `begin`.
struct Piece {
  const WindowSegment* segment;
  int32_t pose;  // its index among the stream's poses
  int64_t begin;
  int64_t count;

  int64_t inBegin() const { return segment->begin + begin; }
  int64_t outBegin() const { return segment->out_begin + begin; }
  int64_t outCount() const { return segment->isPose() ? segment->out_count : count; }
};

struct Panel {
  static constexpr int kMaxPieces = static_cast<int>(kPanelChannels);

  Piece pieces[kMaxPieces];
  int num_pieces = 0;
  int64_t in_begin = 0;
  int64_t in_count = 0;
  int64_t out_begin = 0;
  int64_t out_count = 0;
  bool has_poses = false;
};

// Where the next panel begins.
struct PanelCursor {
  int32_t segment = 0;  // of the stream
  int64_t channel = 0;  // of the segment
  int32_t pose = 0;
};

// Finds the next panel; returns false if no panel is left.
inline bool nextPanel(const WindowProblem& p, const WindowStream& s, PanelCursor* cursor,
                      Panel* panel) {
  panel->num_pieces = 0;
  panel->in_count = panel->out_count = 0;
  panel->has_poses = false;
  while (cursor->segment < s.num_segments && panel->num_pieces < Panel::kMaxPieces) {
    const WindowSegment& segment = p.segments[s.first_segment + cursor->segment];
    const int64_t room = kPanelChannels - std::max(panel->in_count, panel->out_count);
    Piece piece = {&segment, cursor->pose, cursor->channel,
                   std::min(room, segment.count - cursor->channel)};
    if (segment.isPose()) {
      if (std::max(segment.count, segment.out_count) > room) break;
      piece.count = segment.count;
    }
    if (piece.count == 0) break;
    if (panel->num_pieces == 0) {
      panel->in_begin = piece.inBegin();
      panel->out_begin = piece.outBegin();
    }
    panel->pieces[panel->num_pieces++] = piece;
    panel->in_count += piece.count;
    panel->out_count += piece.outCount();
    panel->has_poses |= segment.isPose();
    cursor->channel += piece.count;
    if (cursor->channel < segment.count) continue;
    *cursor = {cursor->segment + 1, 0, cursor->pose + (segment.isPose() ? 1 : 0)};
  }
  return panel->num_pieces > 0;
}

// ---- Poses of consecutive elements of a window.

// The state of a segment between elements of a window.
struct PoseState {
  alignas(16) std::byte bytes[320];
};

// Elements of a segment, with kMaxPoseChannels numbers each.
struct PoseRows {
  const double* in;
  const bool* held;  // whether there are numbers, also of the element before a step
  bool* own;         // whether the element has a value, before and after the transform
  double* out;
  int count;
};

struct PoseFunctions {
  // Begins a window; `reference` may be null.
  void (*begin)(const WindowSegment& segment, const double* reference, PoseState* state);
  // Processes the next elements.
  void (*run)(const WindowSegment& segment, const PoseRows& rows, PoseState* state);
};

PoseFunctions poseFunctions(SimdLevel level, const WindowSegment& segment);

struct WindowPlan {
  const WindowProblem& problem;
  SimdLevel simd;
  const StreamConstants* constants;  // one per stream
  Interrupt& interrupt;
};

inline constexpr int kTileRows = kMaxRows;
inline constexpr int64_t kTileElements = 2048;

// Memory of one thread.
template <class Time>
struct WindowMemory {
  alignas(64) double fetched[kTileElements];
  alignas(64) double transformed[kTileElements];
  alignas(64) double reference[kPanelChannels];
  double pose_in[kTileRows * kMaxPoseChannels];
  double pose_out[kTileRows * kMaxPoseChannels];
  uint8_t invalid[kTileElements];
  const std::byte* sources[kTileRows];
  RowTask tasks[kTileRows];
  Panel panel;
  PoseState poses[kMaxWindowTransforms];
  // Interpolation treats a window's tile as a separate batch.
  Time queries[kTileRows];
  uint8_t mask[kTileRows];
  int64_t ends[2];
  FuseStream fuse_stream;
  FuseProblem fuse;
  CausalFuse causal;
  alignas(Plan) std::byte fuse_plan[sizeof(Plan)];
  union {
    RowBuffers buffers;
    alignas(StreamRun<Time>) std::byte interpolation[sizeof(StreamRun<Time>)];
  };
};

// Number is the type that the stream's transforms and normalization compute in.
template <class Time, class Number>
class WindowRun {
 public:
  WindowRun(const WindowPlan& plan, int32_t stream, ThreadMemory& memory);

  // Offsets o_begin .. o_end - 1 of a window: all of them, unless canBeCut(). Returns false if the
  // call is interrupted meanwhile.
  bool run(int64_t window, int64_t o_begin, int64_t o_end);

 private:
  using Memory = WindowMemory<Time>;
  using Clock = Arriving<Time>;

  // A range of offsets of a window.
  struct Tile {
    int64_t first;
    int count;
  };

  void beginPoses();
  void runTile(const Tile& tile);
  void findRows(const Tile& tile);
  void writeNumbers(const Tile& tile);
  void writeDirectly(const Tile& tile);
  void writePanels(const Tile& tile);
  void writeMasks(const Tile& tile);

  bool inPlace(const Panel& panel) const;
  // Writes the first channels of memory_.tasks' sources to the tasks' destinations.
  void copyRows(const Tile& tile, int64_t channels, DType out, int64_t out_stride,
                uint64_t fill_bits);
  void fetchGathered(const Tile& tile);
  void fetchInterpolated(const Tile& tile);
  void interpolate(const Tile& tile, const ChannelRange& channels, const Output<3>& out,
                   uint64_t fill_bits);
  void takeReferences(const Tile& tile);
  void transform(const Tile& tile);
  void transformPose(const Tile& tile, const Piece& piece, int64_t from, int64_t to);
  void finish(const Tile& tile);
  void writeNeutral(const Tile& tile);
  void fillInvalid(const Tile& tile);

  // Marks that a row of the tile has no value in some channels of the panel; `begin` is relative to
  // the panel in out.
  void setInvalid(int row, int64_t begin, int64_t count);
  std::byte* outAt(int64_t o, int64_t d) const {
    return static_cast<std::byte*>(s_.out.data) +
           (window_ * s_.out.stride[0] + o * s_.out.stride[1] + d * s_.out.stride[2]) * out_size_;
  }

  const WindowPlan& plan_;
  const WindowProblem& p_;
  const WindowStream& s_;
  const int32_t number_;
  const int64_t in_size_;
  const int64_t out_size_;
  Memory& memory_;
  bool direct_;        // straight from values to out
  bool needs_values_;  // out, or the validity of elements, depends on them
  int tile_rows_;
  int64_t interpolated_ = -1;  // the first channel that memory_.interpolation was prepared for
  // Of the window.
  int64_t window_ = 0;
  WindowAnchor<Time> anchor_ = {};
  WindowStand<Clock> stand_ = {};
  bool all_valid_ = true;
  // Of the tile.
  bool valid_[kTileRows];
  bool after_[kTileRows];
  bool has_value_[kTileRows];  // in all channels
  bool any_after_ = false;
  // Of the panel.
  bool any_invalid_ = false;      // memory_.invalid is in use
  bool has_reference_ = false;    // memory_.reference is in use
  const Number* rows_ = nullptr;  // null: they are still in the stream's memory
  int64_t rows_step_ = 0;
};

// Whether several threads may process the offsets of a window: they are independent.
bool canBeCut(const WindowProblem& problem, const WindowStream& stream);

}  // namespace rbc::cpu
