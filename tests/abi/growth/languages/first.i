/*
 * The C interface of release 0.1.0 for other languages, as plainly as SWIG makes it of its headers.
 * Frozen as they are: what its packages were made of stays as it was.
 */
%module first

%{
#include <robocache/robocache.h>
%}

#define SWIGWORDSIZE64 /* int64_t is long on Linux */
%include <stdint.i>
%include <carrays.i>
%include <cpointer.i>
#define RBC_API
#if defined(SWIGPYTHON)
%pythonnondynamic; /* a field that is not there is an error */
#else
%apply long long { int64_t, uint64_t, size_t }; /* both have 64 bits for long, which C may not */
#endif

#if defined(SWIGCSHARP)
%rename(parameters) rbcFuseStream::params; /* a word of C# */
#endif

/* Arrays of numbers, and their address for a tensor. */
%define RBC_ARRAY(type, name)
%array_functions(type, name)
%inline %{
static void* name##_address(type* array) { return array; }
%}
%enddef
RBC_ARRAY(float, floats)
RBC_ARRAY(double, doubles)
RBC_ARRAY(int64_t, longs)
RBC_ARRAY(int32_t, ints)
RBC_ARRAY(uint8_t, bytes)

/* Callbacks do not cross into managed languages. */
%ignore rbcAllocator;
%ignore rbcContextParams::allocator;

%include <robocache/base.h>
%include <robocache/tensor.h>
%include <robocache/context.h>
%include <robocache/resample.h>
%include <robocache/fuse.h>
%include <robocache/voxelize.h>

%pointer_functions(rbcContext_t, context)
%array_functions(rbcFuseStream, streams)
%array_functions(rbcChannelGroup, groups)
