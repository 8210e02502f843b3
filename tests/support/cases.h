// The one table of resampling cases: unit tests, parity tests and benchmarks run on it.
//
// A case is a handful of numbers; makeInputs() turns it into arrays, always the same ones.
// Another operation adds its own table beside this one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "arrays.h"
#include "dtypes.h"
#include "robocache/resample.h"

namespace support {

// SplitMix64: small, seeded, the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
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

// kSensor: intervals vary by 17 % (standard deviation), as those of the PX4 recordings do; the
// benchmarks use it.
enum class TimePattern { kUniform, kJittered, kDuplicates, kClustered, kGaps, kSensor };
// kClock: one clock a row, evenly spaced over its samples; the benchmarks use it.
enum class QueryOrder { kSorted, kRandom, kAtSamples, kOutside, kClock };
constexpr TimePattern kTimePatterns[] = {TimePattern::kUniform, TimePattern::kJittered,
                                         TimePattern::kDuplicates, TimePattern::kClustered,
                                         TimePattern::kGaps};
constexpr QueryOrder kQueryOrders[] = {QueryOrder::kSorted, QueryOrder::kRandom,
                                       QueryOrder::kAtSamples, QueryOrder::kOutside};

constexpr double kNone = std::numeric_limits<double>::infinity();

struct ResampleCase {
  std::string name;
  uint64_t seed = 1;

  int64_t batch = 3;     // B
  int64_t samples = 37;  // S; about the mean row if packed
  int64_t queries = 29;  // T
  int64_t channels = 5;  // D
  bool batched = true;   // false: values [S,D], B = 1

  rbcDType values = kF32;
  rbcDType out = kF32;
  rbcDType times = kF32;
  rbcDType mask_dtype = kBool;
  rbcDType index_dtype = kI64;  // of lengths, query_lengths, offsets

  int32_t method = RBC_METHOD_LINEAR;
  int32_t bounds = RBC_BOUNDS_HOLD;
  double max_gap = kNone;    // in mean sample periods
  double tolerance = kNone;  // likewise
  double fill_value = 0;
  bool check_times = false;

  bool shared_times = false;    // [S] instead of [B,S]
  bool shared_queries = false;  // [T] instead of [B,T]
  bool lengths = false;
  bool query_lengths = false;
  bool packed = false;
  bool mask = true;
  bool specials =
      false;  // NaN, infinities and subnormals among values, NaN and infinities among queries

  TimePattern pattern = TimePattern::kJittered;
  QueryOrder order = QueryOrder::kSorted;

  Layout values_layout = Layout::kContiguous;
  Layout times_layout = Layout::kContiguous;
  Layout queries_layout = Layout::kContiguous;
  Layout out_layout = Layout::kContiguous;
  Layout mask_layout = Layout::kContiguous;
  Flush flush = Flush::kEnd;

