// A backend: a const table of functions that each backend defines.
#pragma once

#include <cstddef>

#include "interrupt.h"
#include "launch_choice.h"
#include "robocache/context.h"
#include "view.h"

namespace rbc {

struct Operations;

// A backend's own part of a context; each backend derives its type.
struct BackendState {
  Interrupt interrupt;
  const char* last_operation = nullptr;  // null: none yet
  LaunchChoice last_launch;
  LaunchChoice usual_launch;  // for operations that do not report their own choice
  LogLevel log_level = logLevel();
};

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

  // Whether code of this device may access the memory of `device`.
  bool (*reaches)(const BackendState& state, rbcDevice device);
  rbcDevice (*device)(const BackendState& state);

  void (*setStream)(BackendState& state, void* stream);
  void* (*stream)(const BackendState& state);
  void (*synchronize)(BackendState& state);
  bool (*capturing)(const BackendState& state);

  // Ordered on the given stream. allocate returns null if memory is exhausted.
  void* (*allocate)(BackendState& state, size_t bytes, void* stream);
  void (*release)(BackendState& state, void* pointer, size_t bytes, void* stream) noexcept;
  // Records that the stream uses the workspace: a later stream must wait for it.
  void (*useWorkspace)(BackendState& state);
  // Same shape and dtype; between host and device both are contiguous.
  void (*copy)(BackendState& state, const View& source, const View& destination);

  // Makes read-only host memory, which the caller has mapped, readable for kernels at its address.
  // Returns false if the device or the system refuses. Null: host memory is readable.
  bool (*pin)(BackendState& state, const void* memory, size_t bytes);
  // The context need not exist any more.
  void (*unpin)(const void* memory) noexcept;

  const Operations* operations;  // problem/operation.h
};

// Each backend has its own namespace and one such table.
namespace cpu {
extern const Backend kBackend;
}
#if RBC_WITH_CUDA
namespace cuda {
extern const Backend kBackend;
}
#endif

}  // namespace rbc
