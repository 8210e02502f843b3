// Random calls of rbcWindows, with all options of a call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "random.h"
#include "window_call.h"

namespace support {

// The options of a random call.
enum class Variety {
  kAny,
  kNarrow,  // no doubles and integers; the options of training batches
  kRows,    // the same, gathered, and only copied or subtracted from
  kCausal,  // any, with times; most streams have arrivals or look back only
};

inline Variety varietyOf(uint64_t seed) { return static_cast<Variety>(seed % 3); }

class RandomWindows {
 public:
  explicit RandomWindows(uint64_t seed, Flush flush = Flush::kEnd) : random_(seed) {
    call_.flush = flush;
  }

  WindowCall make(Variety variety, bool accumulates = false);

 private:
  using Stream = WindowCall::Stream;

  Layout layout(bool vectors);
  Layout outLayout(bool vectors);
  int64_t row(int64_t near);
  double number();
  int32_t rotation();
  bool anchorsHaveTimes() const;

  template <class Number>
  Array filled(rbcDType dtype, int64_t count, Number&& number);
  template <class Number>
  Array integers(int64_t count, Number&& number);
  template <class Number>
  Array integers64(int64_t count, Number&& number);
  template <class Number>
  Array times(int64_t count, Number&& seconds);
  Array factor(const Stream& s, double low, double high);

  void addStream(bool by_times, bool leads);
  void lookBack(Stream* s, int64_t rows);
  void addMethods(Stream* s, int64_t channels);
  void addTransforms(size_t n);
  void addOutput(Stream* s);
  void setPoses(const Stream& s);
  void setRotations(const Array& values, int64_t begin, int32_t rotation);

  Random random_;
  WindowCall call_;
  bool plain_ = false;
  bool narrow_ = false;
  bool accumulates_ = false;
  bool causal_ = false;
  bool timed_ = false;
  rbcDType time_dtype_ = kF32;
  int64_t episodes_ = 1;
};

}  // namespace support
