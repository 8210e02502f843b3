// Random numbers for tests: seeded, and the same everywhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace support {

// SplitMix64.
class Random {
 public:
  // Not the step of the state as a factor: consecutive seeds would give the same numbers, shifted
  // by one.
  explicit Random(uint64_t seed) : state_(seed * 0xD1342543DE82EF95u + 1) {}
  uint64_t bits() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }
  bool chance(double p) { return uniform() < p; }
  template <class T, size_t N>
  const T& pick(const T (&choices)[N]) {
    return choices[below(static_cast<int64_t>(N))];
  }

 private:
  uint64_t state_;
};

}  // namespace support
