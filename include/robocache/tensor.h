/*
 * RoboCache: tensors.
 *
 * Operations take `const rbcTensor*`, a description of memory that the caller owns. They read the
 * description, its shape and its strides only during the call. An operation writes the data of its
 * outputs, which are `const rbcOutput*`: `const` applies to the description, not to the data.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ROBOCACHE_TENSOR_H
#define ROBOCACHE_TENSOR_H

#include <string.h>

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The maximum number of dimensions of a tensor. */
#define RBC_TENSOR_MAX_NDIM 8

/* Where data is stored. The values equal DLPack's DLDeviceType. */
#define RBC_DEVICE_CPU 1           /* host memory */
#define RBC_DEVICE_CUDA 2          /* memory of a GPU */
#define RBC_DEVICE_CUDA_HOST 3     /* pinned host memory: usable by CPU and CUDA contexts */
#define RBC_DEVICE_CUDA_MANAGED 13 /* managed memory: usable by CPU and CUDA contexts */

/* The kinds of dtypes that RoboCache supports. The values equal DLPack's DLDataTypeCode. */
#define RBC_DTYPE_INT 0    /* signed integers */
#define RBC_DTYPE_UINT 1   /* unsigned integers */
#define RBC_DTYPE_FLOAT 2  /* IEEE floating point */
#define RBC_DTYPE_BFLOAT 4 /* bfloat16: the upper half of a float */
#define RBC_DTYPE_BOOL 6   /* one byte, 0 or 1 */

/* A device, with the layout of DLPack's DLDevice. */
typedef struct rbcDevice {
  int32_t type; /* RBC_DEVICE_... */
  int32_t id;   /* 0 for the CPU */
} rbcDevice;

/* A dtype, with the layout of DLPack's DLDataType. {RBC_DTYPE_FLOAT, 32, 1} is float. */
typedef struct rbcDType {
  uint8_t code;   /* RBC_DTYPE_... */
  uint8_t bits;   /* 8, 16, 32 or 64 */
  uint16_t lanes; /* 1 */
} rbcDType;

/*
 * Describes memory that the caller owns: its address, device, dtype, shape and strides. It has the
 * layout of DLPack's DLTensor, so a `DLTensor*` can be passed by a cast.
 */
typedef struct rbcTensor {
  void* data;           /* may be null if the tensor has no elements */
  rbcDevice device;     /* where data is stored */
  int32_t ndim;         /* the number of dimensions, 0 .. RBC_TENSOR_MAX_NDIM */
  rbcDType dtype;       /* the type of the elements */
  int64_t* shape;       /* [ndim], slowest dimension first */
  int64_t* strides;     /* [ndim], in elements, may be 0 or negative; null: compact and row-major */
  uint64_t byte_offset; /* from data to the first element, in bytes */
} rbcTensor;

/* A tensor whose data a call writes. A tensor that a call only reads is an rbcTensor. */
typedef rbcTensor rbcOutput;

/* The result of rbcTensorGetInfo: the same tensor with its defaults resolved. */
typedef struct rbcTensorInfo {
  uint32_t struct_size;
  int32_t ndim;                       /* the number of dimensions */
  void* data;                         /* the address of the first element, with byte_offset added */
  int64_t num_elements;               /* the product of the extents */
  int64_t num_bytes;                  /* num_elements * element_size */
  int64_t shape[RBC_TENSOR_MAX_NDIM]; /* the first ndim entries are used */
  int64_t strides[RBC_TENSOR_MAX_NDIM]; /* in elements; as if compact where an extent is 0 or 1 */
  int32_t element_size;                 /* in bytes */
  int32_t is_contiguous;                /* 1 if compact and row-major */
} rbcTensorInfo;

static inline rbcTensorInfo rbcTensorInfoInit(void) {
  rbcTensorInfo info;
  memset(&info, 0, sizeof info);
  info.struct_size = (uint32_t)sizeof info;
  return info;
}

/*
 * Checks a descriptor as every operation does: rank, extents, lanes, dtype, alignment to the
 * element size, and 64-bit overflow of sizes and offsets. Resolves byte_offset and null strides,
 * and fills the first struct_size bytes of *info, which the caller has initialized.
 *
 * Errors: INVALID_ARGUMENT, DTYPE_MISMATCH (RoboCache does not support the dtype), SHAPE_MISMATCH.
 */
RBC_API rbcStatus_t rbcTensorGetInfo(const rbcTensor* tensor, rbcTensorInfo* info);

