// The normalized form of a tensor argument. Nothing else reads the fields of an rbcTensor.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dtype.h"

namespace rbc {

struct View {
  std::byte* data;  // the first element: byte_offset is applied
  rbcDevice device;
  DType dtype;
  int ndim;
  int64_t shape[RBC_TENSOR_MAX_NDIM];
  int64_t strides[RBC_TENSOR_MAX_NDIM];  // in elements; explicit; see normalize() and describe()
  int64_t count;                         // elements
  const std::byte* begin;                // lowest byte of the elements, and one past their highest
  const std::byte* end;

  bool contiguous() const noexcept;
};

// Checks rank, extents, dtype, alignment and 64-bit overflow; errors name `argument`. The strides
// of an empty tensor become 0: they may be arbitrary numbers, and offsets computed from them must
// neither overflow nor move a null pointer.
View normalize(const rbcTensor* tensor, const char* argument);

// The same, but keeps the strides of an empty tensor, for callers to see.
View describe(const rbcTensor* tensor, const char* argument);

namespace detail {
[[noreturn]] void failShape(const View& view, const char* argument, int ndim,
                            const int64_t* expected);
[[noreturn]] void failRank(const View& view, const char* argument, int low, int high);
}  // namespace detail

// Fails unless the shape is the one expected: "out: shape [4,5,6], expected [4,5,7]".
inline void requireShape(const View& view, const char* argument, int ndim,
                         const int64_t* expected) {
  bool same = view.ndim == ndim;
  for (int i = 0; i < ndim && same; ++i) same = view.shape[i] == expected[i];  // NOLINT: has ndim
  if (!same) detail::failShape(view, argument, ndim, expected);
}

// Fails unless the rank is one of low .. high, which differ by 1 at most.
inline void requireRank(const View& view, const char* argument, int low, int high) {
  if (view.ndim < low || view.ndim > high) detail::failRank(view, argument, low, high);
}

// "[4,5,6]" in a buffer of the calling thread, valid until the fourth call after.
const char* shapeText(int ndim, const int64_t* shape) noexcept;

}  // namespace rbc
