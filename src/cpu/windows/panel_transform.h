// What window_run.cpp does to a panel: the references of its transforms, and the transforms.
#pragma once

#include <algorithm>
#include <cstring>

#include "element_of.h"
#include "real.h"
#include "windows/window_run.h"

namespace rbc::cpu {

// `count` channels that are computed in Number or, exactly, in less.
template <class Number>
void readChannels(const WindowStream& s, int64_t row, int64_t begin, int64_t count, Number* to) {
  const int64_t first = row * s.values_stride[0] + begin * s.values_stride[1];
  visitDType(s.values_dtype, [&](auto tag) {
    using In = typename decltype(tag)::type;
    if constexpr (sizeof(Compute<In>) <= sizeof(Number)) {
      const In* from = static_cast<const In*>(s.values) + first;
      for (int64_t i = 0; i < count; ++i) {
        to[i] = static_cast<Number>(widen(from[i * s.values_stride[1]]));
      }
    }
  });
}

template <class Time, class Number>
void WindowRun<Time, Number>::setInvalid(int row, int64_t begin, int64_t count) {
  const int64_t channels = memory_.panel.out_count;
  if (!any_invalid_) std::memset(memory_.invalid, 0, static_cast<size_t>(tile_rows_ * channels));
  any_invalid_ = true;
  std::memset(memory_.invalid + row * channels + begin, 1, static_cast<size_t>(count));
  has_value_[row] = false;
}

template <class Time, class Number>
void WindowRun<Time, Number>::takeReferences(const Tile& tile) {
  const Panel& panel = memory_.panel;
  auto* to = reinterpret_cast<Number*>(memory_.reference);
  for (int k = 0; k < panel.num_pieces; ++k) {
    has_reference_ |= panel.pieces[k].segment->kind == WindowKind::kSubtract;
  }
  if (!has_reference_) return;
  int64_t at = 0;
  for (int k = 0; k < panel.num_pieces; ++k) {
    const Piece& piece = panel.pieces[k];
    const WindowSegment& segment = *piece.segment;
    Number* values = to + at;
    at += piece.outCount();
    std::fill_n(values, piece.outCount(), Number(0));
    if (segment.kind != WindowKind::kSubtract) continue;
    const WindowElement<Time> reference = referenceElement(p_, segment, window_, anchor_);
    const WindowStream& stream = p_.streams[segment.reference_stream];
    if (!stream.interpolates && reference.gathered.row >= 0) {
      readChannels(stream, reference.gathered.row, segment.reference_begin + piece.begin,
                   piece.count, values);
    } else {
      for (int64_t i = 0; i < piece.count; ++i) {
        if (fetchReference(p_, segment, reference, piece.begin + i, values + i)) continue;
        for (int row = 0; row < tile.count; ++row) {
          setInvalid(row, piece.outBegin() - panel.out_begin + i, 1);
        }
      }
    }
    if (!segment.inverse) continue;
    for (int64_t i = 0; i < piece.count; ++i) values[i] = -values[i];
  }
}

template <class Time, class Number>
void WindowRun<Time, Number>::beginPoses() {
  int32_t pose = 0;
  for (int32_t i = s_.first_segment; i < s_.first_segment + s_.num_segments; ++i) {
    const WindowSegment& segment = p_.segments[i];
    if (!segment.isPose()) continue;
    double values[kMaxPoseChannels];
    const bool found =
        fetchChannels(p_, p_.streams[segment.reference_stream],
                      referenceElement(p_, segment, window_, anchor_), segment.reference_begin,
                      kPositionChannels + channelsOf(segment.reference_rotation.kind), values);
    poseFunctions(plan_.simd, segment)
        .begin(segment, found ? values : nullptr, memory_.poses + pose);
    ++pose;
  }
}

template <class Time, class Number>
void WindowRun<Time, Number>::transform(const Tile& tile) {
  const Panel& panel = memory_.panel;
  auto* to = reinterpret_cast<Number*>(memory_.transformed);
  int64_t from = 0;
  int64_t at = 0;
  for (int k = 0; k < panel.num_pieces; ++k) {
    const Piece& piece = panel.pieces[k];
    if (piece.segment->isPose()) {
      transformPose(tile, piece, from, at);
    } else {
      for (int i = 0; i < tile.count; ++i) {
        std::copy_n(rows_ + i * rows_step_ + from, piece.count, to + i * panel.out_count + at);
      }
    }
    from += piece.count;
    at += piece.outCount();
  }
  rows_ = to;
  rows_step_ = panel.out_count;
}

template <class Time, class Number>
void WindowRun<Time, Number>::transformPose(const Tile& tile, const Piece& piece, int64_t from,
                                            int64_t to) {
  const Panel& panel = memory_.panel;
  const WindowSegment& segment = *piece.segment;
  bool held[kTileRows];
  bool own[kTileRows];
  // Where the element before is padded, a step still begins at the row that would be held.
  const bool begins =
      segment.kind == WindowKind::kStep && !segment.inverse && s_.pad == WindowPad::kFill;
  for (int i = 0; i < tile.count; ++i) {
    own[i] = (s_.interpolates || memory_.sources[i] != nullptr) &&
             (!any_invalid_ || memory_.invalid[i * panel.out_count + to] == 0);
    held[i] = own[i];
    double* in = memory_.pose_in + i * kMaxPoseChannels;
    if (own[i]) {
      for (int64_t c = 0; c < piece.count; ++c) {
        in[c] = static_cast<double>(rows_[i * rows_step_ + from + c]);
      }
    } else if (begins) {
      held[i] = fetchChannels(p_, s_, elementAt(s_, stand_, tile.first + i, true), segment.begin,
                              static_cast<int>(segment.count), in);
    }
  }
  poseFunctions(plan_.simd, segment)
      .run(segment, {memory_.pose_in, held, own, memory_.pose_out, tile.count},
           memory_.poses + piece.pose);
  auto* out = reinterpret_cast<Number*>(memory_.transformed);
  for (int i = 0; i < tile.count; ++i) {
    if (!own[i]) {
      setInvalid(i, to, piece.outCount());
      continue;
    }
    for (int64_t c = 0; c < piece.outCount(); ++c) {
      out[i * panel.out_count + to + c] =
          static_cast<Number>(memory_.pose_out[i * kMaxPoseChannels + c]);
    }
  }
}

}  // namespace rbc::cpu
