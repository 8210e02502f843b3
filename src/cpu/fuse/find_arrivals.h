// The minima of arrivals, on the CPU.
#pragma once

#include "arrival_lines.h"
#include "runtime/cpu_state.h"

namespace rbc::cpu {

// Writes `lines`, one per stream, and the minima that they point to. The problem is a FuseProblem
// or a WindowProblem, and has arrivals.
template <class Problem>
void findArrivals(CpuState& state, const Problem& problem, ScratchLayout* layout,
                  ArrivalLines* lines);

}  // namespace rbc::cpu
