/*
 * RoboCache: contexts.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ROBOCACHE_CONTEXT_H
#define ROBOCACHE_CONTEXT_H

#include <string.h>

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * rbcContext_t (base.h) is a device and a stream, with the workspace and the threads that
 * operations use.
 *
 * Contexts are independent. Any number of them may be used from any threads, but each by one thread
 * at a time: a call on a context that another thread's call is using fails with UNSUPPORTED and
 * does nothing. On the CPU a call returns when it is done. On CUDA it enqueues its work and
 * returns; its tensors must live until the stream has done the work.
 *
 * After fork(), a child process may use CPU contexts, both new ones and ones made before the fork.
 * It cannot use a CUDA context made before the fork, because CUDA does not survive a fork: calls
 * fail with NOT_AVAILABLE.
 */
/* rbcContextParams.backend and rbcContextInfo.backend */
#define RBC_BACKEND_AUTO 0 /* CUDA if a device is usable, else the CPU */
#define RBC_BACKEND_CPU 1  /* the CPU */
#define RBC_BACKEND_CUDA 2 /* an NVIDIA GPU */

/* rbcContextParams.simd and rbcContextInfo.simd: vector instructions of the CPU backend */
#define RBC_SIMD_AUTO 0     /* the best that this machine has */
#define RBC_SIMD_PORTABLE 1 /* no vector instructions chosen by hand; on any CPU */
#define RBC_SIMD_AVX2 2     /* AVX2, FMA and F16C */
#define RBC_SIMD_AVX512 3   /* AVX-512 */
#define RBC_SIMD_NEON 4     /* NEON, which every 64-bit ARM CPU has */

/*
 * A caller's allocator for the workspace and owned tensors. `cuda_stream` is the context's stream
 * on CUDA, where memory may be allocated and freed in the order of that stream, and null on the
 * CPU. alloc returns memory with the requested alignment, or null if it cannot. Both functions may
 * be called from any thread, and from several at once: the thread that drops the last reference to
 * a tensor frees it.
 */
typedef struct rbcAllocator {
  void* (*alloc)(void* user_data, size_t bytes, size_t alignment, void* cuda_stream);
  void (*free)(void* user_data, void* pointer, size_t bytes, void* cuda_stream);
  void* user_data; /* passed to both functions */
} rbcAllocator;

/* How to create a context. */
typedef struct rbcContextParams {
  uint32_t struct_size;
  int32_t backend;        /* RBC_BACKEND_...; default AUTO */
  int32_t device_id;      /* the CUDA device; default 0 */
  int32_t num_threads;    /* CPU threads per call; default 0: as many as CPUs */
  void* cuda_stream;      /* the first cudaStream_t; default null: the legacy default stream */
  rbcAllocator allocator; /* both functions or neither; default: cudaMallocAsync, malloc */
  int32_t simd;           /* RBC_SIMD_...; default AUTO; NOT_AVAILABLE if the machine lacks it */
  int32_t reserved0;      /* 0 */
} rbcContextParams;

