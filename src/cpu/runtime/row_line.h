// The rows of a batch as one long line, which is divided into chunks for the threads.
#pragma once

#include <algorithm>

#include "ragged.h"

namespace rbc::cpu {

// Padded rows, `rows` per member, or packed rows, `rows` in total.
struct RowLine {
  IndexArray lengths;
  IndexArray offsets;
  int64_t rows;
  int64_t members;

  bool packed() const { return offsets.data != nullptr; }
  RowRange range(int64_t member) const { return rangeOf(lengths, offsets, rows, member); }
  // Where a member begins in the line.
  int64_t begin(int64_t member) const { return packed() ? range(member).begin : member * rows; }

  // The member that holds the i-th row of the line, if any.
  int64_t memberAt(int64_t i) const {
    return packed() ? memberAround(offsets, members, i) : i / rows;
  }
};

// Rows begin .. end - 1 of a member.
struct RowPiece {
  int64_t member;
  int64_t begin;
  int64_t end;
};

// Calls visit(RowPiece) for the valid rows begin .. end - 1 of the line, in order, until one call
// returns true.
template <class Visitor>
bool visitPieces(const RowLine& line, int64_t begin, int64_t end, Visitor&& visit) {
  for (int64_t member = line.memberAt(begin); member < line.members; ++member) {
    const int64_t first = line.begin(member);
    if (first >= end) break;
    const RowPiece piece = {member, std::max<int64_t>(begin - first, 0),
                            std::min(end - first, line.range(member).count)};
    if (piece.begin < piece.end && visit(piece)) return true;
  }
  return false;
}

}  // namespace rbc::cpu
