/*
 * RoboCache: status codes, the last error, versions.
 *
 * Every rbc* function that can fail returns an rbcStatus_t; nothing throws, aborts or prints.
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

/* How a call ended. Values never change meaning; new ones are added at the end. */
typedef enum rbcStatus_t {
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
  RBC_STATUS_CANCELLED = 11           /* the function of rbcContextSetInterrupt ended the call */
} rbcStatus_t;

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
 */

#endif /* ROBOCACHE_BASE_H */
