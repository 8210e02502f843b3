// Tensors: the caller's memory, with a shape. See robocache.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

#include "error.hpp"
#include "tensor.h"

ROBOCACHE_NAMESPACE_BEGIN

// The dtypes of 16-bit floats, which are not types of C++17.
inline constexpr rbcDType kFloat16{RBC_DTYPE_FLOAT, 16, 1};
inline constexpr rbcDType kBFloat16{RBC_DTYPE_BFLOAT, 16, 1};

// Returns the dtype of bool, float, double or an integer type of C++.
template <class T>
constexpr rbcDType dtypeOf() noexcept {
  static_assert(std::is_integral_v<T> || std::is_same_v<T, float> || std::is_same_v<T, double>,
                "no such element type: name an rbcDType");
  constexpr int code = std::is_same_v<T, bool>       ? RBC_DTYPE_BOOL
                       : std::is_floating_point_v<T> ? RBC_DTYPE_FLOAT
                       : std::is_signed_v<T>         ? RBC_DTYPE_INT
                                                     : RBC_DTYPE_UINT;
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(8 * sizeof(T)), 1};
}

// Devices: the host, or a GPU.
inline constexpr rbcDevice kCpu{RBC_DEVICE_CPU, 0};
inline constexpr rbcDevice cuda(int32_t id = 0) noexcept { return {RBC_DEVICE_CUDA, id}; }

namespace detail {

// The elements of a container, an array or a pointer, and their number; INT64_MAX for a pointer.
template <class Container>
auto dataOf(Container& container) -> decltype(std::data(container)) {
  return std::data(container);
}
template <class T>
T* dataOf(T* const& pointer) {
  return pointer;
}

template <class Container>
auto roomOf(Container& container) -> decltype(static_cast<int64_t>(std::size(container))) {
  return static_cast<int64_t>(std::size(container));
}
template <class T>
int64_t roomOf(T* const&) {
  return INT64_MAX;
}

template <class Memory>
using ElementOf = std::remove_pointer_t<decltype(dataOf(std::declval<Memory&>()))>;

// False for a temporary container, whose memory a tensor would outlive. A temporary view such as
// std::span is allowed: it has the same elements if it is const, and a container has const ones.
template <class Memory>
inline constexpr bool kOutlives = std::is_lvalue_reference_v<Memory> ||
                                  std::is_same_v<ElementOf<std::remove_reference_t<Memory>>,
                                                 ElementOf<const std::remove_reference_t<Memory>>>;

}  // namespace detail

// The extents or the strides of a tensor: {batch, samples, 7} of any integers, or a container of
// int64_t.
class Shape {
 public:
  template <class... Integers, class = std::enable_if_t<(std::is_integral_v<Integers> && ...)>>
  Shape(Integers... extents) noexcept
      : rank_(sizeof...(Integers)), extents_{static_cast<int64_t>(extents)...} {
    static_assert(sizeof...(Integers) <= RBC_TENSOR_MAX_NDIM,
                  "more dimensions than a tensor may have");
  }
  template <class Container,
            class = std::enable_if_t<
                std::is_same_v<std::remove_const_t<detail::ElementOf<const Container>>, int64_t> &&
                !std::is_pointer_v<Container>>>
  Shape(const Container& extents) noexcept : rank_(std::size(extents)) {
    std::copy_n(std::data(extents), std::min<size_t>(rank_, RBC_TENSOR_MAX_NDIM), extents_);
  }

  size_t rank() const noexcept { return rank_; }
  // Returns an extent; 0 if the dimension does not exist.
  int64_t operator[](size_t i) const noexcept { return i < RBC_TENSOR_MAX_NDIM ? extents_[i] : 0; }

 private:
  friend class Tensor;

  size_t rank_;
  int64_t extents_[RBC_TENSOR_MAX_NDIM] = {};
};

// A tensor that refers to memory without owning it. Cheap to copy; holds its own shape and strides.
// The constructor never fails. If the tensor is invalid, for example because the shape has more
// elements than the memory, the call that uses it fails with SHAPE_MISMATCH.
class Tensor {
 public:
  // A tensor in a container or an array, or from a pointer on. Strides count elements and may be 0
  // or negative; without strides it is compact and row-major.
  template <class Memory, class Element = detail::ElementOf<std::remove_reference_t<Memory>>,
            class = std::enable_if_t<std::is_arithmetic_v<Element>>>
  Tensor(Memory&& memory, const Shape& shape, const Shape& strides = {},
         rbcDevice device = kCpu) noexcept
      : Tensor(const_cast<std::remove_const_t<Element>*>(detail::dataOf(memory)),
               dtypeOf<std::remove_const_t<Element>>(), shape, strides, device,
               !std::is_const_v<Element>, detail::roomOf(memory)) {
    static_assert(detail::kOutlives<Memory>, "the container is gone before the tensor is");
  }

