#include "context.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "fork.h"
#include "guard.h"
#include "params.h"
#include "status.h"

namespace rbc {
namespace {

rbcContextParams checkedParams(const rbcContextParams* input) {
  const rbcContextParams params = readParams(input, rbcContextParamsInit(), "params");
  if (params.backend < RBC_BACKEND_AUTO || params.backend > RBC_BACKEND_CUDA) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "params: backend is %d, expected RBC_BACKEND_AUTO, _CPU or _CUDA", params.backend);
  }
  if (params.device_id < 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "params: device_id is %d, expected 0 or more",
         params.device_id);
  }
  if (params.num_threads < 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "params: num_threads is %d, expected 0 or more",
         params.num_threads);
  }
  if (params.simd < RBC_SIMD_AUTO || params.simd > RBC_SIMD_NEON) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "params: simd is %d, expected RBC_SIMD_AUTO to RBC_SIMD_NEON",
         params.simd);
  }
  if ((params.allocator.alloc == nullptr) != (params.allocator.free == nullptr)) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "params: allocator has one of alloc and free, expected both or neither");
  }
  return params;
}

void openCuda(rbcContext& context, const rbcContextParams& params) {
#if RBC_WITH_CUDA
  context.state = cuda::kBackend.open(params);
  context.backend = &cuda::kBackend;
#else
  static_cast<void>(context);
  static_cast<void>(params);
  fail(RBC_STATUS_UNSUPPORTED,
       "CUDA: this build of the library has no CUDA backend: " RBC_CUDA_LEFT_OUT);
#endif
}

void openCpu(rbcContext& context, const rbcContextParams& params) {
  context.state = cpu::kBackend.open(params);
  context.backend = &cpu::kBackend;
}

void openAuto(rbcContext& context, const rbcContextParams& params) {
  char before[512];  // a call that succeeds leaves the last error unchanged
  std::snprintf(before, sizeof before, "%s", rbcGetLastError());
  try {
    openCuda(context, params);
  } catch (const Error&) {
    std::snprintf(context.cuda_unavailable, sizeof context.cuda_unavailable, "%s",
                  rbcGetLastError());
    setLastError("%s", before);
    if (params.cuda_stream != nullptr) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "params.cuda_stream: is set, but CUDA is not usable (%s)",
           context.cuda_unavailable);
    }
    openCpu(context, params);
  }
}

bool lostByFork(const rbcContext& context) {
  return context.backend->id == RBC_BACKEND_CUDA && context.fork_generation != forkGeneration();
}

// Frees the workspace once all its users have finished.
void releaseWorkspace(rbcContext& context) {
  if (context.workspace.data == nullptr) return;
  context.backend->useWorkspace(*context.state);
  release(context, context.workspace.data, context.workspace.bytes,
          context.backend->stream(*context.state));
  context.workspace = {};
}

// Destroys a context, also one that is only partly created.
struct Destroyer {
  void operator()(rbcContext* context) const noexcept {
    // In a forked child no CUDA function may be called: the parent owns the state.
    if (context->backend != nullptr && !lostByFork(*context)) {
      guard([&] { releaseWorkspace(*context); });
      context->backend->close(context->state);
    }
    delete context;
  }
};

constexpr size_t kWorkspaceUnit = 1 << 16;

void takeContext(rbcContext& context) {
  if (!context.busy.exchange(true, std::memory_order_acquire)) return;
  fail(RBC_STATUS_UNSUPPORTED,
       "context: is in use by another thread, or by the call that its allocator serves; make one "
       "context for each thread");
}

}  // namespace

ContextUse::ContextUse(rbcContext_t context) : context_(context) {
  if (context == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "context: is null");
  if (lostByFork(*context)) {
    fail(RBC_STATUS_NOT_AVAILABLE,
         "context: was made on CUDA before a fork, which CUDA does not survive; make a CPU context "
         "here, or start "
         "the process by spawn");
  }
  takeContext(*context);
  context->state->interrupt.beginCall();
}

ContextUse::~ContextUse() {
  for (InUse* item = std::exchange(context_->in_use, nullptr); item != nullptr;) {
    InUse* const next = item->next;  // item may be destroyed once it is released
    item->busy.store(false, std::memory_order_release);
    item = next;
  }
  context_->busy.store(false, std::memory_order_release);
}

bool useUntilCallEnds(rbcContext& context, InUse& item) noexcept {
  if (item.busy.exchange(true, std::memory_order_acquire)) {
    const InUse* own = context.in_use;
    while (own != nullptr && own != &item) own = own->next;
    return own != nullptr;
  }
  item.next = std::exchange(context.in_use, &item);
  return true;
}

void requireReachable(const rbcContext& context, const View& view, const char* argument) {
  if (context.backend->reaches(*context.state, view.device)) return;
  const rbcDevice own = context.backend->device(*context.state);
  fail(RBC_STATUS_DEVICE_MISMATCH,
       "%s: lives on device (type %d, id %d), expected %s (type %d, id %d), the context's",
       argument, view.device.type, view.device.id, own.type == RBC_DEVICE_CPU ? "the CPU" : "CUDA",
       own.type, own.id);
}

void* allocate(rbcContext& context, size_t bytes) {
  void* stream = context.backend->stream(*context.state);
  void* pointer = context.allocator.alloc != nullptr
                      ? context.allocator.alloc(context.allocator.user_data, bytes, 256, stream)
                      : context.backend->allocate(*context.state, bytes, stream);
  if (pointer == nullptr) {
    fail(RBC_STATUS_OUT_OF_MEMORY, "%s memory: %zu bytes are not available%s",
         context.backend->id == RBC_BACKEND_CUDA ? "device" : "host", bytes,
         context.allocator.alloc != nullptr ? " from the context's allocator" : "");
  }
  return pointer;
}

