/*
 * C#: structs and handles are objects over SafeHandles, statuses are exceptions, and memory that a
 * call points to is pinned for the duration of the call.
 */
%{
#include "native.h"
%}

%include <typemaps.i>

/* ---- names ---------------------------------------------------------------------------------- */

%rename("%(camelcase)s", %$isvariable, %$ismember) "";
/* RBC_METHOD_LINEAR: MethodLinear; RBC_STATUS_SUCCESS: Status.Success */
%rename("%(regex:/^RBC_(?:STATUS_)?(.)([^_]*)_?(.?)([^_]*)_?(.?)([^_]*)_?(.?)([^_]*)$/"
        "\\1\\L\\2\\E\\3\\L\\4\\E\\5\\L\\6\\E\\7\\L\\8\\E/)s",
        regexmatch$name="^RBC_(?!VERSION_|ABI_VERSION|MAX_NDIM)") "";
%rename(Status) rbcStatus;
%csconst(1);
%include "documentation_csharp.i"
%pragma(csharp) moduleclassmodifiers="/// <summary>
/// The C interface, with the same order of arguments, and the constants of parameters. Context has
/// the operations in a form for C#.
/// </summary>
public static class"

/* ---- types ---------------------------------------------------------------------------------- */

/* Sizes are long, as in C#. */
%apply long long { int64_t, uint64_t, size_t };
%typemap(csin) size_t "Counted.Size($csinput, \"$1_name\")"
%apply long long* OUTPUT { size_t* bytes };
%apply int* OUTPUT { int32_t* release_version, int32_t* abi_version };

/* The number of elements comes before an array or list. */
%typemap(ctype) (int32_t ndim, const int64_t* shape) "const int64_t*"
%typemap(imtype) (int32_t ndim, const int64_t* shape) "long[]"
%typemap(cstype) (int32_t ndim, const int64_t* shape) "long[]"
%typemap(csin) (int32_t ndim, const int64_t* shape) "Counted.Of($csinput)"
%typemap(in) (int32_t ndim, const int64_t* shape) {
  $1 = (int32_t)$input[0];
  $2 = ($2_ltype)($input + 1);
}

/* CUDA streams, memory and DLPack's managed tensors are pointers. */
%apply void* VOID_INT_PTR { void*, struct DLManagedTensor*, struct DLManagedTensorVersioned* };
%define POINTER_OUTPUT(Type)
%typemap(ctype) Type** "void **"
%typemap(imtype) Type** "out global::System.IntPtr"
%typemap(cstype) Type** "out global::System.IntPtr"
%typemap(csin) Type** "out $csinput"
%typemap(in) Type** "$1 = ($1_ltype)$input;"
%enddef

POINTER_OUTPUT(void)
POINTER_OUTPUT(struct DLManagedTensor)
POINTER_OUTPUT(struct DLManagedTensorVersioned)

/* Structs that never grow are value types, defined in src/. */
%define VALUE_STRUCT(Name, Type)
%ignore Name;
%typemap(ctype) Name, Name* "Name *"
%typemap(imtype, out="global::System.IntPtr") Name, Name* "ref Type"
%typemap(cstype) Name, Name* "Type"
%typemap(csin) Name, Name* "ref $csinput"
%typemap(in) Name "$1 = *$input;"
%typemap(in) Name* "$1 = $input;"
%typemap(csout) Name, Name* ""
%typemap(csvarin) Name, Name* %{
    set {
      $imcall;
    } %}
%typemap(csvarout) Name, Name* %{
    get {
      NativeHandle handle = swigCPtr; // keeps the struct until the field is read
      bool held = false;
      try {
        handle.DangerousAddRef(ref held);
        global::System.IntPtr field = $imcall;
        return (Type)global::System.Runtime.InteropServices.Marshal.PtrToStructure(
            field, typeof(Type));
      } finally {
        if (held) handle.DangerousRelease();
      }
    } %}
%enddef

VALUE_STRUCT(rbcDevice, Device)
VALUE_STRUCT(rbcDType, DType)
VALUE_STRUCT(rbcVoxelGrid, VoxelGrid)

