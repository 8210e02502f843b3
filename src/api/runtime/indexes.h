// Lengths and offsets as arguments: read, copied, verified.
#pragma once

#include "ragged.h"
#include "view.h"

namespace rbc {

// An i32 or i64 tensor of `count` entries.
IndexArray indexArrayOf(const View& view, const char* argument, int64_t count);

// An entry of an array that another thread may be writing: what is verified is what is used.
int64_t readEntry(const IndexArray& array, int64_t i);

// The array as `copy` of `count` entries, for arrays that the host can read: what has been verified
// is what is used then, whoever writes the caller's. Null stays null.
IndexArray copyOf(const IndexArray& array, int64_t count, int64_t* copy);

// The first index whose entry is out of range, or -1; for arrays that the host can read. data may
// be null.
int64_t findBadLength(const IndexArray& lengths, int64_t batch, int64_t rows);
int64_t findBadOffset(const IndexArray& offsets, int64_t batch, int64_t rows);

// Fail with INVALID_ARGUMENT for such an entry; `noun` says what the rows are.
[[noreturn]] void failLength(const char* argument, int64_t index, int64_t length, int64_t rows);
[[noreturn]] void failOffset(const char* argument, int64_t index, int64_t before, int64_t offset,
                             int64_t rows, const char* noun);

// Both at once.
void requireRagged(const IndexArray& lengths, const IndexArray& offsets, int64_t batch,
                   int64_t rows, const char* noun);

}  // namespace rbc