void release(rbcContext& context, void* pointer, size_t bytes, void* stream) noexcept {
  if (pointer == nullptr) return;
  if (context.allocator.free != nullptr) {
    context.allocator.free(context.allocator.user_data, pointer, bytes, stream);
  } else {
    context.backend->release(*context.state, pointer, bytes, stream);
  }
}

Scratch workspace(rbcContext& context, size_t bytes) {
  if (bytes > context.workspace.bytes) {
    if (context.backend->capturing(*context.state)) {
      fail(RBC_STATUS_WORKSPACE_TOO_SMALL,
           "workspace: %zu bytes are needed and %zu reserved, and it cannot grow while the stream "
           "is captured; call "
           "rbcContextReserve before",
           bytes, context.workspace.bytes);
    }
    if (bytes > SIZE_MAX - kWorkspaceUnit) {
      fail(RBC_STATUS_OUT_OF_MEMORY, "workspace: %zu bytes are not available", bytes);
    }
    // May fail: done before there is new memory to free.
    if (context.workspace.data != nullptr) context.backend->useWorkspace(*context.state);
    const size_t rounded = (bytes + kWorkspaceUnit - 1) / kWorkspaceUnit * kWorkspaceUnit;
    void* data = allocate(context, rounded);
    releaseWorkspace(context);
    context.workspace = {data, rounded};
  }
  if (bytes > 0) context.backend->useWorkspace(*context.state);
  return context.workspace;
}

void retain(rbcContext& context) noexcept {
  context.references.fetch_add(1, std::memory_order_relaxed);
}

void drop(rbcContext* context) noexcept {
  if (context->references.fetch_sub(1, std::memory_order_acq_rel) == 1) Destroyer{}(context);
}

}  // namespace rbc

rbcStatus_t rbcContextCreate(const rbcContextParams* params, rbcContext_t* context) {
  return rbc::guard([&] {
    if (context == nullptr) rbc::fail(RBC_STATUS_INVALID_ARGUMENT, "context: is null");
    *context = nullptr;
    const rbcContextParams checked = rbc::checkedParams(params);
    std::unique_ptr<rbcContext, rbc::Destroyer> made(new rbcContext);
    made->allocator = checked.allocator;
    made->fork_generation = rbc::forkGeneration();
    if (checked.backend == RBC_BACKEND_CPU) {
      rbc::openCpu(*made, checked);
    } else if (checked.backend == RBC_BACKEND_CUDA) {
      rbc::openCuda(*made, checked);
    } else {
      rbc::openAuto(*made, checked);
    }
    *context = made.release();
  });
}

rbcStatus_t rbcContextDestroy(rbcContext_t context) {
  return rbc::guard([&] {
    if (context == nullptr) return;
    rbc::takeContext(*context);
    // Accumulators and live streams that were made with it go on using it.
    context->busy.store(false, std::memory_order_release);
    rbc::drop(context);
  });
}

rbcStatus_t rbcContextSetCudaStream(rbcContext_t context, void* cuda_stream) {
  return rbc::guard([&] {
    const rbc::ContextUse c(context);
    c->backend->setStream(*c->state, cuda_stream);
  });
}

rbcStatus_t rbcContextGetCudaStream(rbcContext_t context, void** cuda_stream) {
  return rbc::guard([&] {
    const rbc::ContextUse c(context);
    if (cuda_stream == nullptr) {
      rbc::fail(RBC_STATUS_INVALID_ARGUMENT, "cuda_stream: is null");
    }
    *cuda_stream = c->backend->stream(*c->state);
  });
}

rbcStatus_t rbcContextSynchronize(rbcContext_t context) {
  return rbc::guard([&] {
    const rbc::ContextUse c(context);
    c->backend->synchronize(*c->state);
  });
}

rbcStatus_t rbcContextSetCancelCallback(rbcContext_t context, rbcCancelCallback callback,
                                        void* user_data) {
  return rbc::guard([&] { rbc::ContextUse(context)->state->interrupt.set(callback, user_data); });
}

rbcStatus_t rbcContextReserve(rbcContext_t context, size_t bytes) {
  return rbc::guard([&] { rbc::workspace(*rbc::ContextUse(context), bytes); });
}

rbcStatus_t rbcContextWarmUp(rbcContext_t context) {
  return rbc::guard([&] {
    const rbc::ContextUse c(context);
    c->backend->warmUp(*c->state);
  });
}

rbcStatus_t rbcContextGetInfo(rbcContext_t context, rbcContextInfo* info) {
  return rbc::guard([&] {
    const rbc::ContextUse c(context);
    rbcContextInfo result = rbcContextInfoInit();
    result.backend = c->backend->id;
    result.built_with_cuda = RBC_WITH_CUDA;
    result.workspace_bytes = c->workspace.bytes;
    std::memcpy(result.cuda_unavailable, c->cuda_unavailable, sizeof result.cuda_unavailable);
    c->backend->describe(*c->state, &result);
    rbc::writeLaunch(c->state->last_operation, c->state->last_launch, result.last_launch,
                     sizeof result.last_launch);
    rbc::writeInfo(info, result, "info", "rbcContextInfoInit");
  });
}
