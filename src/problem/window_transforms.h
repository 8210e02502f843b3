// References and poses of a window, from its streams.
#pragma once

#include "window_fetch.h"
#include "window_pose.h"

namespace rbc {

// Fetches, with the pad hold, the element that a segment refers to. It is the same for all offsets
// of a window, except for a step: there it is the preceding element, if any.
template <class Clock>
RBC_HD WindowElement<Clock> referenceElement(const WindowsOn<Clock>& p,
                                             const WindowSegment& segment, int64_t window,
                                             const WindowAnchor<TimeOn<Clock>>& anchor) {
  const int32_t n = segment.reference_stream;
  return elementAt(p.streams[n], standOf<Clock>(p, n, window, anchor), segment.reference_offset,
                   true);
}

// The value that is subtracted from channel segment.begin + i. Returns false if there is no value.
template <class Number, class Clock>
RBC_HD bool fetchReference(const PlainWindows& p, const WindowSegment& segment,
                           const WindowElement<Clock>& reference, int64_t i, Number* value) {
  return fetchChannel(p, p.streams[segment.reference_stream], reference,
                      segment.reference_begin + i, value);
}

template <class V>
RBC_HD V subtracted(V x, V reference, bool inverse) {
  return inverse ? x + reference : x - reference;
}

// Whether a segment's rotations are computed as DoubleDouble: see convertRotation().
RBC_HD bool inDoubleDouble(const WindowSegment& segment) {
  return segment.out_rotation.kind == RotationKind::Euler;
}

RBC_HD PoseKind poseKindOf(const WindowSegment& segment) {
  return segment.kind == WindowKind::kRelative ? PoseKind::kRelative : PoseKind::kWorld;
}

// The transformed pose, without the inverse of a step: see afterStep(). The reference of a step is
// the preceding element; at the first offset it is the segment's own.
template <class Number>
RBC_HD Pose<Number> transformed(const WindowSegment& segment,
                                const PoseReference<Number>& reference, const Pose<Number>& pose) {
  return segment.inverse ? absolutePose(poseKindOf(segment), reference, pose)
                         : relativePose(poseKindOf(segment), reference, pose);
}

// The element from which step `o` of a window starts, for o > 0.
template <class Clock>
RBC_HD WindowElement<Clock> elementBefore(const WindowStream& s, const WindowStand<Clock>& stand,
                                          int64_t o) {
  return elementAt(s, stand, o - 1, true);
}

}  // namespace rbc
