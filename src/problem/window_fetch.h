// Fetches any channel of any stream at any offset of a window, one at a time: used for references,
// and where no faster way exists.
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

// One element of a window: the part that is the same for all channels of a method.
template <class Clock>
struct WindowElement : MayArrive<Clock> {  // on which `until` is the element's own
  GatheredRow gathered;                    // for gathered streams
  // For other streams.
  WindowSamples<TimeOn<Clock>> samples;
  TimeOn<Clock> query;
  bool is_reference;
};

template <class Clock>
RBC_HD WindowElement<Clock> elementAt(const WindowStream& s, const WindowStand<Clock>& stand,
                                      int64_t o, bool is_reference = false) {
  using Time = TimeOn<Clock>;
  WindowElement<Clock> element = {};
  element.is_reference = is_reference;
  if (s.interpolates) {
    element.samples = samplesOf<Time>(s, stand.rows);
    element.query = queryOf(s, stand, o);
    if constexpr (ClockOf<Clock>::kArrives) {
      const Time offset = static_cast<const Time*>(s.offsets.data)[o * s.offsets.stride];
      element.existing = stand.existing;
      element.existing.until =
          TimeMath<Time>::later(TimeMath<Time>::later(stand.time, offset), stand.existing.lag);
    }
  } else {
    element.gathered = gatheredRow(s, stand, o, is_reference);
  }
  return element;
}

// The answer to an interpolated element, for method `i` of the stream.
template <class Clock>
RBC_HD Answer<TimeOn<Clock>, int64_t> answerTo(const WindowStream& s,
                                               const WindowElement<Clock>& element, Method method,
                                               int32_t i) {
  using Time = TimeOn<Clock>;
  const WindowSamples<Time>& samples = element.samples;
  const Rules<Time> rules = rulesOf<Time>(s, method, element.is_reference);
  int64_t guess = -1;
  if constexpr (ClockOf<Clock>::kArrives) {
    const RowsThatArrived<Time>& existing = element.existing;
    if (existing.ages != nullptr) {
      return answerTo(samples.times, samples.count, element.query, rules,
                      ageRuleOf<Time>(existing.ages[i]),
                      existing.from(samples.valid, samples.begin, existing.until), &guess);
    }
  }
  const SamplePosition<Time, int64_t> position =
      positionOf(samples.times, samples.count, element.query, rules, &guess, samples.valid);
  auto answer = Answer<Time, int64_t>::alone(position);
  if (position.weight != 0) {
    answer.neighbours = neighboursOf(samples.valid, samples.count, position.index);
  }
  return answer;
}

// Where the channels of one method are found, for any dtype of times.
struct WindowPlace {
  int64_t row;  // among all rows of the stream; -1: none
  // Its neighbours, if the weights need them.
  int64_t before;
  int64_t right;
  int64_t after;
  Weights<double> weights;
  bool mask;  // rbcResample's mask, before quaternions are checked; or that the row was not held
};

template <class Clock>
RBC_HD WindowPlace placeOf(const WindowStream& s, const WindowElement<Clock>& element,
                           Method method, int32_t i) {
  if (!s.interpolates) {
    const GatheredRow& at = element.gathered;
    return {at.row, at.row, at.row, at.row, {}, at.valid};
  }
  const auto answer = answerTo(s, element, method, i);
  const auto& position = answer.position;
  const Neighbours<int64_t>& neighbours = answer.neighbours;
  const auto& samples = element.samples;
  WindowPlace place = {-1, -1, -1, -1, {}, position.mask};
  if (position.index < 0) return place;
  place.row = samples.begin + position.index;
  place.before = samples.begin + neighbours.before;
  place.right = samples.begin + neighbours.right;
  place.after = samples.begin + neighbours.after;
  place.weights = weightsOf(method, samples.times, samples.count, position, neighbours);
  return place;
}

