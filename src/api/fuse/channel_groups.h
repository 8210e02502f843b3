// A stream's channels as segments that each have one method.
#pragma once

#include "fuse_problem.h"
#include "robocache/resample.h"

namespace rbc {

// Which methods a stream uses: a bit for each.
class MethodSet {
 public:
  void add(Method method) { bits_ |= 1u << static_cast<unsigned>(method); }
  bool has(Method method) const { return (bits_ >> static_cast<unsigned>(method) & 1) != 0; }
  bool hasStep() const {
    return has(Method::kNearest) || has(Method::kPrevious) || has(Method::kNext);
  }
  // The first that is no step, or null if there is none.
  const char* interpolating() const;

 private:
  unsigned bits_ = 0;
};

// The method for a RBC_METHOD_... in an argument; fails if it is none.
Method methodOf(int32_t code, const char* argument);

// Copies the groups of the caller, so that nobody can change them after they were checked; fails if their
// number or size cannot be. What they say is not checked.
void readGroups(const rbcResampleParams& params, rbcChannelGroup (&groups)[kMaxSegments]);

// Writes the segments of `channels` channels in their order, at most `room`, and returns how many.
// Fails unless the groups of `params` hold each channel once and suit their methods.
int segmentsOf(const rbcResampleParams& params, int64_t channels, ChannelSegment* segments,
               int room, MethodSet* methods);

// Limits that no channel's method takes are a mistake.
void requireMethodsFit(const rbcResampleParams& params, const MethodSet& methods);

}  // namespace rbc
