// A CPU context, and what the files of this folder add to the backend's table.
#pragma once

#include "backend.h"
#include "simd.h"
#include "thread_pool.h"

namespace rbc {

struct CpuState : BackendState {
  CpuState(int threads, SimdLevel level) noexcept : simd(level), pool(threads) {}

  const SimdLevel simd;
  ThreadPool pool;
};

inline CpuState& cpuState(BackendState& state) { return static_cast<CpuState&>(state); }

void copyOnCpu(BackendState& state, const View& source, const View& destination);
void checkTimesOnCpu(BackendState& state, const FuseProblem& problem, int stream, Scratch scratch,
                     TimesDefect* defect);
void fuseOnCpu(BackendState& state, const FuseProblem& problem);
size_t voxelizeBytesOnCpu(const BackendState& state, const VoxelizeProblem& problem);
void voxelizeOnCpu(BackendState& state, const VoxelizeProblem& problem, Scratch scratch);
size_t voxelizeSparseBytesOnCpu(const BackendState& state, const SparseProblem& problem);
void voxelizeSparseOnCpu(BackendState& state, const SparseProblem& problem, Scratch scratch);
size_t tsdfBytesOnCpu(const BackendState& state, const TsdfProblem& problem);
void tsdfOnCpu(BackendState& state, const TsdfProblem& problem, Scratch scratch);

}  // namespace rbc
