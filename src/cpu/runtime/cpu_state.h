// A CPU context.
#pragma once

#include "backend.h"
#include "operation.h"
#include "runtime/simd.h"
#include "thread_pool.h"

namespace rbc::cpu {

struct CpuState : BackendState {
  CpuState(int threads, SimdLevel level) : simd(level), pool(threads, interrupt) {
    usual_launch.kernel = "cpu";
    usual_launch.form = shortNameOf(level);
    usual_launch.threads = pool.threads();
  }

  const SimdLevel simd;
  ThreadPool pool;
};

inline CpuState& cpuState(BackendState& state) { return static_cast<CpuState&>(state); }

void copy(BackendState& state, const View& source, const View& destination);

}  // namespace rbc::cpu
