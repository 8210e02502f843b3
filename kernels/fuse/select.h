// The choice of a kernel for fusion, and how its work is divided: plain C++, also for tests without
// a GPU.
#pragma once

#include <cstdint>

#include "fuse/fuse_rows_instances.h"
#include "fuse_problem.h"
#include "launch_choice.h"
#include "runtime/launch_device.h"
#include "runtime/tiling.h"

namespace rbc::cuda {

// In the order of preference.
enum class FuseKernel : uint8_t {
  kNarrow,  // fuse_narrow_kernel.cuh: many streams of one or two channels
  kRows,    // fuse_rows_kernel.cuh: streams that are alike
  kMixed,   // fuse_mixed_kernel.cuh: narrow streams of any dtypes and methods
  kAny,     // fuse_any_kernel.cuh
};

namespace narrow_streams {

// Each block processes part of a recording's queries, for a group of streams.
struct Plan {
  int32_t groups;
  int32_t first[rows::kManyStreams + 1];  // first stream of each group, and the end
  int32_t part;                           // queries
};

}  // namespace narrow_streams

namespace rows {

// Each block processes a unit: some queries and a range of the channels of a stream.
struct Plan {
  bool in_turns;  // units are ordered by queries, all streams in turn
  int32_t most;   // the most queries per unit
  int64_t units;  // per turn
  Tiling tiling[kManyStreams];
  int32_t first_unit[kManyStreams];  // in a turn
  int32_t groups[kManyStreams];      // groups of queries in a turn
};

}  // namespace rows

namespace mixed_streams {

// Each block processes part of a recording's queries, for one stream.
struct Plan {
  int32_t part;  // queries
};

}  // namespace mixed_streams

namespace any {

inline constexpr int kWarpsPerBlock = 4;

// The forms of the kernel. Arguments are part of the launch, so that a few streams get a small
// struct; without doubles and long indices registers are left. With missing samples a query needs
// more registers: all such calls use one form, so that the others do not need them.
struct FewFloats {
  static constexpr int kStreams = 8;
  static constexpr int kSegments = 32;
  static constexpr bool kDoubles = false;
  static constexpr bool kMasked = false;
  static constexpr bool kCausal = false;
  using Index = int32_t;  // of recordings, samples and queries
};
struct Few {
  static constexpr int kStreams = 8;
  static constexpr int kSegments = 32;
  static constexpr bool kDoubles = true;
  static constexpr bool kMasked = false;
  static constexpr bool kCausal = false;
  using Index = int64_t;
};
struct Many {
  static constexpr int kStreams = kMaxStreams;
  static constexpr int kSegments = kMaxSegments;
  static constexpr bool kDoubles = true;
  static constexpr bool kMasked = false;
  static constexpr bool kCausal = false;
  using Index = int64_t;
};
struct Masked : Many {
  static constexpr bool kMasked = true;
};
// With arrivals, or channels that look back only: each query has samples of its own.
struct Causal : Masked {
  static constexpr int kStreams = 32;  // per launch: more would not fit its arguments
  static constexpr bool kCausal = true;
};

enum class FormId : uint8_t { kFewFloats, kFew, kMany, kMasked, kCausal };

// Each warp processes a unit: some queries and a range of the vectors of a stream.
struct Plan {
  FormId form;
  int64_t units;
  Tiling tiling[kMaxStreams];
  uint8_t count_log2[kMaxSegments];  // channels per vector
  bool in_vecs[kMaxSegments];        // these are aligned
};

}  // namespace any

// A kernel, its form, its launch, and how the work is divided.
struct FuseChoice : LaunchChoice {
  FuseKernel family;
  int32_t instance;  // kRows: in fuse_rows_instances.h; kNarrow: the pair of dtypes
  DType in;          // of the first stream
  DType out;
  DType time;
  union {  // by `family`
    narrow_streams::Plan narrow_plan;
    rows::Plan rows_plan;
    mixed_streams::Plan mixed_plan;
    any::Plan any_plan;
  };
};

FuseChoice selectFuse(const FuseProblem& problem, const LaunchDevice& device);

}  // namespace rbc::cuda
