// Windows as plain numbers, after validation: the input of a backend.
#pragma once

#include "fuse_problem.h"
#include "output.h"
#include "rotation_kind.h"
#include "window.h"

namespace rbc {

inline constexpr int kMaxWindowStreams = 16;
inline constexpr int kMaxWindowTransforms = 64;
// Each transform, the copied channels before it, and the channels after the last transform of a
// stream.
inline constexpr int kMaxWindowSegments = 2 * kMaxWindowTransforms + kMaxWindowStreams;

// A caller's [D'] or [O,D'] array of f32 or f64; data may be null.
struct RealGrid {
  const void* data;
  int64_t stride[2];  // in elements, from offset to offset (0 for [D']) and from channel to channel
  bool is_64;

  // The element in the compute type.
  template <class Number>
  RBC_HD Number at(int64_t o, int64_t d) const {
    const int64_t i = o * stride[0] + d * stride[1];
    return is_64 ? static_cast<Number>(static_cast<const double*>(data)[i])
                 : static_cast<Number>(static_cast<const float*>(data)[i]);
  }
};

enum class WindowKind : uint8_t { kCopy, kSubtract, kRelative, kWorld, kStep };

// Neighbouring channels of a stream, and their transform. The segments of a stream contain each of
// its channels once, in order, and therefore each channel of its output.
struct WindowSegment {
  int64_t begin;
  int64_t count;
  int64_t out_begin;
  int64_t out_count;  // differs from `count` if a rotation changes its format
  // For subtract and poses.
  int64_t reference_begin;   // a channel of the reference's stream
  int32_t reference_stream;  // of the problem
  int32_t reference_offset;  // the index of one of its offsets
  WindowKind kind;
  bool inverse;
  // For poses: 3 channels of a position, then the channels of this format.
  RotationFormat rotation;
  RotationFormat reference_rotation;
  RotationFormat out_rotation;

  RBC_HD bool isPose() const { return kind >= WindowKind::kRelative; }
  // Whether it sums all steps so far.
  RBC_HD bool isSum() const { return kind == WindowKind::kStep && inverse; }
};

// The elements that an accumulator takes, among elements with a value in all channels.
enum class WindowRule : uint8_t {
  kAll,
  kValid,
  kWhole,  // elements of windows that are valid at every offset
};

struct WindowStream {
  // The rows of all episodes, in order.
  int64_t rows;
  int64_t channels;
  const void* values;        // null: `out` gets the row numbers as i64
  int64_t values_stride[2];  // in elements, as are all strides
  const void* times;         // null: no times
  int64_t times_stride;
  IndexArray episode_offsets;
  const uint8_t* sample_mask;  // 0: the row is missing; null: none is
  int64_t sample_mask_stride;

  // In rows; if the stream interpolates, times in the dtype of times.
  IndexArray offsets;
  int64_t num_offsets;

  RealGrid shift;
  RealGrid scale;
  RealGrid bias;
  RealGrid low;
  RealGrid high;
  RealGrid neutral;
  const uint8_t* neutral_channels;  // null: all are
  int64_t neutral_channels_stride;

  TimeLimit max_gap;
  TimeLimit tolerance;
  TimeOffset clock_offset;

  Output<3> out;  // window, offset, channel; data may be null
  int64_t out_channels;
  uint64_t fill_bits;  // the fill value as an element of out, in the low bytes
  uint8_t* valid;      // may be null
  int64_t valid_stride[2];
  uint8_t* counted;  // [windows, num_offsets], compact: by `rule`; null: no accumulator takes them
  WindowRule rule;

  int32_t first_segment;
  int32_t num_segments;  // 0 without values or channels
  int32_t first_method;
  int32_t num_methods;  // 0 unless it interpolates; then at least 1, as in FuseStream
  DType values_dtype;
  DType angle_dtype;  // FuseProblem's
  Outside outside;
  bool interpolates;
  bool divides;    // by `scale`, instead of multiplying
  bool in_double;  // the type that transforms and normalization compute in

