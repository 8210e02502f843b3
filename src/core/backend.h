// What a backend offers: a const table of functions that each backend defines.
#pragma once

#include <cstddef>

#include "robocache/context.h"
#include "view.h"

namespace rbc {

struct FuseProblem;
struct TimesDefect;
struct VoxelizeProblem;
struct SparseProblem;
struct TsdfProblem;

// A backend's own part of a context; each backend derives its type.
struct BackendState {};

// Memory that an operation may use during a call.
struct Scratch {
  void* data;
  size_t bytes;
};

struct Backend {
  int32_t id;  // RBC_BACKEND_...

  BackendState* (*open)(const rbcContextParams& params);
  void (*close)(BackendState* state) noexcept;
  void (*describe)(const BackendState& state, rbcContextInfo* info);
  void (*warmUp)(BackendState& state);

  // Whether code of this device may use memory there.
  bool (*reaches)(const BackendState& state, rbcDevice device);
  rbcDevice (*device)(const BackendState& state);

  void (*setStream)(BackendState& state, void* stream);
  void* (*stream)(const BackendState& state);
  void (*synchronize)(BackendState& state);
  bool (*capturing)(const BackendState& state);

  // Ordered on the given stream. allocate returns null if memory is exhausted.
  void* (*allocate)(BackendState& state, size_t bytes, void* stream);
  void (*release)(BackendState& state, void* pointer, size_t bytes, void* stream) noexcept;
  // Marks that the stream uses the workspace: a later stream has to wait for it.
  void (*useWorkspace)(BackendState& state);
  // Same shape and dtype; between host and device both are contiguous.
  void (*copy)(BackendState& state, const View& source, const View& destination);

  // Operations. checkTimes looks at one of the problem's streams, and at the query lengths.
  size_t (*checkTimesBytes)();
  void (*checkTimes)(BackendState& state, const FuseProblem& problem, int stream, Scratch scratch,
                     TimesDefect* defect);
  void (*fuse)(BackendState& state, const FuseProblem& problem);
  // Each with the bytes of scratch that it takes. Problems have at least one cloud, but for sparse.
  size_t (*voxelizeBytes)(const BackendState& state, const VoxelizeProblem& problem);
  void (*voxelize)(BackendState& state, const VoxelizeProblem& problem, Scratch scratch);
  size_t (*voxelizeSparseBytes)(const BackendState& state, const SparseProblem& problem);
  void (*voxelizeSparse)(BackendState& state, const SparseProblem& problem, Scratch scratch);
  size_t (*tsdfBytes)(const BackendState& state, const TsdfProblem& problem);
  void (*tsdf)(BackendState& state, const TsdfProblem& problem, Scratch scratch);
};

// Each backend has a namespace of its own, and one such table.
namespace cpu {
extern const Backend kBackend;
}
#if RBC_WITH_CUDA
namespace cuda {
extern const Backend kBackend;
}
#endif

}  // namespace rbc
