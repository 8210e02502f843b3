/* A cache of the protocol that each type of array supports. */
#ifndef ROBOCACHE_BINDINGS_PROTOCOLS_H
#define ROBOCACHE_BINDINGS_PROTOCOLS_H

#include "described_array.h"

typedef enum Protocol { NO_PROTOCOL, ARRAY_STRUCT, EXCHANGE, DLPACK } Protocol;

typedef struct TypeEntry {
  PyTypeObject* type;
  Protocol protocol;
  const DLPackExchange* exchange;
  int always_writable; /* arrays of the type are never read-only */
} TypeEntry;

/* Returns a new reference to an attribute; null if there is none, or with MemoryError set. */
static PyObject* typeAttribute(PyTypeObject* type, const char* name) {
  PyObject* attribute = PyObject_GetAttrString((PyObject*)type, name);
  if (attribute == NULL && !PyErr_ExceptionMatches(PyExc_MemoryError)) PyErr_Clear();
  return attribute;
}

static int hasAttribute(PyTypeObject* type, const char* name) {
  PyObject* attribute = typeAttribute(type, name);
  Py_XDECREF(attribute);
  return attribute != NULL;
}

/* Returns 1 if this module itself defines the class. */
static int isOfModule(PyTypeObject* type, const char* expected) {
  PyObject* module = typeAttribute(type, "__module__");
  const int same = module != NULL && PyUnicode_Check(module) &&
                   PyUnicode_CompareWithASCIIString(module, expected) == 0;
  Py_XDECREF(module);
  return same;
}

/* Returns the usable exchange table of a type; null if there is none, or with MemoryError set. */
static const DLPackExchange* exchangeOf(PyTypeObject* type) {
  PyObject* capsule = typeAttribute(type, "__dlpack_c_exchange_api__");
  const DLPackExchange* table = NULL;
  if (capsule != NULL && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
    table = (const DLPackExchange*)PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  Py_XDECREF(capsule);
  while (table != NULL && table->major != DLPACK_MAJOR) table = table->older;
  const int usable =
      table != NULL && table->export_managed != NULL && table->current_stream != NULL;
  return usable ? table : NULL;
}

/* Returns 0, or -1 with MemoryError set. */
static int inspectType(PyTypeObject* type, TypeEntry* entry) {
  const TypeEntry unknown = {type, NO_PROTOCOL, NULL, 0};
  *entry = unknown;
  if (hasAttribute(type, "__array_struct__")) {
    entry->protocol = ARRAY_STRUCT;
    return 0;
  }
  if (PyErr_Occurred()) return -1;
  entry->exchange = exchangeOf(type);
  if (entry->exchange != NULL) {
    entry->protocol = EXCHANGE;
    entry->always_writable = isOfModule(type, "torch");
  } else if (!PyErr_Occurred() && hasAttribute(type, "__dlpack__")) {
    entry->protocol = DLPACK;
  }
  return PyErr_Occurred() ? -1 : 0;
}

/*
 * Returns 0, or -1 with MemoryError set. The GIL guards the table. It keeps its types alive, so that
 * their addresses are not reused.
 */
static int lookUpType(PyTypeObject* type, TypeEntry* entry) {
  static TypeEntry known[16];
  static int count = 0;
  for (int i = 0; i < count; ++i) {
    if (known[i].type == type) {
      *entry = known[i];
      return 0;
    }
  }
  if (inspectType(type, entry) != 0) return -1;
  if (entry->protocol != NO_PROTOCOL && count < (int)(sizeof known / sizeof known[0])) {
    Py_INCREF((PyObject*)type);
    known[count++] = *entry;
  }
  return 0;
}

#endif /* ROBOCACHE_BINDINGS_PROTOCOLS_H */
