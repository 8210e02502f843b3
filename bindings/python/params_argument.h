/*
 * Structs with the arrays that belong to them, for the length of a call.
 *
 * A struct in Python has only scalars. Its tensors and structs follow it in a tuple, in the order
 * of its members, with None for null. A call describes them in its own copy of the struct, so that
 * many threads can use one struct. members.h, written by declarations.py, lists the members of each
 * struct.
 */
#ifndef ROBOCACHE_BINDINGS_PARAMS_ARGUMENT_H
#define ROBOCACHE_BINDINGS_PARAMS_ARGUMENT_H

#include <stddef.h>

#include "tensor_argument.h"

typedef enum MemberKind {
  MEMBER_TENSOR, /* any array */
  MEMBER_OUTPUT, /* an array to write to */
  MEMBER_VALUE,  /* a struct inside the other one: its bytes */
  MEMBER_ARRAY,  /* a pointer to structs, with a member for their number: their bytes */
  MEMBER_STRUCT  /* a pointer to a struct: again a tuple */
} MemberKind;

struct StructType;

typedef struct Member {
  const char* name;
  MemberKind kind;
  size_t offset;
  size_t size;                   /* the size of the struct that the member is or points to */
  size_t count;                  /* MEMBER_ARRAY: the offset of the number of structs, an int32_t */
  const struct StructType* type; /* MEMBER_STRUCT */
} Member;

typedef struct StructType {
  swig_type_info** type; /* SWIG fills it in when the module is loaded */
  size_t size;
  const Member* members;
  int num_members;
  int num_tensors; /* including the structs that it points to */
  size_t room;     /* the bytes of the structs that it points to */
} StructType;

#include "members.h"

/* The rest of a call's memory for tensors and structs that its structs point to. */
typedef struct Room {
  TensorArgument* tensors; /* zeroed */
  char* structs;
} Room;

/* The argument whose members are read, for messages, and the context that will use the arrays. */
typedef struct Reader {
  const char* array; /* see ArgumentName */
  int index;
  rbcContext_t context;
} Reader;

static int openStruct(const StructType* type, PyObject* tuple, const Reader* reader,
                      void* structure, Room* room);

/* Copies the bytes of structs. Returns their number, or -1 with an exception set. */
static Py_ssize_t readStructs(PyObject* given, const Member* member, char** bytes) {
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(given, bytes, &size) != 0) return -1;
  if (size % (Py_ssize_t)member->size != 0) {
    PyErr_Format(PyExc_ValueError, "params: %s has %zd bytes", member->name, size);
    return -1;
  }
  return size / (Py_ssize_t)member->size;
}

static int openMember(const Member* member, PyObject* given, const Reader* reader, char* structure,
                      Room* room) {
  void* pointer = NULL;
  switch (member->kind) {
    case MEMBER_TENSOR:
    case MEMBER_OUTPUT: {
      TensorArgument* argument = room->tensors++;
      const ArgumentName name = {member->name, reader->array, reader->index};
      const int writable = member->kind == MEMBER_OUTPUT;
      if (requireTensor(argument, given, name, reader->context, writable) != 0) return -1;
      pointer = &argument->tensor;
      break;
    }
    case MEMBER_VALUE: {
      char* bytes = NULL;
      const Py_ssize_t count = readStructs(given, member, &bytes);
      if (count < 0) return -1;
      if (count != 1) {
        PyErr_Format(PyExc_ValueError, "params: %s is %zd structs", member->name, count);
        return -1;
      }
      memcpy(structure + member->offset, bytes, member->size);
      return 0;
    }
    case MEMBER_ARRAY: {
      char* bytes = NULL;
      const Py_ssize_t count = readStructs(given, member, &bytes);
      if (count < 0) return -1;
      const int32_t number = (int32_t)count;
      memcpy(structure + member->count, &number, sizeof number);
      pointer = bytes;
      break;
    }
    case MEMBER_STRUCT:
      pointer = room->structs;
      room->structs += member->size;
      if (openStruct(member->type, given, reader, pointer, room) != 0) return -1;
      break;
  }
  memcpy(structure + member->offset, &pointer, sizeof pointer);
  return 0;
}

/* Copies the first item of a tuple, a struct, and describes the other items in its members. */
static int openStruct(const StructType* type, PyObject* tuple, const Reader* reader,
                      void* structure, Room* room) {
  PyObject* object = PyTuple_GetItem(tuple, 0);
  if (object == NULL) return -1;
  void* given = NULL;
  if (!SWIG_IsOK(SWIG_ConvertPtr(object, &given, *type->type, 0)) || given == NULL) {
    PyErr_SetString(PyExc_TypeError, "params: is not a struct of parameters");
    return -1;
  }
  memcpy(structure, given, type->size);
  for (int i = 0; i < type->num_members; ++i) {
    PyObject* member = PyTuple_GetItem(tuple, 1 + i);
    if (member == NULL) return -1;
    if (member == Py_None) continue;
    if (openMember(&type->members[i], member, reader, (char*)structure, room) != 0) return -1;
  }
  return 0;
}

/* Opens one struct. `arguments` has the type's num_tensors, zeroed, and `room` has its bytes. */
static int openOne(const StructType* type, PyObject* tuple, rbcContext_t context, void* structure,
                   TensorArgument* arguments, void* structs) {
  const Reader reader = {NULL, 0, context};
  Room room = {arguments, (char*)structs};
  return openStruct(type, tuple, &reader, structure, &room);
}

static void closeTensors(TensorArgument* arguments, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; ++i) closeTensor(&arguments[i]);
}

/* ---- arrays of structs ---------------------------------------------------------------------- */

/* Zeroed: no resources. */
typedef struct ArrayArgument {
  void* structs; /* in one block with the structs that they point to */
  TensorArgument* tensors;
  Py_ssize_t count;
  Py_ssize_t num_tensors;
} ArrayArgument;

/* clang-format off */
#define NO_ARRAY {.count = 0}
/* clang-format on */

/* A list of tuples for openStruct. */
static int openArray(const StructType* type, PyObject* list, const char* name, rbcContext_t context,
                     ArrayArgument* array) {
  const Py_ssize_t count = PyList_Size(list);
  if (count < 0) return -1;
  const size_t tensors = (size_t)type->num_tensors * sizeof(TensorArgument);
  char* block = (char*)PyMem_Calloc((size_t)count, type->size + tensors + type->room);
  if (block == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  array->structs = block;
  array->tensors = (TensorArgument*)(block + (size_t)count * type->size);
  array->count = count;
  array->num_tensors = count * type->num_tensors;
  Room room = {array->tensors, (char*)(array->tensors + array->num_tensors)};
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Reader reader = {name, (int)i, context};
    PyObject* tuple = PyList_GetItem(list, i);
    if (openStruct(type, tuple, &reader, block + (size_t)i * type->size, &room) != 0) return -1;
  }
  return 0;
}

static void closeArray(ArrayArgument* array) {
  closeTensors(array->tensors, array->num_tensors);
  PyMem_Free(array->structs);
}

#endif /* ROBOCACHE_BINDINGS_PARAMS_ARGUMENT_H */
