// What window_run.cpp fetches of a panel: gathered rows, or interpolated ones.
#pragma once

#include <algorithm>
#include <new>

#include "element_of.h"
#include "real.h"
#include "windows/window_run.h"

namespace rbc::cpu {

// A NaN that no number is written as, since narrow() has one alone: what an interpolated channel has
// where there is no value.
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

// With the bits of rbcResample, since it is what computes them. Of the first channels also whether
// elements are valid.
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
    p.mask = memory_.mask;
    p.mask_stride[1] = 1;
    p.out_stride[2] = out.stride[2];
    p.out_dtype = out.dtype;
    p.angle_dtype = s_.angle_dtype;
    p.time_dtype = p_.time_dtype;
    p.num_streams = 1;
    p.num_segments = p_.num_methods;
    p.streams = &s;
    p.segments = p_.methods;
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
    s.bounds = s_.pad == WindowPad::kFill ? Bounds::kFill : Bounds::kHold;
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
  // A quaternion that the panel has a part of is fetched whole.
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
    if (valid_[i] && begin == 0) continue;  // the mask knows of the first channels' quaternions
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

}  // namespace rbc::cpu
