#include "fuse/time_limits.h"

#include <cinttypes>
#include <cmath>
#include <limits>

#include "status.h"

namespace rbc {

TimeLimit timeLimitOf(double limit, DType time_dtype, const char* name) {
  if (std::isinf(limit)) return {0, 0, false};
  if (time_dtype == DType::I64 && limit > 0 && limit < 1) {
    fail(RBC_STATUS_INVALID_ARGUMENT,  // seconds beside ticks: as 0 ticks it would void everything
         "%s: is %g, less than one tick of times of int64, expected whole ticks", name, limit);
  }
  if (time_dtype == DType::F32) limit = static_cast<double>(static_cast<float>(limit));
  // 2^64 and more exceeds every difference of two i64.
  const bool most = limit >= 0x1p64;
  return {limit, most ? std::numeric_limits<uint64_t>::max() : static_cast<uint64_t>(limit), true};
}

TimeOffset clockOffsetOf(double clock_offset, int64_t clock_offset_ticks, DType time_dtype) {
  if (time_dtype == DType::I64) {
    if (clock_offset != 0) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "clock_offset: is %g, expected clock_offset_ticks for times of int64", clock_offset);
    }
    return {0, clock_offset_ticks};
  }
  if (clock_offset_ticks != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "clock_offset_ticks: is %" PRId64 ", expected clock_offset for times of %s",
         clock_offset_ticks, nameOf(time_dtype));
  }
  const double offset = time_dtype == DType::F32
                            ? static_cast<double>(static_cast<float>(clock_offset))
                            : clock_offset;
  if (!std::isfinite(offset)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "clock_offset: is %g, expected a finite %s", clock_offset,
         nameOf(time_dtype));
  }
  return {offset, 0};
}

}  // namespace rbc