/* ---- owned tensors ------------------------------------------------------------------------ */

struct DLManagedTensor;          /* dlpack.h */
struct DLManagedTensorVersioned; /* dlpack.h, 1.0 and later */

/*
 * A tensor that owns its memory, which the library allocated or took over from DLPack. It is for
 * callers without a tensor library, and for exchanging tensors through DLPack.
 */
typedef struct rbcOwnedTensor* rbcOwnedTensor_t;

/* How to allocate an owned tensor. */
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
 * Allocates an uninitialized compact row-major tensor on the context's device with the context's
 * allocator, aligned to 256 bytes. Null params mean the defaults. On CUDA the allocation is in the
 * order of the context's stream. The tensor may outlive the context. The caller destroys it with
 * rbcOwnedTensorDestroy. On failure *tensor is null.
 *
 * Errors: INVALID_ARGUMENT, DTYPE_MISMATCH, SHAPE_MISMATCH, OUT_OF_MEMORY, CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcOwnedTensorCreate(rbcContext_t context, rbcDType dtype, int32_t ndim,
                                         const int64_t* shape, const rbcOwnedTensorParams* params,
                                         rbcOwnedTensor_t* tensor);

/*
 * Drops the caller's reference; null is allowed. Exported DLPack tensors each hold a reference. The
 * last reference frees the memory, or calls the deleter of an imported tensor. On CUDA the memory
 * is freed in the order of the stream that it was allocated on. Does not synchronize.
 */
RBC_API rbcStatus_t rbcOwnedTensorDestroy(rbcOwnedTensor_t tensor);

/*
 * Describes an owned tensor for use in calls. `view` points to the shape and the strides in the
 * owned tensor and is valid until that is destroyed. To write through the view, pass writable = 1.
 * Errors: INVALID_ARGUMENT (writable = 1 for a tensor that was imported read-only).
 */
RBC_API rbcStatus_t rbcOwnedTensorGetView(rbcOwnedTensor_t tensor, int32_t writable,
                                          rbcTensor* view);

/*
 * Copies elements between tensors of the same shape and dtype, with any strides: within the host,
 * to or from the context's device, or within that device. The tensors must not overlap.
 *
 * On CUDA the copy is enqueued on the context's stream. A copy to or from host memory waits for the
 * stream and returns when the data has arrived; both its tensors must be contiguous.
 *
 * Errors: INVALID_ARGUMENT, DTYPE_MISMATCH, SHAPE_MISMATCH, DEVICE_MISMATCH, CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcTensorCopy(rbcContext_t context, const rbcTensor* source,
                                  const rbcOutput* destination);

/*
 * Takes over a DLPack managed tensor without a copy. Its deleter is called exactly once, by the
 * thread that drops the last reference to the owned tensor. On failure *tensor is null and the
 * caller keeps the managed tensor, with one exception: if the major version of a versioned tensor
 * is unknown, its deleter is called, as DLPack requires, and the call fails with UNSUPPORTED.
 *
 * Errors: INVALID_ARGUMENT, DTYPE_MISMATCH, SHAPE_MISMATCH, UNSUPPORTED.
 */
RBC_API rbcStatus_t rbcOwnedTensorImportDLPack(struct DLManagedTensor* managed,
                                               rbcOwnedTensor_t* tensor);

/* The same as rbcOwnedTensorImportDLPack, for the managed tensors of DLPack 1.0 and later. */
RBC_API rbcStatus_t rbcOwnedTensorImportDLPackVersioned(struct DLManagedTensorVersioned* managed,
                                                        rbcOwnedTensor_t* tensor);

/*
 * Makes a DLPack managed tensor that shares the memory. It holds a reference until its deleter is
 * called, which any thread may do. Errors: UNSUPPORTED (a read-only tensor, which this form of
 * DLPack cannot mark as such).
 */
RBC_API rbcStatus_t rbcOwnedTensorExportDLPack(rbcOwnedTensor_t tensor,
                                               struct DLManagedTensor** managed);

/*
 * The same as rbcOwnedTensorExportDLPack, for the managed tensors of DLPack 1.0 and later. It also
 * exports read-only tensors.
 */
RBC_API rbcStatus_t rbcOwnedTensorExportDLPackVersioned(rbcOwnedTensor_t tensor,
                                                        struct DLManagedTensorVersioned** managed);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_TENSOR_H */
