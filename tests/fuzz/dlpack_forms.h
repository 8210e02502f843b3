// DLPack's managed tensors, in the layout of its ABI: as another program would pass them.
#pragma once

#include <cstdint>

#include "robocache/tensor.h"

struct DLManagedTensor {
  rbcTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

struct DLManagedTensorVersioned {
  struct {
    uint32_t major;
    uint32_t minor;
  } version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  rbcTensor dl_tensor;
};
