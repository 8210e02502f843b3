// Reads a caller's parameter struct by the struct_size rule of base.h.
#pragma once

#include <cinttypes>
#include <cstring>

#include "status.h"

namespace rbc {

// `defaults` comes from the initializer; `first_size` is the struct's size in the first release
// that had it.
template <class Params>
Params readParams(const Params* given, const Params& defaults, uint32_t first_size,
                  const char* argument) {
  if (given == nullptr) return defaults;
  uint32_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < first_size) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "%s: struct_size is %" PRIu32 ", expected at least %" PRIu32
         " (use the struct's initializer)",
         argument, size, first_size);
  }
  if (size > 65536) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "%s: struct_size is %" PRIu32 ", expected %zu (use the struct's initializer)", argument,
         size, sizeof(Params));
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (uint32_t i = sizeof(Params); i < size; ++i) {
    if (bytes[i] != 0) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "%s: byte %" PRIu32
           " is set, beyond the %zu bytes that this library knows (it is older than the caller)",
           argument, i, sizeof(Params));
    }
  }
  Params params;
  if (size >= sizeof(Params)) {  // the usual case, and a few moves: the compiler knows the size
    std::memcpy(static_cast<void*>(&params), given, sizeof(Params));
  } else {
    params = defaults;
    std::memcpy(static_cast<void*>(&params), given, size);
  }
  return params;
}

}  // namespace rbc
