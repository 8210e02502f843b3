// A stream's channels in panels: few enough for a thread's memory. No pose is cut.
#pragma once

#include <algorithm>

#include "window_problem.h"

namespace rbc::cpu {

inline constexpr int64_t kPanelChannels = 256;

// Channels of a segment: `count` from the begin-th of it on.
struct Piece {
  const WindowSegment* segment;
  int32_t pose;  // its number among the stream's poses
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

// The next one; false if there is none.
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

}  // namespace rbc::cpu
