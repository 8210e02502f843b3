// rbcInitParams: the initializers of the headers, for callers that cannot compile them.

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "guard.h"
#include "params.h"
#include "robocache/robocache.h"
#include "status.h"

namespace rbc {
namespace {

void writeDefaults(void* params, size_t size, const void* defaults, size_t own_size) {
  std::memset(params, 0, size);
  std::memcpy(params, defaults, std::min(size, own_size));
  const auto struct_size = static_cast<uint32_t>(size);
  std::memcpy(params, &struct_size, sizeof struct_size);
}

void initParams(int32_t struct_id, void* params, size_t size) {
  if (params == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "params: is null");
  if (!isSize(size)) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "struct_size: is %zu, expected a multiple of 8 from 8 to 65536", size);
  }
  const auto write = [&](const auto& defaults) {
    writeDefaults(params, size, &defaults, sizeof defaults);
  };
  switch (struct_id) {
#define STRUCT(id, initializer) \
  case id:                      \
    return write(initializer());
#include "numbered_structs.inc"
#undef STRUCT
    default:
      fail(RBC_STATUS_INVALID_ARGUMENT, "struct_id: is %" PRId32 ", expected one of RBC_STRUCT_...",
           struct_id);
  }
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcInitParams(int32_t struct_id, void* params, size_t struct_size) {
  return rbc::guard([&] { rbc::initParams(struct_id, params, struct_size); });
}
