/*
 * Java: statuses are exceptions, results are returned, structs are objects that keep the objects
 * alive that they refer to. The base classes are in src/main/java and contain the handwritten code.
 */
%{
#include "java_support.h"
%}

%include <typemaps.i>
%include <enums.swg>
%include "documentation_java.i"
%javaconst(1);

%rename("%(regex:/^rbc(.)(.*)/\\l\\1\\2/)s", %$isfunction, regexmatch$name="^rbc") "";
%rename("%(lowercamelcase)s", %$ismember, %$isvariable) "";

/* Java has no unsigned literals. */
%define RBC_UNSIGNED(Name, Value)
%javaconstvalue(Value) Name;
%enddef

/* ---- statuses ------------------------------------------------------------------------------- */

%ignore rbcGetLastError;
%ignore rbcStatusName;
%rename(Status) rbcStatus;
%rename("%(regex:/^RBC_STATUS_(.*)/\\1/)s", regexmatch$name="^RBC_STATUS_") "";
%typemap(javabody) enum rbcStatus %{
  private final int value;

  Status(int value) {
    this.value = value;
  }

  /** Null for a status of a newer library that this binding does not have. */
  static Status of(int value) {
    for (Status status : values()) {
      if (status.value == value) return status;
    }
    return null;
  }
%}
%typemap(jni) rbcStatus_t "void"
%typemap(jtype) rbcStatus_t "void"
%typemap(jstype) rbcStatus_t "void"
/* The message is copied at once; the following code frees the arguments and returns. */
%typemap(out) rbcStatus_t {
  if ($1 != RBC_STATUS_SUCCESS) throwStatus(jenv, $1, rbcGetLastError());
}
%typemap(javaout) rbcStatus_t { $jnicall; }

/* A result that C writes through the last pointer is the return value in Java. */
%define RETURNS(Function, Type, Result)
%typemap(jni) rbcStatus_t Function "jlong"
%typemap(jtype) rbcStatus_t Function "long"
%typemap(jstype) rbcStatus_t Function #Type
%typemap(javaout) rbcStatus_t Function {
    return Result;
  }
%enddef

