// The kernels of fusion: which calls suit each, and their launches. fuse.cu chooses.
#pragma once

#include <cuda_runtime_api.h>

#include "fuse/fuse_rows_instances.h"
#include "fuse_problem.h"
#include "runtime/launch_device.h"

namespace rbc::cuda {

// ---- Fusion of any streams of which samples may be missing.

cudaError_t launchMissing(const FuseProblem& p, const LaunchDevice& device,
                          cudaStream_t cuda_stream);

cudaError_t loadFuseMissing();

namespace mixed_streams {

// ---- Fusion of narrow streams that differ in dtype or in method.

// How a problem is cut into blocks: each does a part of a recording's queries, of one stream.
struct Plan {
  int32_t part;     // queries
  int32_t threads;  // of a block
  int32_t shared;   // bytes of a block
};

// Whether their kernel suits a problem, and pays.
bool suits(const FuseProblem& p, const LaunchDevice& device, Plan* plan);

cudaError_t launch(const Plan& plan, const FuseProblem& p, const LaunchDevice& device,
                   cudaStream_t cuda_stream);

}  // namespace mixed_streams

cudaError_t loadFuseMixed(const LaunchDevice& device);

namespace narrow_streams {

// ---- Fusion of many narrow streams.

// How a problem is cut into blocks: each does a part of a recording's queries, of a group of
// streams.
struct Plan {
  int32_t groups;
  int32_t first[rows::kManyStreams + 1];  // stream of each group, and the end
  int32_t part;                           // queries
  int32_t warps;                          // of a block
  int32_t shared;                         // bytes of a block
};

// Whether their kernel suits a problem, and pays.
bool suits(const FuseProblem& p, const LaunchDevice& device, Plan* plan);

cudaError_t launch(const Plan& plan, const FuseProblem& p, const LaunchDevice& device,
                   cudaStream_t cuda_stream);

}  // namespace narrow_streams

cudaError_t loadFuseNarrow(const LaunchDevice& device);

// ---- Fusion by the kernels of whole rows.

// One launch, nothing else.
using FuseLauncher = cudaError_t (*)(const FuseProblem& problem, const LaunchDevice& device,
                                     cudaStream_t cuda_stream);

// The launcher of the kernel that suits the problem, or null: launchFuse() does everything.
FuseLauncher rowsLauncherOf(const FuseProblem& problem);

cudaError_t loadFuseRows();

namespace rows {

// ---- The launchers of the kernels of whole rows, by the dtype of times: each has a source file of its own,
// as they take long to compile.

// Of an instance that is compiled.
template <class Time>
FuseLauncher launcherOf(int instance);

template <class Time>
cudaError_t loadKernels();

}  // namespace rows

}  // namespace rbc::cuda
