/* A described array, its name in messages, and the resources to release. */
#ifndef ROBOCACHE_BINDINGS_DESCRIBED_ARRAY_H
#define ROBOCACHE_BINDINGS_DESCRIBED_ARRAY_H

#include <Python.h>
#include <robocache/robocache.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "dlpack.h"

/* A described array, and the resources to release after the call. Zeroed: no resources. */
typedef struct TensorArgument {
  rbcTensor tensor;
  PyObject* owner; /* keeps shape and strides alive */
  DLManagedTensor* managed;
  DLManagedTensorVersioned* versioned;
  int64_t shape[RBC_TENSOR_MAX_NDIM];
  int64_t strides[RBC_TENSOR_MAX_NDIM];
} TensorArgument;

/* clang-format off */
#define NO_TENSOR {.owner = NULL}
/* clang-format on */

/* The name of an argument in messages. It is formatted only when a message is written. */
typedef struct ArgumentName {
  const char* text;
  const char* array; /* the argument is a member of array[index]; null: it is not in an array */
  int index;
} ArgumentName;

static ArgumentName argumentName(const char* text) {
  const ArgumentName name = {text, NULL, 0};
  return name;
}

/* Valid until the next call on this thread. */
static const char* textOf(ArgumentName name) {
  static _Thread_local char text[64];
  if (name.array == NULL) return name.text;
  snprintf(text, sizeof text, "%s[%d].%s", name.array, name.index, name.text);
  return text;
}

/* Releases the resources. An exception that is set survives the deleters. */
static void closeTensor(TensorArgument* argument) {
  if (argument->versioned != NULL || argument->managed != NULL) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (argument->versioned != NULL && argument->versioned->deleter != NULL) {
      argument->versioned->deleter(argument->versioned);
    }
    if (argument->managed != NULL && argument->managed->deleter != NULL) {
      argument->managed->deleter(argument->managed);
    }
    PyErr_Restore(type, value, trace);
    argument->versioned = NULL;
    argument->managed = NULL;
  }
  Py_XDECREF(argument->owner);
  argument->owner = NULL;
}

static int checkRank(const rbcTensor* tensor, ArgumentName name) {
  if (tensor->ndim < 0 || tensor->ndim > RBC_TENSOR_MAX_NDIM) {
    PyErr_Format(PyExc_ValueError, "%s: rank is %d, expected 0 to %d", textOf(name),
                 (int)tensor->ndim, RBC_TENSOR_MAX_NDIM);
    return -1;
  }
  if (tensor->ndim > 0 && tensor->shape == NULL) {
    PyErr_Format(PyExc_ValueError, "%s: has rank %d and no shape", textOf(name), (int)tensor->ndim);
    return -1;
  }
  return 0;
}

/*
 * Replaces an exception that an object raised because it cannot be described by one line that names
 * the argument. Exceptions of other types come from the object itself and are not changed.
 */
static int blameArgument(ArgumentName name) {
  PyObject* kind = PyExc_ValueError;
  if (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_AttributeError)) {
    kind = PyExc_TypeError;
  } else if (!PyErr_ExceptionMatches(PyExc_BufferError) &&
             !PyErr_ExceptionMatches(PyExc_RuntimeError) &&
             !PyErr_ExceptionMatches(PyExc_ValueError)) {
    return -1;
  }
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  PyObject* text = error != NULL ? PyObject_Str(error) : NULL;
  PyObject* lines = text != NULL ? PyUnicode_Splitlines(text, 0) : NULL;
  PyObject* line = lines != NULL && PyList_Size(lines) > 0 ? PyList_GetItem(lines, 0) : NULL;
  PyErr_Clear();
  if (line != NULL) {
    PyErr_Format(kind, "%s: %U", textOf(name), line);
  } else {
    PyErr_Format(kind, "%s: cannot be described, and says no more", textOf(name));
  }
  Py_XDECREF(lines);
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(trace);
  return -1;
}

#endif /* ROBOCACHE_BINDINGS_DESCRIBED_ARRAY_H */
