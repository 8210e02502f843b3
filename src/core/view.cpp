#include "view.h"

#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstdio>

#include "guard.h"
#include "params.h"
#include "read_once.h"
#include "status.h"

namespace rbc {
namespace {

// The bytes that the elements occupy, relative to the first one.
struct Reach {
  int64_t low = 0;
  int64_t high;
  int64_t whole;  // an upper bound of high - low

  explicit Reach(int64_t size) : high(size), whole(size) {}

  // Adds a dimension. Returns false if the sum of extents times strides does not fit. If it fits,
  // every offset computed from strides and indices up to the extents fits as well.
  bool add(int64_t extent, int64_t stride, int64_t size) {
    int64_t bytes = 0;
    if (__builtin_mul_overflow(extent, stride, &bytes) ||
        __builtin_mul_overflow(bytes, size, &bytes) || bytes == INT64_MIN ||
        __builtin_add_overflow(whole, bytes < 0 ? -bytes : bytes, &whole)) {
      return false;
    }
    (bytes < 0 ? low : high) += bytes - stride * size;
    return true;
  }
};

bool isCompact(const View& view) {
  int64_t expected = 1;
  for (int i = view.ndim - 1; i >= 0; --i) {
    if (view.shape[i] > 1 && view.strides[i] != expected) return false;
    expected *= view.shape[i];
  }
  return true;
}

}  // namespace

const char* shapeText(int ndim, const int64_t* shape) noexcept {
  thread_local char buffers[4][192];
  thread_local unsigned turn = 0;
  char* text = buffers[turn++ % 4];
  size_t used = static_cast<size_t>(std::snprintf(text, sizeof buffers[0], "["));
  for (int i = 0; i < ndim; ++i) {
    used += static_cast<size_t>(std::snprintf(text + used, sizeof buffers[0] - used,
                                              i == 0 ? "%" PRId64 : ",%" PRId64, shape[i]));
  }
  std::snprintf(text + used, sizeof buffers[0] - used, "]");
  return text;
}

bool View::contiguous() const noexcept { return count == 0 || isCompact(*this); }

View describe(const rbcTensor* tensor, const char* argument) {
  if (tensor == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is null", argument);
  // Each field, extent and stride is read once: another thread may change them after the checks.
  const auto ndim = readOnce<int32_t>(&tensor->ndim);
  const auto* const shape = readOnce<const int64_t*>(&tensor->shape);
  const auto* const strides = readOnce<const int64_t*>(&tensor->strides);
  auto* const data = readOnce<std::byte*>(&tensor->data);
  const auto byte_offset = readOnce<uint64_t>(&tensor->byte_offset);
  if (ndim < 0 || ndim > RBC_TENSOR_MAX_NDIM) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "%s: rank is %d, expected 0 to %d", argument, ndim,
         RBC_TENSOR_MAX_NDIM);
  }
  if (ndim > 0 && shape == nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "%s: shape is null, expected %d extents", argument, ndim);
  }

  View view;
  view.device = tensor->device;
  view.dtype = dtypeOf(tensor->dtype, argument);
  view.ndim = ndim;
  for (int i = 0; i < ndim; ++i) view.shape[i] = readOnce<int64_t>(shape + i);
  const int64_t size = sizeOf(view.dtype);

  // One product serves the count and the compact strides: an extent of 0 must not hide an overflow.
  int64_t compact = 1;
  Reach reach(size);
  int64_t whole = 1;
  bool empty = false;
  bool fits = true;
  for (int i = ndim - 1; i >= 0; --i) {
    const int64_t extent = view.shape[i];
    if (extent < 0) {
      fail(RBC_STATUS_SHAPE_MISMATCH, "%s: extent %d is %" PRId64 ", expected 0 or more", argument,
           i, extent);
    }
    view.strides[i] = compact;
    empty |= extent == 0;
    if (extent < 2) continue;
    if (strides != nullptr) {
      view.strides[i] = readOnce<int64_t>(strides + i);
      fits = fits && reach.add(extent, view.strides[i], size);
    }
    if (__builtin_mul_overflow(compact, extent, &compact)) {
      fail(RBC_STATUS_SHAPE_MISMATCH, "%s: shape %s overflows 64 bits", argument,
           shapeText(ndim, view.shape));
    }
    // Does the check of Reach::add for compact strides: each extent times its stride is `compact`.
    if (strides == nullptr) fits &= !__builtin_add_overflow(whole, compact, &whole);
  }
  view.count = empty ? 0 : compact;

  int64_t bytes = 0;
  if (__builtin_mul_overflow(compact, size, &bytes)) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "%s: shape %s of %s overflows 64 bits", argument,
         shapeText(ndim, view.shape), nameOf(view.dtype));
  }
  if (strides == nullptr) {
    fits = fits && !__builtin_mul_overflow(whole, size, &whole);
    reach.high = bytes;
  }
  if (empty) {
    view.data = data;
    view.begin = view.end = view.data;
    return view;
  }

  if (data == nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "%s: data is null, expected %" PRId64 " elements", argument,
         view.count);
  }
  const auto address = reinterpret_cast<uintptr_t>(data);
  uintptr_t first = 0;
  if (__builtin_add_overflow(address, byte_offset, &first)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "%s: byte_offset %" PRIu64 " overflows the address", argument,
         byte_offset);
  }
  if ((first & static_cast<uintptr_t>(size - 1)) != 0) {  // sizes are powers of two
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "%s: data + byte_offset is not aligned to the %d bytes of a %s", argument,
         static_cast<int>(size), nameOf(view.dtype));
  }
  uintptr_t begin = 0;
  uintptr_t end = 0;
  fits = fits &&
         !__builtin_sub_overflow(first, uintptr_t{0} - static_cast<uintptr_t>(reach.low), &begin) &&
         !__builtin_add_overflow(first, static_cast<uintptr_t>(reach.high), &end);
  if (!fits) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "%s: shape %s with strides %s overflows the address space",
         argument, shapeText(view.ndim, view.shape), shapeText(view.ndim, view.strides));
  }
  view.data = reinterpret_cast<std::byte*>(first);
  view.begin = reinterpret_cast<const std::byte*>(begin);
  view.end = reinterpret_cast<const std::byte*>(end);
  return view;
}

