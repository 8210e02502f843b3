#include "params.h"
#include "status.h"

#include <cinttypes>
#include <cstdio>

namespace rbc::detail {
namespace {

// Fails with a message about a struct; the argument's name, if any, comes first.
[[noreturn]] void failStruct(const char* argument, const char* what) {
  const bool named = argument != nullptr;
  fail(RBC_STATUS_INVALID_ARGUMENT, "%s%s%s", named ? argument : "", named ? ": " : "", what);
}

}  // namespace

void failSize(const char* argument, uint32_t size, size_t own_size) {
  char what[128];
  std::snprintf(what, sizeof what,
                "struct_size is %" PRIu32 ", expected %zu (use the struct's initializer)", size,
                own_size);
  failStruct(argument, what);
}

void failInfoSize(const char* argument, uint32_t size, size_t own_size, const char* initializer) {
  fail(RBC_STATUS_INVALID_ARGUMENT, "%s: struct_size is %" PRIu32 ", expected %zu (use %s)",
       argument, size, own_size, initializer);
}

void failStride(const char* array, uint32_t size, uint32_t stride) {
  fail(RBC_STATUS_INVALID_ARGUMENT, "struct_size is %" PRIu32 ", expected %" PRIu32 " as %s[0]",
       size, stride, array);
}

void failByte(const char* argument, uint32_t byte, size_t own_size) {
  char what[160];
  std::snprintf(
      what, sizeof what,
      "byte %" PRIu32
      " is set, beyond the %zu bytes that this library knows (it is older than the caller)",
      byte, own_size);
  failStruct(argument, what);
}

void failReserved(const char* argument) { failStruct(argument, "reserved0 is not 0"); }

void failElementSize(const char* argument, uint32_t size, size_t own_size) {
  fail(RBC_STATUS_INVALID_ARGUMENT,
       "%s: is %" PRIu32 ", expected %zu (use the struct's initializer)", argument, size, own_size);
}

void failElementByte(const char* argument, int32_t index, size_t own_size) {
  fail(RBC_STATUS_INVALID_ARGUMENT,
       "%s[%d]: a byte is set beyond the %zu bytes that this library knows (it is older than the "
       "caller)",
       argument, index, own_size);
}

void failFlags(uint32_t flags, const KnownFlags& known) {
  fail(RBC_STATUS_INVALID_ARGUMENT, "flags: 0x%" PRIx32 " has unknown bits, expected %s", flags,
       known.expected);
}

}  // namespace rbc::detail
