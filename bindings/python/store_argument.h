/* Arguments and results of the store: keys, memory to write, and views of tensors. */
#ifndef ROBOCACHE_BINDINGS_STORE_ARGUMENT_H
#define ROBOCACHE_BINDINGS_STORE_ARGUMENT_H

#include "tensor_argument.h"

/* Returns the bytes of a key; null with an exception set. */
static const uint8_t* readKey(PyObject* object) {
  char* bytes = NULL;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(object, &bytes, &size) != 0) return NULL;
  if (size != RBC_STORE_KEY_BYTES) {
    PyErr_Format(PyExc_ValueError, "key: has %zd bytes, expected %d", size, RBC_STORE_KEY_BYTES);
    return NULL;
  }
  return (const uint8_t*)bytes;
}

/* Describes contiguous memory of bytes or of an array on the CPU. Returns 0, or -1. */
static int readMemory(PyObject* object, const char* name, TensorArgument* argument,
                      const void** memory, size_t* num_bytes) {
  if (PyBytes_Check(object)) {
    char* bytes = NULL;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(object, &bytes, &size) != 0) return -1;
    *memory = bytes;
    *num_bytes = (size_t)size;
    return 0;
  }
  if (requireTensor(argument, object, argumentName(name), NULL, 0) != 0) return -1;
  rbcTensorInfo info = rbcTensorInfoInit();
  const rbcStatus_t status = rbcTensorGetInfo(&argument->tensor, &info);
  if (status != RBC_STATUS_SUCCESS) {
    raiseStatus(status, rbcGetLastError());
    return -1;
  }
  const int32_t device = argument->tensor.device.type;
  if (!info.is_contiguous || (device != RBC_DEVICE_CPU && device != RBC_DEVICE_CUDA_HOST)) {
    PyErr_Format(PyExc_ValueError, "%s: expected contiguous memory on the CPU", name);
    return -1;
  }
  *memory = info.data;
  *num_bytes = (size_t)info.num_bytes;
  return 0;
}

/* (address, dtype code, dtype bits, shape) */
static PyObject* newView(const rbcTensor* view) {
  PyObject* shape = PyTuple_New(view->ndim);
  for (Py_ssize_t i = 0; i < view->ndim && shape != NULL; ++i) {
    PyTuple_SetItem(shape, i, PyLong_FromLongLong(view->shape[i]));
  }
  if (shape == NULL || PyErr_Occurred()) {
    Py_XDECREF(shape);
    return NULL;
  }
  char* data = (char*)view->data + view->byte_offset;
  return Py_BuildValue("NiiN", PyLong_FromVoidPtr(data), (int)view->dtype.code,
                       (int)view->dtype.bits, shape);
}

/* (key, is complete, is locked, segments, bytes, last use in ns) of each entry */
static PyObject* newItems(const rbcStoreItem* items, size_t count) {
  PyObject* list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; i < count && list != NULL; ++i) {
    const rbcStoreItem* item = &items[i];
    PyObject* row = Py_BuildValue(
        "y#iiLKL", (const char*)item->key, (Py_ssize_t)sizeof item->key,
        item->state == RBC_STORE_ITEM_COMPLETE, (int)item->is_locked, (long long)item->num_segments,
        (unsigned long long)item->num_bytes, (long long)item->last_use_ns);
    if (row == NULL) {
      Py_DECREF(list);
      return NULL;
    }
    PyList_SetItem(list, (Py_ssize_t)i, row);
  }
  return list;
}

#endif /* ROBOCACHE_BINDINGS_STORE_ARGUMENT_H */