/* ---- statuses ------------------------------------------------------------------------------- */

/* The message is copied before other code can run on this thread. */
%typemap(ctype, out="void") rbcStatus_t "int"
%typemap(imtype, out="void") rbcStatus_t "int"
%typemap(cstype, out="void") rbcStatus_t "Status"
%typemap(csin) rbcStatus_t "(int)$csinput"
%typemap(in) rbcStatus_t "$1 = (rbcStatus_t)$input;"
%typemap(out, canthrow=1, null="") rbcStatus_t "raiseStatus($1);"
%typemap(csout, excode=SWIGEXCODE) rbcStatus_t {
    $imcall;$excode
  }
%ignore rbcGetLastError;

%{
SWIGEXPORT void SWIGSTDCALL RoboCacheSetStatusCallback(StatusCallback callback) {
  statusCallback = callback;
}
%}

%pragma(csharp) imclasscode=%{
  internal delegate void StatusCallback(int status, string message);

  [global::System.Runtime.InteropServices.DllImport("$dllimport")]
  private static extern void RoboCacheSetStatusCallback(StatusCallback callback);

  internal static readonly StatusCallback statusCallback = SetStatusCallback();

  private static StatusCallback SetStatusCallback() {
    StatusCallback callback = (status, message) =>
        SWIGPendingException.Set(Errors.Of((Status)status, message));
    RoboCacheSetStatusCallback(callback);
    return callback;
  }
%}

/* ---- objects -------------------------------------------------------------------------------- */

/* NativeObject has the SafeHandle; P/Invoke keeps it alive during a call. */
%typemap(imtype, out="global::System.IntPtr") SWIGTYPE*
    "global::System.Runtime.InteropServices.SafeHandle"
%typemap(csclassmodifiers) SWIGTYPE "public partial class"
%typemap(csbase) SWIGTYPE "NativeObject"
%typemap(csinterfaces) SWIGTYPE ""
%typemap(csbody) SWIGTYPE %{
  internal $csclassname(global::System.IntPtr pointer, bool owned) : base(pointer, owned) {
    swigCPtr.Release = Delete;
  }
%}
%typemap(csdispose) SWIGTYPE ""
%typemap(csdisposing, methodname="Delete", methodmodifiers="internal",
         parameters="global::System.Runtime.InteropServices.SafeHandle swigCPtr") SWIGTYPE {
    $imcall;
  }

/* Functions that create an object return it. */
%define RBC_HANDLE_TYPEMAPS(Name)
%typemap(ctype) struct Name** "void **"
%typemap(imtype) struct Name** "out global::System.IntPtr"
%typemap(cstype) struct Name** "out $*csclassname"
%typemap(csin, pre="    global::System.IntPtr made_$csinput = global::System.IntPtr.Zero;\n"
                   "    $csinput = null;",
         post="      if (made_$csinput != global::System.IntPtr.Zero) "
              "$csinput = new $*csclassname(made_$csinput, true);",
         cshin="out $csinput") struct Name** "out made_$csinput"
%typemap(in) struct Name** "$1 = ($1_ltype)$input;"
%enddef

/* ---- tensors and structs of parameters ------------------------------------------------------ */

/* The target of a const pointer is pinned for the call, with everything that it points to. */
%define PINNED(PATTERN, WRITABLE)
%typemap(csin, pre="    using (Pin.Of($csinput, \"$1_name\", WRITABLE)) {", terminator="    }")
    PATTERN "NativeObject.getCPtr($csinput)"
/* A struct keeps the objects alive that its members point to. */
%typemap(csvarin) PATTERN %{
    set {
      $imcall;
      Keep("$1_name", value, WRITABLE);
    } %}
%enddef

PINNED(const SWIGTYPE*, false)
PINNED(const rbcOutput*, true)

%typemap(csvarout) const SWIGTYPE* %{
    get {
      return ($csclassname)Holds("$1_name");
    } %}

