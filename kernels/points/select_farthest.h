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

// A kernel: the points that its blocks keep, and their shared memory. farthest_points.cu checks
// these numbers.
struct Form {
  const char* name;
  int threads;
  int64_t room;            // points per block that it keeps
  size_t kept_bytes;       // of shared memory, for a cloud that is kept
  size_t workspace_bytes;  // for a cloud in the workspace
  size_t entry_bytes;      // in addition, for each block of a cluster

  constexpr size_t sharedBytes(int cluster) const {
    const size_t bytes = workspace_bytes + static_cast<size_t>(cluster) * entry_bytes;
    return kept_bytes > bytes ? kept_bytes : bytes;
  }
};

// Ascending by the points that a block keeps; the first form fits any device. Each warp takes part
// in every round, so that more warps cost more. So do more buckets per warp: all wait for one that
// must lower two. The last form keeps nothing: its clouds are in the workspace.
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
// Static shared memory of all forms.
inline constexpr size_t kStaticBytesOfFloats = 4440;
inline constexpr size_t kStaticBytesOfDoubles = 8536;

// The maximum number of blocks in a cluster. Code for devices before Hopper has no clusters, and
// not every device allows more than 8 blocks.
int mostBlocks(const LaunchDevice& device);

}  // namespace farthest

struct FarthestChoice : LaunchChoice {
  int number;         // index of the form in the table for the compute type of points
  int cluster;        // blocks per cloud
  bool in_workspace;  // some clouds may be in the workspace
};

// The grid may exceed the limit of a launch.
FarthestChoice selectFarthest(const FarthestProblem& problem, const LaunchDevice& device);

}  // namespace rbc::cuda