  RBC_HD bool normalizes() const {
    return shift.data != nullptr || scale.data != nullptr || bias.data != nullptr;
  }
  RBC_HD bool clips() const { return low.data != nullptr || high.data != nullptr; }
};

// The arguments of every kernel.
struct PlainWindows {
  int64_t windows;
  int64_t episodes;  // at least 1
  IndexArray episode_of;
  // Rows of a stream, or times.
  const void* anchors;
  int64_t anchors_stride;
  int32_t anchor_stream;
  bool anchors_are_times;
  DType time_dtype;  // F32, F64 or I64; any of them if no stream has times

  // In the caller's memory: kernels get a copy.
  int32_t num_streams;
  int32_t num_segments;
  int32_t num_methods;
  const WindowStream* streams;
  const WindowSegment* segments;
  const ChannelSegment* methods;
};

// The fields that few problems have, as CausalFuse.
struct CausalWindows {
  TimeOffset lag;
  const Arrivals* arrivals;             // per stream; of one row
  const SegmentAge* ages;               // per method
  int64_t episodes = 0;                 // of the recording, also if the problem has a smaller one
  const ArrivalLines* lines = nullptr;  // per stream, set by a backend; null: without minima
};

struct WindowProblem : PlainWindows {
  const CausalWindows* causal;  // null: without arrivals, and no method looks back only
};

// ---- clocks -------------------------------------------------------------------------------------
//
// Functions take a clock: the type of times, or Arriving<Time>. With the latter, rows may not have
// arrived and methods may look back only, which the kernels of all other problems need no code for.

template <class T>
struct Arriving {};

template <class Clock>
struct ClockOf {
  using Time = Clock;
  using Problem = PlainWindows;
  static constexpr bool kArrives = false;
};
template <class T>
struct ClockOf<Arriving<T>> {
  using Time = T;
  using Problem = WindowProblem;
  static constexpr bool kArrives = true;
};
template <class Clock>
using TimeOn = typename ClockOf<Clock>::Time;
template <class Clock>
using WindowsOn = typename ClockOf<Clock>::Problem;

// ---- the place of a window ----------------------------------------------------------------------

RBC_HD RowRange rowsOfEpisode(const PlainWindows& p, const WindowStream& s, int64_t window) {
  const int64_t e = clampIndex(p.episode_of[window], 0, p.episodes - 1);
  return rangeOf({}, s.episode_offsets, s.rows, e);
}

template <class Time>
RBC_HD TimeRow<Time> timesFrom(const WindowStream& s, int64_t row) {
  return {static_cast<const Time*>(s.times) + row * s.times_stride, s.times_stride};
}

// The anchor of a window for all streams.
template <class Time>
struct WindowAnchor {
  int64_t row;  // in the anchors' stream, unless anchors are times
  Time time;    // on the clock that the streams share
  bool has_time;
};

template <class Time>
RBC_HD WindowAnchor<Time> anchorOf(const PlainWindows& p, int64_t window) {
  if (p.anchors_are_times) {
    const Time time = static_cast<const Time*>(p.anchors)[window * p.anchors_stride];
    return {0, time, !TimeMath<Time>::isNaN(time)};
  }
  const int64_t row = static_cast<const int64_t*>(p.anchors)[window * p.anchors_stride];
  const WindowStream& s = p.streams[p.anchor_stream];
  if (s.times == nullptr) return {row, Time(0), false};
  const RowRange rows = rowsOfEpisode(p, s, window);
  if (rows.count <= 0) return {row, Time(0), false};
  const Time own = timesFrom<Time>(s, rows.begin)[clampIndex(row, 0, rows.count - 1)];
  const Time time = TimeMath<Time>::later(own, offsetAs<Time>(s.clock_offset));
  return {row, time, !TimeMath<Time>::isNaN(time)};
}

// The rows of a stream that exist for an element.
template <class Time>
struct RowsThatArrived {
  Arrivals arrivals;
  Time lag;
  Time until;              // gathered streams: the same for all elements of a window
  const SegmentAge* ages;  // per method of the stream
  ArrivalMinima<Time> minima;

