// An operation of a backend: one row, defined in the file with its kernels.
#pragma once

#include <cstddef>

#include "backend.h"

namespace rbc {

template <class Problem>
struct Operation {
  // The bytes of workspace it needs, in addition to the entry's own (api/runtime/call.h).
  size_t (*workspaceBytes)(const BackendState& state, const Problem& problem);
  void (*run)(BackendState& state, const Problem& problem, Scratch scratch);
};

struct TimesProblem;
struct FuseProblem;
struct VoxelizeProblem;
struct SparseProblem;
struct TsdfProblem;
struct RotationProblem;
struct StatisticsProblem;
struct AccumulateProblem;
struct MergeProblem;
struct UnprojectProblem;
struct FarthestProblem;
struct TakeRowsProblem;
struct WindowProblem;

template <class Problem>
struct Row {
  const Operation<Problem>* operation;
};

// The operations of a backend: one row for each problem.
struct Operations : Row<TimesProblem>,
                    Row<FuseProblem>,
                    Row<VoxelizeProblem>,
                    Row<SparseProblem>,
                    Row<TsdfProblem>,
                    Row<RotationProblem>,
                    Row<StatisticsProblem>,
                    Row<AccumulateProblem>,
                    Row<MergeProblem>,
                    Row<UnprojectProblem>,
                    Row<FarthestProblem>,
                    Row<TakeRowsProblem>,
                    Row<WindowProblem> {};

// The row of a problem's operation.
template <class Problem>
const Operation<Problem>& operationFor(const Backend& backend) {
  return *static_cast<const Row<Problem>&>(*backend.operations).operation;
}

}  // namespace rbc
