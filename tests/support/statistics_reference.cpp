// Exact sums of values, and the nearest numbers to the results.
#include "support/statistics_reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace support {
namespace {

double doubleOf(uint64_t bits) {
  double x = 0;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

ExactInteger scaled(double x) { return ExactInteger::scaled(x); }

double before(double x) { return std::nextafter(x, -std::numeric_limits<double>::infinity()); }
double after(double x) { return std::nextafter(x, std::numeric_limits<double>::infinity()); }

}  // namespace

ExactStatistics::ExactStatistics(const std::vector<double>& values) {
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

bool ExactStatistics::isMean(uint64_t bits) const {
  if (count() == 0) return bits == kNaNBits;
  const double mean = doubleOf(bits);
  if (!std::isfinite(mean) || bits == bitsOf(-0.0)) return false;
  // Between the midpoints to its neighbours, or on one of these if it is even.
  const ExactInteger twice = sum_ + sum_;
  const ExactInteger low = ExactInteger(count()) * (scaled(before(mean)) + scaled(mean));
  const ExactInteger high = ExactInteger(count()) * (scaled(after(mean)) + scaled(mean));
  const bool even = bits % 2 == 0;
  return (low < twice || (even && low == twice)) && (twice < high || (even && twice == high));
}

bool ExactStatistics::isStd(uint64_t bits, int ddof) const {
  if (count() <= ddof) return bits == kNaNBits;
  const double std = doubleOf(bits);
  if (!std::isfinite(std) || std::signbit(std)) return false;
  // Four times n (n - ddof) times the variance, compared with the squares of the same midpoints.
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

uint64_t ExactStatistics::quantile(double level) const {
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

}  // namespace support
