// The choices that make a fuzzed call: taken from bytes while there are any, and then from random
// numbers seeded with these bytes. So a seed is a call, and every byte of an input changes one
// choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "support/random.h"

namespace fuzz {

class Choices {
 public:
  Choices(const uint8_t* data, size_t size)
      : bytes_(data, data + size), random_(seedOf(data, size)) {}
  explicit Choices(uint64_t seed) : random_(seed) {}

  uint64_t bits() {
    uint64_t value = 0;
    if (bytes_.size() - at_ < sizeof value) return random_.bits();
    std::memcpy(&value, &bytes_[at_], sizeof value);
    at_ += sizeof value;
    return value;
  }
  // 0 .. n - 1
  int64_t below(int64_t n) {
    if (n <= 1) return 0;
    if (n > 256) return static_cast<int64_t>(bits() % static_cast<uint64_t>(n));
    const uint64_t byte = at_ < bytes_.size() ? bytes_[at_++] : random_.bits() >> 40;
    return static_cast<int64_t>(byte % static_cast<uint64_t>(n));
  }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53;
  }
  template <class T, size_t N>
  T pick(const T (&from)[N]) {
    return from[below(static_cast<int64_t>(N))];
  }
  template <class T>
  T pick(std::initializer_list<T> from) {
    return from.begin()[below(static_cast<int64_t>(from.size()))];
  }

  // The n-th extent that is requested from here on is a large one.
  void enlarge(int64_t n) { until_large_ = n; }
  bool isLargeNow() {
    const bool now = until_large_ > 0 && --until_large_ == 0;
    has_large_ = has_large_ || now;
    return now;
  }
  bool hasLarge() const { return has_large_; }

 private:
  static uint64_t seedOf(const uint8_t* data, size_t size) {  // FNV-1a
    uint64_t seed = 0xCBF29CE484222325u;
    for (size_t i = 0; i < size; ++i) seed = (seed ^ data[i]) * 0x100000001B3u;
    return seed;
  }

  std::vector<uint8_t> bytes_;
  size_t at_ = 0;
  int64_t until_large_ = 0;
  bool has_large_ = false;
  support::Random random_;
};

}  // namespace fuzz
