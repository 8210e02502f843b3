// Any channel of any stream at any offset of a window, one by one: what references are fetched by,
// and all that has no faster way.
#pragma once

#include "interpolate.h"
#include "real.h"
#include "slerp.h"
#include "window_problem.h"

namespace rbc {

// An element of a dtype that is computed in this type, or in float.
template <class Number>
RBC_HD Number valueAt(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
#define RBC_CASE(name, storage, code, text)                                    \
  case DType::name:                                                            \
    if constexpr (sizeof(Compute<storage>) <= sizeof(Number)) {                \
      return static_cast<Number>(widen(static_cast<const storage*>(data)[i])); \
    }                                                                          \
    break;
    RBC_DTYPES(RBC_CASE)
#undef RBC_CASE
  }
  return Number(0);
}

// One element of a window, as far as it is the same for all channels of a method.
template <class Time>
struct WindowElement {
  GatheredRow gathered;  // of gathered streams
  // Of others.
  WindowSamples<Time> samples;
  Time query;
  bool is_reference;
};

template <class Time>
RBC_HD WindowElement<Time> elementAt(const WindowStream& s, const WindowStand<Time>& stand,
                                     int64_t o, bool is_reference = false) {
  WindowElement<Time> element = {};
  element.is_reference = is_reference;
  if (s.interpolates) {
    element.samples = samplesOf<Time>(s, stand.rows);
    element.query = queryOf(s, stand, o);
  } else {
    element.gathered = gatheredRow(s, stand, o, is_reference);
  }
  return element;
}

template <class Time>
RBC_HD SamplePosition<Time, int64_t> positionOf(const WindowStream& s,
                                                const WindowElement<Time>& element, Method method) {
  int64_t guess = -1;
  return positionOf(element.samples.times, element.samples.count, element.query,
                    rulesOf<Time>(s, method, element.is_reference), &guess, element.samples.valid);
}

namespace detail {

// Computed as rbcResample does. Returns whether there is a value.
template <class Number, class Time>
RBC_HD bool interpolateChannel(const WindowStream& s, const WindowElement<Time>& element,
                               const ChannelSegment& segment, int64_t channel, Number* value) {
  const SamplePosition<Time, int64_t> position = positionOf(s, element, segment.method);
  if (position.index < 0) return false;
  const WindowSamples<Time>& samples = element.samples;
  const auto read = [&](int64_t sample, int64_t c) {
    return valueAt<Number>(s.values, s.values_dtype,
                           (samples.begin + sample) * s.values_stride[0] + c * s.values_stride[1]);
  };
  Neighbours<int64_t> beside = {};
  if (position.weight != 0) beside = neighboursOf(samples.valid, samples.count, position.index);
  const Weights<Number> k =
      weightsOf(segment.method, samples.times, samples.count, position, beside)
          .template as<Number>();
  const Number v1 = read(position.index, channel);
  if (segment.method == Method::kSlerp) {
    const int64_t first = channel - (channel - segment.begin) % 4;
    Number q1[4];
    Number q2[4];
    for (int i = 0; i < 4; ++i) {
      q1[i] = read(position.index, first + i);
      q2[i] = k.w != 0 ? read(beside.right, first + i) : q1[i];
    }
    if (!(isRotation(q1) & isRotation(q2))) return false;
    if (k.w != 0) slerp(q1, q2, k.w, q1);
    *value = q1[channel - first];
    return true;
  }
  *value = v1;
  if (k.w == 0) return true;
  const Number v2 = read(beside.right, channel);
  switch (segment.method) {
    case Method::kCubic:
    case Method::kPchip: {
      const Number v0 = k.before ? read(beside.before, channel) : v1;
      const Number v3 = k.after ? read(beside.after, channel) : v1;
      *value =
          segment.method == Method::kCubic ? cubic(v0, v1, v2, v3, k) : pchip(v0, v1, v2, v3, k);
      break;
    }
    case Method::kAngle: *value = lerpAngle(v1, v2, k.w); break;
    default: *value = lerp(v1, v2, k.w); break;
  }
  return true;
}

}  // namespace detail

// A channel's value before any transform. Number is the type that it is computed in, or double.
// Returns whether there is one.
template <class Number, class Time>
RBC_HD bool fetchChannel(const WindowProblem& p, const WindowStream& s,
                         const WindowElement<Time>& element, int64_t channel, Number* value) {
  if (!s.interpolates) {
    if (element.gathered.row < 0) return false;
    *value =
        valueAt<Number>(s.values, s.values_dtype,
                        element.gathered.row * s.values_stride[0] + channel * s.values_stride[1]);
    return true;
  }
  const ChannelSegment& segment = methodOf(p, s, channel);
  if (sizeof(Number) == sizeof(double) && !computesInDouble(s.values_dtype)) {
    float narrow = 0;
    if (!detail::interpolateChannel(s, element, segment, channel, &narrow)) return false;
    *value = static_cast<Number>(narrow);
    return true;
  }
  return detail::interpolateChannel(s, element, segment, channel, value);
}

// Several channels, as those of a pose. Returns whether all have a value.
template <class Number, class Time>
RBC_HD bool fetchChannels(const WindowProblem& p, const WindowStream& s,
                          const WindowElement<Time>& element, int64_t begin, int count,
                          Number* values) {
  bool all = true;
  for (int i = 0; i < count; ++i) all &= fetchChannel(p, s, element, begin + i, values + i);
  return all;
}

// Whether the element is valid before its transforms: rbcResample's mask, or that the row was not
// held.
template <class Time>
RBC_HD bool isValid(const WindowProblem& p, const WindowStream& s,
                    const WindowElement<Time>& element) {
  if (!s.interpolates) return element.gathered.valid;
  bool valid = true;
  for (int32_t i = s.first_method; i < s.first_method + s.num_methods; ++i) {
    const ChannelSegment& segment = p.methods[i];
    const SamplePosition<Time, int64_t> position = positionOf(s, element, segment.method);
    valid = valid && position.mask;
    if (segment.method != Method::kSlerp || !valid) continue;
    for (int64_t c = segment.begin; c < segment.begin + segment.count && valid; c += 4) {
      double value;
      valid = fetchChannel(p, s, element, c, &value);
    }
  }
  return valid;
}

// Whether it takes neutral values, where the pad is neutral.
template <class Time>
RBC_HD bool isPastEnd(const WindowStream& s, const WindowElement<Time>& element, bool valid) {
  if (!s.interpolates) return element.gathered.after;
  return !valid && isAfter(element.samples, element.query);
}

}  // namespace rbc
