/*
 * The native side of the C# wrappers: raises statuses, copies arrays, describes tensors.
 */
#ifndef ROBOCACHE_BINDINGS_CSHARP_NATIVE_H
#define ROBOCACHE_BINDINGS_CSHARP_NATIVE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <robocache/robocache.h>

/* Set before the first call: makes a pending exception from a status and a copied message. */
typedef void (*StatusCallback)(int status, const char* message);
static StatusCallback statusCallback;

static void raiseStatus(rbcStatus_t status) {
  if (status != RBC_STATUS_SUCCESS) statusCallback((int)status, rbcGetLastError());
}

/* Returns an array of copies of the objects, for free(); null: no memory. */
static void* gather(void* const* objects, int32_t count, size_t size) {
  char* const array = (char*)malloc(count > 0 ? (size_t)count * size : 1);
  for (int32_t i = 0; array != NULL && i < count; ++i) memcpy(array + i * size, objects[i], size);
  return array;
}

/* Returns a tensor in one block with its shape and strides, for free(); null: no memory. */
static rbcTensor* newTensor(rbcDevice device, rbcDType dtype, int32_t ndim, const int64_t* shape,
                            const int64_t* strides) {
  const size_t extents = (size_t)ndim * sizeof *shape;
  rbcTensor* const tensor = (rbcTensor*)malloc(sizeof *tensor + 2 * extents);
  if (tensor == NULL) return NULL;
  memset(tensor, 0, sizeof *tensor);
  tensor->device = device;
  tensor->dtype = dtype;
  tensor->ndim = ndim;
  tensor->shape = (int64_t*)(tensor + 1);
  if (ndim > 0) memcpy(tensor->shape, shape, extents);
  if (strides != NULL && ndim > 0) {
    tensor->strides = tensor->shape + ndim;
    memcpy(tensor->strides, strides, extents);
  }
  return tensor;
}

/* Returns the view of an owned tensor, for free(); null: a status was raised, or no memory. */
static rbcTensor* newView(rbcOwnedTensor_t owned, int32_t writable) {
  rbcTensor view;
  const rbcStatus_t status = rbcOwnedTensorGetView(owned, writable, &view);
  raiseStatus(status);
  if (status != RBC_STATUS_SUCCESS) return NULL;
  rbcTensor* const tensor = newTensor(view.device, view.dtype, view.ndim, view.shape, view.strides);
  if (tensor == NULL) return NULL;
  tensor->data = view.data;
  tensor->byte_offset = view.byte_offset;
  return tensor;
}

/* Returns a view of an entry's tensor, for free(); null: a status was raised, or no memory. */
static rbcTensor* newEntryView(rbcEntry_t entry, const char* name, int64_t segment) {
  rbcTensor view;
  memset(&view, 0, sizeof view);
  const rbcStatus_t status = rbcEntryGetTensor(entry, name, segment, &view);
  raiseStatus(status);
  if (status != RBC_STATUS_SUCCESS) return NULL;
  rbcTensor* const tensor = newTensor(view.device, view.dtype, view.ndim, view.shape, view.strides);
  if (tensor == NULL) return NULL;
  tensor->data = view.data;
  tensor->byte_offset = view.byte_offset;
  return tensor;
}

#endif /* ROBOCACHE_BINDINGS_CSHARP_NATIVE_H */
