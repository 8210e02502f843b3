/*
 * RoboCache: tensors.
 *
 * Operations take `const rbcTensor*`: a description of memory that the caller owns. They read the
 * descriptor, its shape and its strides only during the call. `const` is about the descriptor: an
 * operation writes the data of an output, a `const rbcOutput*`.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ROBOCACHE_TENSOR_H
#define ROBOCACHE_TENSOR_H

#include <string.h>

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most dimensions that a tensor may have. */
#define RBC_TENSOR_MAX_NDIM 8

/* Where data lives: DLPack's DLDeviceType. */
#define RBC_DEVICE_CPU 1           /* host memory */
#define RBC_DEVICE_CUDA 2          /* memory of a GPU */
#define RBC_DEVICE_CUDA_HOST 3     /* pinned host memory: usable by CPU and CUDA contexts */
#define RBC_DEVICE_CUDA_MANAGED 13 /* managed memory: usable by CPU and CUDA contexts */

/* DLPack's DLDataTypeCode, as far as RoboCache reads it. */
#define RBC_DTYPE_INT 0    /* signed integers */
#define RBC_DTYPE_UINT 1   /* unsigned integers */
#define RBC_DTYPE_FLOAT 2  /* IEEE floating point */
#define RBC_DTYPE_BFLOAT 4 /* bfloat16: the upper half of a float */
#define RBC_DTYPE_BOOL 6   /* a byte, 0 or 1 */

/* Layout of DLPack's DLDevice. */
typedef struct rbcDevice {
  int32_t type; /* RBC_DEVICE_... */
  int32_t id;   /* 0 for the CPU */
} rbcDevice;

/* Layout of DLPack's DLDataType. {RBC_DTYPE_FLOAT, 32, 1} is float. */
typedef struct rbcDType {
  uint8_t code;   /* RBC_DTYPE_... */
  uint8_t bits;   /* 8, 16, 32 or 64 */
  uint16_t lanes; /* 1 */
} rbcDType;

/*
 * Describes memory: its address, device, dtype, shape and strides. It has the layout of DLPack's
 * DLTensor, so a `DLTensor*` can be passed by a cast.
 */
typedef struct rbcTensor {
  void* data;           /* may be null if the tensor has no elements */
  rbcDevice device;     /* where data lives */
  int32_t ndim;         /* the number of dimensions, 0 .. RBC_TENSOR_MAX_NDIM */
  rbcDType dtype;       /* the type of the elements */
  int64_t* shape;       /* [ndim], slowest first */
  int64_t* strides;     /* [ndim], in elements, may be 0 or negative; null: compact and row-major */
  uint64_t byte_offset; /* from data to the first element, in bytes */
} rbcTensor;

/* A tensor whose data a call writes. What is only read is an rbcTensor. */
typedef rbcTensor rbcOutput;

/* What rbcTensorGetInfo writes: the same tensor with nothing implicit. */
typedef struct rbcTensorInfo {
  uint32_t struct_size;
  int32_t ndim;                  /* the number of dimensions */
  void* data;                    /* the first element, byte_offset applied */
  int64_t num_elements;          /* the product of the extents */
  int64_t num_bytes;             /* num_elements * element size */
  int64_t shape[RBC_TENSOR_MAX_NDIM];   /* the first ndim count */
  int64_t strides[RBC_TENSOR_MAX_NDIM]; /* explicit; those of extents 0 and 1 as if compact */
  int32_t element_size;          /* bytes */
  int32_t is_contiguous;         /* 1 if compact and row-major */
} rbcTensorInfo;

static inline rbcTensorInfo rbcTensorInfoInit(void) {
  rbcTensorInfo info;
  memset(&info, 0, sizeof info);
  info.struct_size = (uint32_t)sizeof info;
  return info;
}

/*
 * Checks a descriptor as every operation does (rank, extents, lanes, dtype, alignment to the
 * element, 64-bit overflow of sizes and offsets), resolves byte_offset and null strides, and fills
 * the first struct_size bytes of *info, which the caller has initialized. Errors:
 * INVALID_ARGUMENT, DTYPE_MISMATCH (a dtype that RoboCache does not know), SHAPE_MISMATCH.
 */
RBC_API rbcStatus_t rbcTensorGetInfo(const rbcTensor* tensor, rbcTensorInfo* info);

