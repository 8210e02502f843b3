// Accumulators of statistics for tests: objects, with results as vectors.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "robocache/statistics.h"
#include "run.h"

namespace support {

class Accumulator {
 public:
  Accumulator() = default;
  explicit Accumulator(rbcAccumulator_t accumulator) : accumulator_(accumulator) {}
  Accumulator(Accumulator&& other) noexcept
      : accumulator_(std::exchange(other.accumulator_, nullptr)) {}
  Accumulator& operator=(Accumulator&&) = delete;
  ~Accumulator() { rbcAccumulatorDestroy(accumulator_); }

  rbcAccumulator_t get() const { return accumulator_; }

 private:
  rbcAccumulator_t accumulator_ = nullptr;
};
using Bytes = std::vector<uint8_t>;

inline constexpr rbcDevice kHostDevice = {RBC_DEVICE_CPU, 0};

inline rbcTensor vectorTensor(const void* data, rbcDType dtype, int64_t* extent) {
  return {const_cast<void*>(data), kHostDevice, 1, dtype, extent, nullptr, 0};
}

Accumulator makeAccumulator(const Context& context, int64_t channels, std::vector<double> levels,
                            int32_t bucket_bits = 0, int32_t ddof = 0);

Bytes exported(const Accumulator& accumulator);
Accumulator imported(const Context& context, const Bytes& bytes);
bool nextPass(const Accumulator& accumulator);

// On the context's device.
rbcStatus_t update(const Context& context, const Accumulator& accumulator, const Array& values);

struct AccumulatorResult {
  std::vector<int64_t> count, nonfinite;
  std::vector<double> min, max, mean, std, quantiles;  // last: [level, channel]
  rbcStatus_t status;
};

AccumulatorResult resultOf(const Accumulator& accumulator);

}  // namespace support
