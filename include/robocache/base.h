/*
 * RoboCache: status codes, the last error, versions.
 *
 * Every rbc* function that can fail returns an rbcStatus_t. No function throws, aborts or prints.
 * The environment variable RBC_LOG makes operations print a line each: see rbcContextGetInfo.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ROBOCACHE_BASE_H
#define ROBOCACHE_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define RBC_API __attribute__((visibility("default")))
#else
#define RBC_API
#endif

/* The release. RBC_ABI_VERSION is the version of the binary interface, the number in the SONAME. */
#define RBC_VERSION_MAJOR 0
#define RBC_VERSION_MINOR 1
#define RBC_VERSION_PATCH 0
#define RBC_ABI_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/* The result of a call: RBC_STATUS_... */
typedef int32_t rbcStatus_t;

/* A device and a stream that operations run on: see context.h. */
typedef struct rbcContext* rbcContext_t;

/* The values of rbcStatus_t. A value never changes its meaning; new ones are added at the end. */
enum rbcStatus {
  RBC_STATUS_SUCCESS = 0,             /* the call did its work */
  RBC_STATUS_INVALID_ARGUMENT = 1,    /* a null pointer, an unknown constant, a bad value */
  RBC_STATUS_UNSUPPORTED = 2,         /* valid, but this build or state does not offer it */
  RBC_STATUS_DEVICE_MISMATCH = 3,     /* the context cannot reach a tensor's memory */
  RBC_STATUS_DTYPE_MISMATCH = 4,      /* a dtype does not fit the operation or other tensors */
  RBC_STATUS_SHAPE_MISMATCH = 5,      /* a rank or an extent does not fit the others */
  RBC_STATUS_OUT_OF_MEMORY = 6,       /* on the host, on the device or in the caller's allocator */
  RBC_STATUS_WORKSPACE_TOO_SMALL = 7, /* cannot grow during stream capture: reserve first */
  RBC_STATUS_CUDA_ERROR = 8,          /* CUDA reported an error; the message names it */
  RBC_STATUS_NOT_AVAILABLE = 9,       /* this machine has no such device or no usable driver */
  RBC_STATUS_INTERNAL = 10,           /* a defect of RoboCache: please report it */
  RBC_STATUS_CANCELLED = 11,          /* rbcContextSetCancelCallback's function ended the call */
  RBC_STATUS_BUFFER_TOO_SMALL = 12,   /* the caller's memory is too small for the result */
  RBC_STATUS_NOT_FOUND = 13,          /* no such entry or file */
  RBC_STATUS_IO_ERROR = 14,           /* the system could not read or write; the message says why */
  RBC_STATUS_DAMAGED = 15,            /* stored data failed a check */
  RBC_STATUS_BUSY = 16                /* another process does the same work */
};

/*
 * Returns the name of a status, such as "RBC_STATUS_SUCCESS", and "RBC_STATUS_UNKNOWN" for any
 * other number. The string is static.
 */
RBC_API const char* rbcStatusName(rbcStatus_t status);

/*
 * Returns one line about the most recent failed call of the calling thread: the argument, the value
 * that was found and what was expected. Returns "" if no call of the thread has failed. A
 * successful call does not change the text. The thread's next failing call overwrites it: copy it
 * to keep it.
 */
RBC_API const char* rbcGetLastError(void);

/*
 * Writes the release version of the loaded library, as major * 10000 + minor * 100 + patch, and its
 * ABI version. Either pointer may be null.
 */
RBC_API rbcStatus_t rbcGetVersion(int32_t* release_version, int32_t* abi_version);

#ifdef __cplusplus
} /* extern "C" */
#endif

/*
 * Parameter structs
 *
 * Each starts with `uint32_t struct_size` and has an inline initializer such as
 * rbcResampleParamsInit(). The initializer is compiled into the caller, so struct_size shows which
 * fields the caller has. The library reads min(struct_size, own size) bytes and uses the defaults
 * for the rest. A program therefore runs on a newer library, and on an older one as long as the
 * fields that the older one lacks are zero. Reserved fields must be zero.
 *
 * Structs that are elements of an array (rbcChannelGroup, rbcWindowsTransform) have no struct_size.
 * The struct that points to the array holds their size, and its initializer sets it.
 *
 * Callers that cannot compile the inline initializers (Rust, Julia, ctypes) use rbcInitParams.
 */

