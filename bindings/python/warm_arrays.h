/*
 * NumPy arrays in warm memory. They own it, as any new array does: NumPy lets a thread set the
 * allocator of its new arrays (NEP 49), and an array returns its memory to the allocator that it
 * came from.
 *
 * NumPy's C API is a table of functions at fixed places. The places that are used are below.
 */
#ifndef ROBOCACHE_BINDINGS_WARM_ARRAYS_H
#define ROBOCACHE_BINDINGS_WARM_ARRAYS_H

#include <Python.h>

#include "warm_memory.h"

typedef void (*NumPyFunction)(void);
#define NUMPY_ABI_VERSION 0
#define NUMPY_API_VERSION 211
#define NUMPY_SET_HANDLER 304

typedef struct NumPyHandler {
  char name[127];
  uint8_t version;
  void* context;
  void* (*allocate)(void* context, size_t bytes);
  void* (*allocateZeros)(void* context, size_t count, size_t bytes);
  void* (*reallocate)(void* context, void* data, size_t bytes);
  void (*free)(void* context, void* data, size_t bytes);
} NumPyHandler;

static PyObject* (*set_numpy_handler)(PyObject* handler); /* null: NumPy's own memory is used */
static PyObject* warm_handler;

static void* allocateForNumPy(void* context, size_t bytes) {
  (void)context;
  return allocateWarm(bytes);
}
static void* allocateZerosForNumPy(void* context, size_t count, size_t bytes) {
  (void)context;
  if (bytes != 0 && count > SIZE_MAX / bytes) return NULL;
  void* data = allocateWarm(count * bytes);
  return data != NULL ? memset(data, 0, count * bytes) : NULL;
}
static void* reallocateForNumPy(void* context, void* data, size_t bytes) {
  (void)context;
  return reallocateWarm(data, bytes);
}
static void freeForNumPy(void* context, void* data, size_t bytes) {
  (void)context;
  (void)bytes;
  freeWarm(data);
}

/* Stores NumPy's `_ARRAY_API`. Returns whether it has allocators: NumPy 1.22 or later. */
static PyObject* useNumPy(PyObject* api) {
  static NumPyHandler handler = {
      "robocache",        1,           NULL, allocateForNumPy, allocateZerosForNumPy,
      reallocateForNumPy, freeForNumPy};
  const NumPyFunction* table = (const NumPyFunction*)PyCapsule_GetPointer(api, NULL);
  if (table == NULL) return NULL;
  const unsigned major = ((unsigned (*)(void))table[NUMPY_ABI_VERSION])() >> 24;
  if (major != 1 && major != 2) Py_RETURN_FALSE;
  if (((unsigned (*)(void))table[NUMPY_API_VERSION])() < 15) Py_RETURN_FALSE;
  if (warm_handler == NULL) warm_handler = PyCapsule_New(&handler, "mem_handler", NULL);
  if (warm_handler == NULL) return NULL;
  set_numpy_handler = (PyObject * (*)(PyObject*)) table[NUMPY_SET_HANDLER];
  Py_RETURN_TRUE;
}

/* Calls make(shape, dtype) with memory from here. Arrays below WARM_LEAST are not slower. */
static PyObject* warmArray(PyObject* make, PyObject* shape, PyObject* dtype) {
  if (set_numpy_handler == NULL) return PyObject_CallFunctionObjArgs(make, shape, dtype, NULL);
  PyObject* before = set_numpy_handler(warm_handler);
  if (before == NULL) return NULL;
  PyObject* array = PyObject_CallFunctionObjArgs(make, shape, dtype, NULL);
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* ours = set_numpy_handler(before);
  Py_DECREF(before);
  if (ours == NULL) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    Py_XDECREF(array);
    return NULL;
  }
  Py_DECREF(ours);
  PyErr_Restore(type, value, trace);
  return array;
}

#endif /* ROBOCACHE_BINDINGS_WARM_ARRAYS_H */
