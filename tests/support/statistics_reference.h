// Statistics by integers of any size: whether a result is the number nearest to the exact one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "exact_integer.h"

namespace support {

inline uint64_t bitsOf(double x) {
  uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline double doubleOf(uint64_t bits) {
  double x = 0;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline constexpr uint64_t kNaNBits = 0x7fffffffffffffff;

// Some values, those that are not finite too.
class ExactStatistics {
 public:
  explicit ExactStatistics(const std::vector<double>& values) {
    for (const double x : values) {
      if (!std::isfinite(x)) {
        ++nonfinite_;
        continue;
      }
      sorted_.push_back(x == 0 ? 0.0 : x);
      const ExactInteger scaled = ExactInteger::scaled(x);
      sum_ = sum_ + scaled;
      squares_ = squares_ + scaled * scaled;
    }
    std::sort(sorted_.begin(), sorted_.end());
  }

  int64_t count() const { return static_cast<int64_t>(sorted_.size()); }
  int64_t nonfinite() const { return nonfinite_; }
  uint64_t min() const { return count() > 0 ? bitsOf(sorted_.front()) : kNaNBits; }
  uint64_t max() const { return count() > 0 ? bitsOf(sorted_.back()) : kNaNBits; }

  bool isMean(uint64_t bits) const {
    if (count() == 0) return bits == kNaNBits;
    const double mean = doubleOf(bits);
    if (!std::isfinite(mean) || bits == bitsOf(-0.0)) return false;
    // Between the middles to its neighbours, or on one if it is even.
    const ExactInteger twice = sum_ + sum_;
    const ExactInteger low = ExactInteger(count()) * (scaled(before(mean)) + scaled(mean));
    const ExactInteger high = ExactInteger(count()) * (scaled(after(mean)) + scaled(mean));
    const bool even = bits % 2 == 0;
    return (low < twice || (even && low == twice)) && (twice < high || (even && twice == high));
  }

  bool isStd(uint64_t bits, int ddof) const {
    if (count() <= ddof) return bits == kNaNBits;
    const double std = doubleOf(bits);
    if (!std::isfinite(std) || std::signbit(std)) return false;
    // Four times n (n - ddof) times the variance, beside the squares of the same middles.
    const ExactInteger n(count());
    const ExactInteger spread = ExactInteger(4) * (n * squares_ - sum_ * sum_);
    const ExactInteger weight = n * ExactInteger(count() - ddof);
    const ExactInteger high = scaled(after(std)) + scaled(std);
    const bool even = bits % 2 == 0;
    const ExactInteger above = weight * high * high;
    if (!(spread < above || (even && spread == above))) return false;
    if (std == 0) return true;
    const ExactInteger low = scaled(before(std)) + scaled(std);
    const ExactInteger below = weight * low * low;
    return below < spread || (even && below == spread);
  }

  // numpy.quantile(method="linear").
  uint64_t quantile(double level) const {
    if (count() == 0) return kNaNBits;
    const double h = level * static_cast<double>(count() - 1);
    const auto lower = static_cast<size_t>(std::floor(h));
    const size_t upper = std::min(lower + 1, sorted_.size() - 1);
    const double t = h - std::floor(h);
    const double difference = sorted_[upper] - sorted_[lower];
    const double rest = difference * (1 - t);
    const double part = difference * t;
    const double value = t >= 0.5 ? sorted_[upper] - rest : sorted_[lower] + part;
    return std::isnan(value) ? kNaNBits : bitsOf(value);
  }

  const std::vector<double>& sorted() const { return sorted_; }

 private:
  static ExactInteger scaled(double x) { return ExactInteger::scaled(x); }
  static double before(double x) {
    return std::nextafter(x, -std::numeric_limits<double>::infinity());
  }
  static double after(double x) {
    return std::nextafter(x, std::numeric_limits<double>::infinity());
  }

  std::vector<double> sorted_;
  int64_t nonfinite_ = 0;
  ExactInteger sum_;
  ExactInteger squares_;
};

}  // namespace support
