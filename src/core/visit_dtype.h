// Calls by element type: where a kernel is chosen, a visitor gets the type that stores a dtype.
#pragma once

#include <cstdint>

#include "dtype.h"

namespace rbc {

// The storage of a dtype that is known at compile time.
template <DType kDType>
struct StorageOf;
#define RBC_STORAGE(name, storage, code, text) \
  template <>                                  \
  struct StorageOf<DType::name> {              \
    using type = storage;                      \
  };
RBC_DTYPES(RBC_STORAGE)
#undef RBC_STORAGE

template <class T>
struct Tag {
  using type = T;
};

namespace detail {
[[noreturn]] void failDispatch(DType dtype);
}

// Calls visitor(Tag<storage>) for a float dtype. A miss is an error, never silence.
template <class Visitor>
decltype(auto) visitFloat(DType dtype, Visitor&& visitor) {
  switch (dtype) {
#define RBC_CASE(name, storage, code, text) \
  case DType::name: return visitor(Tag<storage>{});
    RBC_FLOAT_DTYPES(RBC_CASE)
    default: detail::failDispatch(dtype);
  }
}

// Calls visitor(Tag<storage>) for an integer or bool dtype.
template <class Visitor>
decltype(auto) visitInteger(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    RBC_INTEGER_DTYPES(RBC_CASE)
#undef RBC_CASE
    default: detail::failDispatch(dtype);
  }
}

// Calls visitor(Tag<storage>) for any dtype.
template <class Visitor>
decltype(auto) visitDType(DType dtype, Visitor&& visitor) {
  return isFloat(dtype) ? visitFloat(dtype, visitor) : visitInteger(dtype, visitor);
}

// Calls visitor(Tag<Word>) for the unsigned integer of a dtype's size: to those who only copy,
// elements are words.
template <class Visitor>
decltype(auto) visitWord(int size, Visitor&& visitor) {
  switch (size) {
    case 1: return visitor(Tag<uint8_t>{});
    case 2: return visitor(Tag<uint16_t>{});
    case 4: return visitor(Tag<uint32_t>{});
    default: return visitor(Tag<uint64_t>{});
  }
}

}  // namespace rbc
