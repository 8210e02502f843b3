/*
 * Python arrays as rbcTensor, without a copy: the part of the wrapper that SWIG cannot know.
 *
 * A type is looked at once. In order of preference: NumPy's array struct, which knows of read-only
 * arrays; DLPack's C functions, which need no capsule; DLPack's `__dlpack__`.
 */
#ifndef ROBOCACHE_BINDINGS_TENSOR_ARGUMENT_H
#define ROBOCACHE_BINDINGS_TENSOR_ARGUMENT_H

#include <Python.h>
#include <robocache/robocache.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "dlpack.h"

/* A described array, and what has to be given back after the call. Zeroed: nothing. */
typedef struct TensorArgument {
  rbcTensor tensor;
  PyObject* owner; /* keeps shape and strides alive */
  DLManagedTensor* managed;
  DLManagedTensorVersioned* versioned;
  int64_t shape[RBC_MAX_NDIM];
  int64_t strides[RBC_MAX_NDIM];
} TensorArgument;

/* clang-format off */
#define NO_TENSOR {.owner = NULL}
/* clang-format on */

/* What messages call an argument. It becomes text when there is a message to write. */
typedef struct ArgumentName {
  const char* text;
  const char* array; /* a member of array[index]; null: an argument by itself */
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

/* Leaves an exception that is set as it is, whatever the deleters run. */
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
  if (tensor->ndim < 0 || tensor->ndim > RBC_MAX_NDIM) {
    PyErr_Format(PyExc_ValueError, "%s: rank is %d, expected 0 to %d", textOf(name),
                 (int)tensor->ndim, RBC_MAX_NDIM);
    return -1;
  }
  if (tensor->ndim > 0 && tensor->shape == NULL) {
    PyErr_Format(PyExc_ValueError, "%s: has rank %d and no shape", textOf(name), (int)tensor->ndim);
    return -1;
  }
  return 0;
}

/*
 * What an object raises where it cannot be described tells of the argument from here on, in a line.
 * Other kinds of exceptions are the object's own: they stay as they are.
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

/* ---- which protocol a type speaks ----------------------------------------------------------- */

typedef enum Protocol { NO_PROTOCOL, ARRAY_STRUCT, EXCHANGE, DLPACK } Protocol;

typedef struct TypeEntry {
  PyTypeObject* type;
  Protocol protocol;
  const DLPackExchange* exchange;
  int always_writable; /* no array of the type is read-only */
} TypeEntry;

/* 1 if the class comes from this module itself. */
static int isOfModule(PyObject* type, const char* expected) {
  PyObject* module = PyObject_GetAttrString(type, "__module__");
  const int same = module != NULL && PyUnicode_Check(module) &&
                   PyUnicode_CompareWithASCIIString(module, expected) == 0;
  Py_XDECREF(module);
  PyErr_Clear();
  return same;
}

static TypeEntry inspectType(PyTypeObject* type) {
  TypeEntry entry = {type, NO_PROTOCOL, NULL, 0};
  PyObject* object = (PyObject*)type;
  if (PyObject_HasAttrString(object, "__array_struct__")) {
    entry.protocol = ARRAY_STRUCT;
    return entry;
  }
  PyObject* capsule = PyObject_GetAttrString(object, "__dlpack_c_exchange_api__");
  if (capsule != NULL && PyCapsule_IsValid(capsule, "dlpack_exchange_api")) {
    const DLPackExchange* table =
        (const DLPackExchange*)PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    while (table != NULL && table->major != DLPACK_MAJOR) table = table->older;
    if (table != NULL && table->export_managed != NULL && table->current_stream != NULL) {
      entry.protocol = EXCHANGE;
      entry.exchange = table;
      entry.always_writable = isOfModule(object, "torch");
    }
  }
  Py_XDECREF(capsule);
  PyErr_Clear();
  if (entry.protocol == NO_PROTOCOL && PyObject_HasAttrString(object, "__dlpack__"))
    entry.protocol = DLPACK;
  return entry;
}

/* The GIL guards the table. Types in it are kept alive, so that no other type gets the address. */
static TypeEntry lookUpType(PyTypeObject* type) {
  static TypeEntry known[16];
  static int count = 0;
  for (int i = 0; i < count; ++i) {
    if (known[i].type == type) return known[i];
  }
  const TypeEntry entry = inspectType(type);
  if (entry.protocol != NO_PROTOCOL && count < (int)(sizeof known / sizeof known[0])) {
    Py_INCREF((PyObject*)type);
    known[count++] = entry;
  }
  return entry;
}

/* ---- NumPy ---------------------------------------------------------------------------------- */

/* What `__array_struct__` holds. */
typedef struct ArrayStruct {
  int two;
  int ndim;
  char kind;
  int item_size;
  int flags;
  Py_ssize_t* shape;
  Py_ssize_t* strides; /* bytes */
  void* data;
  PyObject* descriptor;
} ArrayStruct;

#define ARRAY_NATIVE_BYTE_ORDER 0x200
#define ARRAY_WRITEABLE 0x400

