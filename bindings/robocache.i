/*
 * The C interface for every language: what is shared, by rules. An operation that is added to the
 * headers needs an %include line here, and a line for itself and each new struct or handle; what a
 * language does in its own way stands in its <language>.i.
 */
%module robocache

%{
#include <robocache/robocache.h>
%}

#define SWIGWORDSIZE64 /* int64_t is long on Linux */
%include <stdint.i>
#define RBC_API

/* Names: prefixes go. */
%rename("%(regex:/^rbc(.*)/\\1/)s", regexmatch$name="^rbc") "";
%rename("%(regex:/^RBC_(.*)/\\1/)s", regexmatch$name="^RBC_") "";

/* Callbacks do not cross into managed languages. */
%rename("$ignore", regexmatch$name="^RBC_(VERSION_|ABI_VERSION|MAX_NDIM)") "";
%ignore rbcAllocator;
%ignore rbcContextParams::allocator;

/* A struct with an initializer: it starts with its defaults. */
%define RBC_STRUCT(Name)
RBC_CONSTRUCTOR(Name)
%noexception Name::~Name;
%extend Name {
  Name() {
    Name* made = (Name*)malloc(sizeof *made);
    if (made != NULL) *made = Name##Init();
    return made;
  }
}
%enddef

/* A handle: an object that owns what was created, and gives it back once. */
%define RBC_HANDLE(Name, Destroy)
%nodefaultctor Name;
%noexception Name::~Name;
%ignore Destroy;
RBC_HANDLE_TYPEMAPS(Name)
struct Name {};
%extend Name {
  ~Name(void) { Destroy($self); }
}
%enddef

#if defined(SWIGPYTHON)
%include "python.i"
#elif defined(SWIGJAVA)
%include "java.i"
#elif defined(SWIGCSHARP)
%include "csharp.i"
#endif

/* A language may tell of a constructor that got no memory. */
#ifndef RBC_CONSTRUCTOR
%define RBC_CONSTRUCTOR(Name)
%noexception Name::Name;
%enddef
#endif

/* After the language's rules for names: constructors set what a struct says of itself. */
%rename("$ignore", %$ismember, regexmatch$name="^(struct_size|reserved[0-9]?)$") "";
%rename("$ignore", %$isfunction, regexmatch$name="^rbc.*Init$") "";

RBC_HANDLE(rbcContext, rbcContextDestroy)
RBC_HANDLE(rbcOwnedTensor, rbcTensorDestroy)
RBC_STRUCT(rbcContextParams)
RBC_STRUCT(rbcContextInfo)
RBC_STRUCT(rbcResampleParams)
RBC_STRUCT(rbcFuseStream)
RBC_STRUCT(rbcFuseParams)
RBC_STRUCT(rbcVoxelizeParams)
RBC_STRUCT(rbcVoxelizeSparseParams)
RBC_STRUCT(rbcSparseVoxels)
RBC_STRUCT(rbcTsdfParams)

/* An operation, for a language whose results are to be told. */
#ifdef RBC_OPERATION_TYPEMAPS
RBC_OPERATION_TYPEMAPS(rbcResample)
RBC_OPERATION_TYPEMAPS(rbcFuse)
RBC_OPERATION_TYPEMAPS(rbcVoxelize)
RBC_OPERATION_TYPEMAPS(rbcVoxelizeSparse)
RBC_OPERATION_TYPEMAPS(rbcVoxelizeTsdf)
#endif

%include <robocache/base.h>
%include <robocache/tensor.h>
%include <robocache/context.h>
%include <robocache/resample.h>
%include <robocache/fuse.h>
%include <robocache/voxelize.h>
%include <robocache/tsdf.h>
