/*
 * RoboCache: status codes, the last error, versions.
 *
 * Every rbc* function that can fail returns an rbcStatus_t; nothing throws or aborts, and
 * nothing prints unless the environment variable RBC_LOG asks for it (rbcContextGetInfo).
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

/* The release, and the ABI that a binary can rely on: the SONAME's number. */
#define RBC_VERSION_MAJOR 0
#define RBC_VERSION_MINOR 1
#define RBC_VERSION_PATCH 0
#define RBC_ABI_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/* How a call ended: RBC_STATUS_... */
typedef int32_t rbcStatus_t;

/* A device and a stream, on which operations run: see context.h. */
typedef struct rbcContext* rbcContext_t;

/* Values never change meaning; new ones are added at the end. */
enum rbcStatus {
  RBC_STATUS_SUCCESS = 0,             /* the call did what it says */
  RBC_STATUS_INVALID_ARGUMENT = 1,    /* a null pointer, an unknown constant, a bad value */
  RBC_STATUS_UNSUPPORTED = 2,         /* valid, but not offered by this build or in this state */
  RBC_STATUS_DEVICE_MISMATCH = 3,     /* the context cannot reach a tensor's memory */
  RBC_STATUS_DTYPE_MISMATCH = 4,      /* a dtype does not fit the operation or other tensors */
  RBC_STATUS_SHAPE_MISMATCH = 5,      /* a rank or an extent does not fit the others */
  RBC_STATUS_OUT_OF_MEMORY = 6,       /* on the host, on the device or in the caller's allocator */
  RBC_STATUS_WORKSPACE_TOO_SMALL = 7, /* cannot grow during stream capture: reserve first */
  RBC_STATUS_CUDA_ERROR = 8,          /* CUDA reported an error; the message names it */
  RBC_STATUS_NOT_AVAILABLE = 9,       /* no such device, or no usable driver, on this machine */
  RBC_STATUS_INTERNAL = 10,           /* a defect of RoboCache: please report it */
  RBC_STATUS_CANCELLED = 11,          /* rbcContextSetCancelCallback's function ended the call */
  RBC_STATUS_BUFFER_TOO_SMALL = 12,   /* the caller's memory is too small for the result */
  RBC_STATUS_NOT_FOUND = 13,          /* no such entry or file */
  RBC_STATUS_IO_ERROR = 14,           /* the system could not read or write; the message says why */
  RBC_STATUS_DAMAGED = 15             /* stored data failed a check */
};

/*
 * The name of a status, such as "RBC_STATUS_SUCCESS"; "RBC_STATUS_UNKNOWN" for any other number.
 * Static storage.
 */
RBC_API const char* rbcStatusName(rbcStatus_t status);

/*
 * One line about the calling thread's most recent failed call. It names the argument, what it was
 * and what was expected; "" if no call of this thread failed yet. A successful call leaves it as it
 * is. The thread's next failing call overwrites it: copy it to keep it.
 */
RBC_API const char* rbcGetLastError(void);

/*
 * The loaded library's release version as major * 10000 + minor * 100 + patch, and its ABI version.
 * Either pointer may be null.
 */
RBC_API rbcStatus_t rbcGetVersion(int32_t* release_version, int32_t* abi_version);

#ifdef __cplusplus
} /* extern "C" */
#endif

/*
 * Parameter structs
 *
 * Each opens with `uint32_t struct_size` and comes with an inline initializer
 * (rbcResampleParamsInit(), ...) that is compiled into the caller, so that struct_size tells which
 * fields the caller knows. The library reads min(struct_size, own size) bytes and takes the
 * defaults for the rest: a program keeps running on a newer library, and on an older one as long as
 * the fields that the old one does not know are zero. Reserved fields must be zero.
 *
 * Structs that are elements of an array (rbcChannelGroup, rbcWindowsTransform) have no size of their
 * own; the struct that points to the array holds it, and its initializer sets it.
 *
 * Callers that cannot compile the inline initializers (Rust, Julia, ctypes) use rbcInitParams.
 */

/* Numbers of the structs, for rbcInitParams. */
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
  RBC_STRUCT_OWNED_TENSOR_PARAMS = 27
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
 *                than the library's, only the first fields are written; if it is more, the rest is 0
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
 * `flags` of params: the lower 16 bits mean the same in every operation that takes them, the upper
 * 16 bits belong to one operation (RBC_<OPERATION>_FLAG_...).
 */
#define RBC_FLAG_CHECK_TIMES 1u /* verify times, lengths and offsets before anything is written */

#endif /* ROBOCACHE_BASE_H */
