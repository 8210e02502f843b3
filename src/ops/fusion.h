// Puts the arguments of a call as a FuseProblem: what rbcResample and rbcFuse have in common.
#pragma once

#include "context.h"
#include "fuse_problem.h"
#include "robocache/resample.h"
#include "view.h"

namespace rbc {

// The arguments that the streams share; mask and query_lengths may be null.
struct SharedArguments {
  const rbcTensor* query_times;
  const rbcTensor* out;
  const rbcTensor* mask;
  const rbcTensor* query_lengths;
};

struct StreamArguments {
  const rbcTensor* values;
  const rbcTensor* times;
  rbcResampleParams params;  // as checkedParams() gives them
  double clock_offset;
  int64_t clock_offset_ticks;
};

// Reads params by the struct_size rule and verifies what needs no tensor.
rbcResampleParams checkedParams(const rbcResampleParams* given);

void checkFlags(uint32_t flags);

// A call on its way to become a problem: first the shared tensors, then each stream, then finish().
// Everything is verified but the data. The problem points into this object.
class Fusion {
 public:
  Fusion(const rbcContext& context, const SharedArguments& shared);
  Fusion(const Fusion&) = delete;
  Fusion& operator=(const Fusion&) = delete;

  // Integers take one stream of theirs, not several.
  void requireFloatOut() const;

  void add(const StreamArguments& stream);

  // `mask_rank` counts the dimensions of a batch's mask: 2 for [B,T], 3 for [B,T,N].
  const FuseProblem& finish(int mask_rank);

  // The workspace that run() takes.
  size_t workspaceBytes(bool check_times);

  // Verifies times (if asked to), lengths and offsets, and computes. `stream_array` is the name
  // of the array of streams in errors, or null. To be called once.
  void run(rbcContext& context, bool check_times, const char* stream_array);

 private:
  // An optional vector of `count` entries, straight to its place: a copy of what has just been put
  // together makes the processor wait.
  void read(const rbcTensor* tensor, const char* argument, int64_t count, IndexArray* array) const;
  void read(const rbcTensor* tensor, const char* argument, int64_t count, RealArray* array) const;
  // Calls visit(array, entries) for all lengths and offsets that the host can read.
  template <class Visitor>
  void visitHostIndexes(Visitor&& visit);
  // An input lives where the context can reach it, and no output writes to it.
  void requireInput(const View& view, const char* argument) const;

  const rbcContext& context_;
  const rbcTensor* query_lengths_;
  View query_times_;
  View out_;
  View mask_;
  bool has_mask_;
  bool batched_ = false;
  FuseProblem problem_ = {};
  FuseStream streams_[kMostStreams];
  ChannelSegment segments_[kMostSegments];
};

}  // namespace rbc
