/*
 * Python: arrays of any library as tensors, statuses as exceptions, the GIL released around calls.
 */
%begin %{
#define PY_SSIZE_T_CLEAN
%}

%{
#include "params_argument.h"
#include "signals.h"
#include "tensor_argument.h"
#include "time_ranges.h"
#include "warm_arrays.h"
%}

%include <typemaps.i>

%rename("%(undercase)s", %$isfunction, regexmatch$name="^rbc") "";

/* ---- statuses ------------------------------------------------------------------------------- */

%{
/* A signal handler's exception ends the call, and replaces the error. */
static void raiseFailure(rbcStatus_t status, const char* message) {
  if (status != RBC_STATUS_CANCELLED || !PyErr_Occurred()) raiseStatus(status, message);
}
%}

/*
 * The message is copied before other code can run on this thread. A call that may poll for signals
 * must not hold the GIL: pollSignals would wait for it forever.
 */
%define CALL_WITHOUT_THE_GIL
  char message[1024];
  PyThreadState* thread = leavePython();
  $action
  if (result != RBC_STATUS_SUCCESS) snprintf(message, sizeof message, "%s", rbcGetLastError());
  PyEval_RestoreThread(thread);
  if (result != RBC_STATUS_SUCCESS) {
    raiseFailure(result, message);
    SWIG_fail;
  }
%enddef
%exception {
  CALL_WITHOUT_THE_GIL
}
/* These two return None, or a tuple for a warning. */
%exception rbcResample {
  CALL_WITHOUT_THE_GIL
  resultobj = odditiesOfResample(arg3, arg4, arg7);
}
%exception rbcFuse {
  CALL_WITHOUT_THE_GIL
  resultobj = odditiesOfFuse(arg2, arg3, arg4, arg7);
}
%noexception rbcStatusName;
%ignore rbcGetLastError;

/* The result is built from the outputs; None without outputs. Their memory may be exhausted. */
%typemap(out) rbcStatus_t ""
%typemap(ret) rbcStatus_t {
  if (PyErr_Occurred()) {
    SWIG_Py_XDECREF($result);
    $result = NULL;
  } else if ($result == NULL) {
    $result = SWIG_Py_Void();
  }
}

%typemap(in, numinputs=0) (int32_t* release_version, int32_t* abi_version) (int32_t versions[2]) {
  $1 = &versions[0];
  $2 = &versions[1];
}
%typemap(argout) (int32_t* release_version, int32_t* abi_version) {
  $result = Py_BuildValue("ii", (int)*$1, (int)*$2);
}
%apply size_t* OUTPUT { size_t* bytes };

/* A struct of parameters. */
%define RBC_CONSTRUCTOR(Name)
%exception Name::Name {
  $action
  if (result == NULL) {
    PyErr_NoMemory();
    SWIG_fail;
  }
}
%enddef

/* ---- handles and pointers ------------------------------------------------------------------- */

