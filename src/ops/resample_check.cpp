#include "resample_check.h"

#include <cinttypes>

namespace rbc {
namespace {

bool findLength(const IndexArray& lengths, int64_t batch, int64_t limit, ResampleDefect::Kind kind,
                ResampleDefect* defect) {
  if (lengths.data == nullptr) return false;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t length = lengths[b];
    if (length < 0 || length > limit) {
      *defect = {kind, b, 0, {0, length}, {}};
      return true;
    }
  }
  return false;
}

}  // namespace

bool findIndexDefect(const ResampleProblem& p, ResampleDefect* defect) {
  if (p.offsets.data != nullptr) {
    int64_t previous = 0;
    for (int64_t b = 0; b <= p.batch; ++b) {
      const int64_t offset = p.offsets[b];
      if (offset < previous || offset > p.samples) {
        *defect = {ResampleDefect::kOffset, b, 0, {previous, offset}, {}};
        return true;
      }
      previous = offset;
    }
  }
  return findLength(p.lengths, p.batch, p.samples, ResampleDefect::kLength, defect) ||
         findLength(p.query_lengths, p.batch, p.queries, ResampleDefect::kQueryLength, defect);
}

void reportDefect(const ResampleProblem& p, const ResampleDefect& d) {
  switch (d.kind) {
    case ResampleDefect::kNone: return;
    case ResampleDefect::kOffset:
      if (d.integer[1] > p.samples) {
        fail(RBC_STATUS_INVALID_ARGUMENT,
             "offsets: index %" PRId64 " is %" PRId64 ", past the %" PRId64 " samples", d.row,
             d.integer[1], p.samples);
      }
      if (d.integer[1] < 0) {
        fail(RBC_STATUS_INVALID_ARGUMENT,
             "offsets: index %" PRId64 " is %" PRId64 ", expected 0 or more", d.row, d.integer[1]);
      }
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "offsets: decrease at index %" PRId64 " (%" PRId64 " -> %" PRId64 ")", d.row,
           d.integer[0], d.integer[1]);
    case ResampleDefect::kLength:
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "lengths: row %" PRId64 " is %" PRId64 ", expected 0 to %" PRId64, d.row, d.integer[1],
           p.samples);
    case ResampleDefect::kQueryLength:
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "query_lengths: row %" PRId64 " is %" PRId64 ", expected 0 to %" PRId64, d.row,
           d.integer[1], p.queries);
    case ResampleDefect::kTime:
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

}  // namespace rbc
