// A stream's transforms as segments that hold each of its channels once.
#pragma once

#include "robocache/windows.h"
#include "window_problem.h"

namespace rbc {

// Transforms of a stream as they were when they were read: the caller's may change.
struct WindowTransforms {
  const rbcWindowTransform* list;
  int32_t count;
};

// Writes the segments of `channels` channels in their order, and returns how many; those of
// transforms know the place of theirs. Fails unless each lies within the channels and shares none.
int32_t windowSegmentsOf(const WindowTransforms& transforms, int64_t channels,
                         WindowSegment* segments);

// Channels of the output, which are those of all segments.
int64_t outChannelsOf(const WindowSegment* segments, int32_t count);

// Whether all channels are copied.
bool copiesAll(const WindowSegment* segments, int32_t count);

// Fails unless the transforms' references are in the streams, which are all known by now.
void requireReferences(const WindowTransforms& transforms, const WindowStream* streams,
                       int32_t num_streams);

}  // namespace rbc
