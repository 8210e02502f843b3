// Reads a caller's parameter struct by the struct_size rule of base.h, and verifies what every struct
// has: flags that mean something, and reserved fields that are 0.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "read_once.h"
#include "status.h"

namespace rbc {

// The bits of Params::flags that mean something, with their names for an error. An operation that
// has some specializes it.
struct KnownFlags {
  uint32_t bits;
  const char* expected;
};
template <class Params>
inline constexpr KnownFlags kKnownFlags = {0, "0"};

namespace detail {

template <class Params, class = void>
inline constexpr bool kHasFlags = false;
template <class Params>
inline constexpr bool kHasFlags<Params, std::void_t<decltype(Params::flags)>> = true;

template <class Params, class = void>
inline constexpr bool kHasReserved0 = false;
template <class Params>
inline constexpr bool kHasReserved0<Params, std::void_t<decltype(Params::reserved0)>> = true;

// Whoever passes null for the argument puts its name before the message.
[[noreturn]] void failSize(const char* argument, uint32_t size, size_t own_size);
[[noreturn]] void failStride(const char* array, uint32_t size, uint32_t stride);
[[noreturn]] void failByte(const char* argument, uint32_t byte, size_t own_size);
[[noreturn]] void failReserved(const char* argument);
[[noreturn]] void failElementSize(const char* argument, uint32_t size, size_t own_size);
[[noreturn]] void failElementByte(const char* argument, int32_t index, size_t own_size);
[[noreturn]] void failInfoSize(const char* argument, uint32_t size, size_t own_size,
                               const char* initializer);
[[noreturn]] void failFlags(uint32_t flags, const KnownFlags& known);

}  // namespace detail

// All sizes of structs are multiples of this, so that none cuts a field, such as a pointer, in two.
inline constexpr uint32_t kSizeUnit = 8;
inline constexpr uint32_t kMaxSize = 65536;
inline bool isSize(size_t size) {
  return size >= kSizeUnit && size <= kMaxSize && size % kSizeUnit == 0;
}

// The struct_size that opens a caller's struct. Read it once: no more than it said may be touched.
inline uint32_t structSize(const void* given) { return readOnce<uint32_t>(given); }

// `size` is what structSize() gave, `defaults` what the initializer does. A shorter struct is that of an
// older caller, and has the defaults in its missing fields. A longer one is that of a newer caller.
template <class Params>
Params readParams(const void* given, uint32_t size, const Params& defaults, const char* argument) {
  static_assert(sizeof(Params) % kSizeUnit == 0);
  if (!isSize(size)) {
    detail::failSize(argument, size, sizeof(Params));
  }
  const auto* bytes = static_cast<const unsigned char*>(given);
  for (uint32_t i = sizeof(Params); i < size; ++i) {
    if (bytes[i] != 0) detail::failByte(argument, i, sizeof(Params));
  }
  Params params;
  if (size >= sizeof(Params)) {  // the usual case, and a few moves: the compiler knows the size
    std::memcpy(static_cast<void*>(&params), given, sizeof(Params));
  } else {
    params = defaults;
    std::memcpy(static_cast<void*>(&params), given, size);
  }
  if constexpr (detail::kHasFlags<Params>) {
    constexpr KnownFlags known = kKnownFlags<Params>;
    if ((params.flags & ~known.bits) != 0) detail::failFlags(params.flags, known);
  }
  if constexpr (detail::kHasReserved0<Params>) {
    if (params.reserved0 != 0) detail::failReserved(argument);
  }
  return params;
}

// An element of an array of such structs, which are `stride` bytes apart, as the first one says.
template <class Params>
Params readElement(const void* array, uint32_t stride, int32_t index, const Params& defaults,
                   const char* argument) {
  const auto* given =
      static_cast<const unsigned char*>(array) + size_t{stride} * static_cast<size_t>(index);
  const uint32_t size = structSize(given);
  if (size != stride)
    detail::failStride(argument, size, stride);  // before a byte beyond the array is read
  return readParams(given, size, defaults, nullptr);
}

// The same of a struct that stands alone; null means the defaults.
template <class Params>
Params readParams(const Params* given, const Params& defaults, const char* argument) {
  return given == nullptr ? defaults : readParams(given, structSize(given), defaults, argument);
}

// Fills what the caller's struct_size covers of a struct that a call writes. `initializer` is the
// function that sets the size.
template <class Info>
void writeInfo(Info* to, Info from, const char* argument, const char* initializer) {
  if (to == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is null", argument);
  const uint32_t size = structSize(to);
  if (size < sizeof size) detail::failInfoSize(argument, size, sizeof(Info), initializer);
  from.struct_size = size;
  std::memcpy(static_cast<void*>(to), &from, size < sizeof from ? size : sizeof from);
}

// Copies an array of structs that have no size of their own: `size` is what the struct that points to
// them says, and `size_field` is the name of that field. Fields that the caller does not know are 0, and
// so must be those that the library does not know.
template <class Element>
void readElements(const Element* given, int32_t count, uint32_t size, const char* argument,
                  const char* size_field, Element* elements) {
  static_assert(sizeof(Element) % kSizeUnit == 0);
  if (count == 0) return;
  if (!isSize(size)) {
    detail::failElementSize(size_field, size, sizeof(Element));
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (int32_t i = 0; i < count; ++i, bytes += size) {
    elements[i] = {};
    std::memcpy(static_cast<void*>(&elements[i]), bytes,
                size < sizeof(Element) ? size : sizeof(Element));
    for (uint32_t k = sizeof(Element); k < size; ++k) {
      if (bytes[k] != 0) detail::failElementByte(argument, i, sizeof(Element));
    }
  }
}

}  // namespace rbc
