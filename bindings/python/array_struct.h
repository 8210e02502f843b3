/* NumPy's array struct, which has a flag for read-only arrays. */
#ifndef ROBOCACHE_BINDINGS_ARRAY_STRUCT_H
#define ROBOCACHE_BINDINGS_ARRAY_STRUCT_H

#include "described_array.h"

/* The contents of `__array_struct__`. */
typedef struct ArrayStruct {
  int two;
  int ndim;
  char kind;
  int item_size;
  int flags;
  Py_ssize_t* shape;
  Py_ssize_t* strides; /* in bytes */
  void* data;
  PyObject* descriptor;
} ArrayStruct;

#define ARRAY_NATIVE_BYTE_ORDER 0x200
#define ARRAY_WRITEABLE 0x400

/* Returns 1 if the dtype of `array` has this name. */
static int dtypeIs(PyObject* array, const char* expected) {
  PyObject* dtype = PyObject_GetAttrString(array, "dtype");
  PyObject* name = dtype != NULL ? PyObject_GetAttrString(dtype, "name") : NULL;
  const int same = name != NULL && PyUnicode_Check(name) &&
                   PyUnicode_CompareWithASCIIString(name, expected) == 0;
  Py_XDECREF(name);
  Py_XDECREF(dtype);
  PyErr_Clear();
  return same;
}

static int arrayDType(PyObject* array, const ArrayStruct* from, ArgumentName name,
                      rbcDType* dtype) {
  int code = -1;
  const char* advice = "";
  switch (from->kind) {
    case 'b': code = RBC_DTYPE_BOOL; break;
    case 'i': code = RBC_DTYPE_INT; break;
    case 'u': code = RBC_DTYPE_UINT; break;
    case 'f': code = RBC_DTYPE_FLOAT; break;
    case 'V':
      if (from->item_size == 2 && dtypeIs(array, "bfloat16")) code = RBC_DTYPE_BFLOAT;
      break;
    case 'M':
    case 'm': advice = " (its ticks are array.view('int64'))"; break;
    default: break;
  }
  const int native = (from->flags & ARRAY_NATIVE_BYTE_ORDER) != 0;
  if (code >= 0 && !native)
    advice = " in native byte order (array.astype(array.dtype.newbyteorder('=')))";
  if (code < 0 || !native || from->item_size < 1 || from->item_size > 8) {
    PyObject* given = PyObject_GetAttrString(array, "dtype");
    PyObject* text = given != NULL ? PyObject_Str(given) : NULL;
    Py_XDECREF(given);
    if (text == NULL) { /* the array interface's code of the type */
      PyErr_Clear();
      text = PyUnicode_FromFormat("%c%d", from->kind, from->item_size);
    }
    if (text == NULL) return -1;
    PyErr_Format(PyExc_TypeError, "%s: dtype is %U, expected a float, integer or bool dtype%s",
                 textOf(name), text, advice);
    Py_DECREF(text);
    return -1;
  }
  dtype->code = (uint8_t)code;
  dtype->bits = (uint8_t)(8 * from->item_size);
  dtype->lanes = 1;
  return 0;
}

static int openArrayStruct(TensorArgument* argument, PyObject* array, ArgumentName name,
                           int writable) {
  static PyObject* attribute = NULL; /* the string is made once */
  if (attribute == NULL) attribute = PyUnicode_InternFromString("__array_struct__");
  if (attribute == NULL) return -1;
  PyObject* capsule = PyObject_GetAttr(array, attribute);
  if (capsule == NULL) return blameArgument(name);
  argument->owner = capsule;
  if (!PyCapsule_IsValid(capsule, NULL)) {
    PyErr_Format(PyExc_TypeError,
                 "%s: its __array_struct__ is not a capsule of the array interface", textOf(name));
    return -1;
  }
  const ArrayStruct* from = (const ArrayStruct*)PyCapsule_GetPointer(capsule, NULL);
  rbcTensor* tensor = &argument->tensor;
  if (from->two != 2) {
    PyErr_Format(PyExc_TypeError, "%s: its __array_struct__ has an unknown version", textOf(name));
    return -1;
  }
  tensor->ndim = from->ndim;
  tensor->shape = argument->shape;
  if (checkRank(tensor, name) != 0) return -1;
  if (from->ndim > 0 && (from->shape == NULL || from->strides == NULL)) {
    PyErr_Format(PyExc_TypeError, "%s: its __array_struct__ lacks the shape or the strides",
                 textOf(name));
    return -1;
  }
  if (arrayDType(array, from, name, &tensor->dtype) != 0) return -1;
  if (writable && (from->flags & ARRAY_WRITEABLE) == 0) {
    PyErr_Format(PyExc_ValueError, "%s: is read-only, expected an array to write to", textOf(name));
    return -1;
  }
  for (int i = 0; i < from->ndim; ++i) {
    const Py_ssize_t extent = from->shape[i];
    const Py_ssize_t stride = from->strides[i];
    if (extent > 1 && stride % from->item_size != 0) {
      PyErr_Format(PyExc_ValueError,
                   "%s: stride %d is %zd bytes, expected a multiple of the element's %d",
                   textOf(name), i, stride, from->item_size);
      return -1;
    }
    argument->shape[i] = extent;
    argument->strides[i] = stride / from->item_size;
  }
  tensor->data = from->data;
  tensor->device.type = RBC_DEVICE_CPU;
  tensor->device.id = 0;
  tensor->strides = argument->strides;
  tensor->byte_offset = 0;
  return 0;
}

#endif /* ROBOCACHE_BINDINGS_ARRAY_STRUCT_H */
