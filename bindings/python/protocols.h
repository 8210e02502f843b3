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

/* Returns 1 if this module itself defines the class. */
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

/* The GIL guards the table. It keeps its types alive, so that their addresses are not reused. */
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

#endif /* ROBOCACHE_BINDINGS_PROTOCOLS_H */
