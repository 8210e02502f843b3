// Resampling as plain numbers: what the validating op hands to a backend.
#pragma once

#include "dtype.h"
#include "locate.h"

namespace rbc {

// A caller's [B] or [B+1] array of i32 or i64; data may be null.
struct IndexArray {
  const void* data;
  int64_t stride;  // in elements
  bool is_64;

  RBC_HD int64_t operator[](int64_t i) const {
    return is_64 ? static_cast<const int64_t*>(data)[i * stride]
                 : static_cast<const int32_t*>(data)[i * stride];
  }
};

// A limit in the dtype of times: `real` for f32 (a rounded value) and f64, `ticks` for i64.
struct TimeLimit {
  double real;
  uint64_t ticks;
  bool set;
};

struct ResampleProblem {
  // Extents. Packed values have one row of `samples` for the whole batch, cut by `offsets`.
  int64_t batch;
  int64_t samples;
  int64_t queries;
  int64_t channels;

  // Strides are in elements; a batch stride is 0 where the batch shares one row.
  const void* values;
  const void* times;
  const void* query_times;
  void* out;
  uint8_t* mask;  // may be null
  int64_t values_stride[3];
  int64_t times_stride[2];
  int64_t query_stride[2];
  int64_t out_stride[3];
  int64_t mask_stride[2];

  IndexArray lengths;
  IndexArray query_lengths;
  IndexArray offsets;

  DType values_dtype;
  DType out_dtype;
  DType time_dtype;  // F32, F64 or I64

  Method method;
  Bounds bounds;
  TimeLimit max_gap;
  TimeLimit tolerance;
  uint64_t fill_bits;  // the fill value as an element of out, in the low bytes
};

// A range of samples: those of one row of the batch.
struct SampleRange {
  int64_t begin;  // into the row at the batch stride
  int64_t count;
};

RBC_HD int64_t clampIndex(int64_t i, int64_t low, int64_t high) {
  return i < low ? low : i > high ? high : i;
}

// Whatever lengths and offsets hold, the range lies inside the tensors.
RBC_HD SampleRange samplesOf(const ResampleProblem& p, int64_t b) {
  if (p.offsets.data != nullptr) {
    const int64_t begin = clampIndex(p.offsets[b], 0, p.samples);
    return {begin, clampIndex(p.offsets[b + 1], begin, p.samples) - begin};
  }
  return {0, p.lengths.data != nullptr ? clampIndex(p.lengths[b], 0, p.samples) : p.samples};
}

RBC_HD int64_t queriesOf(const ResampleProblem& p, int64_t b) {
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
RBC_HD Rules<Time> rulesOf(const ResampleProblem& p) {
  return {p.method,
          p.bounds,
          p.tolerance.set,
          p.max_gap.set,
          limitAs<Time>(p.tolerance),
          limitAs<Time>(p.max_gap)};
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

// What checking may find in the data; the first in the order of the kinds, then of row and index.
struct ResampleDefect {
  enum Kind : int32_t { kNone, kOffset, kLength, kQueryLength, kTime };
  Kind kind;
  int64_t row;
  int64_t index;  // kTime: into the row
  // The offending number, and for kOffset and kTime the one before it.
  int64_t integer[2];
  double real[2];
};

// A sample that may not follow another: NaN, or earlier.
template <class Time>
RBC_HD bool badStep(Time previous, Time time) {
  return TimeMath<Time>::isNaN(time) || time < previous;
}

}  // namespace rbc