/* An object that destroys the handle when it is deleted; delete_<Name> destroys it at once. */
%define RBC_HANDLE_TYPEMAPS(Name)
%typemap(in) struct Name* (void* pointer = NULL) {
  if (!SWIG_IsOK(SWIG_ConvertPtr($input, &pointer, $descriptor, $disown))) {
    SWIG_exception_fail(SWIG_TypeError, "$1_name: expected a " #Name);
  }
  if (pointer == NULL) SWIG_exception_fail(SWIG_ValueError, "$1_name: is closed");
  $1 = ($1_ltype)pointer;
}
%typemap(in, numinputs=0) struct Name** (struct Name* made = NULL) "$1 = &made;"
%typemap(argout) struct Name** {
  PyObject* handle =
      SWIG_NewPointerObj(*$1, $*descriptor, SWIG_POINTER_OWN | SWIG_POINTER_NOSHADOW);
  if (handle == NULL) {
    delete_##Name(*$1);
    SWIG_fail;
  }
  $result = SWIG_AppendOutput($result, handle);
}
%enddef

/* Streams are ints. */
%typemap(in) void* cuda_stream {
  $1 = $input == Py_None ? NULL : PyLong_AsVoidPtr($input);
  if (PyErr_Occurred()) SWIG_fail;
}
%typemap(out) void* cuda_stream "$result = PyLong_FromVoidPtr($1);"
%typemap(in, numinputs=0) void** cuda_stream (void* value) "$1 = &value;"
%typemap(argout) void** cuda_stream {
  $result = SWIG_AppendOutput($result, PyLong_FromVoidPtr(*$1));
}

/* ---- accumulators of statistics --------------------------------------------------------------- */

%apply int* OUTPUT { int32_t* more };

/* The first call of the export returns the number of bytes, the second call writes them. */
%ignore rbcAccumulatorExport;
%rename(rbc_accumulator_export) exportAccumulator;
%noexception exportAccumulator;
%{
static int exportTo(struct rbcAccumulator* accumulator, void* data, size_t capacity,
                    size_t* size) {
  char message[1024];
  PyThreadState* thread = leavePython();
  const rbcStatus_t status = rbcAccumulatorExport(accumulator, data, capacity, size);
  if (status != RBC_STATUS_SUCCESS) snprintf(message, sizeof message, "%s", rbcGetLastError());
  PyEval_RestoreThread(thread);
  if (status == RBC_STATUS_SUCCESS) return 0;
  raiseFailure(status, message);
  return -1;
}
%}
%inline %{
static PyObject* exportAccumulator(struct rbcAccumulator* accumulator) {
  size_t size = 0;
  if (exportTo(accumulator, NULL, 0, &size) != 0) return NULL;
  PyObject* bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
  if (bytes == NULL) return NULL;
  if (exportTo(accumulator, PyBytes_AsString(bytes), size, &size) == 0) return bytes;
  Py_DECREF(bytes);
  return NULL;
}
%}
%typemap(in) (const void* data, size_t bytes) {
  Py_ssize_t length = 0;
  if (PyBytes_AsStringAndSize($input, (char**)&$1, &length) != 0) SWIG_fail;
  $2 = (size_t)length;
}

/* The levels as a tuple; the argument is their number, num_levels of the info. */
%typemap(in) (double* levels, size_t capacity) (double room[RBC_STATISTICS_MAX_LEVELS]) {
  const long count = PyLong_AsLong($input);
  if (PyErr_Occurred()) SWIG_fail;
  $1 = room;
  $2 = count < RBC_STATISTICS_MAX_LEVELS ? (int32_t)count : RBC_STATISTICS_MAX_LEVELS;
}
%typemap(argout) (double* levels, size_t capacity) {
  PyObject* levels = PyTuple_New($2);
  for (Py_ssize_t i = 0; i < $2 && levels != NULL; ++i) {
    PyTuple_SetItem(levels, i, PyFloat_FromDouble($1[i]));
  }
  if (levels == NULL) SWIG_fail;
  $result = SWIG_AppendOutput($result, levels);
}
%ignore rbcAccumulatorInfo::dtype;
%ignore rbcAccumulatorParams::dtype;

/* ---- tensors -------------------------------------------------------------------------------- */

/* Any array, for the duration of the call; the first argument of the function is a context. */
%define TENSOR_TYPEMAP(PATTERN, WRITABLE)
%typemap(in) PATTERN (TensorArgument argument = NO_TENSOR) {
  if ($input != Py_None) {
    if (requireTensor(&argument, $input, argumentName("$1_name"), arg1, WRITABLE) != 0) SWIG_fail;
    $1 = &argument.tensor;
  }
}
%typemap(freearg) PATTERN "closeTensor(&argument$argnum);"
%enddef

TENSOR_TYPEMAP(const rbcTensor*, 0)
TENSOR_TYPEMAP(const rbcOutput*, 1)

/* Structs with their tensors and structs: tuples, as params_argument.h describes. */
%define RBC_STRUCT_ARGUMENT(Name)
%typemap(in) const Name* (Name opened, TensorArgument tensors[Name##_TENSORS + 1] = {NO_TENSOR},
                          double room[Name##_ROOM / sizeof(double) + 1]) {
  if (openOne(&Name##_TYPE, $input, arg1, &opened, tensors, room) != 0) SWIG_fail;
  $1 = &opened;
}
%typemap(freearg) const Name* {
  closeTensors(tensors$argnum, Name##_TENSORS);
}
%enddef

%define RBC_ARRAY_ARGUMENT(Name, Class, Argument)
%typemap(in) (const Name* Argument, int32_t num_##Argument) (ArrayArgument opened = NO_ARRAY) {
  if (openArray(&Name##_TYPE, $input, "$1_name", arg1, &opened) != 0) SWIG_fail;
  $1 = (Name*)opened.structs;
  $2 = (int32_t)opened.count;
}
%typemap(freearg) (const Name* Argument, int32_t num_##Argument) "closeArray(&opened$argnum);"
%enddef

/* An array of the same length as the array whose length is the third argument. */
%define RBC_EACH_ARGUMENT(Name, Class, Argument)
%typemap(in) const Name* Argument (ArrayArgument opened = NO_ARRAY) {
  if (openArray(&Name##_TYPE, $input, "$1_name", arg1, &opened) != 0) SWIG_fail;
  if (opened.count != arg3) {
    PyErr_Format(PyExc_ValueError, "$1_name: got %zd, expected %d", opened.count, (int)arg3);
    SWIG_fail;
  }
  $1 = (Name*)opened.structs;
}
%typemap(freearg) const Name* Argument "closeArray(&opened$argnum);"
%enddef

/* Structs in Python have only scalars. */
%define RBC_MEMBER(Name, Member)
%ignore Name::Member;
%enddef
%define RBC_PLAIN(Name)
%ignore Name;
%enddef

/* Tensor(array, name, context): a description that outlives a call. */
%ignore rbcTensor::data;
%ignore rbcTensor::device;
%ignore rbcTensor::ndim;
%ignore rbcTensor::dtype;
%ignore rbcTensor::shape;
%ignore rbcTensor::strides;
%ignore rbcTensor::byte_offset;
%exception rbcTensor::rbcTensor {
  $action
  if (result == NULL) SWIG_fail;
}
%noexception rbcTensor::~rbcTensor;
%noexception rbcTensor::describe;
%typemap(in) const char* name (PyObject* bytes = NULL) {
  bytes = PyUnicode_AsUTF8String($input);
  $1 = bytes != NULL ? PyBytes_AsString(bytes) : NULL;
  if ($1 == NULL) SWIG_fail;
}
%typemap(freearg) const char* name {
  Py_XDECREF(bytes$argnum);
  bytes$argnum = NULL;
}
%extend rbcTensor {
  rbcTensor(PyObject* array, const char* name, rbcContext_t context) {
    return newTensor(array, name, context);
  }
  ~rbcTensor(void) { deleteTensor($self); }
  /* (device type, device id, dtype code, dtype bits, shape) */
  PyObject* describe(void) { return describeTensor($self); }
}

/* Owned tensors are returned as DLPack capsules; arguments are described by Tensor. */
%ignore rbcDevice;
%ignore rbcTensorInfo;
%ignore rbcTensorGetInfo;
%ignore rbcOwnedTensorGetView;
%ignore rbcOwnedTensorImportDLPack;
%ignore rbcOwnedTensorImportDLPackVersioned;
%ignore rbcDType;
%typemap(in) rbcDType {
  if (readDType($input, &$1) != 0) SWIG_fail;
}
%typemap(in) (int32_t ndim, const int64_t* shape) (int64_t extents[RBC_TENSOR_MAX_NDIM]) {
  $1 = readShape($input, extents);
  if ($1 < 0) SWIG_fail;
  $2 = extents;
}
%typemap(in, numinputs=0) struct DLManagedTensor** (
    struct DLManagedTensor* made = NULL) "$1 = &made;"
%typemap(argout) struct DLManagedTensor** {
  $result = SWIG_AppendOutput($result, newLegacyCapsule(*$1));
}
%typemap(in, numinputs=0) struct DLManagedTensorVersioned** (
    struct DLManagedTensorVersioned* made = NULL) "$1 = &made;"
%typemap(argout) struct DLManagedTensorVersioned** {
  $result = SWIG_AppendOutput($result, newCapsule(*$1));
}

/* ---- signals -------------------------------------------------------------------------------- */

%noexception handleSignalsOn;
%rename(handle_signals_on) handleSignalsOn;
void handleSignalsOn(unsigned long thread);
%rename(watch_signals) watchSignals;
rbcStatus_t watchSignals(rbcContext_t context);

/* ---- memory of results ----------------------------------------------------------------------- */

%noexception useNumPy;
%rename(use_numpy) useNumPy;
PyObject* useNumPy(PyObject* api);
%noexception warmArray;
%rename(warm_array) warmArray;
PyObject* warmArray(PyObject* make, PyObject* shape, PyObject* dtype);
%noexception idleWarmMemory;
%rename(idle_memory) idleWarmMemory;
size_t idleWarmMemory(void);
%noexception releaseWarmMemory;
%rename(release_memory) releaseWarmMemory;
size_t releaseWarmMemory(size_t most);
%noexception limitWarmMemory;
%rename(limit_memory) limitWarmMemory;
size_t limitWarmMemory(size_t limit);

/* ---- streams of array libraries ------------------------------------------------------------- */

%noexception currentStream;
%rename(current_stream) currentStream;
PyObject* currentStream(PyObject* array, int32_t device_id);

/* ---- vectors -------------------------------------------------------------------------------- */

/* Vectors of fixed length: the array must have as many numbers. */
%typemap(in) double [ANY] (double numbers[$1_dim0]) {
  for (Py_ssize_t i = 0; i < $1_dim0; ++i) {
    PyObject* number = PySequence_GetItem($input, i);
    numbers[i] = number != NULL ? PyFloat_AsDouble(number) : 0;
    Py_XDECREF(number);
    if (PyErr_Occurred()) SWIG_fail;
  }
  $1 = numbers;
}
%typemap(memberin) double [ANY] "memcpy($1, $input, sizeof $1);"

%include "store.i"

/* with_context.i has those that open arrays for the context of their object. */
%ignore rbcAccumulatorUpdate;
%ignore rbcAccumulatorUpdateWorkspaceSize;
%ignore rbcAccumulatorGetResult;
%ignore rbcLivePush;
%ignore rbcLiveFuse;
