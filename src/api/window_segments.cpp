#include "window_segments.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "rotation_format.h"
#include "status.h"
#include "window_pose.h"

namespace rbc {
namespace {

static_assert(RBC_TRANSFORM_COPY == static_cast<int>(WindowKind::kCopy) &&
              RBC_TRANSFORM_SUBTRACT == static_cast<int>(WindowKind::kSubtract) &&
              RBC_TRANSFORM_SE3_RELATIVE == static_cast<int>(WindowKind::kRelative) &&
              RBC_TRANSFORM_SE3_WORLD == static_cast<int>(WindowKind::kWorld) &&
              RBC_TRANSFORM_SE3_STEP == static_cast<int>(WindowKind::kStep));

// The name of a transform's field, for an error.
struct FieldName {
  FieldName(int32_t index, const char* field) {
    std::snprintf(text, sizeof text, "transforms[%d].%s", index, field);
  }
  char text[64];
};

WindowSegment segmentOf(const rbcWindowTransform& t, int32_t index) {
  if (t.kind < RBC_TRANSFORM_COPY || t.kind > RBC_TRANSFORM_SE3_STEP) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "transforms[%d].kind: is %d, expected RBC_TRANSFORM_COPY, _SUBTRACT, _SE3_RELATIVE, "
         "_SE3_WORLD or _SE3_STEP",
         index, t.kind);
  }
  if ((t.flags & ~RBC_TRANSFORM_INVERSE) != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "transforms[%d].flags: 0x%" PRIx32
         " has unknown bits, expected RBC_TRANSFORM_INVERSE or 0",
         index, t.flags);
  }
  if (t.reserved != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "transforms[%d]: reserved is not 0", index);
  }
  WindowSegment s = {};
  s.begin = t.begin;
  s.count = s.out_count = t.count;
  s.kind = static_cast<WindowKind>(t.kind);
  if (s.kind == WindowKind::kCopy) return s;
  s.inverse = (t.flags & RBC_TRANSFORM_INVERSE) != 0;
  s.reference_begin = t.reference_begin;
  s.reference_stream = t.reference_stream;
  s.reference_offset = t.reference_offset;
  if (!s.isPose()) return s;
  s.rotation = rotationFormatOf(t.rotation, FieldName(index, "rotation").text);
  s.reference_rotation =
      rotationFormatOf(t.reference_rotation, FieldName(index, "reference_rotation").text);
  s.out_rotation = rotationFormatOf(t.out_rotation, FieldName(index, "out_rotation").text);
  const int channels = channelsOf(s.rotation.kind);
  if (t.count != kPositionChannels + channels) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "transforms[%d].count: is %" PRId64 ", expected %d: 3 of the position and %d of %s", index,
         t.count, kPositionChannels + channels, channels, textOf(s.rotation));
  }
  s.out_count = kPositionChannels + channelsOf(s.out_rotation.kind);
  return s;
}

void requireReference(const WindowSegment& segment, int32_t index, const WindowStream* streams,
                      int32_t num_streams) {
  if (segment.kind == WindowKind::kCopy) return;
  if (segment.reference_stream < 0 || segment.reference_stream >= num_streams) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "transforms[%d].reference_stream: is %d, expected 0 to %d: a stream of the call", index,
         segment.reference_stream, num_streams - 1);
  }
  const WindowStream& s = streams[segment.reference_stream];
  if (s.values == nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "transforms[%d].reference_stream: is %d, which has no values to refer to", index,
         segment.reference_stream);
  }
  if (segment.reference_offset < 0 || segment.reference_offset >= s.num_offsets) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "transforms[%d].reference_offset: is %d, expected the index of one of the %" PRId64
         " offsets of streams[%d]",
         index, segment.reference_offset, s.num_offsets, segment.reference_stream);
  }
  const int64_t count = segment.isPose()
                            ? kPositionChannels + channelsOf(segment.reference_rotation.kind)
                            : segment.count;
  if (segment.reference_begin < 0 || segment.reference_begin > s.channels ||
      count > s.channels - segment.reference_begin) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "transforms[%d].reference_begin: is %" PRId64 ", and %" PRId64
         " channels from there are not all of the %" PRId64 " of streams[%d]",
         index, segment.reference_begin, count, s.channels, segment.reference_stream);
  }
}

}  // namespace

int32_t windowSegmentsOf(const WindowTransforms& transforms, int64_t channels,
                         WindowSegment* segments) {
  WindowSegment given[kMaxWindowTransforms];
  int32_t order[kMaxWindowTransforms] = {};
  for (int32_t i = 0; i < transforms.count; ++i) {
    given[i] = segmentOf(transforms.list[i], i);
    const WindowSegment& s = given[i];
    if (s.count < 1) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "transforms[%d].count: is %" PRId64 ", expected 1 or more",
           i, s.count);
    }
    if (s.begin < 0 || s.begin > channels || s.count > channels - s.begin) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "transforms[%d]: begins at channel %" PRId64 " and has %" PRId64
           ", which are not all of the %" PRId64 " channels of values",
           i, s.begin, s.count, channels);
    }
    order[i] = i;
  }
  std::sort(order, order + transforms.count,
            [&](int32_t a, int32_t b) { return given[a].begin < given[b].begin; });
  int32_t count = 0;
  int64_t begin = 0;
  int64_t out_begin = 0;
  const auto add = [&](const WindowSegment& segment) {
    segments[count] = segment;
    segments[count].out_begin = out_begin;
    begin += segment.count;
    if (__builtin_add_overflow(out_begin, segment.out_count, &out_begin)) {
      fail(RBC_STATUS_SHAPE_MISMATCH, "values: %" PRId64 " channels become more than 2^63 - 1",
           channels);
    }
    ++count;
  };
  const auto copyUpTo = [&](int64_t end) {
    if (end == begin) return;
    WindowSegment copied = {};
    copied.begin = begin;
    copied.count = copied.out_count = end - begin;
    add(copied);
  };
  for (int32_t i = 0; i < transforms.count; ++i) {
    const WindowSegment& segment = given[order[i]];
    if (segment.begin < begin) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "transforms[%d]: shares channel %" PRId64 " with transforms[%d]", order[i],
           segment.begin, order[i - 1]);
    }
    copyUpTo(segment.begin);
    add(segment);
  }
  copyUpTo(channels);
  return count;
}

int64_t outChannelsOf(const WindowSegment* segments, int32_t count) {
  return count > 0 ? segments[count - 1].out_begin + segments[count - 1].out_count : 0;
}

bool copiesAll(const WindowSegment* segments, int32_t count) {
  return std::all_of(segments, segments + count,
                     [](const WindowSegment& s) { return s.kind == WindowKind::kCopy; });
}

void requireReferences(const WindowTransforms& transforms, const WindowStream* streams,
                       int32_t num_streams) {
  for (int32_t i = 0; i < transforms.count; ++i) {
    requireReference(segmentOf(transforms.list[i], i), i, streams, num_streams);
  }
}

}  // namespace rbc