/* An array of structs is copied from objects. */
%define RBC_ARRAY_ARGUMENT(Name, Class, Argument)
%typemap(ctype) (const Name* Argument, int32_t num_##Argument) "void **"
%typemap(imtype) (const Name* Argument, int32_t num_##Argument) "global::System.IntPtr[]"
%typemap(cstype) (const Name* Argument, int32_t num_##Argument) #Class "[]"
%typemap(csin, pre="    using (Pin.Of($csinput, \"$1_name\")) {", terminator="    }")
    (const Name* Argument, int32_t num_##Argument) "Counted.Of($csinput)"
%typemap(in, canthrow=1) (const Name* Argument, int32_t num_##Argument) {
  $2 = (int32_t)(intptr_t)$input[0];
  $1 = (Name*)gather($input + 1, $2, sizeof *$1);
  if ($1 == NULL) {
    SWIG_CSharpSetPendingException(SWIG_CSharpOutOfMemoryException, "$1_name: no memory");
    return $null;
  }
}
%typemap(freearg) (const Name* Argument, int32_t num_##Argument) "free((void*)$1);"
%enddef

/* An array of the same length as the array whose length is the third argument. */
%define RBC_EACH_ARGUMENT(Name, Class, Argument)
%typemap(ctype) const Name* Argument "void **"
%typemap(imtype) const Name* Argument "global::System.IntPtr[]"
%typemap(cstype) const Name* Argument #Class "[]"
%typemap(csin, pre="    using (Pin.Of($csinput, \"$1_name\")) {", terminator="    }")
    const Name* Argument "Counted.Of($csinput)"
%typemap(in, canthrow=1) const Name* Argument {
  const int32_t count = (int32_t)(intptr_t)$input[0];
  if (count != arg3) {
    SWIG_CSharpSetPendingExceptionArgument(SWIG_CSharpArgumentException,
                                           "$1_name: expected one for each stream", "$1_name");
    return $null;
  }
  $1 = (Name*)gather($input + 1, count, sizeof *$1);
  if ($1 == NULL) {
    SWIG_CSharpSetPendingException(SWIG_CSharpOutOfMemoryException, "$1_name: no memory");
    return $null;
  }
}
%typemap(freearg) const Name* Argument "free((void*)$1);"
%enddef

%ignore rbcChannelGroup;
%ignore rbcResampleParams::groups;
%ignore rbcResampleParams::num_groups;
%csmethodmodifiers rbcResampleParams::setGroups "internal";
%rename(SetGroups) rbcResampleParams::setGroups;
%extend rbcResampleParams {
  void setGroups(void* groups, int32_t num_groups) {
    $self->groups = (const rbcChannelGroup*)groups;
    $self->num_groups = num_groups;
  }
}

/* Vectors inside a struct are arrays. */
%typemap(ctype) double [ANY] "double *"
%typemap(imtype, out="global::System.IntPtr") double [ANY] "double[]"
%typemap(cstype) double [ANY] "double[]"
%typemap(csin) double [ANY] "$csinput"
%typemap(csout) double [ANY] ""
%typemap(in) double [ANY] "$1 = $input;"
%typemap(memberin) double [ANY] "memcpy($1, $input, sizeof $1);"
%typemap(out) double [ANY] "$result = $1;"
%typemap(csvarin) double [ANY] %{
    set {
      Counted.Require(value, $1_dim0, "$1_name");
      $imcall;
    } %}
%typemap(csvarout) double [ANY] %{
    get {
      NativeHandle handle = swigCPtr; // keeps the struct until the field is read
      bool held = false;
      try {
        handle.DangerousAddRef(ref held);
        double[] copy = new double[$1_dim0];
        global::System.Runtime.InteropServices.Marshal.Copy($imcall, copy, 0, $1_dim0);
        return copy;
      } finally {
        if (held) handle.DangerousRelease();
      }
    } %}

/* The outputs of windows keep their accumulator alive. */
%typemap(csvarin) struct rbcAccumulator* rbcWindowsOutputs::accumulator %{
    set {
      $imcall;
      Keep("$1_name", value, false);
    } %}
%typemap(csvarout) struct rbcAccumulator* rbcWindowsOutputs::accumulator %{
    get {
      return (Accumulator)Holds("$1_name");
    } %}

%ignore rbcWindowsTransform;
%ignore rbcWindowsStream::transforms;
%ignore rbcWindowsStream::num_transforms;
%csmethodmodifiers rbcWindowsStream::setTransforms "internal";
%rename(SetTransforms) rbcWindowsStream::setTransforms;
%extend rbcWindowsStream {
  void setTransforms(void* transforms, int32_t num_transforms) {
    $self->transforms = (const rbcWindowsTransform*)transforms;
    $self->num_transforms = num_transforms;
  }
}

/* Accumulators: the result of NextPass, and the levels, in an array that is large enough. */
%apply int* OUTPUT { int32_t* more };
%apply void* VOID_INT_PTR { const void* data };
%typemap(ctype) (double* levels, size_t capacity) "double*"
%typemap(imtype) (double* levels, size_t capacity) "double[]"
%typemap(cstype) (double* levels, size_t capacity) "double[]"
%typemap(csin, pre="    double[] counted_$csinput = Counted.Room($csinput);",
         post="      Counted.CopyTo(counted_$csinput, $csinput);")
    (double* levels, size_t capacity) "counted_$csinput"
%typemap(in) (double* levels, size_t capacity) {
  $2 = (int32_t)$input[0];
  $1 = $input + 1;
}

/* ---- stores --------------------------------------------------------------------------------- */

%include "store_reading.i"
%typemap(ctype) const uint8_t* key "const uint8_t*"
%typemap(imtype) const uint8_t* key "byte[]"
%typemap(cstype) const uint8_t* key "byte[]"
%typemap(csin) const uint8_t* key "Counted.Key($csinput)"
%typemap(in) const uint8_t* key "$1 = (uint8_t*)$input;"
POINTER_OUTPUT(const char)
%csmethodmodifiers rbcEntryGetName "internal";
%ignore rbcEntryGetTensor;
%ignore rbcTrackInfo::shape;
%csmethodmodifiers rbcTrackInfo::extent "internal";
%rename(GetExtent) rbcTrackInfo::extent;
%rename(DType) rbcTrackInfo::dtype;
%extend rbcTrackInfo {
  int64_t extent(int32_t axis) { return $self->shape[axis]; }
}

/* Tensor.cs describes arrays, memory and pointers. */
%ignore rbcTensorInfo;
%ignore rbcTensorGetInfo;
%ignore rbcOwnedTensorGetView;
%rename(DType) rbcTensor::dtype;
%ignore rbcTensor::shape;
%ignore rbcTensor::strides;
%ignore rbcTensor::byte_offset;
%immutable rbcTensor::device;
%immutable rbcTensor::ndim;
%immutable rbcTensor::dtype;
%typemap(csvarin) void* data %{
    internal set {
      $imcall;
    } %}
%typemap(ctype) const int64_t* strides "const int64_t*"
%typemap(imtype) const int64_t* strides "long[]"
%typemap(cstype) const int64_t* strides "long[]"
%typemap(csin) const int64_t* strides "$csinput"
%typemap(in) const int64_t* strides "$1 = ($1_ltype)$input;"
%csmethodmodifiers rbcTensor::rbcTensor "internal";
%csmethodmodifiers rbcTensor::extent "internal";
%rename(GetExtent) rbcTensor::extent;
%extend rbcTensor {
  rbcTensor(rbcDevice device, rbcDType dtype, int32_t ndim, const int64_t* shape,
            const int64_t* strides) {
    return newTensor(device, dtype, ndim, shape, strides);
  }
  rbcTensor(struct rbcOwnedTensor* tensor, int32_t writable) { return newView(tensor, writable); }
  rbcTensor(struct rbcEntry* entry, const char* name, int64_t segment) {
    return newEntryView(entry, name, segment);
  }
  ~rbcTensor(void) { free($self); }
  int64_t extent(int32_t axis) { return $self->shape[axis]; }
}
