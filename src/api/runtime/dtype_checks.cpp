// Checks of dtypes, and one element as bits.

#include "runtime/dtype_checks.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "real.h"
#include "status.h"
#include "visit_dtype.h"

namespace rbc {

// ----

namespace {

template <class Storage>
uint64_t bitsOf(Storage element) {
  uint64_t bits = 0;
  std::memcpy(&bits, &element, sizeof element);
  return bits;
}

}  // namespace

uint64_t elementBits(double value, DType dtype, const char* argument) {
  if (isFloat(dtype)) {
    return visitFloat(
        dtype, [&](auto tag) { return bitsOf(narrow<typename decltype(tag)::type>(value)); });
  }
  return visitInteger(dtype, [&](auto tag) {
    using Storage = typename decltype(tag)::type;
    const double low = static_cast<double>(std::numeric_limits<Storage>::min());
    const double past =
        dtype == DType::Bool ? 2.0 : std::ldexp(1.0, std::numeric_limits<Storage>::digits);
    if (!(value >= low && value < past && value == std::trunc(value))) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "%s: %g cannot be written as %s", argument, value,
           nameOf(dtype));
    }
    return bitsOf(static_cast<Storage>(value));
  });
}

// ----

void failDType(const View& view, const char* argument, const char* expected) {
  fail(RBC_STATUS_DTYPE_MISMATCH, "%s: dtype is %s, expected %s", argument, nameOf(view.dtype),
       expected);
}

}  // namespace rbc
