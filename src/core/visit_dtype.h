// Calls a visitor by element type: it gets the type that stores a dtype, to choose a kernel.
#pragma once

#include <cstdint>

#include "dtype.h"

namespace rbc {

// Calls visitor(Tag<storage>) for a float dtype. Any other dtype is an error.
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

// Calls visitor(Tag<Word>) for the unsigned integer of a dtype's size: for code that only copies
// elements.
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