  void everyLayout(Layout layout) {
    values_layout = times_layout = queries_layout = out_layout = mask_layout = layout;
    // Elements of an output may not share memory.
    if (layout == Layout::kBroadcast) out_layout = mask_layout = Layout::kContiguous;
  }
};

// One line that tells a failing case from any other.
inline std::string describe(const ResampleCase& c) {
  constexpr const char* kMethods[] = {"linear", "nearest", "previous", "next"};
  constexpr const char* kBounds[] = {"hold", "fill", "extrapolate"};
  constexpr const char* kPatterns[] = {"uniform",   "jittered", "duplicates",
                                       "clustered", "gaps",     "sensor"};
  constexpr const char* kOrders[] = {"sorted", "random", "at samples", "outside", "clock"};
  std::string s =
      c.name + " (seed " + std::to_string(c.seed) + "): B,S,T,D " + std::to_string(c.batch) + "," +
      std::to_string(c.samples) + "," + std::to_string(c.queries) + "," +
      std::to_string(c.channels) + " " + nameOf(c.values) + "->" + nameOf(c.out) + " times " +
      nameOf(c.times) + " " + kMethods[c.method] + " " + kBounds[c.bounds] + " " +
      kPatterns[static_cast<int>(c.pattern)] + " " + kOrders[static_cast<int>(c.order)] +
      " max_gap " + std::to_string(c.max_gap) + " tolerance " + std::to_string(c.tolerance) +
      " fill " + std::to_string(c.fill_value);
  const std::pair<bool, const char*> flags[] = {{!c.batched, "unbatched"},
                                                {c.check_times, "checked"},
                                                {c.shared_times, "shared times"},
                                                {c.shared_queries, "shared queries"},
                                                {c.lengths, "lengths"},
                                                {c.query_lengths, "query_lengths"},
                                                {c.packed, "packed"},
                                                {!c.mask, "no mask"},
                                                {c.specials, "specials"}};
  for (const auto& [set, text] : flags) {
    if (set) s += std::string(" ") + text;
  }
  s += std::string(" layouts ") + nameOf(c.values_layout) + "/" + nameOf(c.times_layout) + "/" +
       nameOf(c.queries_layout) + "/" + nameOf(c.out_layout) + "/" + nameOf(c.mask_layout);
  return s;
}

// ---- the table ----------------------------------------------------------------------------------

inline std::vector<ResampleCase> resampleCases() {
  std::vector<ResampleCase> cases;
  const auto add = [&](const std::string& name, auto&& edit) {
    ResampleCase c;
    c.name = name;
    c.seed = cases.size() + 1;
    c.flush = cases.size() % 2 == 0 ? Flush::kEnd : Flush::kBegin;
    edit(c);
    cases.push_back(c);
  };

  for (const rbcDType dtype : kFloatDTypes) {
    add("linear " + nameOf(dtype), [&](auto& c) { c.values = c.out = dtype; });
    add("linear " + nameOf(dtype) + " special values", [&](auto& c) {
      c.values = c.out = dtype;
      c.specials = true;
      c.order = QueryOrder::kAtSamples;
    });
    for (const rbcDType out : kFloatDTypes) {
      if (same(dtype, out)) continue;
      add("linear " + nameOf(dtype) + " to " + nameOf(out), [&](auto& c) {
        c.values = dtype;
        c.out = out;
        c.channels = 19;
      });
    }
  }
  for (const rbcDType dtype : kTimeDTypes) {
    for (const TimePattern pattern : kTimePatterns) {
      add("times " + nameOf(dtype) + " pattern " + std::to_string(static_cast<int>(pattern)),
          [&](auto& c) {
            c.times = dtype;
            c.pattern = pattern;
            c.order = QueryOrder::kAtSamples;
            c.queries = 120;
          });
    }
  }
  for (const int32_t method : {RBC_METHOD_NEAREST, RBC_METHOD_PREVIOUS, RBC_METHOD_NEXT}) {
    const std::string name = "method " + std::to_string(method);
    for (const rbcDType dtype : kTimeDTypes) {
      add(name + " times " + nameOf(dtype), [&](auto& c) {
        c.method = method;
        c.times = dtype;
        c.order = QueryOrder::kAtSamples;
        c.pattern = TimePattern::kDuplicates;
        c.queries = 90;
      });
      add(name + " tolerance " + nameOf(dtype), [&](auto& c) {
        c.method = method;
        c.times = dtype;
        c.tolerance = 0.3;
        c.fill_value = -7;
        c.order = QueryOrder::kAtSamples;
        c.pattern = TimePattern::kGaps;
        c.queries = 90;
      });
    }
    add(name + " max_gap", [&](auto& c) {
      c.method = method;
      c.max_gap = 1.5;
      c.pattern = TimePattern::kGaps;
    });
    add(name + " fill", [&](auto& c) {
      c.method = method;
      c.bounds = RBC_BOUNDS_FILL;
      c.fill_value = 3.5;
      c.order = QueryOrder::kOutside;
    });
    for (const rbcDType dtype : kIntegerDTypes) {
      add(name + " " + nameOf(dtype), [&](auto& c) {
        c.method = method;
        c.values = c.out = dtype;
        c.fill_value = 1;
        c.bounds = RBC_BOUNDS_FILL;
      });
    }
  }
  for (const rbcDType dtype : kTimeDTypes) {
    add("extrapolate " + nameOf(dtype), [&](auto& c) {
      c.times = dtype;
      c.bounds = RBC_BOUNDS_EXTRAPOLATE;
      c.order = QueryOrder::kOutside;
      c.pattern = TimePattern::kDuplicates;
    });
    add("hold outside " + nameOf(dtype), [&](auto& c) {
      c.times = dtype;
      c.order = QueryOrder::kOutside;
      c.pattern = TimePattern::kDuplicates;
    });
    add("max_gap " + nameOf(dtype), [&](auto& c) {
      c.times = dtype;
      c.max_gap = 2.5;
      c.fill_value = std::nan("");
      c.pattern = TimePattern::kGaps;
      c.order = QueryOrder::kRandom;
    });
  }
  for (const int64_t samples : {0, 1, 2}) {
    for (const int32_t bounds : {RBC_BOUNDS_HOLD, RBC_BOUNDS_FILL, RBC_BOUNDS_EXTRAPOLATE}) {
      add(std::to_string(samples) + " samples bounds " + std::to_string(bounds), [&](auto& c) {
        c.samples = samples;
        c.bounds = bounds;
        c.fill_value = 9;
        c.order = samples == 0 ? QueryOrder::kRandom : QueryOrder::kAtSamples;
      });
    }
  }
  for (const Layout layout : kLayouts) {
    add(std::string("layout ") + nameOf(layout), [&](auto& c) { c.everyLayout(layout); });
    add(std::string("layout ") + nameOf(layout) + " bf16 i64", [&](auto& c) {
      c.everyLayout(layout);
      c.values = c.out = kBF16;
      c.times = kI64;
      c.channels = 33;
      c.method = RBC_METHOD_NEAREST;
    });
    add(std::string("layout ") + nameOf(layout) + " unbatched", [&](auto& c) {
      c.everyLayout(layout);
      c.batched = false;
      c.batch = 1;
    });
  }
  // Widths around those of vectors, in every size of element.
  for (const int64_t channels : {1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 64, 100}) {
    for (const rbcDType dtype : kFloatDTypes) {
      add(std::to_string(channels) + " channels " + nameOf(dtype), [&](auto& c) {
        c.channels = channels;
        c.values = c.out = dtype;
        c.samples = 20;
        c.queries = 11;
      });
    }
  }
  add("shared times", [](auto& c) { c.shared_times = true; });
  add("shared queries", [](auto& c) { c.shared_queries = true; });
  add("shared times and queries", [](auto& c) { c.shared_times = c.shared_queries = true; });
  add("random queries", [](auto& c) { c.order = QueryOrder::kRandom; });
  add("no mask", [](auto& c) { c.mask = false; });
  add("mask u8", [](auto& c) { c.mask_dtype = kU8; });
  add("one query", [](auto& c) { c.queries = 1, c.batch = 1, c.samples = 500, c.channels = 32; });
  for (const rbcDType index : {kI32, kI64}) {
    add("lengths " + nameOf(index), [&](auto& c) {
      c.lengths = true;
      c.batch = 9;
      c.index_dtype = index;
      c.check_times = true;
    });
    add("lengths and query_lengths " + nameOf(index), [&](auto& c) {
      c.lengths = c.query_lengths = true;
      c.batch = 9;
      c.index_dtype = index;
      c.fill_value = 4;
      c.order = QueryOrder::kRandom;
    });
    add("packed " + nameOf(index), [&](auto& c) {
      c.packed = true;
      c.batch = 9;
      c.index_dtype = index;
      c.query_lengths = true;
      c.check_times = true;
    });
  }
  add("packed with strides", [](auto& c) {
    c.packed = true;
    c.batch = 7;
    c.everyLayout(Layout::kReversed);
  });
  add("special queries",
      [](auto& c) { c.specials = true, c.order = QueryOrder::kOutside, c.times = kF64; });
  add("special queries extrapolate", [](auto& c) {
    c.specials = true;
    c.order = QueryOrder::kOutside;
    c.bounds = RBC_BOUNDS_EXTRAPOLATE;
  });
  // Empty ones succeed and write nothing but, without channels, the mask.
  add("empty batch", [](auto& c) { c.batch = 0; });
  add("no queries", [](auto& c) { c.queries = 0; });
  add("no channels", [](auto& c) { c.channels = 0; });
  // Large enough to be shared out among threads.
  add("threads f32",
      [](auto& c) { c.batch = 5, c.samples = 300, c.queries = 400, c.channels = 96; });
  add("threads one row", [](auto& c) {
    c.batch = 1;
    c.samples = 3000;
    c.queries = 4001;
    c.channels = 33;
    c.times = kF64;
  });
  add("threads few wide queries", [](auto& c) {
    c.batch = 1;
    c.samples = 4;
    c.queries = 3;
    c.channels = 40001;
  });
  add("threads wide integers", [](auto& c) {
    c.batch = 1;
    c.samples = 4;
    c.queries = 2;
    c.channels = 90000;
    c.method = RBC_METHOD_NEAREST;
    c.values = c.out = kI64;
  });
  add("threads bf16 ragged", [](auto& c) {
    c.batch = 40;
    c.samples = 200;
    c.queries = 130;
    c.channels = 64;
    c.values = c.out = kBF16;
    c.times = kI64;
    c.lengths = true;
    c.order = QueryOrder::kRandom;
  });
  return cases;
}

// What the benchmarks report: recordings with jitter, each put onto a clock of its own. Names tell
// the size, the dtype, and what else is unlike the first.
inline std::vector<ResampleCase> resampleBenchmarkCases() {
  std::vector<ResampleCase> cases;
  const auto add = [&](int64_t batch, int64_t samples, int64_t queries, int64_t channels,
                       rbcDType dtype, const std::string& trait = "") -> ResampleCase& {
    ResampleCase c;
    c.batch = batch;
    c.samples = samples;
    c.queries = queries;
    c.channels = channels;
    c.values = c.out = dtype;
    c.mask = false;
    c.pattern = TimePattern::kSensor;
    c.order = QueryOrder::kClock;
    c.seed = cases.size() + 1;
    c.name = std::to_string(batch) + "," + std::to_string(samples) + "," + std::to_string(queries) +
             "," + std::to_string(channels) + " " + nameOf(dtype) +
             (trait.empty() ? "" : " " + trait);
    cases.push_back(c);
    return cases.back();
  };
  add(1, 500, 1, 32, kF32);
  add(64, 4096, 1024, 32, kF32);
  add(64, 4096, 1024, 32, kBF16);
  add(256, 500, 250, 32, kBF16);
  add(32, 500, 250, 256, kBF16);
  add(32, 500, 250, 256, kF32);
  add(1024, 500, 250, 256, kBF16);
  add(2048, 1000, 500, 512, kBF16);
  add(4096, 4096, 1024, 32, kF32);
  // Intervals that vary by 46 %, more than those of any recording here.
  add(64, 4096, 1024, 32, kBF16, "wild").pattern = TimePattern::kJittered;
  add(256, 500, 250, 32, kBF16, "wild").pattern = TimePattern::kJittered;
  add(32, 500, 250, 256, kBF16, "wild").pattern = TimePattern::kJittered;
  // One thing at a time that may cost more: each is to be held against the first of them.
  add(256, 2000, 1000, 32, kF32);
  for (const int64_t channels : {1, 3, 7, 13}) add(256, 2000, 1000, channels, kF32, "unaligned");
  add(256, 2000, 1000, 13, kBF16, "unaligned");
  add(256, 2000, 1000, 32, kF32, "random").order = QueryOrder::kRandom;
  add(256, 2000, 1000, 32, kF32, "times_f64").times = kF64;
  add(256, 2000, 1000, 32, kF32, "times_i64").times = kI64;
  add(256, 2000, 1000, 32, kF32, "nearest").method = RBC_METHOD_NEAREST;
  add(256, 2000, 1000, 32, kF32, "previous").method = RBC_METHOD_PREVIOUS;
  add(256, 2000, 1000, 32, kF32, "mask").mask = true;
  add(256, 2000, 1000, 32, kF32, "lengths").lengths = true;
  add(256, 2000, 1000, 32, kF32, "packed").packed = true;
  add(256, 2000, 1000, 32, kF32, "to_bf16").out = kBF16;
  return cases;
}

// Any case that is valid, from a seed.
inline ResampleCase randomResampleCase(uint64_t seed) {
  Random random(seed + 1000003);
  ResampleCase c;
  c.name = "random";
  c.seed = seed;
  c.batched = random.chance(0.85);
  c.packed = c.batched && random.chance(0.2);
  c.batch = c.batched ? random.below(7) : 1;
  c.samples = random.chance(0.2) ? random.below(4) : random.below(70);
  c.queries = random.below(60);
  c.channels = random.chance(0.7) ? random.below(12) : random.below(140);
  c.method = static_cast<int32_t>(random.below(4));
  c.bounds = static_cast<int32_t>(random.below(c.method == RBC_METHOD_LINEAR ? 3 : 2));
  c.times = random.pick(kTimeDTypes);
  c.values = random.pick(kFloatDTypes);
  c.out = random.chance(0.6) ? c.values : random.pick(kFloatDTypes);
  if (c.method != RBC_METHOD_LINEAR && random.chance(0.4))
    c.values = c.out = random.pick(kIntegerDTypes);
  c.mask_dtype = random.chance(0.5) ? kBool : kU8;
  c.index_dtype = random.chance(0.5) ? kI32 : kI64;
  if (random.chance(0.4)) c.max_gap = random.uniform(0, 3);
  if (c.method != RBC_METHOD_LINEAR && random.chance(0.5)) c.tolerance = random.uniform(0, 1);
  c.fill_value = random.chance(0.5) ? 0 : 1;
  c.check_times = random.chance(0.3);
  c.shared_times = !c.packed && c.batched && random.chance(0.3);
  c.shared_queries = c.batched && random.chance(0.3);
  c.lengths = !c.packed && random.chance(0.3);
  c.query_lengths = random.chance(0.3);
  c.mask = random.chance(0.8);
  c.specials = random.chance(0.3);
  c.pattern = random.pick(kTimePatterns);
  c.order = random.pick(kQueryOrders);
  c.values_layout = random.pick(kLayouts);
  c.times_layout = random.pick(kLayouts);
  c.queries_layout = random.pick(kLayouts);
  do c.out_layout = random.pick(kLayouts);
  while (c.out_layout == Layout::kBroadcast);
  do c.mask_layout = random.pick(kLayouts);
  while (c.mask_layout == Layout::kBroadcast);
  c.flush = random.chance(0.5) ? Flush::kEnd : Flush::kBegin;
  return c;
}

// ---- inputs -------------------------------------------------------------------------------------

struct ResampleInputs {
  ResampleCase c;
  Array values;
  Array times;
  Array query_times;
  Array lengths;  // these three are empty arrays where the case has none
  Array query_lengths;
  Array offsets;

