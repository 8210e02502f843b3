#include "runtime/indexes.h"

#include <cinttypes>

#include "read_once.h"
#include "runtime/dtype_checks.h"
#include "status.h"

namespace rbc {

IndexArray indexArrayOf(const View& view, const char* argument, int64_t count) {
  requireShape(view, argument, 1, &count);
  requireIndexes(view, argument);
  return {view.data, view.strides[0], view.dtype == DType::I64};
}

int64_t readEntry(const IndexArray& array, int64_t i) {
  const int64_t at = i * array.stride;
  if (array.is_64) return readOnce<int64_t>(static_cast<const int64_t*>(array.data) + at);
  return readOnce<int32_t>(static_cast<const int32_t*>(array.data) + at);
}

IndexArray copyOf(const IndexArray& array, int64_t count, int64_t* copy) {
  if (array.data == nullptr) return array;
  for (int64_t i = 0; i < count; ++i) copy[i] = array[i];
  return {copy, 1, true};
}

int64_t findBadLength(const IndexArray& lengths, int64_t batch, int64_t rows) {
  for (int64_t b = 0; b < differentEntries(lengths, batch); ++b) {
    if (badLength(lengths, b, rows)) return b;
  }
  return -1;
}

int64_t findBadOffset(const IndexArray& offsets, int64_t batch, int64_t rows) {
  if (offsets.data == nullptr) return -1;
  for (int64_t b = 0; b < differentEntries(offsets, batch + 1); ++b) {
    if (badOffset(offsets, b, rows)) return b;
  }
  return -1;
}

void failLength(const char* argument, int64_t index, int64_t length, int64_t rows) {
  fail(RBC_STATUS_INVALID_ARGUMENT, "%s: row %" PRId64 " is %" PRId64 ", expected 0 to %" PRId64,
       argument, index, length, rows);
}

void failOffset(const char* argument, int64_t index, int64_t before, int64_t offset, int64_t rows,
                const char* noun) {
  if (offset > rows) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "%s: index %" PRId64 " is %" PRId64 ", past the %" PRId64 " %s", argument, index, offset,
         rows, noun);
  }
  if (offset < 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "%s: index %" PRId64 " is %" PRId64 ", expected 0 or more",
         argument, index, offset);
  }
  fail(RBC_STATUS_INVALID_ARGUMENT,
       "%s: decrease at index %" PRId64 " (%" PRId64 " -> %" PRId64 ")", argument, index, before,
       offset);
}

void requireRagged(const IndexArray& lengths, const IndexArray& offsets, int64_t batch,
                   int64_t rows, const char* noun) {
  if (const int64_t b = findBadOffset(offsets, batch, rows); b >= 0) {
    failOffset("batch_offsets", b, offsetBefore(offsets, b), offsets[b], rows, noun);
  }
  if (const int64_t b = findBadLength(lengths, batch, rows); b >= 0) {
    failLength("lengths", b, lengths[b], rows);
  }
}

}  // namespace rbc
