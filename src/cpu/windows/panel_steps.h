// The steps of a panel of channels: its samples are fetched, transformed, and written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "element_of.h"
#include "real.h"
#include "visit_dtype.h"
#include "windows/window_run.h"

namespace rbc::cpu {

// ---- Fetching a panel for window_run.cpp: gathered rows, or interpolated ones.

// A NaN that no number is written as, since narrow() has only one: marks an interpolated channel
// without a value.
inline uint64_t noValue(float) { return 0xffdead01u; }
inline uint64_t noValue(double) { return 0xffffdead00000001u; }
inline bool isNoValue(float x) { return bitCast<uint32_t>(x) == noValue(x); }
inline bool isNoValue(double x) { return bitCast<uint64_t>(x) == noValue(x); }

template <class Number>
constexpr DType kDTypeOf = sizeof(Number) == sizeof(double) ? DType::F64 : DType::F32;

template <class Time, class Number>
bool WindowRun<Time, Number>::inPlace(const Panel& panel) const {
  return !panel.has_poses && isFloat(s_.values_dtype) &&
         computesInDouble(s_.values_dtype) == (sizeof(Number) == sizeof(double)) &&
         (s_.values_stride[1] == 1 || panel.in_count == 1);
}

template <class Time, class Number>
void WindowRun<Time, Number>::copyRows(const Tile& tile, int64_t channels, DType out,
                                       int64_t out_stride, uint64_t fill_bits) {
  RowTile rows = {};
  rows.rows = memory_.tasks;
  rows.count = rows.known = tile.count;
  rows.ahead = rowsAhead(channels * in_size_);
  rows.method = Method::kNearest;
  rows.in = s_.values_dtype;
  rows.out = out;
  rows.channels = channels;
  rows.in_stride = s_.values_stride[1];
  rows.out_stride = out_stride;
  rows.fill_bits = fill_bits;
  rows.buffers = &memory_.buffers;
  const bool contiguous = channels == 1 || (rows.in_stride == 1 && out_stride == 1);
  rowsOf(plan_.simd, {rows.in, rows.out, rows.method, false, channels, contiguous})(rows);
}

template <class Time, class Number>
void WindowRun<Time, Number>::fetchGathered(const Tile& tile) {
  const Panel& panel = memory_.panel;
  auto* to = reinterpret_cast<Number*>(memory_.fetched);
  const int64_t first = panel.in_begin * s_.values_stride[1] * in_size_;
  for (int i = 0; i < tile.count; ++i) {
    const std::byte* source = memory_.sources[i];
    if (source != nullptr) source += first;
    memory_.tasks[i] = {source, source, reinterpret_cast<std::byte*>(to + i * panel.in_count), 0};
  }
  copyRows(tile, panel.in_count, kDTypeOf<Number>, 1, 0);
  rows_ = to;
  rows_step_ = panel.in_count;
}

// Has the bits of rbcResample, since it uses the same code. For the first channels, also finds
// whether elements are valid.
template <class Time, class Number>
void WindowRun<Time, Number>::interpolate(const Tile& tile, const ChannelRange& channels,
                                          const Output<3>& out, uint64_t fill_bits) {
  FuseProblem& p = memory_.fuse;
  FuseStream& s = memory_.fuse_stream;
  auto* run = reinterpret_cast<StreamRun<Time>*>(memory_.interpolation);
  if (interpolated_ != channels.begin) {
    p = {};
    p.batch = 1;
    p.query_times = memory_.queries;
    p.query_stride[1] = 1;
    p.valid = memory_.mask;
    p.valid_stride[1] = 1;
    p.out_stride[2] = out.stride[2];
    p.out_dtype = out.dtype;
    p.angle_dtype = s_.angle_dtype;
    p.time_dtype = p_.time_dtype;
    p.num_streams = 1;
    p.num_segments = p_.num_methods;
    p.streams = &s;
    p.segments = p_.methods;
    if (p_.causal != nullptr) {
      const CausalWindows& causal = *p_.causal;
      memory_.causal = {causal.lag, causal.arrivals + number_, causal.ages,
                        causal.lines != nullptr ? causal.lines + number_ : nullptr};
      p.causal = &memory_.causal;
    }
    s = {};
    s.samples = s_.rows;
    s.channels = s_.channels;
    s.values = s_.values;
    s.times = s_.times;
    std::copy_n(s_.values_stride, 2, s.values_stride + 1);
    s.times_stride[1] = s_.times_stride;
    s.offsets = {memory_.ends, 1, true};
    s.sample_mask = s_.sample_mask;
    s.sample_mask_stride[1] = s_.sample_mask_stride;
    s.max_gap = s_.max_gap;
    s.tolerance = s_.tolerance;
    s.clock_offset = s_.clock_offset;
    s.out_begin = -channels.begin;
    s.first_segment = s_.first_method;
    s.num_segments = s_.num_methods;
    s.values_dtype = s_.values_dtype;
    s.outside = s_.outside == Outside::kFill ? Outside::kFill : Outside::kHold;
    s.fill_bits = fill_bits;
    const auto* fuse_plan =
        new (memory_.fuse_plan) Plan{p, plan_.simd, int64_t{sizeOf(out.dtype)}, false};
    run = new (memory_.interpolation) StreamRun<Time>(*fuse_plan, 0, channels);
    interpolated_ = channels.begin;
  }
  p.queries = tile.count;
  p.out = out.data;
  p.out_stride[1] = out.stride[1];
  memory_.ends[0] = stand_.rows.begin;
  memory_.ends[1] = stand_.rows.begin + stand_.rows.count;
  const auto* offsets = static_cast<const Time*>(s_.offsets.data);
  for (int i = 0; i < tile.count; ++i) {
    memory_.queries[i] =
        TimeMath<Time>::later(stand_.time, offsets[(tile.first + i) * s_.offsets.stride]);
  }
  run->run(0, tile.count);
  if (channels.begin != 0) return;
  const WindowSamples<Time> samples = samplesOf<Time>(s_, stand_.rows);
  for (int i = 0; i < tile.count; ++i) {
    valid_[i] = memory_.mask[i] != 0;
    has_value_[i] = true;
    const Time query = TimeMath<Time>::shifted(memory_.queries[i], offsetAs<Time>(s_.clock_offset));
    after_[i] = !valid_[i] && isAfter(samples, query);
    any_after_ |= after_[i];
  }
}

template <class Time, class Number>
void WindowRun<Time, Number>::fetchInterpolated(const Tile& tile) {
  const Panel& panel = memory_.panel;
  // A quaternion that is partly in the panel is fetched whole.
  const auto cut = [&](int64_t channel) {
    const ChannelSegment& m = methodOf(p_, s_, channel);
    return m.method == Method::kSlerp ? (channel - m.begin) % 4 : 0;
  };
  const int64_t end = panel.in_begin + panel.in_count;
  const int64_t begin = panel.in_begin - cut(panel.in_begin);
  rows_step_ = end + 3 - begin;
  auto* to = reinterpret_cast<Number*>(memory_.fetched);
  interpolate(tile, {begin, end}, {to, {0, rows_step_, 1}, kDTypeOf<Number>}, noValue(Number()));
  rows_ = to + (panel.in_begin - begin);

  for (int i = 0; i < tile.count; ++i) {
    if (valid_[i] && begin == 0) continue;  // the mask has these quaternions already
    const Number* row = rows_ + i * rows_step_;
    int64_t from = 0;
    int64_t at = 0;
    for (int k = 0; k < panel.num_pieces; ++k) {
      const Piece& piece = panel.pieces[k];
      for (int64_t c = 0; c < piece.count; ++c) {
        if (!isNoValue(row[from + c])) continue;
        if (piece.segment->isPose()) {
          setInvalid(i, at, piece.outCount());
        } else {
          setInvalid(i, at + c, 1);
        }
      }
      from += piece.count;
      at += piece.outCount();
    }
  }
}

// ---- Transforming a panel for window_run.cpp: the references of its transforms, and the
//   transforms.

// Reads `count` channels that are computed in Number, or in a narrower type that converts exactly.
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
    const auto reference = referenceElement<Clock>(p_, segment, window_, anchor_);
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
    const bool found = fetchChannels(
        p_, p_.streams[segment.reference_stream],
        referenceElement<Clock>(p_, segment, window_, anchor_), segment.reference_begin,
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
  // If the preceding element is padding, a step still begins at the row that would be held.
  const bool begins =
      segment.kind == WindowKind::kStep && !segment.inverse && s_.outside == Outside::kFill;
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

// ---- Writing a panel to out for window_run.cpp: normalized, and neutral or filled where
//   necessary.

inline void moveElements(const std::byte* from, std::byte* to, int size, int64_t to_stride,
                         int64_t count) {
  visitWord(size, [&](auto tag) {
    using Word = typename decltype(tag)::type;
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(to + i * to_stride * size, from + i * size, sizeof(Word));
    }
  });
}

template <class Time, class Number>
void WindowRun<Time, Number>::finish(const Tile& tile) {
  const Panel& panel = memory_.panel;
  const bool fetched = rows_ != nullptr;
  FinishTile<Number> rows = {};
  const std::byte* sources[kTileRows];
  for (int i = 0; i < tile.count; ++i) {
    const bool has_row = s_.interpolates || memory_.sources[i] != nullptr;
    sources[i] = !has_row  ? nullptr
                 : fetched ? reinterpret_cast<const std::byte*>(rows_ + i * rows_step_)
                           : memory_.sources[i] + panel.in_begin * s_.values_stride[1] * in_size_;
  }
  rows.rows = sources;
  if (has_reference_) rows.reference = reinterpret_cast<const Number*>(memory_.reference);
  const StreamConstants& constants = plan_.constants[number_];
  rows.constants = constants.at<Number>(tile.first, panel.out_begin);
  rows.constants_step = constants.step;
  rows.divides = s_.divides;
  rows.count = tile.count;
  rows.channels = panel.out_count;
  rows.fill_bits = s_.fill_bits;
  const FinishFunction<Number> finish_rows = finishFunction<Number>(
      plan_.simd, fetched ? kDTypeOf<Number> : s_.values_dtype, s_.out.dtype);
  if (s_.out.stride[2] == 1 || panel.out_count == 1) {
    rows.out = outAt(tile.first, panel.out_begin);
    rows.out_step = s_.out.stride[1] * out_size_;
    finish_rows(rows);
    return;
  }
  const bool in_transformed = rows_ == reinterpret_cast<const Number*>(memory_.transformed);
  rows.out = reinterpret_cast<std::byte*>(in_transformed ? memory_.fetched : memory_.transformed);
  rows.out_step = panel.out_count * out_size_;
  finish_rows(rows);
  for (int i = 0; i < tile.count; ++i) {
    moveElements(rows.out + i * rows.out_step, outAt(tile.first + i, panel.out_begin),
                 static_cast<int>(out_size_), s_.out.stride[2], panel.out_count);
  }
}

template <class Time, class Number>
void WindowRun<Time, Number>::writeNeutral(const Tile& tile) {
  const Panel& panel = memory_.panel;
  for (int i = 0; i < tile.count; ++i) {
    if (!after_[i] || (!s_.interpolates && memory_.sources[i] == nullptr)) continue;
    const int64_t o = tile.first + i;
    for (int64_t d = panel.out_begin; d < panel.out_begin + panel.out_count; ++d) {
      if (!isNeutral(s_, d)) continue;
      if (!isFloat(s_.out.dtype)) {
        std::memset(outAt(o, d), 0, static_cast<size_t>(out_size_));
        continue;
      }
      const Number x = neutralAt<Number>(s_, o, d);
      visitFloat(s_.out.dtype, [&](auto tag) {
        const auto element = narrow<typename decltype(tag)::type>(x);
        std::memcpy(outAt(o, d), &element, sizeof element);
      });
    }
  }
}

template <class Time, class Number>
void WindowRun<Time, Number>::fillInvalid(const Tile& tile) {
  const Panel& panel = memory_.panel;
  for (int i = 0; i < tile.count; ++i) {
    if (has_value_[i]) continue;
    for (int64_t d = 0; d < panel.out_count; ++d) {
      if (memory_.invalid[i * panel.out_count + d] == 0) continue;
      std::memcpy(outAt(tile.first + i, panel.out_begin + d), &s_.fill_bits,
                  static_cast<size_t>(out_size_));
    }
  }
}

}  // namespace rbc::cpu
