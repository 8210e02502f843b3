/*
 * The rules that all languages share for the C interface. declarations.py reads the handles and
 * structs from the headers. The rules of a single language are in its <language>.i.
 */
%module robocache

%{
#include <robocache/robocache.h>
%}

#define SWIGWORDSIZE64 /* int64_t is long on Linux */
%include <stdint.i>
#define RBC_API

/* Names lose their prefixes. */
%rename("%(regex:/^rbc(.*)/\\1/)s", regexmatch$name="^rbc") "";
%rename("%(regex:/^RBC_(.*)/\\1/)s", regexmatch$name="^RBC_") "";

/* Callbacks are not available in managed languages. */
%rename("$ignore", regexmatch$name="^RBC_(VERSION_|ABI_VERSION|MAX_NDIM|STRUCT_)") "";
%ignore rbcAllocator;
%ignore rbcContextParams::allocator;
%ignore rbcCancelCallback;
%ignore rbcContextSetCancelCallback;

/* Constructors call these. */
%ignore rbcInitParams;
%ignore rbcStruct;

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

/* A handle: an object that owns the created object and destroys it once. */
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

/* A language may define how a constructor reports that memory is exhausted. */
#ifndef RBC_CONSTRUCTOR
%define RBC_CONSTRUCTOR(Name)
%noexception Name::Name;
%enddef
#endif

/* Macros that a language may define, for: an unsigned constant; a struct without a struct_size, which
 * other structs contain; a member that is or points to a struct or a tensor; a struct with such
 * members as an argument, in an array, or in an array as long as the preceding one; an operation.
 * */
#ifndef RBC_UNSIGNED
%define RBC_UNSIGNED(Name, Value) %enddef
#endif
#ifndef RBC_PLAIN
%define RBC_PLAIN(Name) %enddef
#endif
#ifndef RBC_MEMBER
%define RBC_MEMBER(Name, Member) %enddef
#endif
#ifndef RBC_STRUCT_ARGUMENT
%define RBC_STRUCT_ARGUMENT(Name) %enddef
#endif
#ifndef RBC_ARRAY_ARGUMENT
%define RBC_ARRAY_ARGUMENT(Name, Class, Argument) %enddef
#endif
#ifndef RBC_EACH_ARGUMENT
%define RBC_EACH_ARGUMENT(Name, Class, Argument) %enddef
#endif
#ifndef RBC_OPERATION
%define RBC_OPERATION(Name) %enddef
#endif

/* After the language's rules for names: constructors set the sizes that a struct contains. */
%rename("$ignore", %$ismember, regexmatch$name="^(struct_size|group_size|transform_size|reserved[0-9]?)$") "";
%rename("$ignore", %$isfunction, regexmatch$name="^rbc.*Init$") "";

%include "declarations.i"

#if defined(SWIGPYTHON)
%include "with_context.i"
%include "store_calls.i"
#endif
