// Prepares searches for samples that had arrived, on the CPU: minima, or that they are in order.
#pragma once

#include "arrival_lines.h"
#include "runtime/cpu_state.h"

namespace rbc::cpu {

// Writes `lines`, one per stream, and the minima that they point to. The problem is a FuseProblem
// or a WindowProblem, and has arrivals. `in_order`, one per stream, is for a FuseProblem: whether
// the samples of each row arrived in their order, which needs no minima. It may be null.
template <class Problem>
void findArrivals(CpuState& state, const Problem& problem, ScratchLayout* layout,
                  ArrivalLines* lines, bool* in_order);

}  // namespace rbc::cpu
