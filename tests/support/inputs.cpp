// The arrays of a case, from its seed.
#include "support/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace support {

namespace detail {

Array makeOutput(const SharedCase& c, rbcDType dtype, std::vector<int64_t> shape, Layout layout) {
  if (!c.batched) shape.erase(shape.begin());
  return Array(dtype, std::move(shape), layout, c.flush);
}

}  // namespace detail

namespace {

// ---- times --------------------------------------------------------------------------------------

// A time, given in seconds since the start of the recording, in a dtype: f32 seconds since boot,
// f64 seconds since the epoch, i64 nanoseconds since the epoch.
uint64_t timeBits(rbcDType dtype, double seconds) {
  if (same(dtype, kI64)) {
    return static_cast<uint64_t>(INT64_C(1700000000123456789) + std::llround(seconds * 1e9));
  }
  return encodeFloat(dtype, same(dtype, kF32) ? 3.0 + seconds : 1.7e9 + seconds);
}

uint64_t badTimeBits(rbcDType dtype) {
  return isFloat(dtype) ? formatOf(dtype).nan()
                        : static_cast<uint64_t>(std::numeric_limits<int64_t>::min());
}

// The next time up or down.
uint64_t nextTime(rbcDType dtype, uint64_t bits, bool up) {
  if (same(dtype, kI64)) return up ? bits + 1 : bits - 1;
  const long double x = decodeFloat(dtype, bits);
  if (same(dtype, kF32))
    return encodeFloat(dtype, std::nextafter(static_cast<float>(x), up ? 1e30f : -1e30f));
  return encodeFloat(dtype, std::nextafter(static_cast<double>(x), up ? 1e300 : -1e300));
}

// Halfway between two times, as exactly as the dtype allows.
uint64_t middleTime(rbcDType dtype, uint64_t a, uint64_t b) {
  if (same(dtype, kI64)) return a + (b - a) / 2;
  return encodeFloat(dtype, (decodeFloat(dtype, a) + decodeFloat(dtype, b)) / 2);
}

std::vector<double> ascendingSeconds(TimePattern pattern, Random& random, int64_t n) {
  std::vector<double> seconds;
  double t = random.uniform(0, 0.5);
  for (int64_t i = 0; i < n; ++i) {
    seconds.push_back(t);
    double step = 1;
    switch (pattern) {
      case TimePattern::kUniform: break;
      case TimePattern::kJittered: step = random.uniform(0.2, 1.8); break;
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

// A row on the clock of the queries. Clock offsets that leave the range of ticks are ignored: no
// query could follow.
detail::TimeRow onQueryClock(const StreamCase& c, rbcDType dtype, detail::TimeRow row) {
  const bool near = std::fabs(static_cast<double>(c.clock_offset_ticks)) < 1e15;
  for (size_t i = 0; i < row.bits.size() && near; ++i) {
    row.seconds[i] += c.clock_offset + static_cast<double>(c.clock_offset_ticks) * 1e-9;
    row.bits[i] = same(dtype, kI64)
                      ? row.bits[i] + static_cast<uint64_t>(c.clock_offset_ticks)
                      : encodeFloat(dtype, decodeFloat(dtype, row.bits[i]) + c.clock_offset);
  }
  return row;
}

void setRow(Array& array, int64_t row, int64_t i, uint64_t bits) {
  if (array.ndim() == 2) {
    array.set({row, i}, bits);
  } else {
    array.set({i}, bits);
  }
}

// ---- queries ------------------------------------------------------------------------------------

// `tolerance` is in seconds.
uint64_t makeQuery(const SharedCase& c, Random& random, const detail::TimeRow& row,
                   double tolerance, double sought) {
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
    switch (random.below(6)) {
      case 0: return row.bits[k];
      case 1: return nextTime(c.times, row.bits[k], true);
      case 2: return nextTime(c.times, row.bits[k], false);
      case 3: return middleTime(c.times, row.bits[k], row.bits[next]);
      case 4: return timeBits(c.times, row.seconds[k] + sign * tolerance);
      default: break;
    }
  }
  return timeBits(c.times, sought);
}

}  // namespace

namespace detail {

void makeQueries(const SharedCase& c, const std::vector<const StreamCase*>& streams,
                 const StreamRows& rows, Random& random, SharedInputs* in) {
  if (c.query_lengths) {
    in->query_lengths = Array(streams[0]->index_dtype, {c.batch}, Layout::kStrided, c.flush);
    for (int64_t b = 0; b < c.batch; ++b) {
      const int64_t length = b == 1 ? 0 : b == 2 ? c.queries : random.below(c.queries + 1);
      in->query_lengths.set({b}, static_cast<uint64_t>(length));
    }
  }
  const bool many = c.batched && !c.shared_queries;
  in->query_times = Array(
      c.times, many ? std::vector<int64_t>{c.batch, c.queries} : std::vector<int64_t>{c.queries},
      c.queries_layout, c.flush);
  for (size_t b = 0; b < (many ? static_cast<size_t>(c.batch) : 1); ++b) {
    const TimeRow none;
    const auto rowOf = [&](size_t stream) -> const TimeRow& {
      return b < rows[stream].size() ? rows[stream][b] : none;
    };
    double first = 0;
    double last = 1;
    bool any = false;
    for (size_t n = 0; n < rows.size(); ++n) {
      const TimeRow& row = rowOf(n);
      if (row.seconds.empty()) continue;
      first = any ? std::min(first, row.seconds.front()) : row.seconds.front();
      last = any ? std::max(last, row.seconds.back()) : row.seconds.back();
      any = true;
    }
    std::vector<double> sought;
    for (int64_t i = 0; i < c.queries; ++i)
      sought.push_back(random.uniform(first - 2 * kPeriod, last + 2 * kPeriod));
    if (c.order == QueryOrder::kSorted) std::sort(sought.begin(), sought.end());
    for (int64_t i = 0; i < c.queries; ++i) {
      const auto n = static_cast<size_t>(random.below(static_cast<int64_t>(rows.size())));
      const double tolerance = std::isinf(streams[n]->tolerance) ? 1 : streams[n]->tolerance;
      setRow(in->query_times, static_cast<int64_t>(b), i,
             makeQuery(c, random, rowOf(n), tolerance * kPeriod, sought[static_cast<size_t>(i)]));
    }
  }
  in->query_times.memory().forbidWrites();
  in->query_lengths.memory().forbidWrites();
}

}  // namespace detail

namespace {

// ---- values -------------------------------------------------------------------------------------

// Several thousand elements to draw from.
std::vector<uint64_t> valueTable(const StreamCase& c, bool specials, Random& random) {
  double reach = c.uses(RBC_METHOD_ANGLE) ? 8 : 2;  // more than one turn
  for (const rbcChannelGroup& group : c.groups) {
    if (group.period % 3 == RBC_PERIOD_DEGREES) reach = 800;
  }
  std::vector<uint64_t> table;
  for (int i = 0; i < 4096; ++i) {
    if (!isFloat(c.values)) {
      const uint64_t bits = random.bits() >> (64 - c.values.bits);
      table.push_back(same(c.values, kBool) ? bits & 1 : bits);
      continue;
    }
    table.push_back(encodeFloat(c.values, random.uniform(-reach, reach)));
    if (specials && random.chance(0.2)) {
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

// Makes some samples depend on the previous one: repeated values (pchip is flat there), and
// quaternions that turn only slightly, with either sign.
void relateNeighbours(const StreamCase& c, Array& values, Random& random) {
  const bool batched = values.ndim() == 3;
  const int64_t rows = batched ? values.extent(0) : 1;
  const int64_t samples = values.extent(values.ndim() - 2);
  const auto get = [&](int64_t b, int64_t i, int64_t d) {
    return batched ? values.get({b, i, d}) : values.get({i, d});
  };
  const auto set = [&](int64_t b, int64_t i, int64_t d, uint64_t bits) {
    batched ? values.set({b, i, d}, bits) : values.set({i, d}, bits);
  };
  for (const rbcChannelGroup& group : c.segments()) {
    if (group.method < RBC_METHOD_CUBIC) continue;
    const int64_t width = group.method == RBC_METHOD_SLERP ? 4 : 1;
    for (int64_t b = 0; b < rows; ++b) {
      for (int64_t i = 1; i < samples; ++i) {
        for (int64_t d = group.begin; d < group.begin + group.count; d += width) {
          if (!random.chance(width == 4 ? 0.5 : 0.2)) continue;
          const double sign = width == 4 && random.chance(0.5) ? -1 : 1;
          const double turn = width == 4 ? std::pow(10, -random.uniform(0.5, 9)) : 0;
          for (int64_t k = d; k < d + width; ++k) {
            const long double before = decodeFloat(c.values, get(b, i - 1, k));
            set(b, i, k, encodeFloat(c.values, sign * (before + turn * random.uniform(-1, 1))));
          }
        }
      }
    }
  }
}

// Replaces some quaternions of slerp by invalid ones.
void breakQuaternions(const StreamCase& c, Array& values, Random& random) {
  const bool batched = values.ndim() == 3;
  const int64_t rows = batched ? values.extent(0) : 1;
  for (const rbcChannelGroup& group : c.segments()) {
    if (group.method != RBC_METHOD_SLERP || c.no_rotations == 0) continue;
    for (int64_t b = 0; b < rows; ++b) {
      for (int64_t i = 0; i < values.extent(values.ndim() - 2); ++i) {
        for (int64_t d = group.begin; d < group.begin + group.count; d += 4) {
          if (!random.chance(c.no_rotations)) continue;
          const auto set = [&](int64_t k, uint64_t bits) {
            batched ? values.set({b, i, k}, bits) : values.set({i, k}, bits);
          };
          if (!isFloat(c.values) || random.chance(0.4)) {
            const uint64_t minus = isFloat(c.values) ? formatOf(c.values).sign() : 0;
            for (int64_t k = d; k < d + 4; ++k) set(k, random.chance(0.5) ? minus : 0);
            continue;
          }
          const FloatFormat f = formatOf(c.values);
          const uint64_t odd[] = {f.nan(), f.infinity(), f.infinity() | f.sign()};
          set(d + random.below(4), random.pick(odd));
        }
      }
    }
  }
}

Array makeAffine(const StreamCase& c, const SharedCase& shared, Random& random, double low,
                 double high) {
  Array array(c.affine, {c.channels}, c.affine_layout, shared.flush);
  array.each([&](std::byte* p) {
    uint64_t bits = encodeFloat(c.affine, random.uniform(low, high));
    if (shared.specials && random.chance(0.1)) {
      const FloatFormat f = formatOf(c.affine);
      const uint64_t odd[] = {f.nan() | f.sign(), f.infinity(), f.sign(), 1};
      bits = random.pick(odd);
    }
    std::memcpy(p, &bits, static_cast<size_t>(sizeOf(c.affine)));
  });
  array.memory().forbidWrites();
  return array;
}

// ---- missing samples ----------------------------------------------------------------------------

// Draws the missing samples. Values that are missing in all rows are NaN, or all bits set: any use
// of them would be visible.
void makeSampleMask(const StreamCase& c, const SharedCase& shared, Random random,
                    StreamInputs* in) {
  const int64_t samples = in->values.extent(in->values.ndim() - 2);
  const bool many = shared.batched && !c.packed && !c.shared_sample_mask;
  in->sample_mask =
      Array(c.sample_mask_dtype,
            many ? std::vector<int64_t>{shared.batch, samples} : std::vector<int64_t>{samples},
            c.sample_mask_layout, shared.flush);
  int64_t left = 0;  // in the run
  bool missing = false;
  in->sample_mask.each([&](std::byte* p) {
    if (left-- <= 0) {
      missing = random.chance(c.missing);
      left = c.in_runs ? random.below(80) : 0;
    }
    const auto yes = same(c.sample_mask_dtype, kU8) ? 1 + random.below(255) : 1;
    *p = static_cast<std::byte>(missing ? 0 : yes);
  });
  if (c.values_layout == Layout::kBroadcast) return;  // other rows have the same values
  const bool batched = in->values.ndim() == 3;
  for (int64_t b = 0; b < (batched ? shared.batch : 1); ++b) {
    for (int64_t i = 0; i < samples; ++i) {
      for (int64_t d = 0; d < c.channels && in->isMissing(b, i); ++d) {
        const uint64_t bits = isFloat(c.values) ? formatOf(c.values).nan() : ~uint64_t{0};
        const uint64_t poison = same(c.values, kBool) ? 1 : bits;
        batched ? in->values.set({b, i, d}, poison) : in->values.set({i, d}, poison);
      }
    }
  }
}

// ---- arrivals -----------------------------------------------------------------------------------

// Most samples arrive a little after their time, some much later, before it, or never. In order, all
// arrive with the same delay.
void makeArrivals(const StreamCase& c, const SharedCase& shared, Random random, StreamInputs* in) {
  const int64_t samples = in->values.extent(in->values.ndim() - 2);
  const bool many = shared.batched && !c.packed && !c.shared_arrivals;
  in->arrivals =
      Array(shared.times,
            many ? std::vector<int64_t>{shared.batch, samples} : std::vector<int64_t>{samples},
            c.arrivals_layout, shared.flush);
  for (int64_t b = 0; b < (many ? shared.batch : 1); ++b) {
    for (int64_t i = 0; i < samples; ++i) {
      const bool rows = in->times.ndim() == 2;
      const uint64_t time = rows && in->times.extent(0) == 0 ? timeBits(shared.times, 0)
                            : rows                           ? in->times.get({b, i})
                                                             : in->times.get({i});
      const double much = random.chance(0.1) ? 10 : 1;
      double delay = random.uniform(-0.1, 1) * much * c.delay * kPeriod;
      if (random.chance(0.2)) delay = 0;
      if (c.in_order) delay = 0.5 * c.delay * kPeriod;
      uint64_t bits = same(shared.times, kI64)
                          ? time + static_cast<uint64_t>(std::llround(delay * 1e9))
                          : encodeFloat(shared.times, decodeFloat(shared.times, time) + delay);
      if (random.chance(0.03) && !c.in_order) {
        bits = isFloat(shared.times) ? random.chance(0.5) ? formatOf(shared.times).nan()
                                                          : formatOf(shared.times).infinity()
                                     : uint64_t{INT64_MAX};
      }
      setRow(in->arrivals, b, i, bits);
    }
  }
}

}  // namespace

namespace detail {

// ---- a stream -----------------------------------------------------------------------------------

StreamInputs makeStream(const StreamCase& c, const SharedCase& shared, Random& random,
                        std::vector<TimeRow>* rows) {
  StreamInputs in;
  const auto B = static_cast<size_t>(shared.batch);

  // Ragged rows: a full one, an empty one and one with a single sample are always included.
  std::vector<int64_t> counts(B, c.samples);
  for (size_t b = 0; b < B && (c.packed || c.lengths); ++b) {
    if (b > 0)
      counts[b] = b == 1   ? 0
                  : b == 2 ? std::min<int64_t>(1, c.samples)
                           : random.below(c.samples + 1);
    if (c.absent) counts[b] = 0;
  }
  std::vector<int64_t> offsets = {c.packed ? random.below(3) : 0};  // some samples belong to no row
  for (const int64_t count : counts) offsets.push_back(offsets.back() + count);
  const int64_t samples = c.packed ? offsets.back() + random.below(3) : c.samples;

  if (c.lengths) {
    in.lengths = Array(c.index_dtype, {shared.batch}, Layout::kContiguous, shared.flush);
    for (size_t b = 0; b < B; ++b)
      in.lengths.set({static_cast<int64_t>(b)}, static_cast<uint64_t>(counts[b]));
  }
  if (c.packed) {
    in.offsets = Array(c.index_dtype, {shared.batch + 1}, Layout::kContiguous, shared.flush);
    for (size_t b = 0; b <= B; ++b)
      in.offsets.set({static_cast<int64_t>(b)}, static_cast<uint64_t>(offsets[b]));
  }

  // Times. Times after a row's samples are never read: there are NaN, or times far back.
  const bool many_rows = shared.batched && !c.packed && !c.shared_times;
  const bool one_row = c.shared_times || (many_rows && c.times_layout == Layout::kBroadcast);
  in.times =
      Array(shared.times,
            many_rows ? std::vector<int64_t>{shared.batch, samples} : std::vector<int64_t>{samples},
            c.times_layout, shared.flush);
  const uint64_t bad = badTimeBits(shared.times);
  in.times.each(
      [&](std::byte* p) { std::memcpy(p, &bad, static_cast<size_t>(sizeOf(shared.times))); });
  for (size_t b = 0; b < std::max<size_t>(B, c.shared_times ? 1 : 0); ++b) {
    if (b > 0 && one_row) {
      rows->push_back((*rows)[0]);
      continue;
    }
    TimeRow row{ascendingSeconds(c.pattern, random, one_row ? c.samples : counts[b]), {}};
    const int64_t lead = c.packed ? offsets[b] : 0;
    for (const double s : row.seconds) {
      row.bits.push_back(timeBits(shared.times, s));
      setRow(in.times, static_cast<int64_t>(b), lead + static_cast<int64_t>(row.bits.size()) - 1,
             row.bits.back());
    }
    rows->push_back(onQueryClock(c, shared.times, std::move(row)));
  }
  for (size_t b = 0; b < B; ++b) (*rows)[b].resize(counts[b]);

  const std::vector<uint64_t> table = valueTable(c, shared.specials, random);
  std::vector<int64_t> shape = {samples, c.channels};
  if (shared.batched && !c.packed) shape.insert(shape.begin(), shared.batch);
  in.values = Array(c.values, shape, c.values_layout, shared.flush);
  const auto size = static_cast<size_t>(sizeOf(c.values));
  in.values.each([&](std::byte* p) { std::memcpy(p, &table[random.bits() & 4095], size); });
  relateNeighbours(c, in.values, random);
  breakQuaternions(c, in.values, random);
  if (c.shift) in.shift = makeAffine(c, shared, random, -1, 1);
  if (c.scale) in.scale = makeAffine(c, shared, random, 0.5, 2);

  if (c.missing != 0) makeSampleMask(c, shared, Random(random.bits()), &in);
  if (c.arrivals) makeArrivals(c, shared, Random(random.bits()), &in);
  for (Array* array :
       {&in.values, &in.times, &in.lengths, &in.offsets, &in.sample_mask, &in.arrivals})
    array->memory().forbidWrites();
  return in;
}

}  // namespace detail

}  // namespace support