  // An output of the case, poisoned.
  Array makeOut() const {
    if (c.batched) return Array(c.out, {c.batch, c.queries, c.channels}, c.out_layout, c.flush);
    return Array(c.out, {c.queries, c.channels}, c.out_layout, c.flush);
  }
  Array makeMask() const {
    if (c.batched) return Array(c.mask_dtype, {c.batch, c.queries}, c.mask_layout, c.flush);
    return Array(c.mask_dtype, {c.queries}, c.mask_layout, c.flush);
  }
  // The samples of a row: [begin, begin + count) along the sample dimension.
  int64_t begin(int64_t b) const { return c.packed ? index(offsets, b) : 0; }
  int64_t count(int64_t b) const {
    if (c.packed) return index(offsets, b + 1) - index(offsets, b);
    return c.lengths ? index(lengths, b) : c.samples;
  }
  int64_t queryCount(int64_t b) const {
    return c.query_lengths ? index(query_lengths, b) : c.queries;
  }

 private:
  static int64_t index(const Array& array, int64_t i) {
    const uint64_t bits = array.get({i});
    return sizeOf(array.dtype()) == 4 ? static_cast<int32_t>(bits) : static_cast<int64_t>(bits);
  }
};

namespace detail {

constexpr double kPeriod = 0.01;  // seconds between samples, on average

// A time, given in seconds since the recording began, in a dtype: f32 seconds since boot, f64
// seconds since the epoch, i64 nanoseconds since the epoch.
inline uint64_t timeBits(rbcDType dtype, double seconds) {
  if (same(dtype, kI64)) {
    return static_cast<uint64_t>(INT64_C(1700000000123456789) + std::llround(seconds * 1e9));
  }
  return encodeFloat(dtype, same(dtype, kF32) ? 3.0 + seconds : 1.7e9 + seconds);
}

inline uint64_t badTimeBits(rbcDType dtype) {
  return isFloat(dtype) ? formatOf(dtype).nan()
                        : static_cast<uint64_t>(std::numeric_limits<int64_t>::min());
}

// The next time up or down.
inline uint64_t nextTime(rbcDType dtype, uint64_t bits, bool up) {
  if (same(dtype, kI64)) return up ? bits + 1 : bits - 1;
  const long double x = decodeFloat(dtype, bits);
  if (same(dtype, kF32))
    return encodeFloat(dtype, std::nextafter(static_cast<float>(x), up ? 1e30f : -1e30f));
  return encodeFloat(dtype, std::nextafter(static_cast<double>(x), up ? 1e300 : -1e300));
}

// Halfway between two times, as exactly as the dtype allows.
inline uint64_t middleTime(rbcDType dtype, uint64_t a, uint64_t b) {
  if (same(dtype, kI64)) return a + (b - a) / 2;
  return encodeFloat(dtype, (decodeFloat(dtype, a) + decodeFloat(dtype, b)) / 2);
}

inline std::vector<double> ascendingSeconds(const ResampleCase& c, Random& random, int64_t n) {
  std::vector<double> seconds;
  double t = random.uniform(0, 0.5);
  for (int64_t i = 0; i < n; ++i) {
    seconds.push_back(t);
    double step = 1;
    switch (c.pattern) {
      case TimePattern::kUniform: break;
      case TimePattern::kJittered: step = random.uniform(0.2, 1.8); break;
      case TimePattern::kSensor: step = random.uniform(0.7, 1.3); break;
      case TimePattern::kDuplicates: step = random.chance(0.45) ? 0 : 1; break;
      case TimePattern::kClustered: step = random.chance(0.8) ? random.uniform(0, 0.01) : 5; break;
      case TimePattern::kGaps:
        step = random.chance(0.15) ? random.uniform(2, 12) : random.uniform(0.5, 1.5);
        break;
    }
    t += step * kPeriod;
  }
  return seconds;
}

// Some thousand elements to draw from: encoding each one anew would take a minute for a benchmark.
inline std::vector<uint64_t> valueTable(const ResampleCase& c, Random& random) {
  std::vector<uint64_t> table;
  for (int i = 0; i < 4096; ++i) {
    if (!isFloat(c.values)) {
      const uint64_t bits = random.bits() >> (64 - c.values.bits);
      table.push_back(same(c.values, kBool) ? bits & 1 : bits);
      continue;
    }
    table.push_back(encodeFloat(c.values, random.uniform(-2, 2)));
    if (c.specials && random.chance(0.2)) {
      const FloatFormat f = formatOf(c.values);
      const uint64_t odd[] = {f.nan(),
                              f.infinity(),
                              f.infinity() | f.sign(),
                              f.infinity() - 1,
                              f.sign() + 1,
                              1,
                              f.sign(),
                              f.infinity() + 1 + (f.nan() - f.infinity()) / 2,
                              0,
                              f.nan() | f.sign()};
      table.back() = random.pick(odd);
    }
  }
  return table;
}

// A row of times, as seconds since the recording began and as elements.
struct TimeRow {
  std::vector<double> seconds;
  std::vector<uint64_t> bits;

