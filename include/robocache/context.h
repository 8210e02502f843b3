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
 * rbcContext_t (base.h) is a device and a stream, with the workspace and the threads that operations
 * use.
 *
 * Contexts are independent: use any number of them from any threads, but each from one thread at a
 * time. A call on a context that another thread's call is using fails with UNSUPPORTED and does
 * nothing. On the CPU a call returns when it is done. On CUDA it enqueues its work and returns: its
 * tensors must live until the stream has done the work.
 *
 * After fork(), a child may use CPU contexts, new ones and those made before. It cannot use a CUDA
 * context made before, since CUDA itself does not survive a fork.
 */
/* rbcContextParams.backend and rbcContextInfo.backend */
#define RBC_BACKEND_AUTO 0 /* CUDA if a device is usable, else the CPU */
#define RBC_BACKEND_CPU 1  /* the CPU */
#define RBC_BACKEND_CUDA 2 /* an NVIDIA GPU */

/* rbcContextParams.simd and rbcContextInfo.simd: vector instructions of the CPU backend */
#define RBC_SIMD_AUTO 0     /* the best that this machine has */
#define RBC_SIMD_PORTABLE 1 /* what the compiler makes of plain C++, on any CPU */
#define RBC_SIMD_AVX2 2     /* AVX2, FMA and F16C */
#define RBC_SIMD_AVX512 3   /* AVX-512 */
#define RBC_SIMD_NEON 4     /* those of every 64-bit ARM CPU */

/*
 * A caller's allocator for workspace and owned tensors. `cuda_stream` is the context's stream on
 * CUDA (memory may be handed out and taken back in the order of that stream) and null on the CPU.
 * alloc returns memory with the alignment that it is asked for, or null when it cannot serve the
 * request. Both may be called from any thread, and from several at once: the thread that drops the
 * last reference to a tensor frees it.
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
  int32_t device_id;      /* CUDA device; default 0 */
  int32_t num_threads;    /* CPU threads per call; 0 (default): as many as CPUs */
  void* cuda_stream;      /* the first cudaStream_t; default null, the legacy stream */
  rbcAllocator allocator; /* both functions or neither; default: cudaMallocAsync, malloc */
  int32_t simd;           /* RBC_SIMD_...; NOT_AVAILABLE if the machine lacks it */
  int32_t reserved0;      /* 0 */
} rbcContextParams;

