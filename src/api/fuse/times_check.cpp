#include "fuse/times_check.h"

#include <cinttypes>
#include <cmath>
#include <limits>

#include "operation.h"
#include "runtime/indexes.h"
#include "status.h"

namespace rbc {

// ---- limits and offsets -------------------------------------------------------------------------

TimeLimit timeLimitOf(double limit, DType time_dtype, const char* name) {
  if (std::isinf(limit)) return {0, 0, false};
  if (time_dtype == DType::I64 && limit > 0 && limit < 1) {
    fail(RBC_STATUS_INVALID_ARGUMENT,  // likely seconds: 0 ticks would make everything invalid
         "%s: is %g, less than one tick of times of int64, expected whole ticks", name, limit);
  }
  if (time_dtype == DType::F32) limit = static_cast<double>(static_cast<float>(limit));
  // 2^64 and more is above every difference of two i64.
  const bool most = limit >= 0x1p64;
  return {limit, most ? std::numeric_limits<uint64_t>::max() : static_cast<uint64_t>(limit), true};
}

TimeOffset timeOffsetOf(double real, int64_t ticks, DType time_dtype, const char* name) {
  if (time_dtype == DType::I64) {
    if (real != 0) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is %g, expected %s_ticks for times of int64", name,
           real, name);
    }
    return {0, ticks};
  }
  if (ticks != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "%s_ticks: is %" PRId64 ", expected %s for times of %s", name,
         ticks, name, nameOf(time_dtype));
  }
  const double offset =
      time_dtype == DType::F32 ? static_cast<double>(static_cast<float>(real)) : real;
  if (!std::isfinite(offset)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is %g, expected a finite %s", name, real,
         nameOf(time_dtype));
  }
  return {offset, 0};
}

// ---- verification -------------------------------------------------------------------------------

namespace {

bool findLength(const IndexArray& lengths, int64_t batch, int64_t rows, TimesDefect::Kind kind,
                TimesDefect* defect) {
  const int64_t b = findBadLength(lengths, batch, rows);
  if (b >= 0) *defect = {kind, b, 0, {0, lengths[b]}, {}};
  return b >= 0;
}

// Fails for the first offset, length or query length out of range, in this order.
TimesDefect findIndexDefect(const FuseProblem& p, const FuseStream& s) {
  TimesDefect defect = {};
  if (const int64_t b = findBadOffset(s.offsets, p.batch, s.samples); b >= 0) {
    defect = {TimesDefect::kOffset, b, 0, {offsetBefore(s.offsets, b), s.offsets[b]}, {}};
  } else if (!findLength(s.lengths, p.batch, s.samples, TimesDefect::kLength, &defect)) {
    findLength(p.query_lengths, p.batch, p.queries, TimesDefect::kQueryLength, &defect);
  }
  return defect;
}

void report(const FuseProblem& p, int stream, const TimesDefect& defect, const char* array) {
  try {
    const FuseStream& s = p.streams[stream];
    switch (defect.kind) {
      case TimesDefect::kLength: failLength("lengths", defect.row, defect.integer[1], s.samples);
      case TimesDefect::kQueryLength:
        failLength("query_lengths", defect.row, defect.integer[1], p.queries);
      default: reportDefect(defect, p.time_dtype, s.samples);
    }
  } catch (const Error&) {
    if (array != nullptr && defect.kind != TimesDefect::kQueryLength) {
      prefixLastError("%s[%d].", array, stream);
    }
    throw;
  }
}

}  // namespace

void reportDefect(const TimesDefect& d, DType time_dtype, int64_t samples, const char* offsets,
                  const char* row, const char* noun) {
  if (d.kind == TimesDefect::kOffset) {
    failOffset(offsets, d.row, d.integer[0], d.integer[1], samples, noun);
  }
  if (d.kind != TimesDefect::kTime) return;
  if (time_dtype == DType::I64) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "times: %s %" PRId64 " decreases at index %" PRId64 " (%" PRId64 " -> %" PRId64 ")", row,
         d.row, d.index, d.integer[0], d.integer[1]);
  }
  if (TimeMath<double>::isNaN(d.real[1])) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "times: %s %" PRId64 " is NaN at index %" PRId64, row, d.row,
         d.index);
  }
  fail(RBC_STATUS_INVALID_ARGUMENT,
       "times: %s %" PRId64 " decreases at index %" PRId64 " (%.17g -> %.17g)", row, d.row, d.index,
       d.real[0], d.real[1]);
}

void verifySampleIndexes(const FuseProblem& p, const char* array) {
  for (int n = 0; n < p.num_streams; ++n) {
    const FuseStream& s = p.streams[n];
    const bool has_indexes =
        s.offsets.data != nullptr || s.lengths.data != nullptr || p.query_lengths.data != nullptr;
    if (has_indexes) report(p, n, findIndexDefect(p, s), array);
  }
}

size_t checkTimesBytes(const rbcContext& context) {
  const FuseProblem none = {};
  return operationFor<TimesProblem>(*context.backend)
      .workspaceBytes(*context.state, {none, 0, nullptr});
}

void requireCheckable(const rbcContext& context) {
  if (context.backend->capturing(*context.state)) {
    fail(RBC_STATUS_UNSUPPORTED,
         "flags: RBC_FLAG_CHECK_TIMES waits for the stream, which is being captured");
  }
}

void checkTimes(rbcContext& context, const FuseProblem& p, Scratch scratch, const char* array) {
  const auto& operation = operationFor<TimesProblem>(*context.backend);
  for (int n = 0; n < p.num_streams; ++n) {
    TimesDefect defect = {};
    operation.run(*context.state, {p, n, &defect}, scratch);
    report(p, n, defect, array);
  }
}

}  // namespace rbc
