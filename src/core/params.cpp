#include "params.h"
#include "status.h"

#include <cinttypes>
#include <cstdio>

namespace rbc::detail {
namespace {

// What is told of a struct, after the argument's name where there is one.
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

void failStride(uint32_t size, uint32_t stride) {
  fail(RBC_STATUS_INVALID_ARGUMENT,
       "struct_size is %" PRIu32 ", expected %" PRIu32 " as streams[0]", size, stride);
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

void failReserved(const char* argument) { failStruct(argument, "reserved is not 0"); }

void failFlags(uint32_t flags, const KnownFlags& known) {
  fail(RBC_STATUS_INVALID_ARGUMENT, "flags: 0x%" PRIx32 " has unknown bits, expected %s", flags,
       known.expected);
}

}  // namespace rbc::detail
