// What the kernel of any fusion is told.
#pragma once

#include "fuse_problem.h"
#include "runtime/fast_divmod.cuh"

namespace rbc::cuda {
namespace any {

// Channels of one method, as vectors: what a lane takes at once.
struct SegmentTask {
  int64_t begin;         // its first channel
  int64_t first_vector;  // among the stream's
  Method method;
  int32_t count;  // channels of a vector
  bool in_vecs;   // they are aligned
};

struct StreamTask {
  FuseStream stream;
  int64_t first_unit;
  int64_t vectors;
  int64_t range;      // vectors of a unit
  FastDivmod ranges;  // of a row
  int32_t group;      // queries of a unit
  int32_t value_bytes;
  int32_t out_bytes;
  float pace;      // for prefetchTimes()
  bool in_double;  // computed so
  bool affine_in_vecs;
  bool mask_of_ranges;  // all of a row's have a say in its mask
};

// What a kernel is made for. Arguments travel with the launch, so a few streams get a small struct;
// and without doubles and long indexes it has registers left. Where samples may be missing a query
// takes more of them: one form for all such leaves the others as they are.
struct FewFloats {
  static constexpr int kStreams = 8;
  static constexpr int kSegments = 32;
  static constexpr bool kDoubles = false;
  static constexpr bool kMasked = false;
  using Index = int32_t;  // of recordings, samples and queries
};
struct Few {
  static constexpr int kStreams = 8;
  static constexpr int kSegments = 32;
  static constexpr bool kDoubles = true;
  static constexpr bool kMasked = false;
  using Index = int64_t;
};
struct Many {
  static constexpr int kStreams = kMaxStreams;
  static constexpr int kSegments = kMaxSegments;
  static constexpr bool kDoubles = true;
  static constexpr bool kMasked = false;
  using Index = int64_t;
};
struct Masked : Many {
  static constexpr bool kMasked = true;
};

template <class Form>
struct FuseLaunch {
  FuseProblem problem;
  FastDivmod per_row;  // queries
  int64_t units;
  StreamTask streams[Form::kStreams];
  SegmentTask segments[Form::kSegments];
};

}  // namespace any
}  // namespace rbc::cuda
