// Lengths and offsets as arguments: reading, copying and verifying them.
#pragma once

#include "ragged.h"
#include "view.h"

namespace rbc {

// Reads an i32 or i64 tensor of `count` entries.
IndexArray indexArrayOf(const View& view, const char* argument, int64_t count);

// Reads an entry of an array that another thread may be writing, once: the verified value is used.
int64_t readEntry(const IndexArray& array, int64_t i);

// Copies an array of `count` entries that the host can read to `copy`, and returns the copy, so
// that the verified values are used even if the caller's array changes. Null stays null.
IndexArray copyOf(const IndexArray& array, int64_t count, int64_t* copy);

// Returns the first index whose entry is out of range, or -1; for arrays that the host can read.
// data may be null.
int64_t findBadLength(const IndexArray& lengths, int64_t batch, int64_t rows);
int64_t findBadOffset(const IndexArray& offsets, int64_t batch, int64_t rows);

// Fail with INVALID_ARGUMENT for an entry out of range; `noun` names the rows.
[[noreturn]] void failLength(const char* argument, int64_t index, int64_t length, int64_t rows);
[[noreturn]] void failOffset(const char* argument, int64_t index, int64_t before, int64_t offset,
                             int64_t rows, const char* noun);

// Does both checks.
void requireRagged(const IndexArray& lengths, const IndexArray& offsets, int64_t batch,
                   int64_t rows, const char* noun);

}  // namespace rbc
