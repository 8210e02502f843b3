/*
 * DLPack's managed forms and its table of C functions (`__dlpack_c_exchange_api__`, DLPack 1.2 and
 * later), with the layout of dlpack.h. rbcTensor has the layout of DLTensor.
 */
#ifndef ROBOCACHE_BINDINGS_DLPACK_H
#define ROBOCACHE_BINDINGS_DLPACK_H

#include <robocache/tensor.h>

#define DLPACK_MAJOR 1
#define DLPACK_READ_ONLY 1u

typedef struct DLManagedTensor {
  rbcTensor tensor;
  void* manager;
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
  uint32_t major;
  uint32_t minor;
  void* manager;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  rbcTensor tensor;
} DLManagedTensorVersioned;

/* Functions with an int result return 0, or -1 with a Python exception. They do not synchronize. */
typedef struct DLPackExchange {
  uint32_t major;
  uint32_t minor;
  struct DLPackExchange* older; /* a table of an earlier major version, or null */
  void* allocate;
  int (*export_managed)(void* object, DLManagedTensorVersioned** managed);
  void* import_managed;
  int (*borrow)(void* object, rbcTensor* tensor); /* may be null */
  int (*current_stream)(int32_t device_type, int32_t device_id, void** stream);
} DLPackExchange;

#endif /* ROBOCACHE_BINDINGS_DLPACK_H */
