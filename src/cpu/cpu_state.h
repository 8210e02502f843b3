// A CPU context, and what the files of this folder add to the backend's table.
#pragma once

#include "backend.h"
#include "simd.h"
#include "thread_pool.h"

namespace rbc::cpu {

struct CpuState : BackendState {
  CpuState(int threads, SimdLevel level) : simd(level), pool(threads) {}

  const SimdLevel simd;
  ThreadPool pool;
};

inline CpuState& cpuState(BackendState& state) { return static_cast<CpuState&>(state); }

void copy(BackendState& state, const View& source, const View& destination);
void checkTimes(BackendState& state, const FuseProblem& problem, int stream, Scratch scratch,
                TimesDefect* defect);
void fuse(BackendState& state, const FuseProblem& problem);
size_t voxelizeBytes(const BackendState& state, const VoxelizeProblem& problem);
void voxelize(BackendState& state, const VoxelizeProblem& problem, Scratch scratch);
size_t voxelizeSparseBytes(const BackendState& state, const SparseProblem& problem);
void voxelizeSparse(BackendState& state, const SparseProblem& problem, Scratch scratch);
size_t tsdfBytes(const BackendState& state, const TsdfProblem& problem);
void tsdf(BackendState& state, const TsdfProblem& problem, Scratch scratch);

}  // namespace rbc::cpu
