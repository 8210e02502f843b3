#include "check.h"

#include <cinttypes>

namespace rbc {
namespace {

bool findLength(const IndexArray& lengths, int64_t batch, int64_t rows, TimesDefect::Kind kind,
                TimesDefect* defect) {
  const int64_t b = findBadLength(lengths, batch, rows);
  if (b >= 0) *defect = {kind, b, 0, {0, lengths[b]}, {}};
  return b >= 0;
}

}  // namespace

bool findIndexDefect(const FuseProblem& p, const FuseStream& s, TimesDefect* defect) {
  if (const int64_t b = findBadOffset(s.offsets, p.batch, s.samples); b >= 0) {
    *defect = {TimesDefect::kOffset, b, 0, {b > 0 ? s.offsets[b - 1] : 0, s.offsets[b]}, {}};
    return true;
  }
  return findLength(s.lengths, p.batch, s.samples, TimesDefect::kLength, defect) ||
         findLength(p.query_lengths, p.batch, p.queries, TimesDefect::kQueryLength, defect);
}

void reportDefect(const FuseProblem& p, const FuseStream& s, const TimesDefect& d) {
  switch (d.kind) {
    case TimesDefect::kNone: return;
    case TimesDefect::kOffset: failOffset(d.row, d.integer[0], d.integer[1], s.samples, "samples");
    case TimesDefect::kLength: failLength("lengths", d.row, d.integer[1], s.samples);
    case TimesDefect::kQueryLength: failLength("query_lengths", d.row, d.integer[1], p.queries);
    case TimesDefect::kTime:
      if (p.time_dtype == DType::I64) {
        fail(RBC_STATUS_INVALID_ARGUMENT,
             "times: row %" PRId64 " decreases at index %" PRId64 " (%" PRId64 " -> %" PRId64 ")",
             d.row, d.index, d.integer[0], d.integer[1]);
      }
      if (TimeMath<double>::isNaN(d.real[1])) {
        fail(RBC_STATUS_INVALID_ARGUMENT, "times: row %" PRId64 " is NaN at index %" PRId64, d.row,
             d.index);
      }
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "times: row %" PRId64 " decreases at index %" PRId64 " (%.17g -> %.17g)", d.row, d.index,
           d.real[0], d.real[1]);
  }
}

size_t checkBytes(const rbcContext& context, bool times) {
  return times ? context.backend->checkTimesBytes() : 0;
}

void requireCheckable(const rbcContext& context) {
  if (context.backend->capturing(*context.state)) {
    fail(RBC_STATUS_UNSUPPORTED,
         "flags: RBC_CHECK_TIMES waits for the stream, which is being captured");
  }
}

void checkStream(rbcContext& context, const FuseProblem& p, int stream, bool times,
                 const char* array) {
  const FuseStream& s = p.streams[stream];
  TimesDefect defect = {};
  if (times) {
    const Scratch scratch = workspace(context, checkBytes(context, true));
    context.backend->checkTimes(*context.state, p, stream, scratch, &defect);
  } else if (context.backend->id == RBC_BACKEND_CPU) {
    findIndexDefect(p, s, &defect);  // cheap where the host can read them
  }
  try {
    reportDefect(p, s, defect);
  } catch (const Error&) {
    if (array != nullptr && defect.kind != TimesDefect::kQueryLength) {
      prefixLastError("%s[%d].", array, stream);
    }
    throw;
  }
}

}  // namespace rbc
