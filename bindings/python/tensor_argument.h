/*
 * Python arrays as rbcTensor, without a copy: the part of the wrapper that SWIG cannot generate.
 *
 * Protocols in order of preference: NumPy's array struct, which has a flag for read-only arrays;
 * DLPack's C functions, which need no capsule; DLPack's `__dlpack__`. Each type is examined once.
 */
#ifndef ROBOCACHE_BINDINGS_TENSOR_ARGUMENT_H
#define ROBOCACHE_BINDINGS_TENSOR_ARGUMENT_H

#include <string.h>

#include "array_struct.h"
#include "dlpack_argument.h"

/*
 * Describes `object` in *argument, which the caller has zeroed, and closes after the call for any
 * result: 0, -1 with an exception set, or 1 if the object is not an array. The stream of `context`,
 * which may be null, will use the array.
 */
static int openTensor(TensorArgument* argument, PyObject* object, ArgumentName name,
                      rbcContext_t context, int writable) {
  TypeEntry entry;
  if (lookUpType(Py_TYPE(object), &entry) != 0) return -1;
  switch (entry.protocol) {
    case ARRAY_STRUCT: return openArrayStruct(argument, object, name, writable);
    case EXCHANGE: return openExchange(argument, &entry, object, name, writable);
    case DLPACK: return openDLPack(argument, object, name, context, writable);
    case NO_PROTOCOL: break;
  }
  return 1;
}

static void raiseNoArray(ArgumentName name, PyObject* object) {
  static const char expected[] = "expected an array (NumPy, torch, or any with __dlpack__)";
  if (object == Py_None) {
    PyErr_Format(PyExc_TypeError, "%s: is None, %s", textOf(name), expected);
    return;
  }
  PyObject* type = PyObject_GetAttrString((PyObject*)Py_TYPE(object), "__name__");
  if (type == NULL) return;
  const Py_UCS4 first = PyUnicode_GetLength(type) > 0 ? PyUnicode_ReadChar(type, 0) : 'x';
  const char* const article = first < 128 && strchr("AEIOaeio", (int)first) != NULL ? "an" : "a";
  PyErr_Format(PyExc_TypeError, "%s: is %s %S, %s", textOf(name), article, type, expected);
  Py_DECREF(type);
}

/* As openTensor, but an object that is not an array is an error: 0, or -1 with an exception set. */
static int requireTensor(TensorArgument* argument, PyObject* object, ArgumentName name,
                         rbcContext_t context, int writable) {
  const int opened = openTensor(argument, object, name, context, writable);
  if (opened > 0) raiseNoArray(name, object);
  return opened == 0 ? 0 : -1;
}

/* A Tensor object: a TensorArgument on the heap, whose first member is the tensor. */
static rbcTensor* newTensor(PyObject* array, const char* name, rbcContext_t context) {
  TensorArgument* argument = (TensorArgument*)PyMem_Calloc(1, sizeof *argument);
  if (argument == NULL) return (rbcTensor*)PyErr_NoMemory();
  if (requireTensor(argument, array, argumentName(name), context, 0) != 0) {
    closeTensor(argument);
    PyMem_Free(argument);
    return NULL;
  }
  rbcTensor* tensor = &argument->tensor;
  if (argument->owner == NULL && argument->versioned == NULL && argument->managed == NULL) {
    /* Borrowed: shape and strides belong to the producer, which may change them. */
    Py_INCREF(array);
    argument->owner = array;
    for (int i = 0; i < tensor->ndim; ++i) {
      argument->shape[i] = tensor->shape[i];
      if (tensor->strides != NULL) argument->strides[i] = tensor->strides[i];
    }
    tensor->shape = argument->shape;
    if (tensor->strides != NULL) tensor->strides = argument->strides;
  }
  return tensor;
}

static void deleteTensor(rbcTensor* tensor) {
  TensorArgument* argument = (TensorArgument*)tensor;
  if (argument == NULL) return;
  closeTensor(argument);
  PyMem_Free(argument);
}

