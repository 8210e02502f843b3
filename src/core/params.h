// Reads a caller's parameter struct by the struct_size rule of base.h, and checks that every flag
// is known and that reserved fields are 0.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "read_once.h"
#include "status.h"

namespace rbc {

// The known bits of Params::flags, with their names for an error. An operation with flags
// specializes it.
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

// A caller that passes a null argument prefixes the message with the name itself.
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

// All sizes of structs are multiples of this, so that no size cuts a field, such as a pointer, in
// two.
inline constexpr uint32_t kSizeUnit = 8;
inline constexpr uint32_t kMaxSize = 65536;
inline bool isSize(size_t size) {
  return size >= kSizeUnit && size <= kMaxSize && size % kSizeUnit == 0;
}

// The struct_size at the start of a caller's struct. Read it once: no more bytes than it says may
// be read.
inline uint32_t structSize(const void* source) { return readOnce<uint32_t>(source); }

// `size` is the result of structSize(), `defaults` the values of the initializer. A shorter struct
// comes from an older caller; its missing fields get the defaults. A longer one comes from a newer
// caller.
template <class Params>
Params readParams(const void* source, uint32_t size, const Params& defaults, const char* argument) {
  static_assert(sizeof(Params) % kSizeUnit == 0);
  if (!isSize(size)) {
    detail::failSize(argument, size, sizeof(Params));
  }
  const auto* bytes = static_cast<const unsigned char*>(source);
  for (uint32_t i = sizeof(Params); i < size; ++i) {
    if (bytes[i] != 0) detail::failByte(argument, i, sizeof(Params));
  }
  Params params;
  if (size >= sizeof(Params)) {  // the usual case, and a few moves: the compiler knows the size
    std::memcpy(static_cast<void*>(&params), source, sizeof(Params));
  } else {
    params = defaults;
    std::memcpy(static_cast<void*>(&params), source, size);
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

// An element of an array of such structs; the first element gives the distance, `stride` bytes.
template <class Params>
Params readElement(const void* array, uint32_t stride, int32_t index, const Params& defaults,
                   const char* argument) {
  const auto* source =
      static_cast<const unsigned char*>(array) + size_t{stride} * static_cast<size_t>(index);
  const uint32_t size = structSize(source);
  if (size != stride)
    detail::failStride(argument, size, stride);  // before a byte outside of the array is read
  return readParams(source, size, defaults, nullptr);
}

// The same for a single struct; null means the defaults.
template <class Params>
Params readParams(const Params* source, const Params& defaults, const char* argument) {
  return source == nullptr ? defaults : readParams(source, structSize(source), defaults, argument);
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

// Copies an array of structs without a size field: `size` is in the struct that points to them, in
// the field named `size_field`. Fields that the caller does not know become 0; fields that the
// library does not know must be 0.
template <class Element>
void readElements(const Element* source, int32_t count, uint32_t size, const char* argument,
                  const char* size_field, Element* elements) {
  static_assert(sizeof(Element) % kSizeUnit == 0);
  if (count == 0) return;
  if (!isSize(size)) {
    detail::failElementSize(size_field, size, sizeof(Element));
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(source);
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
