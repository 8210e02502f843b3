// Statistics by integers of any size: checks whether a result is the nearest number to the exact
// one.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "exact_integer.h"

namespace support {

inline uint64_t bitsOf(double x) {
  uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline constexpr uint64_t kNaNBits = 0x7fffffffffffffff;

// A set of values, including infinities and NaN.
class ExactStatistics {
 public:
  explicit ExactStatistics(const std::vector<double>& values);

  int64_t count() const { return static_cast<int64_t>(sorted_.size()); }
  int64_t nonfinite() const { return nonfinite_; }
  uint64_t min() const { return count() > 0 ? bitsOf(sorted_.front()) : kNaNBits; }
  uint64_t max() const { return count() > 0 ? bitsOf(sorted_.back()) : kNaNBits; }

  bool isMean(uint64_t bits) const;
  bool isStd(uint64_t bits, int ddof) const;
  // numpy.quantile(method="linear").
  uint64_t quantile(double level) const;

  const std::vector<double>& sorted() const { return sorted_; }

 private:
  std::vector<double> sorted_;
  int64_t nonfinite_ = 0;
  ExactInteger sum_;
  ExactInteger squares_;
};

}  // namespace support
