// DLPack's managed forms, as its ABI lays them out (checked against dlpack/dlpack.h by a test).
#pragma once

#include <cstdint>

#include "robocache/tensor.h"

constexpr uint32_t kDLPackMajor = 1;
constexpr uint32_t kDLPackMinor = 0;
constexpr uint64_t kDLPackReadOnly = 1;  // DLPACK_FLAG_BITMASK_READ_ONLY

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
