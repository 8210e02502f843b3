// What a query must give, from the textbook and in long double: for a sample of the elements, and
// to tell which samples a query cannot do without.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace bench {

// Samples begin .. end - 1 of a row; none of an empty one.
struct Neighbours {
  size_t begin = 0;
  size_t end = 0;
};

// Those that the value at q depends on, where queries outside are held at the edge.
Neighbours neighboursOf(const std::vector<long double>& times, long double q, int32_t method);

// The value at q of the channel `channel` of a stream, before any affine. valueAt(i, d) is channel
// d of sample i; slerp takes channel & ~3 and the three after it.
long double expectedValue(const std::vector<long double>& times, long double q, int32_t method,
                          int64_t channel,
                          const std::function<long double(size_t, int64_t)>& valueAt);

}  // namespace bench
