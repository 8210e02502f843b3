// An output tensor of a problem.
#pragma once

#include <cstdint>

#include "dtype.h"

namespace rbc {

// Strides in elements; data may be null.
template <int Rank>
struct Output {
  void* data;
  int64_t stride[Rank];
  DType dtype;
};

}  // namespace rbc
