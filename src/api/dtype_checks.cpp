#include "dtype_checks.h"

#include "status.h"

namespace rbc {

void failDType(const View& view, const char* argument, const char* expected) {
  fail(RBC_STATUS_DTYPE_MISMATCH, "%s: dtype is %s, expected %s", argument, nameOf(view.dtype),
       expected);
}

}  // namespace rbc