%define RBC_OPERATION(Name)
RETURNS(Name##WorkspaceSize, long, $jnicall)
%enddef

RETURNS(rbcContextCreate, Context, new Context($jnicall, true))
RETURNS(rbcContextGetCudaStream, long, $jnicall)
RETURNS(rbcOwnedTensorCreate, OwnedTensor, new OwnedTensor($jnicall, true))
RETURNS(rbcOwnedTensorImportDLPack, OwnedTensor, new OwnedTensor($jnicall, true))
RETURNS(rbcOwnedTensorImportDLPackVersioned, OwnedTensor, new OwnedTensor($jnicall, true))
RETURNS(rbcOwnedTensorExportDLPack, long, $jnicall)
RETURNS(rbcOwnedTensorExportDLPackVersioned, long, $jnicall)

RETURNS(rbcAccumulatorCreate, Accumulator,
        new Accumulator($jnicall, true))
RETURNS(rbcAccumulatorImport, Accumulator,
        new Accumulator($jnicall, true))
RETURNS(rbcAccumulatorExport, long, $jnicall)
RETURNS(rbcAccumulatorNextPass, boolean, $jnicall != 0)
RETURNS(rbcLiveCreate, Live, new Live($jnicall, true))

RETURNS(rbcStoreOpen, Store, new Store($jnicall, true))
RETURNS(rbcStoreFind, Entry, new Entry($jnicall, true))

%typemap(in, numinputs=0) int32_t* more (int32_t value = 0) "$1 = &value;"
%typemap(argout) int32_t* more "$result = (jlong)*$1;"
%typemap(in, numinputs=0) size_t* bytes (size_t value = 0) "$1 = &value;"
%typemap(argout) size_t* bytes "$result = (jlong)*$1;"
%typemap(in, numinputs=0) void** cuda_stream ($*1_ltype value = NULL) "$1 = &value;"
%typemap(argout) void** cuda_stream "$result = (jlong)(intptr_t)*$1;"
%apply void** cuda_stream { struct DLManagedTensor**, struct DLManagedTensorVersioned** };
%apply int* OUTPUT { int32_t* release_version, int32_t* abi_version };

/* ---- numbers, addresses and arrays ---------------------------------------------------------- */

%apply long long { int64_t, uint64_t, size_t };
%apply int { int32_t, uint32_t, unsigned int };
%typemap(javain) size_t "Calls.size(\"$1_name\", $javainput)"

%typemap(jni) void* "jlong"
%typemap(jtype) void* "long"
%typemap(jstype) void* "long"
%typemap(in) void* "$1 = (void*)(intptr_t)$input;"
%typemap(out) void* "$result = (jlong)(intptr_t)$1;"
%typemap(javain) void* "$javainput"
%typemap(javaout) void* { return $jnicall; }
%apply void* { const void* data };
%apply void* { struct DLManagedTensor*, struct DLManagedTensorVersioned* };

/* Arrays of a known length. */
%define ARRAY_TYPEMAP(CType, JavaType, JniType, Name)
%typemap(jni) CType[ANY] #JniType "Array"
%typemap(jtype) CType[ANY] #JavaType "[]"
%typemap(jstype) CType[ANY] #JavaType "[]"
%typemap(in) CType[ANY] (JniType elements[$1_dim0]) {
  if (!requireLength(jenv, $input, "$1_name", $1_dim0)) return $null;
  JCALL4(Get##Name##ArrayRegion, jenv, $input, 0, $1_dim0, elements);
  $1 = elements;
}
%typemap(memberin) CType[ANY] "memcpy($1, $input, sizeof $1);"
%typemap(out) CType[ANY] {
  $result = JCALL1(New##Name##Array, jenv, $1_dim0);
  if ($result != NULL) JCALL4(Set##Name##ArrayRegion, jenv, $result, 0, $1_dim0, $1);
}
%typemap(javain) CType[ANY] "$javainput"
%typemap(javaout) CType[ANY] { return $jnicall; }
%enddef

ARRAY_TYPEMAP(double, double, jdouble, Double)
ARRAY_TYPEMAP(int64_t, long, jlong, Long)

/* ---- stores --------------------------------------------------------------------------------- */

%include "store_reading.i"
%typemap(jni) const uint8_t* key "jbyteArray"
%typemap(jtype) const uint8_t* key "byte[]"
%typemap(jstype) const uint8_t* key "byte[]"
%typemap(javain) const uint8_t* key "$javainput"
%typemap(in) const uint8_t* key (jbyte bytes[RBC_STORE_KEY_BYTES]) {
  if (!requireLength(jenv, $input, "key", RBC_STORE_KEY_BYTES)) return $null;
  JCALL4(GetByteArrayRegion, jenv, $input, 0, RBC_STORE_KEY_BYTES, bytes);
  $1 = (uint8_t*)bytes;
}
%typemap(jni) rbcStatus_t rbcEntryGetName "jstring"
%typemap(jtype) rbcStatus_t rbcEntryGetName "String"
%typemap(jstype) rbcStatus_t rbcEntryGetName "String"
%typemap(javaout) rbcStatus_t rbcEntryGetName {
    return $jnicall;
  }
%typemap(in, numinputs=0) const char** name (const char* text = NULL) "$1 = (char**)&text;"
%typemap(argout) const char** name {
  if (*$1 != NULL) $result = JCALL1(NewStringUTF, jenv, *$1);
}
%javamethodmodifiers rbcEntryGetTensor ""

/* A shape: the array's length is the rank. */
%typemap(jni) (int32_t ndim, const int64_t* shape) "jlongArray"
%typemap(jtype) (int32_t ndim, const int64_t* shape) "long[]"
%typemap(jstype) (int32_t ndim, const int64_t* shape) "long[]"
%typemap(javain) (int32_t ndim, const int64_t* shape) "$javainput"
%typemap(in) (int32_t ndim, const int64_t* shape) (jlong extents[RBC_TENSOR_MAX_NDIM]) {
  $1 = readExtents(jenv, $input, "$2_name", extents);
  if ($1 < 0) return $null;
  $2 = extents;
}
%typemap(jni) const int64_t* strides "jlongArray"
%typemap(jtype) const int64_t* strides "long[]"
%typemap(jstype) const int64_t* strides "long[]"
%typemap(javain) const int64_t* strides "$javainput"
%typemap(in) const int64_t* strides (jlong extents[RBC_TENSOR_MAX_NDIM]) {
  if ($input != NULL) {
    if (readExtents(jenv, $input, "$1_name", extents) < 0) return $null;
    $1 = extents;
  }
}

/* An array of objects becomes an array of their structs. Native code gets the objects
 * themselves, so they and the objects that they keep stay reachable until it returns. */
%define STRUCTS_TYPEMAP(Name, JavaName, STRUCTS, COUNT)
%typemap(jni) (STRUCTS, COUNT) "jobjectArray"
%typemap(jtype) (STRUCTS, COUNT) "NativeObject[]"
%typemap(jstype) (STRUCTS, COUNT) #JavaName "[]"
%typemap(javain) (STRUCTS, COUNT) "all(\"$1_name\", $javainput)"
%typemap(in) (STRUCTS, COUNT) {
  if (!copyStructs(jenv, $input, sizeof(Name), (void**)&$1, &$2)) return $null;
}
%enddef

STRUCTS_TYPEMAP(rbcChannelGroup, ChannelGroup, rbcChannelGroup* groups, int32_t num_groups)
STRUCTS_TYPEMAP(rbcWindowsTransform, WindowsTransform, rbcWindowsTransform* transforms,
                int32_t num_transforms)
%define RBC_ARRAY_ARGUMENT(Name, Class, Argument)
STRUCTS_TYPEMAP(Name, Class, const Name* Argument, int32_t num_##Argument)
%typemap(freearg) (const Name* Argument, int32_t num_##Argument) "free((void*)$1);"
%enddef

/* An array of the same length as the array whose length is the third argument. */
%define RBC_EACH_ARGUMENT(Name, Class, Argument)
%typemap(jni) const Name* Argument "jobjectArray"
%typemap(jtype) const Name* Argument "NativeObject[]"
%typemap(jstype) const Name* Argument #Class "[]"
%typemap(javain) const Name* Argument "all(\"$1_name\", $javainput)"
%typemap(in) const Name* Argument (int32_t count) {
  if (!copyStructs(jenv, $input, sizeof(Name), (void**)&$1, &count)) return $null;
  if (!requireCount(jenv, "$1_name", count, arg3)) {
    free((void*)$1);
    return $null;
  }
}
%typemap(freearg) const Name* Argument "free((void*)$1);"
%enddef

/* The levels of quantiles, in an array that is large enough. */
%typemap(jni) (double* levels, size_t capacity) "jdoubleArray"
%typemap(jtype) (double* levels, size_t capacity) "double[]"
%typemap(jstype) (double* levels, size_t capacity) "double[]"
%typemap(javain) (double* levels, size_t capacity) "$javainput"
%typemap(in) (double* levels, size_t capacity) (jdouble room[RBC_STATISTICS_MAX_LEVELS]) {
  const jsize length = $input == NULL ? 0 : JCALL1(GetArrayLength, jenv, $input);
  $2 = length < RBC_STATISTICS_MAX_LEVELS ? length : RBC_STATISTICS_MAX_LEVELS;
  $1 = room;
  if ($2 > 0) JCALL4(GetDoubleArrayRegion, jenv, $input, 0, $2, room);
}
%typemap(argout) (double* levels, size_t capacity) {
  if ($2 > 0) JCALL4(SetDoubleArrayRegion, jenv, $input, 0, $2, room$argnum);
}

/* ---- objects -------------------------------------------------------------------------------- */

%pragma(java) moduleimports="
/**
 * The operations, and the constants of their parameters. Arguments keep the names and the order of
 * the C interface, {@code robocache/*.h}; optional ones may be null.
 *
 * <p>A failed call throws with the message of the library: {@link IllegalArgumentException},
 * {@link UnsupportedOperationException}, {@link OutOfMemoryError}, or else
 * {@link RoboCacheException}; {@link IllegalStateException} if an object is closed.
 */"
%pragma(java) moduleclassmodifiers="public final class"
%pragma(java) modulebase="Calls"
%pragma(java) modulecode="  private RoboCache() {}\n"
%pragma(java) jniclassclassmodifiers="final class"
%pragma(java) jniclasscode="  static {\n    NativeLoader.load();\n  }\n"

/* A const pointer may be null, and a struct keeps the object of a field alive; outputs are
 * writable tensors. Native methods get the object with its address, so that it stays reachable. */
%typemap(javabase) SWIGTYPE "NativeStruct"
%typemap(javaclassmodifiers) SWIGTYPE "public final class"
%typemap(javain) SWIGTYPE* "required(\"$1_name\", $javainput)"
%typemap(javain) const SWIGTYPE* "optional(\"$1_name\", $javainput)"
%typemap(javain) const rbcOutput* "output(\"$1_name\", $javainput)"

/* A struct inside another is a view of it. */
%typemap(javaout) SWIGTYPE* { return new $javaclassname($jnicall, this); }
%typemap(javaout) const SWIGTYPE* { return ($javaclassname) kept($jnicall); }

%typemap(javabody) SWIGTYPE %{
  $javaclassname(long address, boolean owned) {
    super(address, owned ? $javaclassname::destroy : null);
  }

  $javaclassname(long address, NativeObject parent) {
    super(address, parent);
  }
%}
%typemap(javafinalize) SWIGTYPE ""
%typemap(javadestruct, methodname="destroy", methodmodifiers="private static",
         parameters="long swigCPtr") SWIGTYPE {
    $jnicall;
  }

%define RBC_HANDLE_TYPEMAPS(Name)
%typemap(javabody) struct Name %{
  $javaclassname(long address, boolean owned) {
    super(address, $javaclassname::destroy);
  }
%}
%typemap(in, numinputs=0) struct Name** (struct Name* made = NULL) "$1 = &made;"
%typemap(argout) struct Name** "$result = (jlong)(intptr_t)*$1;"
%enddef

%typemap(javabase) struct rbcContext "AbstractContext"
%typemap(javabase) struct rbcOwnedTensor "AbstractOwnedTensor"
%typemap(javabase) struct rbcAccumulator "NativeHandle"
%typemap(javabase) struct rbcLive "NativeHandle"
%typemap(javabase) struct rbcStore "AbstractStore"
%typemap(javabase) struct rbcEntry "AbstractEntry"
%typemap(javabase) struct rbcTensor "AbstractTensor"
%typemap(javabase) struct rbcFuseStream "AbstractFuseStream"
%typemap(javabase) struct rbcResampleParams "AbstractResampleParams"
%typemap(javabase) struct rbcWindowsStream "AbstractWindowsStream"

/* ---- tensors -------------------------------------------------------------------------------- */

/* A dtype is one of the enum DType: its code and bits in an int. */
%ignore rbcDevice;
%ignore rbcDType;
%ignore rbcAccumulatorParams::dtype; /* the dtype of the first update is used */
%ignore rbcAccumulatorInfo::dtype;
%typemap(jni) rbcDType "jint"
%typemap(jtype) rbcDType "int"
%typemap(jstype) rbcDType "DType"
%typemap(javain) rbcDType "DType.pack($javainput)"
%typemap(javaout) rbcDType { return DType.unpack($jnicall); }
%typemap(in) rbcDType {
  $1.code = (uint8_t)$input;
  $1.bits = (uint8_t)($input >> 8);
  $1.lanes = 1;
}
%typemap(out) rbcDType "$result = $1.code | $1.bits << 8;"

%define DTYPE_SETTER(Name, Member, Text)
%ignore Name::Member;
%javamethodmodifiers Name::setDType "/** " Text " */\n  public"
%extend Name { void setDType(rbcDType dtype) { $self->Member = dtype; } }
%enddef
%ignore rbcTrackInfo::dtype;
%javamethodmodifiers rbcTrackInfo::getDType "/** The type of the elements. */\n  public"
%extend rbcTrackInfo { rbcDType getDType(void) { return $self->dtype; } }
DTYPE_SETTER(rbcLiveStream, dtype, "Of the values; float32 by default.")
DTYPE_SETTER(rbcLiveParams, time_dtype, "Of all times; float64 by default.")

/* Tensor, with its factories in AbstractTensor, is immutable: only these two set fields. */
%ignore rbcTensor::data;
%ignore rbcTensor::device;
%ignore rbcTensor::ndim;
%ignore rbcTensor::dtype;
%ignore rbcTensor::shape;
%ignore rbcTensor::strides;
%ignore rbcTensor::byte_offset;
%define TENSOR_GETTER(CType, Name, Result)
%typemap(javaout) CType rbcTensor::Name {
    open("tensor"); // throws if the owner of a view is closed
    return Result;
  }
%enddef
TENSOR_GETTER(void*, getData, $jnicall)
TENSOR_GETTER(rbcDType, getDType, DType.unpack($jnicall))
TENSOR_GETTER(int32_t, getDeviceType, $jnicall)
TENSOR_GETTER(int32_t, getDeviceId, $jnicall)
TENSOR_GETTER(int32_t, getNdim, $jnicall)
%javamethodmodifiers rbcTensor::rbcTensor ""
%javamethodmodifiers rbcOwnedTensorGetView ""
%javamethodmodifiers rbcTensor::getData "/** The address of the first element. */\n  public"
%javamethodmodifiers rbcTensor::getDType "/** The type of the elements. */\n  public"
%javamethodmodifiers rbcTensor::getDeviceType "/** A DEVICE constant of {@link RoboCache}. */\n  public"
%javamethodmodifiers rbcTensor::getDeviceId "/** The CUDA device; 0 for the CPU. */\n  public"
%javamethodmodifiers rbcTensor::getNdim "/** The number of dimensions. */\n  public"
%extend rbcTensor {
  rbcTensor(void* data, int32_t device_type, int32_t device_id, rbcDType dtype, int32_t ndim,
            const int64_t* shape, const int64_t* strides) {
    return newTensor(data, device_type, device_id, dtype, ndim, shape, strides);
  }
  void* getData(void) { return $self->data; }
  rbcDType getDType(void) { return $self->dtype; }
  int32_t getDeviceType(void) { return $self->device.type; }
  int32_t getDeviceId(void) { return $self->device.id; }
  int32_t getNdim(void) { return $self->ndim; }
}

%typemap(in, numinputs=0) JNIEnv* env "$1 = jenv;"
%javamethodmodifiers bufferAddress ""
void* bufferAddress(JNIEnv* env, jobject buffer);

/* ---- channel groups and grids --------------------------------------------------------------- */

/* Params own a copy of their groups. */
%ignore rbcResampleParams::groups;
%ignore rbcResampleParams::num_groups;
%javamethodmodifiers rbcResampleParams::assignGroups ""
%extend rbcResampleParams {
  ~rbcResampleParams(void) {
    free((void*)$self->groups);
    free($self);
  }
  void assignGroups(rbcChannelGroup* groups, int32_t num_groups) {
    free((void*)$self->groups);
    $self->groups = groups;
    $self->num_groups = num_groups;
  }
}

/* Outputs keep their accumulator alive. */
%typemap(javain) struct rbcAccumulator* rbcWindowsOutputs::accumulator
    "optional(\"$1_name\", $javainput)"
%typemap(javaout) struct rbcAccumulator* rbcWindowsOutputs::accumulator {
    return (Accumulator) kept($jnicall);
  }

/* Streams own a copy of their transforms. */
%ignore rbcWindowsStream::transforms;
%ignore rbcWindowsStream::num_transforms;
%javamethodmodifiers rbcWindowsStream::assignTransforms ""
%extend rbcWindowsStream {
  ~rbcWindowsStream(void) {
    free((void*)$self->transforms);
    free($self);
  }
  void assignTransforms(rbcWindowsTransform* transforms, int32_t num_transforms) {
    free((void*)$self->transforms);
    $self->transforms = transforms;
    $self->num_transforms = num_transforms;
  }
}
%javamethodmodifiers rbcWindowsTransform::rbcWindowsTransform "
  /** A transform that copies, without channels so far. */
  public"

%javamethodmodifiers rbcTensorInfo::rbcTensorInfo "
  /** An empty object, for {@code RoboCache.tensorGetInfo} to fill. */
  public"
%javamethodmodifiers rbcChannelGroup::rbcChannelGroup(int64_t, int64_t, int32_t) "
  /** Channels {@code begin} to {@code begin + count - 1}, with a method of {@link RoboCache}. */
  public"
%javamethodmodifiers rbcChannelGroup::rbcChannelGroup(int64_t, int64_t, int32_t, int32_t) "
  /** Channels with {@code METHOD_ANGLE}, and the unit and range of angles: {@code PERIOD_...}. */
  public"
%extend rbcChannelGroup {
  rbcChannelGroup(int64_t begin, int64_t count, int32_t method) {
    rbcChannelGroup* made = (rbcChannelGroup*)calloc(1, sizeof *made);
    if (made != NULL) {
      made->begin = begin;
      made->count = count;
      made->method = method;
    }
    return made;
  }
  rbcChannelGroup(int64_t begin, int64_t count, int32_t method, int32_t period) {
    rbcChannelGroup* made = (rbcChannelGroup*)calloc(1, sizeof *made);
    if (made != NULL) {
      made->begin = begin;
      made->count = count;
      made->method = method;
      made->period = period;
    }
    return made;
  }
}

%javamethodmodifiers rbcVoxelGrid::rbcVoxelGrid(const double[3], const double[3], const int64_t[3]) "
  /** A grid; the arrays have three elements, for x, y and z. */
  public"
%extend rbcVoxelGrid {
  rbcVoxelGrid(const double origin[3], const double voxel_size[3], const int64_t shape[3]) {
    rbcVoxelGrid* made = (rbcVoxelGrid*)calloc(1, sizeof *made);
    if (made != NULL) {
      memcpy(made->origin, origin, sizeof made->origin);
      memcpy(made->voxel_size, voxel_size, sizeof made->voxel_size);
      memcpy(made->shape, shape, sizeof made->shape);
    }
    return made;
  }
}