  void resize(int64_t n) {
    seconds.resize(static_cast<size_t>(n));
    bits.resize(static_cast<size_t>(n));
  }
};

inline TimeRow makeTimeRow(const ResampleCase& c, Random& random, int64_t n) {
  TimeRow row{ascendingSeconds(c, random, n), {}};
  for (const double s : row.seconds) row.bits.push_back(timeBits(c.times, s));
  return row;
}

inline uint64_t makeQuery(const ResampleCase& c, Random& random, const TimeRow& row,
                          double sought) {
  if (c.specials && isFloat(c.times) && random.chance(0.2)) {
    const FloatFormat f = formatOf(c.times);
    const uint64_t odd[] = {f.nan(), f.nan() | f.sign(), f.infinity(), f.infinity() | f.sign()};
    return random.pick(odd);
  }
  if (row.bits.empty()) return timeBits(c.times, sought);
  const double sign = random.chance(0.5) ? 1 : -1;
  if (c.order == QueryOrder::kOutside && random.chance(0.8)) {
    const double away = random.chance(0.5) ? random.uniform(0, 2 * kPeriod) : random.uniform(0, 5);
    return timeBits(c.times, (sign < 0 ? row.seconds.front() : row.seconds.back()) + sign * away);
  }
  if (c.order == QueryOrder::kAtSamples) {
    const auto k = static_cast<size_t>(random.below(static_cast<int64_t>(row.bits.size())));
    const size_t next = std::min(k + 1, row.bits.size() - 1);
    const double reach = kPeriod * (std::isinf(c.tolerance) ? 1 : c.tolerance);
    switch (random.below(6)) {
      case 0: return row.bits[k];
      case 1: return nextTime(c.times, row.bits[k], true);
      case 2: return nextTime(c.times, row.bits[k], false);
      case 3: return middleTime(c.times, row.bits[k], row.bits[next]);
      case 4: return timeBits(c.times, row.seconds[k] + sign * reach);
      default: break;
    }
  }
  return timeBits(c.times, sought);
}

inline void setRow(Array& array, int64_t row, int64_t i, uint64_t bits) {
  if (array.ndim() == 2) {
    array.set({row, i}, bits);
  } else {
    array.set({i}, bits);
  }
}

}  // namespace detail

inline ResampleInputs makeInputs(const ResampleCase& c) {
  Random random(c.seed);
  ResampleInputs in;
  in.c = c;
  const auto B = static_cast<size_t>(c.batch);

  // Ragged rows: a full one, an empty one and one of a single sample are always among them.
  std::vector<int64_t> counts(B, c.samples);
  for (size_t b = 0; b < B && (c.packed || c.lengths); ++b) {
    if (b > 0)
      counts[b] = b == 1   ? 0
                  : b == 2 ? std::min<int64_t>(1, c.samples)
                           : random.below(c.samples + 1);
  }
  std::vector<int64_t> offsets = {c.packed ? random.below(3) : 0};  // some samples belong to no row
  for (const int64_t count : counts) offsets.push_back(offsets.back() + count);
  const int64_t samples = c.packed ? offsets.back() + random.below(3) : c.samples;

  if (c.lengths) {
    in.lengths = Array(c.index_dtype, {c.batch}, Layout::kContiguous, c.flush);
    for (size_t b = 0; b < B; ++b)
      in.lengths.set({static_cast<int64_t>(b)}, static_cast<uint64_t>(counts[b]));
  }
  if (c.packed) {
    in.offsets = Array(c.index_dtype, {c.batch + 1}, Layout::kContiguous, c.flush);
    for (size_t b = 0; b <= B; ++b)
      in.offsets.set({static_cast<int64_t>(b)}, static_cast<uint64_t>(offsets[b]));
  }
  if (c.query_lengths) {
    in.query_lengths = Array(c.index_dtype, {c.batch}, Layout::kStrided, c.flush);
    for (int64_t b = 0; b < c.batch; ++b) {
      const int64_t length = b == 1 ? 0 : b == 2 ? c.queries : random.below(c.queries + 1);
      in.query_lengths.set({b}, static_cast<uint64_t>(length));
    }
  }

  // Times. Beyond a row's samples they are never read: there stand NaN, or times far back.
  const bool many_rows = c.batched && !c.packed && !c.shared_times;
  const bool one_row = c.shared_times || (many_rows && c.times_layout == Layout::kBroadcast);
  in.times = Array(
      c.times, many_rows ? std::vector<int64_t>{c.batch, samples} : std::vector<int64_t>{samples},
      c.times_layout, c.flush);
  const uint64_t bad = detail::badTimeBits(c.times);
  in.times.each([&](std::byte* p) { std::memcpy(p, &bad, static_cast<size_t>(sizeOf(c.times))); });
  std::vector<detail::TimeRow> rows;
  for (size_t b = 0; b < std::max<size_t>(B, c.shared_times ? 1 : 0); ++b) {
    if (b > 0 && one_row) {
      rows.push_back(rows[0]);
      continue;
    }
    rows.push_back(detail::makeTimeRow(c, random, one_row ? c.samples : counts[b]));
    for (size_t i = 0; i < rows[b].bits.size(); ++i) {
      const int64_t lead = c.packed ? offsets[b] : 0;
      detail::setRow(in.times, static_cast<int64_t>(b), lead + static_cast<int64_t>(i),
                     rows[b].bits[i]);
    }
  }
  for (size_t b = 0; b < B; ++b) rows[b].resize(counts[b]);

  // Queries.
  const bool query_rows = c.batched && !c.shared_queries;
  in.query_times =
      Array(c.times,
            query_rows ? std::vector<int64_t>{c.batch, c.queries} : std::vector<int64_t>{c.queries},
            c.queries_layout, c.flush);
  for (size_t b = 0; b < (query_rows ? B : 1); ++b) {
    const detail::TimeRow row = b < rows.size() ? rows[b] : detail::TimeRow{};
    const double first = row.seconds.empty() ? 0 : row.seconds.front();
    const double last = row.seconds.empty() ? 1 : row.seconds.back();
    std::vector<double> sought;
    for (int64_t i = 0; i < c.queries; ++i) {
      sought.push_back(random.uniform(first - 2 * detail::kPeriod, last + 2 * detail::kPeriod));
    }
    if (c.order == QueryOrder::kClock) {
      const double phase = random.uniform();
      for (int64_t i = 0; i < c.queries; ++i) {
        sought[static_cast<size_t>(i)] = first + (last - first) * (static_cast<double>(i) + phase) /
                                                     static_cast<double>(c.queries);
      }
    }
    if (c.order == QueryOrder::kSorted) std::sort(sought.begin(), sought.end());
    for (int64_t i = 0; i < c.queries; ++i) {
      detail::setRow(in.query_times, static_cast<int64_t>(b), i,
                     detail::makeQuery(c, random, row, sought[static_cast<size_t>(i)]));
    }
  }

  // Values.
  const std::vector<uint64_t> table = detail::valueTable(c, random);
  std::vector<int64_t> shape = {samples, c.channels};
  if (c.batched && !c.packed) shape.insert(shape.begin(), c.batch);
  in.values = Array(c.values, shape, c.values_layout, c.flush);
  const auto size = static_cast<size_t>(sizeOf(c.values));
  in.values.each([&](std::byte* p) { std::memcpy(p, &table[random.bits() & 4095], size); });

  for (Array* array :
       {&in.values, &in.times, &in.query_times, &in.lengths, &in.query_lengths, &in.offsets}) {
    array->memory().forbidWrites();
  }
  return in;
}

}  // namespace support
