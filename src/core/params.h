// Reads a caller's parameter struct by the struct_size rule of base.h.
#pragma once

#include <cinttypes>
#include <cstring>

#include "first_sizes.h"
#include "read_once.h"
#include "status.h"

namespace rbc {

// The struct_size that opens a caller's struct. Read it once: no more than it said may be touched.
inline uint32_t structSize(const void* given) { return readOnce<uint32_t>(given); }

// `size` is what structSize() gave, `defaults` what the initializer does.
template <class Params>
Params readParams(const void* given, uint32_t size, const Params& defaults, const char* argument) {
  constexpr uint32_t first_size = kFirstSize<Params>;
  static_assert(first_size <= sizeof(Params), "structs only grow");
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
  const auto* bytes = static_cast<const unsigned char*>(given);
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

// The same of a struct that stands alone; null means the defaults.
template <class Params>
Params readParams(const Params* given, const Params& defaults, const char* argument) {
  return given == nullptr ? defaults : readParams(given, structSize(given), defaults, argument);
}

}  // namespace rbc
