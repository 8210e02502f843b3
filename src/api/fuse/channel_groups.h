// A stream's channels as segments with one method each.
#pragma once

#include "fuse_problem.h"
#include "robocache/resample.h"

namespace rbc {

// The methods that a stream uses, one bit each.
class MethodSet {
 public:
  void add(Method method) { bits_ |= 1u << static_cast<unsigned>(method); }
  bool has(Method method) const { return (bits_ >> static_cast<unsigned>(method) & 1) != 0; }
  bool hasStep() const {
    return has(Method::kNearest) || has(Method::kPrevious) || has(Method::kNext);
  }
  void addCausal() { causal_ = true; }
  bool hasCausal() const { return causal_; }
  // The first method that is not a step, or null if all are steps.
  const char* interpolating() const;

 private:
  unsigned bits_ = 0;
  bool causal_ = false;
};

// Returns the method of an RBC_METHOD_... argument; fails if the constant is unknown.
Method methodOf(int32_t code, const char* argument);

// Segments, and what they have in addition if they look back only.
struct Segments {
  ChannelSegment* segments;
  SegmentAge* ages;
  int room;  // in either array
};

// Copies the caller's groups, so that they cannot change after they were checked. Fails if their
// number or size is invalid. Their contents are not checked.
void readGroups(const rbcResampleParams& params, rbcChannelGroup (&groups)[kMaxSegments]);

// Writes the segments of `channels` channels in their order and returns their number. Fails unless
// the groups of `params` contain each channel once and fit their methods.
int segmentsOf(const rbcResampleParams& params, int64_t channels, DType time_dtype,
               const Segments& to, MethodSet* methods);

// Fails if a limit is set that no channel's method uses.
void requireMethodsFit(const rbcResampleParams& params, const MethodSet& methods);

}  // namespace rbc