View normalize(const rbcTensor* tensor, const char* argument) {
  View view = describe(tensor, argument);
  if (view.count == 0) std::fill_n(view.strides, view.ndim, 0);
  return view;
}

void detail::failRank(const View& view, const char* argument, int low, int high) {
  if (low == high) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "%s: rank is %d (shape %s), expected %d", argument, view.ndim,
         shapeText(view.ndim, view.shape), low);
  }
  fail(RBC_STATUS_SHAPE_MISMATCH, "%s: rank is %d (shape %s), expected %d or %d", argument,
       view.ndim, shapeText(view.ndim, view.shape), low, high);
}

void detail::failShape(const View& view, const char* argument, int ndim, const int64_t* expected) {
  fail(RBC_STATUS_SHAPE_MISMATCH, "%s: shape is %s, expected %s", argument,
       shapeText(view.ndim, view.shape), shapeText(ndim, expected));
}

}  // namespace rbc

rbcStatus_t rbcTensorGetInfo(const rbcTensor* tensor, rbcTensorInfo* info) {
  return rbc::guard([&] {
    const rbc::View view = rbc::describe(tensor, "tensor");
    rbcTensorInfo result = rbcTensorInfoInit();
    result.ndim = view.ndim;
    result.data = view.data;
    result.num_elements = view.count;
    result.element_size = rbc::sizeOf(view.dtype);
    result.num_bytes = view.count * result.element_size;
    result.is_contiguous = rbc::isCompact(view) ? 1 : 0;
    for (int i = 0; i < view.ndim; ++i) {
      result.shape[i] = view.shape[i];
      result.strides[i] = view.strides[i];
    }
    rbc::writeInfo(info, result, "info", "rbcTensorInfoInit");
  });
}