static inline rbcContextParams rbcContextParamsInit(void) {
  rbcContextParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * Creates a context; null params mean the defaults. Creation may be slow (it queries the device);
 * calls are not. Errors: INVALID_ARGUMENT; UNSUPPORTED (CUDA asked of a build without it);
 * NOT_AVAILABLE (no such device, no usable driver: the message says which); OUT_OF_MEMORY;
 * CUDA_ERROR. On failure *context is null.
 */
RBC_API rbcStatus_t rbcContextCreate(const rbcContextParams* params, rbcContext_t* context);

/*
 * Destroys a context; null is allowed. Enqueued work still completes: workspace is freed in stream
 * order, so the context's stream must still exist. Does not synchronize.
 */
RBC_API rbcStatus_t rbcContextDestroy(rbcContext_t context);

/*
 * Makes later calls enqueue on `cuda_stream` (a cudaStream_t of the context's device; null: the
 * legacy default stream). Work on the new stream that uses the context's workspace waits for the work on
 * the old stream by an event: the host never waits. The old stream must still exist. On a CPU
 * context only null is allowed.
 */
RBC_API rbcStatus_t rbcContextSetCudaStream(rbcContext_t context, void* cuda_stream);

/* The stream that calls enqueue on; null: the legacy default stream, or a CPU context. */
RBC_API rbcStatus_t rbcContextGetCudaStream(rbcContext_t context, void** cuda_stream);

/*
 * Waits until all that was enqueued on the context's stream is done, and reports what went wrong
 * there. Returns at once on a CPU context. Not allowed while the stream is being captured
 * (UNSUPPORTED).
 */
RBC_API rbcStatus_t rbcContextSynchronize(rbcContext_t context);

/* Returns 0 to go on with the call that is under way, anything else to end it. */
typedef int32_t (*rbcCancelCallback)(void* user_data);

/*
 * Makes later calls on the CPU call `callback(user_data)`, so that long ones can be ended; null, the
 * default: none. It is called by the thread that made the call, between pieces of the work, about
 * every 50 ms and never in a call that takes less. When it returns anything but 0, all threads of
 * the call stop at their next piece, which takes milliseconds, and the call fails with CANCELLED.
 * What its outputs hold then is unspecified, also of those that it would have added to, and an
 * accumulator that it would have added to can only be destroyed. Nothing else of the call stays: the
 * next one works as ever.
 *
 * `callback` must return, in the process that it was called in: no exception and no longjmp may leave
 * it. It may use other contexts; a call on this one fails with UNSUPPORTED. On CUDA it is never
 * called, since calls there only enqueue their work.
 */
RBC_API rbcStatus_t rbcContextSetCancelCallback(rbcContext_t context, rbcCancelCallback callback,
                                                void* user_data);

/*
 * Grows the workspace to at least `bytes`, so that calls needing no more (see each operation's
 * ...WorkspaceSize) allocate nothing. It never shrinks.
 */
RBC_API rbcStatus_t rbcContextReserve(rbcContext_t context, size_t bytes);

/*
 * Starts the CPU threads now, not on first use: call it before timing. If the system refuses some
 * threads, it fails (UNSUPPORTED; the message says how many run). Calls then work with the threads
 * that run, and a later warm-up tries the rest again. On CUDA it does nothing: creating the context
 * has loaded the kernels if the driver is that of CUDA 12.4 or later. With an older driver, make a
 * call once before timing or capturing it. Does not touch the stream.
 */
RBC_API rbcStatus_t rbcContextWarmUp(rbcContext_t context);

/* What a context runs on. */
typedef struct rbcContextInfo {
  uint32_t struct_size;
  int32_t backend;             /* RBC_BACKEND_CPU or RBC_BACKEND_CUDA */
  int32_t device_id;           /* CUDA device; 0 on the CPU */
  int32_t num_threads;         /* CPU threads a call may use; 0 on CUDA */
  int32_t simd;                /* RBC_SIMD_...; 0 on CUDA */
  int32_t compute_capability;  /* of the GPU, such as 90; 0 on the CPU */
  int32_t num_multiprocessors; /* of the GPU; 0 on the CPU */
  int32_t built_with_cuda;     /* 1 if the library has the CUDA backend */
  uint64_t workspace_bytes;    /* the workspace's size now */
  uint64_t total_memory_bytes; /* of the device or of the machine */
  char device_name[128];       /* of the GPU or of the CPU */
  char cuda_unavailable[256];  /* why an AUTO context is not on CUDA, else "" */
  char last_launch[256];       /* what the last operation ran: see below; "" before the first */
} rbcContextInfo;

static inline rbcContextInfo rbcContextInfoInit(void) {
  rbcContextInfo info;
  memset(&info, 0, sizeof info);
  info.struct_size = (uint32_t)sizeof info;
  return info;
}

/*
 * Fills the first struct_size bytes of *info, which the caller has initialized.
 *
 * last_launch is a line of text for people, such as
 *   fuse: fuse_any (few streams), grid 32 x 128, shared 0 bytes; not fuse_mixed:
 *   streams[2].times: stride 2, expected 1
 * It has the operation; the kernel that does most of the work, its form and its launch; and, where a
 * faster kernel exists, the first of its conditions that the call did not meet. On the CPU it has the
 * vector instructions and the threads. The text is a copy: later calls do not change it. Its words
 * may change from release to release.
 *
 * With the environment variable RBC_LOG=kernels, each operation prints this line to stderr when it
 * has succeeded; with RBC_LOG=slow, only an operation that a general kernel does because of such a
 * condition. A context reads the variable once, when it is created.
 */
RBC_API rbcStatus_t rbcContextGetInfo(rbcContext_t context, rbcContextInfo* info);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_CONTEXT_H */
