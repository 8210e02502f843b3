/* Arrays through DLPack: by its C functions, which need no capsule, or by `__dlpack__`. */
#ifndef ROBOCACHE_BINDINGS_DLPACK_ARGUMENT_H
#define ROBOCACHE_BINDINGS_DLPACK_ARGUMENT_H

#include "protocols.h"

static int openManaged(TensorArgument* argument, DLManagedTensorVersioned* managed,
                       ArgumentName name, int writable) {
  argument->versioned = managed; /* closeTensor now calls the deleter */
  if (managed->major != DLPACK_MAJOR) {
    PyErr_Format(PyExc_BufferError, "%s: is in DLPack version %u, expected %d", textOf(name),
                 (unsigned)managed->major, DLPACK_MAJOR);
    return -1;
  }
  if (writable && (managed->flags & DLPACK_READ_ONLY) != 0) {
    PyErr_Format(PyExc_ValueError, "%s: is read-only, expected an array to write to", textOf(name));
    return -1;
  }
  argument->tensor = managed->tensor;
  return checkRank(&argument->tensor, name);
}

static int openExchange(TensorArgument* argument, const TypeEntry* entry, PyObject* object,
                        ArgumentName name, int writable) {
  const DLPackExchange* exchange = entry->exchange;
  /* A borrowed tensor has no flag for read-only memory. */
  if (exchange->borrow != NULL && (!writable || entry->always_writable)) {
    if (exchange->borrow(object, &argument->tensor) != 0) return blameArgument(name);
    return checkRank(&argument->tensor, name);
  }
  DLManagedTensorVersioned* managed = NULL;
  if (exchange->export_managed(object, &managed) != 0) return blameArgument(name);
  return openManaged(argument, managed, name, writable);
}

/* Returns the type in `__dlpack_device__`'s result, a pair of ints; -1 with an exception set. */
static long deviceType(PyObject* device) {
  PyObject* pair = PyTuple_Check(device) || PyList_Check(device) ? PySequence_Tuple(device) : NULL;
  long type = -1;
  int known = 0;
  if (pair != NULL && PyTuple_Size(pair) == 2 && PyIndex_Check(PyTuple_GetItem(pair, 1))) {
    type = PyLong_AsLong(PyTuple_GetItem(pair, 0));
    known = type >= 0;
  }
  Py_XDECREF(pair);
  if (known) return type;
  if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_MemoryError)) return -1;
  PyErr_Clear();
  PyErr_Format(PyExc_TypeError, "its __dlpack_device__ gave %R, expected two ints: type and id",
               device);
  return -1;
}

/* Returns the stream of `context` in the form that `__dlpack__` expects; a new reference. */
static PyObject* consumerStream(PyObject* object, rbcContext_t context) {
  PyObject* device = PyObject_CallMethod(object, "__dlpack_device__", NULL);
  const long device_type = device != NULL ? deviceType(device) : -1;
  Py_XDECREF(device);
  if (device_type < 0) return NULL;
  if (device_type != RBC_DEVICE_CUDA && device_type != RBC_DEVICE_CUDA_MANAGED) Py_RETURN_NONE;
  void* stream = NULL;
  if (context == NULL || rbcContextGetCudaStream(context, &stream) != RBC_STATUS_SUCCESS)
    return PyLong_FromLong(-1);
  return stream != NULL ? PyLong_FromVoidPtr(stream)
                        : PyLong_FromLong(1); /* 1: the legacy stream */
}

/* Calls `__dlpack__` in the form of DLPack 1.0, or in the older form if the object lacks that. */
static PyObject* callDLPack(PyObject* object, rbcContext_t context) {
  PyObject* result = NULL;
  PyObject* stream = consumerStream(object, context);
  PyObject* method = stream != NULL ? PyObject_GetAttrString(object, "__dlpack__") : NULL;
  PyObject* none = method != NULL ? PyTuple_New(0) : NULL;
  if (none != NULL) {
    PyObject* options = Py_BuildValue("{sOs(ii)sO}", "stream", stream, "max_version", DLPACK_MAJOR,
                                      0, "copy", Py_False);
    if (options != NULL) result = PyObject_Call(method, none, options);
    Py_XDECREF(options);
    if (result == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      options = Py_BuildValue("{sO}", "stream", stream);
      if (options != NULL) result = PyObject_Call(method, none, options);
      Py_XDECREF(options);
    }
  }
  Py_XDECREF(none);
  Py_XDECREF(method);
  Py_XDECREF(stream);
  return result;
}

static int openDLPack(TensorArgument* argument, PyObject* object, ArgumentName name,
                      rbcContext_t context, int writable) {
  PyObject* capsule = callDLPack(object, context);
  if (capsule == NULL) return blameArgument(name);
  int result = -1;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    DLManagedTensorVersioned* managed =
        (DLManagedTensorVersioned*)PyCapsule_GetPointer(capsule, "dltensor_versioned");
    PyCapsule_SetName(capsule, "used_dltensor_versioned");
    result = openManaged(argument, managed, name, writable);
  } else if (PyCapsule_IsValid(capsule, "dltensor")) {
    argument->managed = (DLManagedTensor*)PyCapsule_GetPointer(capsule, "dltensor");
    PyCapsule_SetName(capsule, "used_dltensor");
    argument->tensor = argument->managed->tensor;
    result = checkRank(&argument->tensor, name);
  } else {
    PyErr_Format(PyExc_TypeError, "%s: its __dlpack__ gave no DLPack capsule", textOf(name));
  }
  Py_DECREF(capsule);
  return result;
}

/* Capsule destructors, for managed tensors that were not taken over. */
static void dropUntaken(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) return;
  DLManagedTensorVersioned* managed =
      (DLManagedTensorVersioned*)PyCapsule_GetPointer(capsule, "dltensor_versioned");
  if (managed->deleter != NULL) managed->deleter(managed);
}

static void dropUntakenLegacy(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return;
  DLManagedTensor* managed = (DLManagedTensor*)PyCapsule_GetPointer(capsule, "dltensor");
  if (managed->deleter != NULL) managed->deleter(managed);
}

/* Returns a capsule that owns `managed`; deletes `managed` if the capsule cannot be allocated. */
static PyObject* newCapsule(DLManagedTensorVersioned* managed) {
  PyObject* capsule = PyCapsule_New(managed, "dltensor_versioned", dropUntaken);
  if (capsule == NULL) managed->deleter(managed);
  return capsule;
}

static PyObject* newLegacyCapsule(DLManagedTensor* managed) {
  PyObject* capsule = PyCapsule_New(managed, "dltensor", dropUntakenLegacy);
  if (capsule == NULL) managed->deleter(managed);
  return capsule;
}

#endif /* ROBOCACHE_BINDINGS_DLPACK_ARGUMENT_H */