static PyObject* describeTensor(const rbcTensor* tensor) {
  PyObject* shape = PyTuple_New(tensor->ndim);
  if (shape == NULL) return NULL;
  for (int i = 0; i < tensor->ndim; ++i) {
    PyObject* extent = PyLong_FromLongLong(tensor->shape[i]);
    if (extent == NULL) {
      Py_DECREF(shape);
      return NULL;
    }
    PyTuple_SetItem(shape, i, extent);
  }
  return Py_BuildValue("iiiiN", (int)tensor->device.type, (int)tensor->device.id,
                       (int)tensor->dtype.code, (int)tensor->dtype.bits, shape);
}

/* Reads a (code, bits) pair. Returns 0, or -1 with an exception set. */
static int readDType(PyObject* pair, rbcDType* dtype) {
  PyObject* code = PySequence_GetItem(pair, 0);
  PyObject* bits = code != NULL ? PySequence_GetItem(pair, 1) : NULL;
  if (bits != NULL) {
    dtype->code = (uint8_t)PyLong_AsLong(code);
    dtype->bits = (uint8_t)PyLong_AsLong(bits);
    dtype->lanes = 1;
  }
  Py_XDECREF(code);
  Py_XDECREF(bits);
  return PyErr_Occurred() ? -1 : 0;
}

/* Reads a shape. Returns the number of extents, or -1 with an exception set. */
static int32_t readShape(PyObject* shape, int64_t* extents) {
  const Py_ssize_t ndim = PySequence_Size(shape);
  if (ndim < 0) return -1;
  if (ndim > RBC_TENSOR_MAX_NDIM) {
    PyErr_Format(PyExc_ValueError, "shape: has %zd extents, expected 0 to %d", ndim,
                 RBC_TENSOR_MAX_NDIM);
    return -1;
  }
  for (Py_ssize_t i = 0; i < ndim; ++i) {
    PyObject* extent = PySequence_GetItem(shape, i);
    extents[i] = extent != NULL ? PyLong_AsLongLong(extent) : -1;
    Py_XDECREF(extent);
    if (PyErr_Occurred()) return -1;
  }
  return (int32_t)ndim;
}

/* Returns the current stream of an array's framework on a CUDA device, an int; None if unknown. */
static PyObject* currentStream(PyObject* object, int32_t device_id) {
  TypeEntry entry;
  if (lookUpType(Py_TYPE(object), &entry) != 0) return NULL;
  if (entry.protocol != EXCHANGE) Py_RETURN_NONE;
  void* stream = NULL;
  if (entry.exchange->current_stream(RBC_DEVICE_CUDA, device_id, &stream) != 0) return NULL;
  return PyLong_FromVoidPtr(stream);
}

/* Sets the Python exception for a status. */
static void raiseStatus(rbcStatus_t status, const char* message) {
  switch (status) {
    case RBC_STATUS_INVALID_ARGUMENT:
    case RBC_STATUS_BUFFER_TOO_SMALL:
    case RBC_STATUS_DAMAGED:
    case RBC_STATUS_DEVICE_MISMATCH:
    case RBC_STATUS_SHAPE_MISMATCH: PyErr_SetString(PyExc_ValueError, message); return;
    case RBC_STATUS_DTYPE_MISMATCH: PyErr_SetString(PyExc_TypeError, message); return;
    case RBC_STATUS_OUT_OF_MEMORY: PyErr_SetString(PyExc_MemoryError, message); return;
    case RBC_STATUS_SUCCESS:
    case RBC_STATUS_UNSUPPORTED:
    case RBC_STATUS_WORKSPACE_TOO_SMALL:
    case RBC_STATUS_CUDA_ERROR:
    case RBC_STATUS_NOT_AVAILABLE:
    case RBC_STATUS_INTERNAL:
    case RBC_STATUS_CANCELLED:
    case RBC_STATUS_NOT_FOUND:
    case RBC_STATUS_IO_ERROR:
    case RBC_STATUS_BUSY: break;
  }
  PyObject* module = PyImport_ImportModule("robocache._library.errors");
  PyObject* type = module != NULL ? PyObject_GetAttrString(module, "RoboCacheError") : NULL;
  PyObject* error = type != NULL ? PyObject_CallFunction(type, "si", message, (int)status) : NULL;
  if (error != NULL) PyErr_SetObject(type, error);
  Py_XDECREF(error);
  Py_XDECREF(type);
  Py_XDECREF(module);
}

#endif /* ROBOCACHE_BINDINGS_TENSOR_ARGUMENT_H */
