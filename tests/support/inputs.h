// The arrays of a case, always the same ones: times, queries and values from its seed.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "arrays.h"
#include "stream_case.h"

namespace support {

// Arrays that a case does not have are of rank 0.
struct StreamInputs {
  Array values;
  Array times;
  Array lengths;
  Array offsets;
  Array shift;
  Array scale;
  Array sample_mask;
  Array arrivals;

  // The samples of a row: [begin, begin + count) along the sample dimension.
  int64_t begin(int64_t b) const { return offsets.ndim() == 0 ? 0 : indexAt(offsets, b); }
  int64_t count(int64_t b) const {
    if (offsets.ndim() != 0) return indexAt(offsets, b + 1) - indexAt(offsets, b);
    return lengths.ndim() != 0 ? indexAt(lengths, b) : values.extent(values.ndim() - 2);
  }

  // For the values, along the sample dimension.
  bool isMissing(int64_t b, int64_t sample) const {
    if (sample_mask.ndim() == 0) return false;
    return (sample_mask.ndim() == 2 ? sample_mask.get({b, sample}) : sample_mask.get({sample})) ==
           0;
  }

  // Whether it exists for a query that is computed at `until`.
  template <class Time>
  bool hasArrived(int64_t b, int64_t sample, Time until) const {
    if (arrivals.ndim() == 0) return true;
    const uint64_t bits = arrivals.ndim() == 2 ? arrivals.get({b, sample}) : arrivals.get({sample});
    Time arrival;
    std::memcpy(&arrival, &bits, sizeof arrival);
    return arrival <= until;
  }

  static int64_t indexAt(const Array& array, int64_t i) {
    const uint64_t bits = array.get({i});
    return sizeOf(array.dtype()) == 4 ? static_cast<int32_t>(bits) : static_cast<int64_t>(bits);
  }
};

struct SharedInputs {
  Array query_times;
  Array query_lengths;

  int64_t queryCount(int64_t b) const {
    return query_lengths.ndim() != 0 ? StreamInputs::indexAt(query_lengths, b)
                                     : query_times.extent(query_times.ndim() - 1);
  }
};

namespace detail {

// An output of a case, poisoned; without a batch the first dimension is dropped.
Array makeOutput(const SharedCase& c, rbcDType dtype, std::vector<int64_t> shape, Layout layout);

// ---- times --------------------------------------------------------------------------------------

// A row of times, as seconds since the start of the recording and as elements.
struct TimeRow {
  std::vector<double> seconds;
  std::vector<uint64_t> bits;

  void resize(int64_t n) {
    seconds.resize(static_cast<size_t>(n));
    bits.resize(static_cast<size_t>(n));
  }
};

// ---- queries ------------------------------------------------------------------------------------

// Rows of every stream, on the clock of the queries.
using StreamRows = std::vector<std::vector<TimeRow>>;

void makeQueries(const SharedCase& c, const std::vector<const StreamCase*>& streams,
                 const StreamRows& rows, Random& random, SharedInputs* in);

// ---- a stream -----------------------------------------------------------------------------------

// `rows` gets the times of each row of the batch, on the clock of the queries.
StreamInputs makeStream(const StreamCase& c, const SharedCase& shared, Random& random,
                        std::vector<TimeRow>* rows);

}  // namespace detail
}  // namespace support
