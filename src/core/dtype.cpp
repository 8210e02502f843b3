#include "dtype.h"
#include "status.h"

namespace rbc {
namespace {

const char* codeName(uint8_t code) noexcept {
  constexpr const char* kNames[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  return code < sizeof kNames / sizeof *kNames ? kNames[code] : "unknown";
}

}  // namespace

void detail::failDispatch(DType dtype) {
  fail(RBC_STATUS_INTERNAL, "internal error: no code for dtype %s here", nameOf(dtype));
}

const char* nameOf(DType dtype) noexcept {
  constexpr const char* kNames[] = {
#define RBC_NAME(name, storage, code, text) text,
      RBC_DTYPES(RBC_NAME)
#undef RBC_NAME
  };
  return kNames[static_cast<int>(dtype)];
}

rbcDType describe(DType dtype) noexcept {
  constexpr uint8_t kCodeOf[] = {
#define RBC_CODE(name, storage, code, text) code,
      RBC_DTYPES(RBC_CODE)
#undef RBC_CODE
  };
  return {kCodeOf[static_cast<int>(dtype)], static_cast<uint8_t>(8 * sizeOf(dtype)), 1};
}

void detail::failDType(rbcDType dtype, const char* argument) {
  if (dtype.lanes != 1) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "%s: dtype has %d lanes, expected 1", argument, dtype.lanes);
  }
  fail(RBC_STATUS_DTYPE_MISMATCH,
       "%s: dtype %s (code %d) of %d bits is unknown, expected float16, bfloat16, float32, "
       "float64, bool or an "
       "integer of 8 to 64 bits",
       argument, codeName(dtype.code), dtype.code, dtype.bits);
}

}  // namespace rbc
