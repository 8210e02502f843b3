// Fusion as plain numbers, after validation: the input of a backend. Resampling is fusion of one
// stream.
#pragma once

#include "dtype.h"
#include "locate.h"
#include "look_back.h"
#include "ragged.h"
#include "valid_samples.h"

namespace rbc {

inline constexpr int kMaxStreams = 64;
inline constexpr int kMaxSegments = 256;

// A caller's [D] array of f32 or f64; data may be null.
struct RealArray {
  const void* data;
  int64_t stride;  // in elements
  bool is_64;

  // The element in the compute type.
  template <class Number>
  RBC_HD Number at(int64_t i) const {
    return is_64 ? static_cast<Number>(static_cast<const double*>(data)[i * stride])
                 : static_cast<Number>(static_cast<const float*>(data)[i * stride]);
  }
};

// A limit in the dtype of times: `real` for f32 (a rounded value) and f64, `ticks` for i64.
struct TimeLimit {
  double real;
  uint64_t ticks;
  bool set;
};

// A clock offset, with the same two forms.
struct TimeOffset {
  double real;
  int64_t ticks;
};

// Channels of a stream that share a method. Neighbouring segments have different methods.
struct ChannelSegment {
  int64_t begin;
  int64_t count;
  Method method;
};

struct FuseStream {
  // Packed values have one row of `samples` for the whole batch; `offsets` divides it.
  int64_t samples;
  int64_t channels;

  // Strides are in elements; a batch stride is 0 where the batch shares one row.
  const void* values;
  const void* times;
  int64_t values_stride[3];
  int64_t times_stride[2];
  IndexArray lengths;
  IndexArray offsets;
  const uint8_t* sample_mask;  // 0: the sample is missing; null: none is
  int64_t sample_mask_stride[2];

  RealArray shift;
  RealArray scale;
  TimeLimit max_gap;
  TimeLimit tolerance;
  TimeOffset clock_offset;
  int64_t out_begin;   // of its channels in a row of out
  uint64_t fill_bits;  // the fill value as an element of out, in the low bytes
  int32_t first_segment;
  int32_t num_segments;  // at least 1: an empty one if there are no channels
  DType values_dtype;
  Outside outside;

  // The samples of row b that are not masked.
  ValidSamples<int64_t> validOf(const RowRange& range, int64_t b) const {
    if (sample_mask == nullptr) return {nullptr, 0};
    return {sample_mask + b * sample_mask_stride[0] + range.begin * sample_mask_stride[1],
            sample_mask_stride[1]};
  }
};

// All streams, and the parameters that they share: the arguments of every kernel.
struct PlainFuse {
  int64_t batch;
  int64_t queries;
  int64_t channels;  // of all streams

  const void* query_times;
  int64_t query_stride[2];
  IndexArray query_lengths;
  void* out;
  int64_t out_stride[3];
  uint8_t* valid;  // may be null
  int64_t valid_stride[3];
  DType out_dtype;
  // Rounding to this dtype does not move an angle out of its range: see turn.h. F64 means the
  // compute type; it is used for normalized streams, whose results have no range.
  DType angle_dtype;
  DType time_dtype;  // F32, F64 or I64

  // In the caller's memory: kernels get a copy.
  int32_t num_streams;
  int32_t num_segments;
  const FuseStream* streams;
  const ChannelSegment* segments;
};

// When the samples of a stream had arrived; `data` may be null: all had.
struct Arrivals {
  const void* data;
  int64_t stride[2];  // in elements, as FuseStream::times_stride

  // Of sample i in row b, `size` bytes each; null without arrivals.
  RBC_HD const char* at(int64_t b, int64_t i, int64_t size) const {
    if (data == nullptr) return nullptr;
    return static_cast<const char*>(data) + (b * stride[0] + i * stride[1]) * size;
  }
};

// The minima of a stream's arrivals, which searches skip by.
struct ArrivalLines {
  void* minima = nullptr;  // null: none
  int64_t line = 0;        // from a row of the batch to the next; 0: they share one
};

// Of row b of a stream, which has `samples` in a line; `lines` may be null.
template <class Time>
RBC_HD ArrivalMinima<Time> minimaOf(const ArrivalLines* lines, int stream, int64_t b,
                                    int64_t samples) {
  if (lines == nullptr || lines[stream].minima == nullptr) return {nullptr, samples};
  return {static_cast<const Time*>(lines[stream].minima) + b * lines[stream].line, samples};
}

// How old the sample of a segment may be: small, as a launch has up to 256.
struct SegmentAge {
  uint64_t limit;  // ticks, or the bits of a TimeLimit's real number
  bool has_limit;
  bool causal;  // it looks back only; else it has no limit

