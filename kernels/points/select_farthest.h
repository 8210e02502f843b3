// The choice of a kernel for farthest points: plain C++, also for tests without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "farthest_problem.h"
#include "launch_choice.h"
#include "runtime/launch_device.h"

namespace rbc::cuda {
namespace farthest {

inline constexpr int kMaxCluster = 16;

// A kernel: the points that its blocks keep, and their shared memory. farthest_points.cu checks the numbers.
struct Form {
  const char* name;
  int threads;
  int64_t room;            // points of a block that it keeps
  size_t kept_bytes;       // of shared memory, for a cloud that is kept
  size_t workspace_bytes;  // for one in the workspace
  size_t entry_bytes;      // in addition, for each block of a cluster

  constexpr size_t sharedBytes(int cluster) const {
    const size_t bytes = workspace_bytes + static_cast<size_t>(cluster) * entry_bytes;
    return kept_bytes > bytes ? kept_bytes : bytes;
  }
};

// Ascending by what a block keeps; the first fits any device. Each warp takes part in every round, so more of
// them cost. So do more buckets of a warp: all wait for one that has to lower two. The last one keeps
// nothing: its clouds are in the workspace.
inline constexpr int kKeptForms = 3;
inline constexpr int kLarge = kKeptForms;
inline constexpr Form kFormsOfFloats[] = {
    {"f32, 1024 points per block", 256, 1024, 21248, 16384, 512},
    {"f32, 4096 points per block", 512, 4096, 71936, 20496, 1024},
    {"f32, 8192 points per block", 512, 8192, 137472, 20496, 1024},
    {"f32, in the workspace", 512, 0, 0, 20496, 1024},
};
inline constexpr Form kFormsOfDoubles[] = {
    {"f64, 1024 points per block", 256, 1024, 36096, 16384, 768},
    {"f64, 4096 points per block", 256, 4096, 135424, 16384, 768},
    {"f64, 8192 points per block", 256, 8192, 219392, 16384, 768},
    {"f64, in the workspace", 512, 0, 0, 28688, 1536},
};
// Static shared memory of every form.
inline constexpr size_t kStaticBytesOfFloats = 4440;
inline constexpr size_t kStaticBytesOfDoubles = 8536;

// Blocks of a cluster, at most. Code for devices before Hopper has none, and more than 8 are not for all.
int mostBlocks(const LaunchDevice& device);

}  // namespace farthest

struct FarthestChoice : LaunchChoice {
  int number;         // of the form, in the table of the type that points are computed in
  int cluster;        // blocks of a cloud
  bool in_workspace;  // clouds may be
};

// The grid may be larger than a launch can have.
FarthestChoice selectFarthest(const FarthestProblem& problem, const LaunchDevice& device);

}  // namespace rbc::cuda