  // A tensor of one dimension, [size]: all elements of a container or an array.
  template <class Memory, class Size = decltype(std::size(std::declval<Memory&>())),
            class = std::enable_if_t<
                std::is_arithmetic_v<detail::ElementOf<std::remove_reference_t<Memory>>>>>
  Tensor(Memory&& memory) noexcept
      : Tensor(std::forward<Memory>(memory), Shape(static_cast<Size>(std::size(memory)))) {}

  // A tensor from a pointer on, for a dtype without a C++ type.
  Tensor(void* data, rbcDType dtype, const Shape& shape, const Shape& strides = {},
         rbcDevice device = kCpu) noexcept
      : Tensor(data, dtype, shape, strides, device, true, INT64_MAX) {}
  Tensor(const void* data, rbcDType dtype, const Shape& shape, const Shape& strides = {},
         rbcDevice device = kCpu) noexcept
      : Tensor(const_cast<void*>(data), dtype, shape, strides, device, false, INT64_MAX) {}

  // A tensor of the C interface. Copies the descriptor, its shape and its strides, not the memory.
  explicit Tensor(const rbcTensor& raw, bool writable = true) noexcept
      : raw_(raw), writable_(writable) {
    const bool has_strides = raw.strides != nullptr;
    if (raw.ndim < 0 || raw.ndim > RBC_TENSOR_MAX_NDIM) {
      refuse("has a rank that is not 0 to 8");
    } else if (raw.ndim > 0 && raw.shape == nullptr) {
      refuse("has no shape");
    } else {
      std::copy_n(raw.shape, raw.ndim, shape_.extents_);
      if (has_strides) std::copy_n(raw.strides, raw.ndim, strides_.extents_);
    }
    point(has_strides);
  }

  Tensor(const Tensor& other) noexcept { *this = other; }
  Tensor& operator=(const Tensor& other) noexcept {
    raw_ = other.raw_;
    shape_ = other.shape_;
    strides_ = other.strides_;
    writable_ = other.writable_;
    defect_ = other.defect_;
    point(other.raw_.strides != nullptr);
    return *this;
  }

  // The descriptor for the C interface; valid as long as this object.
  const rbcTensor* get() const noexcept { return &raw_; }
  // Returns whether it may be an output; const memory may not.
  bool writable() const noexcept { return writable_; }
  // Returns why calls refuse this tensor, or null for a valid tensor.
  const char* defect() const noexcept { return defect_; }

  void* data() const noexcept { return raw_.data; }
  rbcDType dtype() const noexcept { return raw_.dtype; }
  rbcDevice device() const noexcept { return raw_.device; }
  // Returns the number of dimensions; -1 if there is a defect.
  int ndim() const noexcept { return raw_.ndim; }
  int64_t shape(int i) const noexcept { return shape_[static_cast<size_t>(i)]; }

 private:
  Tensor(void* data, rbcDType dtype, const Shape& shape, const Shape& strides, rbcDevice device,
         bool writable, int64_t room) noexcept
      : shape_(shape), strides_(strides), writable_(writable) {
    raw_.data = data;
    raw_.dtype = dtype;
    raw_.device = device;
    raw_.ndim = static_cast<int32_t>(std::min<size_t>(shape.rank(), RBC_TENSOR_MAX_NDIM));
    point(strides.rank() != 0);
    if (shape.rank() > RBC_TENSOR_MAX_NDIM) {
      refuse("has a rank that is not 0 to 8");
    } else if (strides.rank() != 0 && strides.rank() != shape.rank()) {
      refuse("has strides and a shape of different rank");
    } else if (!fits(room)) {
      refuse("has a shape of more elements than its memory");
    }
  }

  // Returns whether all elements are within the first `room` elements of the memory. Numbers that a
  // double cannot represent exactly are far beyond `room`.
  bool fits(int64_t room) const noexcept {
    if (room == INT64_MAX) return true;
    double first = 0;
    double last = 0;
    double compact = 1;
    for (int32_t i = raw_.ndim - 1; i >= 0; --i) {
      if (raw_.shape[i] <= 0) return true;  // no elements, or an extent for the library to refuse
      const auto extent = static_cast<double>(raw_.shape[i]);
      const double stride =
          raw_.strides == nullptr ? compact : static_cast<double>(raw_.strides[i]);
      (stride < 0 ? first : last) += (extent - 1) * stride;
      compact *= extent;
    }
    return first >= 0 && last < static_cast<double>(room);
  }

  void refuse(const char* defect) noexcept {
    defect_ = defect;
    raw_.ndim = -1;
  }
  void point(bool has_strides) noexcept {
    raw_.shape = shape_.extents_;
    raw_.strides = has_strides ? strides_.extents_ : nullptr;
  }

  rbcTensor raw_{};
  Shape shape_;
  Shape strides_;
  bool writable_ = true;
  const char* defect_ = nullptr;
};

ROBOCACHE_NAMESPACE_END