namespace detail {

// Computed as rbcResample does; the method's channels begin at `first`. Returns false if there is
// no value.
template <class Number>
RBC_HD bool channelAt(const WindowStream& s, const WindowPlace& place, Method method, int64_t first,
                      int64_t channel, Number* value) {
  if (place.row < 0) return false;
  const auto read = [&](int64_t row, int64_t c) {
    return valueAt<Number>(s.values, s.values_dtype,
                           row * s.values_stride[0] + c * s.values_stride[1]);
  };
  if (!s.interpolates) {
    *value = read(place.row, channel);
    return true;
  }
  const Weights<Number> k = place.weights.template as<Number>();
  if (method == Method::kSlerp) {
    const int64_t quaternion = channel - (channel - first) % 4;
    Number q1[4];
    Number q2[4];
    for (int i = 0; i < 4; ++i) {
      q1[i] = read(place.row, quaternion + i);
      q2[i] = k.w != 0 ? read(place.right, quaternion + i) : q1[i];
    }
    if (!isRotation(q1) || !isRotation(q2)) return false;
    if (k.w != 0) slerp(q1, q2, k.w, q1);
    *value = q1[channel - quaternion];
    return true;
  }
  const Number v1 = read(place.row, channel);
  *value = v1;
  if (isInTurn(method)) {
    const Number v2 = k.w != 0 ? read(place.right, channel) : v1;
    *value = lerpInTurn(v1, v2, k.w, turnOf<Number>(method, s.angle_dtype));
    return true;
  }
  if (k.w == 0) return true;
  const Number v2 = read(place.right, channel);
  switch (method) {
    case Method::kCubic:
    case Method::kPchip: {
      const Number v0 = k.before ? read(place.before, channel) : v1;
      const Number v3 = k.after ? read(place.after, channel) : v1;
      *value = method == Method::kCubic ? cubic(v0, v1, v2, v3, k) : pchip(v0, v1, v2, v3, k);
      break;
    }
    case Method::kAngle: *value = lerpAngle(v1, v2, k.w); break;
    default: *value = lerp(v1, v2, k.w); break;
  }
  return true;
}

}  // namespace detail

// A channel's value before any transform, for a method whose channels begin at `first`. Number is
// the type that it is computed in, or double. Returns false if there is no value.
template <class Number>
RBC_HD bool fetchChannel(const WindowStream& s, const WindowPlace& place, Method method,
                         int64_t first, int64_t channel, Number* value) {
  if (s.interpolates && sizeof(Number) == sizeof(double) && !computesInDouble(s.values_dtype)) {
    float narrow = 0;
    if (!detail::channelAt(s, place, method, first, channel, &narrow)) return false;
    *value = static_cast<Number>(narrow);
    return true;
  }
  return detail::channelAt(s, place, method, first, channel, value);
}

template <class Number, class Clock>
RBC_HD bool fetchChannel(const PlainWindows& p, const WindowStream& s,
                         const WindowElement<Clock>& element, int64_t channel, Number* value) {
  if (!s.interpolates) {
    return fetchChannel(s, placeOf(s, element, Method::kLinear, 0), Method::kLinear, 0, channel,
                        value);
  }
  const ChannelSegment& segment = methodOf(p, s, channel);
  const auto i = static_cast<int32_t>(&segment - (p.methods + s.first_method));
  return fetchChannel(s, placeOf(s, element, segment.method, i), segment.method, segment.begin,
                      channel, value);
}

// Several channels, such as the channels of a pose. Returns whether all have a value.
template <class Number, class Clock>
RBC_HD bool fetchChannels(const PlainWindows& p, const WindowStream& s,
                          const WindowElement<Clock>& element, int64_t begin, int count,
                          Number* values) {
  bool all = true;
  for (int i = 0; i < count; ++i) all &= fetchChannel(p, s, element, begin + i, values + i);
  return all;
}

// Whether the element takes neutral values if the pad is neutral.
template <class Clock>
RBC_HD bool isPastEnd(const WindowStream& s, const WindowElement<Clock>& element, bool valid) {
  if (!s.interpolates) return element.gathered.after;
  return !valid && isAfter(element.samples, element.query);
}

}  // namespace rbc
