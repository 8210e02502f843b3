// One stream's part in windows: for a tile of a window's offsets first the rows are found, then panels
// of channels are fetched, transformed and finished.
#pragma once

#include "fuse/stream_run.h"
#include "interrupt.h"
#include "runtime/thread_pool.h"
#include "window_transforms.h"
#include "windows/finish_rows.h"
#include "windows/panels.h"
#include "windows/pose_rows.h"
#include "windows/stream_constants.h"

namespace rbc::cpu {

struct WindowPlan {
  const WindowProblem& problem;
  SimdLevel simd;
  const StreamConstants* constants;  // of each stream
  Interrupt& interrupt;
};

inline constexpr int kTileRows = kMaxRows;
inline constexpr int64_t kTileElements = 2048;

// Of one thread.
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
  // Interpolation takes a window's tile as a batch of its own.
  Time queries[kTileRows];
  uint8_t mask[kTileRows];
  int64_t ends[2];
  FuseStream fuse_stream;
  FuseProblem fuse;
  alignas(Plan) std::byte fuse_plan[sizeof(Plan)];
  union {
    RowBuffers buffers;
    alignas(StreamRun<Time>) std::byte interpolation[sizeof(StreamRun<Time>)];
  };
};

// Number is what the stream's transforms and normalization compute in.
template <class Time, class Number>
class WindowRun {
 public:
  WindowRun(const WindowPlan& plan, int32_t stream, ThreadMemory& memory);

  // Offsets o_begin .. o_end - 1 of a window: all of them, unless canBeCut(). Returns false if the
  // call is interrupted meanwhile.
  bool run(int64_t window, int64_t o_begin, int64_t o_end);

 private:
  using Memory = WindowMemory<Time>;

  // Some offsets of a window.
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
  // The first channels of memory_.tasks' sources to where these tell.
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

  // A row of the tile has no value in some channels of the panel, counted from its first of out.
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
  bool needs_values_;  // out, or which elements are valid, depends on them
  int tile_rows_;
  int64_t interpolated_ = -1;  // the first channel that memory_.interpolation is made for
  // Of the window.
  int64_t window_ = 0;
  WindowAnchor<Time> anchor_ = {};
  WindowStand<Time> stand_ = {};
  bool all_valid_ = true;
  // Of the tile.
  bool valid_[kTileRows];
  bool after_[kTileRows];
  bool has_value_[kTileRows];  // in all channels
  bool any_after_ = false;
  // Of the panel.
  bool any_invalid_ = false;      // memory_.invalid is in use
  bool has_reference_ = false;    // memory_.reference is
  const Number* rows_ = nullptr;  // null: they are still in the stream's memory
  int64_t rows_step_ = 0;
};

// Whether the offsets of a window may be taken by several threads: they know nothing of each other.
bool canBeCut(const WindowProblem& problem, const WindowStream& stream);

}  // namespace rbc::cpu
