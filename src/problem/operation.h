// An operation of a backend: a row that the file with its kernels defines.
#pragma once

#include <cstddef>

#include "backend.h"

namespace rbc {

template <class Problem>
struct Operation {
  // What it takes of the workspace, besides what the entry takes (api/call.h).
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

// What a backend offers: one row for each problem.
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
