/*
 * Python: arrays of any library as tensors, statuses as exceptions, the GIL released around calls.
 */
%begin %{
#define PY_SSIZE_T_CLEAN
%}

%{
#include "params_argument.h"
#include "tensor_argument.h"
%}

%include <typemaps.i>

%rename("%(undercase)s", %$isfunction, regexmatch$name="^rbc") "";

/* ---- statuses ------------------------------------------------------------------------------- */

/* The message is copied before anything else can run on this thread. */
%exception {
  char message[1024];
  PyThreadState* thread = PyEval_SaveThread();
  $action
  if (result != RBC_STATUS_SUCCESS) snprintf(message, sizeof message, "%s", rbcGetLastError());
  PyEval_RestoreThread(thread);
  if (result != RBC_STATUS_SUCCESS) {
    raiseStatus(result, message);
    SWIG_fail;
  }
}
%noexception rbcStatusName;
%ignore rbcGetLastError;

/* The result is what the outputs make it; None without any. Memory may have given out for them. */
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

/* An object that destroys the handle when it goes; delete_<Name> does it at once. */
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
%typemap(in) void* stream {
  $1 = $input == Py_None ? NULL : PyLong_AsVoidPtr($input);
  if (PyErr_Occurred()) SWIG_fail;
}
%typemap(out) void* stream "$result = PyLong_FromVoidPtr($1);"
%typemap(in, numinputs=0) void** stream (void* value) "$1 = &value;"
%typemap(argout) void** stream {
  $result = SWIG_AppendOutput($result, PyLong_FromVoidPtr(*$1));
}

/* ---- tensors -------------------------------------------------------------------------------- */

/* Any array, for the length of the call; every function that takes one has a context first. */
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
TENSOR_TYPEMAP(const rbcTensor* out, 1)
TENSOR_TYPEMAP(const rbcTensor* mask, 1)
TENSOR_TYPEMAP(const rbcTensor* dropped, 1)
TENSOR_TYPEMAP(const rbcTensor* tsdf, 1)
TENSOR_TYPEMAP(const rbcTensor* weight, 1)
TENSOR_TYPEMAP(const rbcTensor* destination, 1)

/* Parameters and streams: tuples that params_argument.h tells of. */
%typemap(in) const rbcResampleParams* params (ResampleArgument opened = NO_RESAMPLE) {
  if (openResample($input, -1, arg1, &opened) != 0) SWIG_fail;
  $1 = &opened.params;
}
%typemap(freearg) const rbcResampleParams* params "closeResample(&opened$argnum);"

%typemap(in) const rbcFuseParams* params (FuseArgument opened = NO_FUSE) {
  if (openFuse($input, arg1, &opened) != 0) SWIG_fail;
  $1 = &opened.params;
}
%typemap(freearg) const rbcFuseParams* params "closeFuse(&opened$argnum);"

%typemap(in) (const rbcFuseStream* streams, int32_t num_streams) (
    StreamsArgument opened = NO_STREAMS) {
  if (openStreams($input, arg1, &opened) != 0) SWIG_fail;
  $1 = opened.streams;
  $2 = (int32_t)opened.count;
}
%typemap(freearg) (const rbcFuseStream* streams, int32_t num_streams) {
  closeStreams(&opened$argnum);
}

/* Of point clouds: each struct of parameters has a grid, lengths and offsets. */
%define CLOUD_TYPEMAP(Name)
%typemap(in) const Name* params (Name params, CloudArgument opened = NO_CLOUD) {
  const TensorMember members[] = {{"lengths", offsetof(Name, lengths)},
                                  {"offsets", offsetof(Name, offsets)}};
  if (openStruct($input, $1_descriptor, &params, sizeof params) != 0) SWIG_fail;
  if (openCloud($input, arg1, &params.grid, members, &params, &opened) != 0) SWIG_fail;
  $1 = &params;
}
%typemap(freearg) const Name* params "closeCloud(&opened$argnum);"
%enddef

CLOUD_TYPEMAP(rbcVoxelizeParams)
CLOUD_TYPEMAP(rbcVoxelizeSparseParams)
CLOUD_TYPEMAP(rbcTsdfParams)

%typemap(in) const rbcSparseVoxels* voxels (VoxelsArgument opened = NO_VOXELS) {
  if (openVoxels($input, arg1, &opened) != 0) SWIG_fail;
  $1 = &opened.voxels;
}
%typemap(freearg) const rbcSparseVoxels* voxels "closeVoxels(&opened$argnum);"

%ignore rbcFuseStream;
%ignore rbcChannelGroup;
%ignore rbcVoxelGrid;
%ignore rbcSparseVoxels;
%ignore rbcResampleParams::num_groups;
%rename("$ignore", %$isvariable, regexmatch$type="rbc(Tensor|ChannelGroup|VoxelGrid)$") "";

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

/* Owned tensors go out as DLPack capsules; what comes in is described by Tensor. */
%ignore rbcDevice;
%ignore rbcTensorInfo;
%ignore rbcTensorNormalize;
%ignore rbcTensorGetView;
%ignore rbcTensorImportDLPack;
%ignore rbcTensorImportDLPackVersioned;
%ignore rbcDType;
%typemap(in) rbcDType {
  if (readDType($input, &$1) != 0) SWIG_fail;
}
%typemap(in) (int32_t ndim, const int64_t* shape) (int64_t extents[RBC_MAX_NDIM]) {
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

/* ---- streams of array libraries ------------------------------------------------------------- */

%noexception currentStream;
%rename(current_stream) currentStream;
PyObject* currentStream(PyObject* array, int32_t device_id);
