// The arrays that data is made in.
#pragma once

#include <utility>
#include <vector>

#include "support/arrays.h"

namespace bench {

// Aligned to a page.
inline support::Array makeArray(rbcDType dtype, std::vector<int64_t> shape) {
  return support::Array(dtype, std::move(shape), support::Layout::kContiguous,
                        support::Flush::kBegin);
}

template <class T>
T* elements(const support::Array& array) {
  return reinterpret_cast<T*>(array.memory().data());
}

}  // namespace bench