  bool operator==(const SegmentAge& other) const {
    return limit == other.limit && has_limit == other.has_limit && causal == other.causal;
  }
};

// The fields that few problems have: the kernels of the others need no room for them.
struct CausalFuse {
  TimeOffset lag;
  const Arrivals* arrivals;             // per stream
  const SegmentAge* ages;               // per segment
  const ArrivalLines* lines = nullptr;  // per stream, set by a backend; null: without minima
  // Per stream, set by the CPU: its samples arrived in their order, so that it needs no minima.
  const bool* in_order = nullptr;  // null: unknown
};

struct FuseProblem : PlainFuse {
  const CausalFuse* causal;  // null: without arrivals, and no segment looks back only
};

// Whether values affect the stream's mask: a quaternion may be invalid.
inline bool hasQuaternions(const PlainFuse& p, const FuseStream& s) {
  for (int i = s.first_segment; i < s.first_segment + s.num_segments; ++i) {
    if (p.segments[i].method == Method::kSlerp) return true;
  }
  return false;
}

// Whether samples of any stream may be missing.
inline bool hasSampleMasks(const PlainFuse& p) {
  for (int n = 0; n < p.num_streams; ++n) {
    if (p.streams[n].sample_mask != nullptr) return true;
  }
  return false;
}

RBC_HD RowRange samplesOf(const FuseStream& s, int64_t b) {
  return rangeOf(s.lengths, s.offsets, s.samples, b);
}

RBC_HD int64_t queriesOf(const PlainFuse& p, int64_t b) {
  return p.query_lengths.data != nullptr ? clampIndex(p.query_lengths[b], 0, p.queries) : p.queries;
}

template <class Time>
RBC_HD typename TimeMath<Time>::Span limitAs(const TimeLimit& limit) {
  return static_cast<Time>(limit.real);
}
template <>
RBC_HD uint64_t limitAs<int64_t>(const TimeLimit& limit) {
  return limit.ticks;
}

template <class Time>
RBC_HD Time offsetAs(const TimeOffset& offset) {
  return static_cast<Time>(offset.real);
}
template <>
RBC_HD int64_t offsetAs<int64_t>(const TimeOffset& offset) {
  return offset.ticks;
}

// The limits of one stream, and its rule for queries outside.
template <class Time, class Stream>
RBC_HD Rules<Time> rulesOf(const Stream& s, Outside outside, Method method) {
  const bool holds = outside == Outside::kExtrapolate && method != Method::kLinear;
  return {method,        holds ? Outside::kHold : outside, s.tolerance.set && isStep(method),
          s.max_gap.set, limitAs<Time>(s.tolerance),       limitAs<Time>(s.max_gap)};
}
template <class Time>
RBC_HD Rules<Time> rulesOf(const FuseStream& s, Method method) {
  return rulesOf<Time>(s, s.outside, method);
}

template <class Time>
RBC_HD AgeRule<Time> ageRuleOf(const SegmentAge& age) {
  return {age.causal, age.has_limit,
          limitAs<Time>({bitCast<double>(age.limit), age.limit, age.has_limit})};
}

// Calls visitor(Tag<Time>) for the dtype of times.
template <class Visitor>
decltype(auto) visitTime(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::F32: return visitor(Tag<float>{});
    case DType::F64: return visitor(Tag<double>{});
    case DType::I64: return visitor(Tag<int64_t>{});
    default: detail::failDispatch(dtype);
  }
}

// A defect that the checks may find in the data; the first one in the order of kinds, then of row
// and index.
struct TimesDefect {
  // As wide as the other fields: a GPU writes the struct, and padding would be uninitialized.
  enum Kind : int64_t { kNone, kOffset, kLength, kQueryLength, kTime };
  Kind kind;
  int64_t row;
  int64_t index;  // kTime: into the row
  // The offending number, and for kOffset and kTime the preceding one.
  int64_t integer[2];
  double real[2];
};

// The check of a stream's times, and on CUDA also of its lengths and offsets and the query lengths:
// on the CPU the host has already checked those.
struct TimesProblem {
  const FuseProblem& fuse;
  int stream;
  TimesDefect* defect;  // on the host; written when the operation returns
};

// Whether a sample may not follow another: its time is NaN, or earlier.
template <class Time>
RBC_HD bool badStep(Time previous, Time time) {
  return TimeMath<Time>::isNaN(time) || time < previous;
}

}  // namespace rbc
