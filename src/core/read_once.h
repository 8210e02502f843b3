// One read of memory that another thread of the caller may be changing.
#pragma once

#include <cstring>

namespace rbc {

// The value that is checked must be the value that is used: the compiler may not read it again.
template <class T>
T readOnce(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  asm volatile("" : "+r"(value));
  return value;
}

}  // namespace rbc