  // The rows from `begin` on, with a mask if the stream has one, for a query that is computed at
  // `until_then`.
  RBC_HD ArrivedSamples<Time, int64_t> from(const ValidSamples<int64_t>& valid, int64_t begin,
                                            Time until_then) const {
    constexpr int64_t kSize = sizeof(Time);
    return {valid, arrivals.at(0, begin, kSize), arrivals.stride[1] * kSize, until_then, begin,
            minima};
  }
};

// A base of what has it only on a clock of rows that arrive: without them it takes no room.
template <class Clock>
struct MayArrive {};
template <class T>
struct MayArrive<Arriving<T>> {
  RowsThatArrived<T> existing;
};

// The same for one stream.
template <class Clock>
struct WindowStand : MayArrive<Clock> {
  RowRange rows;       // of the episode; empty if the window has no anchor here
  int64_t anchor;      // gathered streams: the row, relative to the episode's first, inside or not
  TimeOn<Clock> time;  // others: the time, before clock_offset
};

RBC_HD ValidSamples<int64_t> validFrom(const WindowStream& s, int64_t row) {
  if (s.sample_mask == nullptr) return {nullptr, 0};
  return {s.sample_mask + row * s.sample_mask_stride, s.sample_mask_stride};
}

template <class Clock>
RBC_HD WindowStand<Clock> standOf(const WindowsOn<Clock>& p, int32_t stream, int64_t window,
                                  const WindowAnchor<TimeOn<Clock>>& anchor) {
  using Time = TimeOn<Clock>;
  const WindowStream& s = p.streams[stream];
  const RowRange rows = rowsOfEpisode(p, s, window);
  const bool own = !p.anchors_are_times && stream == p.anchor_stream;
  const bool anchors_have_times =
      p.anchors_are_times || p.streams[p.anchor_stream].times != nullptr;
  bool by_time = s.interpolates || (!own && s.times != nullptr && anchors_have_times);
  MayArrive<Clock> own_rows = {};
  bool arrives = false;
  if constexpr (ClockOf<Clock>::kArrives) {
    if (p.causal != nullptr) {
      const Time lag = offsetAs<Time>(p.causal->lag);
      own_rows.existing = {p.causal->arrivals[stream], lag, TimeMath<Time>::later(anchor.time, lag),
                           p.causal->ages + s.first_method,
                           minimaOf<Time>(p.causal->lines, stream, 0, s.rows)};
      arrives = own_rows.existing.arrivals.data != nullptr;
      by_time = by_time || arrives;
    }
  }
  if (!by_time) return {own_rows, rows, anchor.row, Time(0)};
  if (!anchor.has_time) return {own_rows, {rows.begin, 0}, 0, Time(0)};
  if (s.interpolates) return {own_rows, rows, 0, anchor.time};
  const Time time = TimeMath<Time>::shifted(anchor.time, offsetAs<Time>(s.clock_offset));
  int64_t row = lastRowUpTo(timesFrom<Time>(s, rows.begin), rows.count, time);
  if constexpr (ClockOf<Clock>::kArrives) {
    if (arrives) {
      const RowsThatArrived<Time>& existing = own_rows.existing;
      row = existing.from(validFrom(s, rows.begin), rows.begin, existing.until).upTo(row);
    }
  }
  return {own_rows, rows, row, time};
}

// ---- gathered streams ---------------------------------------------------------------------------

// The row of offset o, among all rows of the stream. A reference holds, regardless of the stream's
// pad.
template <class Clock>
RBC_HD GatheredRow gatheredRow(const WindowStream& s, const WindowStand<Clock>& stand, int64_t o,
                               bool is_reference = false) {
  GatheredRow at = gatheredRow(stand.anchor, s.offsets[o], stand.rows.count,
                               is_reference ? Outside::kHold : s.outside);
  if (at.row < 0) return at;
  at.row += stand.rows.begin;
  bool missing = s.sample_mask != nullptr && s.sample_mask[at.row * s.sample_mask_stride] == 0;
  if constexpr (ClockOf<Clock>::kArrives) {
    if (stand.existing.arrivals.data != nullptr) {
      missing = !stand.existing.from(validFrom(s, at.row), at.row, stand.existing.until).counts(0);
    }
  }
  return missing ? GatheredRow{-1, false, false} : at;
}

// ---- interpolated streams -----------------------------------------------------------------------

// The samples of an episode that may answer queries.
template <class Time>
struct WindowSamples {
  TimeRow<Time> times;
  ValidSamples<int64_t> valid;
  int64_t begin;  // among all rows of the stream
  int64_t count;
};

template <class Time>
RBC_HD WindowSamples<Time> samplesOf(const WindowStream& s, const RowRange& rows) {
  if (s.sample_mask == nullptr) {
    return {timesFrom<Time>(s, rows.begin), {nullptr, 0}, rows.begin, rows.count};
  }
  const ValidSamples<int64_t> valid = validFrom(s, rows.begin);
  const SampleRange<int64_t> part = trimmed(valid, rows.count);
  const int64_t begin = rows.begin + part.begin;
  return {timesFrom<Time>(s, begin), valid.shifted(part.begin), begin, part.count};
}

// The time to look up for offset o, on the stream's clock.
template <class Clock>
RBC_HD TimeOn<Clock> queryOf(const WindowStream& s, const WindowStand<Clock>& stand, int64_t o) {
  using Time = TimeOn<Clock>;
  const Time offset = static_cast<const Time*>(s.offsets.data)[o * s.offsets.stride];
  return TimeMath<Time>::shifted(TimeMath<Time>::later(stand.time, offset),
                                 offsetAs<Time>(s.clock_offset));
}

template <class Time>
RBC_HD Rules<Time> rulesOf(const WindowStream& s, Method method, bool is_reference = false) {
  const bool fills = s.outside == Outside::kFill && !is_reference;
  return rulesOf<Time>(s, fills ? Outside::kFill : Outside::kHold, method);
}

// Whether an invalid element is past the end.
template <class Time>
RBC_HD bool isAfter(const WindowSamples<Time>& samples, Time query) {
  return samples.count > 0 && query > samples.times[samples.count - 1];
}

// The method of a channel.
RBC_HD const ChannelSegment& methodOf(const PlainWindows& p, const WindowStream& s,
                                      int64_t channel) {
  int32_t i = s.first_method;
  while (i + 1 < s.first_method + s.num_methods && p.methods[i + 1].begin <= channel) ++i;
  return p.methods[i];
}

// ---- the transform of a value -------------------------------------------------------------------

// Whether a channel of out takes a neutral value past the end.
RBC_HD bool isNeutral(const WindowStream& s, int64_t d) {
  return s.outside == Outside::kNeutral &&
         (s.neutral_channels == nullptr || s.neutral_channels[d * s.neutral_channels_stride] != 0);
}

template <class Number>
RBC_HD Number neutralAt(const WindowStream& s, int64_t o, int64_t d) {
  return s.neutral.data != nullptr ? s.neutral.at<Number>(o, d) : Number(0);
}

// A value after its transform: normalized and clipped, and past the end neutral.
template <class Number>
RBC_HD Number finished(const WindowStream& s, int64_t o, int64_t d, Number x, bool after) {
  if (after && isNeutral(s, d)) return neutralAt<Number>(s, o, d);
  if (s.normalizes()) {
    x = normalized(x, s.shift.data != nullptr ? s.shift.at<Number>(o, d) : Number(0),
                   s.scale.data != nullptr ? s.scale.at<Number>(o, d) : Number(1),
                   s.bias.data != nullptr ? s.bias.at<Number>(o, d) : Number(-0.0), s.divides);
  }
  if (s.clips()) {
    const Number infinity = bitCast<Number>(FloatBits<Number>::kExponent);
    x = clipped(x, s.low.data != nullptr ? s.low.at<Number>(o, d) : -infinity,
                s.high.data != nullptr ? s.high.at<Number>(o, d) : infinity);
  }
  return x;
}

}  // namespace rbc
