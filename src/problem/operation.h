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

#define OPERATION(Problem, name) struct Problem;
#include "operations.inc"
#undef OPERATION

template <class Problem>
struct Row {
  const Operation<Problem>* operation;
};
struct LastRow {};

// The operations of a backend: one row for each problem.
#define OPERATION(Problem, name) Row<Problem>,
struct Operations :
#include "operations.inc"
    LastRow {
};
#undef OPERATION

// The row of a problem's operation.
template <class Problem>
const Operation<Problem>& operationFor(const Backend& backend) {
  return *static_cast<const Row<Problem>&>(*backend.operations).operation;
}

}  // namespace rbc