/* ---- owned tensors ------------------------------------------------------------------------ */

struct DLManagedTensor;          /* dlpack.h */
struct DLManagedTensorVersioned; /* dlpack.h, 1.0 and later */

/*
 * A tensor that owns its memory, allocated by the library or taken over from DLPack. It is for
 * callers without a tensor library of their own, and for the exchange with DLPack.
 */
typedef struct rbcOwnedTensor* rbcOwnedTensor_t;

/* How to allocate a tensor. */
typedef struct rbcOwnedTensorParams {
  uint32_t struct_size;
  uint32_t flags; /* 0 */
} rbcOwnedTensorParams;

static inline rbcOwnedTensorParams rbcOwnedTensorParamsInit(void) {
  rbcOwnedTensorParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * Allocates an uninitialized compact row-major tensor on the context's device, by the context's
 * allocator, aligned to 256 bytes. Null params mean the defaults. On CUDA the allocation is ordered
 * on the context's stream.
 * The tensor keeps what it needs of the context alive: destroying the context first is fine.
 * Errors: INVALID_ARGUMENT, DTYPE_MISMATCH, OUT_OF_MEMORY, CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcOwnedTensorCreate(rbcContext_t context, rbcDType dtype, int32_t ndim,
                                         const int64_t* shape,
                                         const rbcOwnedTensorParams* params,
                                         rbcOwnedTensor_t* tensor);

/*
 * Drops one reference; null is allowed. Memory is freed (or the imported tensor's deleter called)
 * when the last reference is gone: exported DLPack tensors each hold one. On CUDA the
 * memory is freed in the order of the stream that it was allocated on.
 */
RBC_API rbcStatus_t rbcOwnedTensorDestroy(rbcOwnedTensor_t tensor);

/*
 * Describes an owned tensor for use in calls. `view` points into the owned tensor (shape, strides)
 * and is valid until it is destroyed. Ask with writable = 1 for a view to write through: a tensor
 * imported read-only then fails with INVALID_ARGUMENT.
 */
RBC_API rbcStatus_t rbcOwnedTensorGetView(rbcOwnedTensor_t tensor, int32_t writable,
                                          rbcTensor* view);

/*
 * Copies elements between tensors of one shape and dtype; any strides; host to host, host to
 * device, device to host, device to device of the context's device. Enqueued on the context's
 * stream; a copy to or from host memory returns when the data has arrived (it synchronizes with the
 * stream), and both its tensors must be contiguous (INVALID_ARGUMENT). Errors also: DTYPE_MISMATCH,
 * SHAPE_MISMATCH, DEVICE_MISMATCH, CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcTensorCopy(rbcContext_t context, const rbcTensor* source,
                                  const rbcOutput* destination);

/*
 * Takes over a DLPack managed tensor without a copy: the deleter is called exactly once, when the
 * owned tensor's last reference is gone, on the thread that drops it. On failure the caller keeps
 * the managed tensor. One exception: if the major version of a versioned tensor is unknown, its
 * deleter is called, as DLPack asks, and the call returns UNSUPPORTED.
 */
RBC_API rbcStatus_t rbcOwnedTensorImportDLPack(struct DLManagedTensor* managed,
                                               rbcOwnedTensor_t* tensor);

/* rbcOwnedTensorImportDLPack for the managed tensors of DLPack 1.0 and later. */
RBC_API rbcStatus_t rbcOwnedTensorImportDLPackVersioned(struct DLManagedTensorVersioned* managed,
                                                        rbcOwnedTensor_t* tensor);

/*
 * Makes a DLPack managed tensor that shares the memory and holds a reference until its deleter is
 * called, from any thread. This form cannot say "read-only": a read-only tensor is UNSUPPORTED.
 */
RBC_API rbcStatus_t rbcOwnedTensorExportDLPack(rbcOwnedTensor_t tensor,
                                               struct DLManagedTensor** managed);

/* rbcOwnedTensorExportDLPack for the managed tensors of DLPack 1.0 and later, read-only ones too. */
RBC_API rbcStatus_t rbcOwnedTensorExportDLPackVersioned(rbcOwnedTensor_t tensor,
                                                        struct DLManagedTensorVersioned** managed);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_TENSOR_H */