/* 1 if the dtype of `array` has this name. */
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
    if (text == NULL) { /* as the array interface writes a type */
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
  static PyObject* attribute = NULL; /* a string is made once */
  if (attribute == NULL) attribute = PyUnicode_InternFromString("__array_struct__");
  if (attribute == NULL) return -1;
  PyObject* capsule = PyObject_GetAttr(array, attribute);
  if (capsule == NULL) return blameArgument(name);
  argument->owner = capsule;
  if (!PyCapsule_IsValid(capsule, NULL)) {
    PyErr_Format(PyExc_TypeError, "%s: its __array_struct__ is no capsule of the array interface",
                 textOf(name));
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

/* ---- DLPack --------------------------------------------------------------------------------- */

static int openManaged(TensorArgument* argument, DLManagedTensorVersioned* managed,
                       ArgumentName name, int writable) {
  argument->versioned = managed; /* from here on closeTensor calls the deleter */
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
  /* What is borrowed has no flag that tells whether it is read-only. */
  if (exchange->borrow != NULL && (!writable || entry->always_writable)) {
    if (exchange->borrow(object, &argument->tensor) != 0) return blameArgument(name);
    return checkRank(&argument->tensor, name);
  }
  DLManagedTensorVersioned* managed = NULL;
  if (exchange->export_managed(object, &managed) != 0) return blameArgument(name);
  return openManaged(argument, managed, name, writable);
}

/* The type in what `__dlpack_device__` gave, a pair of ints; -1 with an exception set. */
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

/* The stream on which `context` will use an object, as `__dlpack__` wants it; new reference. */
static PyObject* consumerStream(PyObject* object, rbcContext_t context) {
  PyObject* device = PyObject_CallMethod(object, "__dlpack_device__", NULL);
  const long device_type = device != NULL ? deviceType(device) : -1;
  Py_XDECREF(device);
  if (device_type < 0) return NULL;
  if (device_type != RBC_DEVICE_CUDA && device_type != RBC_DEVICE_CUDA_MANAGED) Py_RETURN_NONE;
  void* stream = NULL;
  if (context == NULL || rbcContextGetStream(context, &stream) != RBC_STATUS_SUCCESS)
    return PyLong_FromLong(-1);
  return stream != NULL ? PyLong_FromVoidPtr(stream)
                        : PyLong_FromLong(1); /* 1: the legacy stream */
}

/* Calls `__dlpack__` in the form of DLPack 1.0, or, where that is unknown, in the older one. */
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

/* Capsule destructors, for a managed tensor that nobody took. */
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

/* A capsule that owns `managed`, which goes if there is no memory for one. */
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

/* ---- what the wrapper calls ----------------------------------------------------------------- */

/*
 * Describes `object` in *argument, which was zeroed and is closed after the call, whatever comes
 * back: 0, -1 with an exception set, or 1 if the object is no array. `context` tells on which
 * stream the array will be used; it may be null.
 */
static int openTensor(TensorArgument* argument, PyObject* object, ArgumentName name,
                      rbcContext_t context, int writable) {
  const TypeEntry entry = lookUpType(Py_TYPE(object));
  switch (entry.protocol) {
    case ARRAY_STRUCT: return openArrayStruct(argument, object, name, writable);
    case EXCHANGE: return openExchange(argument, &entry, object, name, writable);
    case DLPACK: return openDLPack(argument, object, name, context, writable);
    case NO_PROTOCOL: break;
  }
  return 1;
}

static void raiseNoArray(ArgumentName name, PyObject* object) {
  PyObject* type = PyObject_GetAttrString((PyObject*)Py_TYPE(object), "__name__");
  if (type == NULL) return;
  PyErr_Format(PyExc_TypeError,
               "%s: is a %S, expected an array (NumPy, torch, or any with __dlpack__)",
               textOf(name), type);
  Py_DECREF(type);
}

/* openTensor, where what is no array is an error: 0, or -1 with an exception set. */
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
    /* Borrowed: shape and strides are the producer's, which may change them. */
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

/* A (code, bits) pair; 0, or -1 with an exception set. */
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

/* The number of extents, or -1 with an exception set. */
static int32_t readShape(PyObject* shape, int64_t* extents) {
  const Py_ssize_t ndim = PySequence_Size(shape);
  if (ndim < 0) return -1;
  if (ndim > RBC_MAX_NDIM) {
    PyErr_Format(PyExc_ValueError, "shape: has %zd extents, expected 0 to %d", ndim, RBC_MAX_NDIM);
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

/* The current stream of an array's framework on a CUDA device, an int; None if it cannot tell. */
static PyObject* currentStream(PyObject* object, int32_t device_id) {
  const TypeEntry entry = lookUpType(Py_TYPE(object));
  if (entry.protocol != EXCHANGE) Py_RETURN_NONE;
  void* stream = NULL;
  if (entry.exchange->current_stream(RBC_DEVICE_CUDA, device_id, &stream) != 0) return NULL;
  return PyLong_FromVoidPtr(stream);
}

/* Sets the Python exception that a status stands for. */
static void raiseStatus(rbcStatus_t status, const char* message) {
  switch (status) {
    case RBC_STATUS_INVALID_ARGUMENT:
    case RBC_STATUS_DEVICE_MISMATCH:
    case RBC_STATUS_SHAPE_MISMATCH: PyErr_SetString(PyExc_ValueError, message); return;
    case RBC_STATUS_DTYPE_MISMATCH: PyErr_SetString(PyExc_TypeError, message); return;
    case RBC_STATUS_OUT_OF_MEMORY: PyErr_SetString(PyExc_MemoryError, message); return;
    case RBC_STATUS_SUCCESS:
    case RBC_STATUS_UNSUPPORTED:
    case RBC_STATUS_WORKSPACE_TOO_SMALL:
    case RBC_STATUS_CUDA_ERROR:
    case RBC_STATUS_NOT_AVAILABLE:
    case RBC_STATUS_INTERNAL: break;
  }
  PyObject* module = PyImport_ImportModule("robocache._errors");
  PyObject* type = module != NULL ? PyObject_GetAttrString(module, "RoboCacheError") : NULL;
  PyObject* error = type != NULL ? PyObject_CallFunction(type, "si", message, (int)status) : NULL;
  if (error != NULL) PyErr_SetObject(type, error);
  Py_XDECREF(error);
  Py_XDECREF(type);
  Py_XDECREF(module);
}

#endif /* ROBOCACHE_BINDINGS_TENSOR_ARGUMENT_H */