/* The structs' numbers, for rbcInitParams. */
enum rbcStruct {
  RBC_STRUCT_CONTEXT_PARAMS = 1,
  RBC_STRUCT_CONTEXT_INFO = 2,
  RBC_STRUCT_RESAMPLE_PARAMS = 3,
  RBC_STRUCT_FUSE_STREAM = 4,
  RBC_STRUCT_FUSE_PARAMS = 5,
  RBC_STRUCT_LIVE_STREAM = 6,
  RBC_STRUCT_LIVE_PARAMS = 7,
  RBC_STRUCT_LIVE_FUSE_PARAMS = 8,
  RBC_STRUCT_LIVE_COUNTERS = 9,
  RBC_STRUCT_WINDOWS_STREAM = 10,
  RBC_STRUCT_WINDOWS_OUTPUTS = 11,
  RBC_STRUCT_WINDOWS_PARAMS = 12,
  RBC_STRUCT_STATISTICS_PARAMS = 13,
  RBC_STRUCT_STATISTICS_OUTPUTS = 14,
  RBC_STRUCT_ACCUMULATOR_PARAMS = 15,
  RBC_STRUCT_ACCUMULATOR_UPDATE_PARAMS = 16,
  RBC_STRUCT_ACCUMULATOR_INFO = 17,
  RBC_STRUCT_VOXELIZE_PARAMS = 18,
  RBC_STRUCT_VOXELIZE_SPARSE_PARAMS = 19,
  RBC_STRUCT_VOXELIZE_SPARSE_OUTPUTS = 20,
  RBC_STRUCT_VOXELIZE_TSDF_PARAMS = 21,
  RBC_STRUCT_UNPROJECT_PARAMS = 22,
  RBC_STRUCT_FARTHEST_POINTS_PARAMS = 23,
  RBC_STRUCT_TAKE_ROWS_PARAMS = 24,
  RBC_STRUCT_CONVERT_ROTATIONS_PARAMS = 25,
  RBC_STRUCT_TENSOR_INFO = 26,
  RBC_STRUCT_OWNED_TENSOR_PARAMS = 27,
  RBC_STRUCT_IMAGES_FRAMES = 28,
  RBC_STRUCT_IMAGES_PARAMS = 29,
  RBC_STRUCT_IMAGE_DRAWS_PARAMS = 30,
  RBC_STRUCT_STORE_PARAMS = 31,
  RBC_STRUCT_ENTRY_INFO = 32,
  RBC_STRUCT_TRACK_INFO = 33,
  RBC_STRUCT_VERIFY_REPORT = 34,
  RBC_STRUCT_SEGMENT_PARAMS = 35,
  RBC_STRUCT_PRUNE_PARAMS = 36,
  RBC_STRUCT_PRUNE_REPORT = 37
};

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Writes the defaults of a struct, as its inline initializer does.
 *
 *   struct_id    RBC_STRUCT_...
 *   params       struct_size bytes; all are written
 *   struct_size  the size that the caller declares, a multiple of 8 from 8 to 65536. If it is less
 *                than the library's size, only the first fields are written; if it is more, the
 *                rest is set to 0
 *
 * Errors: INVALID_ARGUMENT.
 */
RBC_API rbcStatus_t rbcInitParams(int32_t struct_id, void* params, size_t struct_size);

#ifdef __cplusplus
} /* extern "C" */
#endif

/*
 * Flags
 *
 * `flags` of params: the lower 16 bits have the same meaning in every operation that supports them;
 * the upper 16 bits belong to one operation (RBC_<OPERATION>_FLAG_...).
 */
#define RBC_FLAG_CHECK_TIMES 1u /* verify times, lengths and offsets before anything is written */
#define RBC_FLAG_CAUSAL 2u      /* resampling looks back: see resample.h */

#endif /* ROBOCACHE_BASE_H */