static inline rbcContextParams rbcContextParamsInit(void) {
  rbcContextParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * Creates a context; null params mean the defaults. The caller destroys it with rbcContextDestroy.
 * Creation may be slow because it queries the device. On failure *context is null.
 *
 * Errors: INVALID_ARGUMENT; UNSUPPORTED (the build has no CUDA backend); NOT_AVAILABLE (no such
 * device or no usable driver: the message says which); OUT_OF_MEMORY; CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcContextCreate(const rbcContextParams* params, rbcContext_t* context);

/*
 * Destroys a context; null is allowed. Does not synchronize: enqueued work still completes, and the
 * workspace is freed in stream order, so the context's stream must still exist. Owned tensors,
 * accumulators and live streams of the context stay valid. Errors: UNSUPPORTED (a call is using the
 * context).
 */
RBC_API rbcStatus_t rbcContextDestroy(rbcContext_t context);

/*
 * Makes later calls enqueue on `cuda_stream`, a cudaStream_t of the context's device; null means
 * the legacy default stream. Work on the new stream that uses the context's workspace waits for the
 * work on the old stream by an event; the host does not wait. The old stream must still exist. On a
 * CPU context `cuda_stream` must be null. Errors: INVALID_ARGUMENT, CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcContextSetCudaStream(rbcContext_t context, void* cuda_stream);

/*
 * Writes the stream that calls enqueue on; null means the legacy default stream, or a CPU context.
 * Errors: INVALID_ARGUMENT.
 */
RBC_API rbcStatus_t rbcContextGetCudaStream(rbcContext_t context, void** cuda_stream);

/*
 * Waits until all work that was enqueued on the context's stream is done, and reports an error of
 * that work. Returns at once on a CPU context. Errors: UNSUPPORTED (the stream is being captured),
 * CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcContextSynchronize(rbcContext_t context);

/* Returns 0 to continue the call in progress, any other value to end it. */
typedef int32_t (*rbcCancelCallback)(void* user_data);

/*
 * Makes later calls on the CPU call `callback(user_data)`, so that long calls can be ended. Null,
 * the default, means no callback. The thread that made the call runs the callback between pieces of
 * the work, about every 50 ms, and never in a call that takes less time. If the callback does not
 * return 0, all threads of the call stop at their next piece, within milliseconds, and the call
 * fails with CANCELLED. The contents of its outputs are then unspecified, also of outputs that it
 * adds to, and an accumulator that it adds to can only be destroyed. The context can be used as
 * before.
 *
 * `callback` must return in the process that called it: no exception and no longjmp may leave it.
 * It may use other contexts; a call on this one fails with UNSUPPORTED. On CUDA it is never called,
 * since calls there only enqueue their work. Errors: INVALID_ARGUMENT.
 */
RBC_API rbcStatus_t rbcContextSetCancelCallback(rbcContext_t context, rbcCancelCallback callback,
                                                void* user_data);

/*
 * Grows the workspace to at least `bytes`, so that calls that need no more than that allocate
 * nothing. Each operation's ...WorkspaceSize returns the number. The workspace never shrinks.
 * Errors: OUT_OF_MEMORY, WORKSPACE_TOO_SMALL (it would grow while the stream is captured),
 * CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcContextReserve(rbcContext_t context, size_t bytes);

/*
 * Starts the CPU threads now instead of on first use; call it before timing. If the system refuses
 * some threads, it fails with UNSUPPORTED, and the message says how many run. Calls then use the
 * threads that run, and a later rbcContextWarmUp tries to start the rest.
 *
 * On CUDA it does nothing and does not touch the stream. With the driver of CUDA 12.4 or later,
 * creating the context has loaded the kernels. With an older driver, make a call once before timing
 * or capturing it.
 */
RBC_API rbcStatus_t rbcContextWarmUp(rbcContext_t context);

/* The properties of a context, written by rbcContextGetInfo. */
typedef struct rbcContextInfo {
  uint32_t struct_size;
  int32_t backend;             /* RBC_BACKEND_CPU or RBC_BACKEND_CUDA */
  int32_t device_id;           /* the CUDA device; 0 on the CPU */
  int32_t num_threads;         /* CPU threads that a call may use; 0 on CUDA */
  int32_t simd;                /* RBC_SIMD_...; 0 on CUDA */
  int32_t compute_capability;  /* of the GPU, such as 90; 0 on the CPU */
  int32_t num_multiprocessors; /* of the GPU; 0 on the CPU */
  int32_t built_with_cuda;     /* 1 if the library has the CUDA backend */
  uint64_t workspace_bytes;    /* the current size of the workspace */
  uint64_t total_memory_bytes; /* of the GPU, or of the machine on the CPU */
  char device_name[128];       /* of the GPU or the CPU */
  char cuda_unavailable[256];  /* why an AUTO context is not on CUDA, else "" */
  char last_launch[256];       /* how the last operation ran: see below; "" before the first */
} rbcContextInfo;

static inline rbcContextInfo rbcContextInfoInit(void) {
  rbcContextInfo info;
  memset(&info, 0, sizeof info);
  info.struct_size = (uint32_t)sizeof info;
  return info;
}

/*
 * Fills the first struct_size bytes of *info, which the caller has initialized. Does not
 * synchronize. Errors: INVALID_ARGUMENT.
 *
 * last_launch is a line of text for people, such as
 *   fuse: fuse_any (few streams), grid 32 x 128, shared 0 bytes; not fuse_mixed:
 *   streams[2].times: stride 2, expected 1
 * It names the operation, the kernel that does most of the work, its form and its launch. If a
 * faster kernel exists, it also names the first condition of that kernel that the call did not
 * meet. On the CPU it names the vector instructions and the threads. The text is a copy: later
 * calls do not change it. The wording may change from release to release.
 *
 * With the environment variable RBC_LOG=kernels, each successful operation prints this line to
 * stderr; with RBC_LOG=slow, only an operation that ran on a general kernel because of such a
 * condition does. A context reads the variable once, when it is created.
 */
RBC_API rbcStatus_t rbcContextGetInfo(rbcContext_t context, rbcContextInfo* info);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_CONTEXT_H */
