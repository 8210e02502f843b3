#include "dtype.h"

namespace rbc {
namespace {

struct Row {
  DType dtype;
  uint8_t code;
  uint8_t bits;
  bool is_float;
  const char* text;
};

constexpr Row kRows[] = {
#define RBC_ROW(name, storage, code, text) {DType::name, code, 8 * sizeof(storage), true, text},
    RBC_FLOAT_DTYPES(RBC_ROW)
#undef RBC_ROW
#define RBC_ROW(name, storage, code, text) {DType::name, code, 8 * sizeof(storage), false, text},
        RBC_INTEGER_DTYPES(RBC_ROW)
#undef RBC_ROW
};

const Row& rowOf(DType dtype) noexcept { return kRows[static_cast<int>(dtype)]; }

const char* codeName(uint8_t code) noexcept {
  constexpr const char* kNames[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  return code < sizeof kNames / sizeof *kNames ? kNames[code] : "unknown";
}

}  // namespace

void detail::failDispatch(DType dtype) {
  fail(RBC_STATUS_INTERNAL, "internal error: no code for dtype %s here", nameOf(dtype));
}

const char* nameOf(DType dtype) noexcept { return rowOf(dtype).text; }
int sizeOf(DType dtype) noexcept { return rowOf(dtype).bits / 8; }
bool isFloat(DType dtype) noexcept { return rowOf(dtype).is_float; }

DType dtypeOf(rbcDType dtype, const char* argument) {
  if (dtype.lanes != 1) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "%s: dtype has %d lanes, expected 1", argument, dtype.lanes);
  }
  for (const Row& row : kRows) {
    if (row.code == dtype.code && row.bits == dtype.bits) return row.dtype;
  }
  fail(RBC_STATUS_DTYPE_MISMATCH,
       "%s: dtype %s (code %d) of %d bits is unknown, expected float16, bfloat16, float32, "
       "float64, bool or an "
       "integer of 8 to 64 bits",
       argument, codeName(dtype.code), dtype.code, dtype.bits);
}

}  // namespace rbc
