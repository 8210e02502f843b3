#include "unit/window_reference.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "support/inputs.h"
#include "support/statistics_case.h"
#include "unit/window_poses.h"

namespace support {
namespace {

using Stream = WindowCall::Stream;
__extension__ typedef __int128 Wide;

int64_t integerAt(const Array& array, int64_t i) { return StreamInputs::indexAt(array, i); }

// ---- times, in their dtype ----------------------------------------------------------------------

struct Instant {
  rbcDType dtype;
  uint64_t bits;

  long double real() const { return decodeFloat(dtype, bits); }
  int64_t ticks() const { return static_cast<int64_t>(bits); }
  bool isNaN() const { return !same(dtype, kI64) && std::isnan(real()); }
};

bool isAfter(const Instant& a, const Instant& b) {
  return same(a.dtype, kI64) ? a.ticks() > b.ticks() : a.real() > b.real();
}

// Rounded once; i64 saturates.
Instant plus(const Instant& a, const Instant& b, int sign) {
  if (!same(a.dtype, kI64)) {
    const long double other = sign * b.real();
    if (same(a.dtype, kF32)) {
      return {a.dtype,
              encodeFloat(a.dtype, static_cast<float>(a.real()) + static_cast<float>(other))};
    }
    return {a.dtype,
            encodeFloat(a.dtype, static_cast<double>(a.real()) + static_cast<double>(other))};
  }
  const Wide sum = static_cast<Wide>(a.ticks()) + sign * static_cast<Wide>(b.ticks());
  const Wide kept = sum < INT64_MIN ? INT64_MIN : sum > INT64_MAX ? INT64_MAX : sum;
  return {a.dtype, static_cast<uint64_t>(static_cast<int64_t>(kept))};
}

// ---- rows ---------------------------------------------------------------------------------------

// A row before any transform; numbers are exact in double.
struct FetchedRow {
  std::vector<std::optional<double>> values;
  int64_t row = -1;    // if gathered
  bool valid = false;  // by its index
  bool past = false;   // held past the end
};

class Reference {
 public:
  explicit Reference(const WindowCall& call) : call_(call) {
    for (const Stream& s : call.streams) {
      if (s.times.ndim() != 0) time_dtype_ = s.times.dtype();
    }
  }

  // All offsets of a window.
  std::vector<FetchedRow> fetch(size_t n, int64_t b, bool hold) const {
    const Stream& s = call_.streams[n];
    return s.fields.mode == RBC_WINDOWS_MODE_GATHER ? gather(n, b, hold) : interpolate(n, b, hold);
  }

 private:
  struct Rows {
    int64_t begin;
    int64_t count;
  };
  Rows rowsOf(const Stream& s, int64_t b) const {
    const int64_t e = integerAt(call_.episodes, b);
    const int64_t begin = integerAt(s.episode_offsets, e);
    return {begin, integerAt(s.episode_offsets, e + 1) - begin};
  }
  bool byTimes() const { return (call_.params.flags & RBC_WINDOWS_FLAG_ANCHOR_TIMES) != 0; }
  Instant timeAt(const Array& array, int64_t i) const { return {array.dtype(), array.get({i})}; }
  Instant clockOffset(const Stream& s) const {
    if (same(time_dtype_, kI64)) {
      return {kI64, static_cast<uint64_t>(s.fields.clock_offset_ticks)};
    }
    return {time_dtype_, encodeFloat(time_dtype_, s.fields.clock_offset)};
  }

  // The time of the anchor, on the clock that the streams share.
  std::optional<Instant> anchorTime(int64_t b) const {
    if (byTimes()) {
      const Instant time = timeAt(call_.anchors, b);
      if (time.isNaN()) return {};
      return time;
    }
    const Stream& s = call_.streams[static_cast<size_t>(call_.params.anchor_stream_index)];
    const Rows rows = rowsOf(s, b);
    if (s.times.ndim() == 0 || rows.count == 0) return {};
    const int64_t row =
        std::clamp<int64_t>(integerAt(call_.anchors, b), 0, rows.count - 1) + rows.begin;
    return plus(timeAt(s.times, row), clockOffset(s), 1);
  }

  // The time up to which rows may have arrived for a time.
  Instant untilOf(const Instant& time) const {
    Instant lag = {time_dtype_, static_cast<uint64_t>(call_.params.lag_ticks)};
    if (!same(time_dtype_, kI64)) lag.bits = encodeFloat(time_dtype_, call_.params.lag);
    return plus(time, lag, 1);
  }
  bool exists(const Stream& s, int64_t row, const Instant& until) const {
    if (s.sample_mask.ndim() != 0 && s.sample_mask.get({row}) == 0) return false;
    return s.arrivals.ndim() == 0 || !isAfter(timeAt(s.arrivals, row), until);
  }

  // The anchor as a row of the episode; nothing if it needs a time and has none.
  std::optional<int64_t> anchorRow(size_t n, int64_t b) const {
    const Stream& s = call_.streams[n];
    const auto leader = static_cast<size_t>(call_.params.anchor_stream_index);
    const bool timed = byTimes() || call_.streams[leader].times.ndim() != 0;
    const bool arrives = s.arrivals.ndim() != 0;
    if (!byTimes() && !arrives && (n == leader || s.times.ndim() == 0 || !timed)) {
      return integerAt(call_.anchors, b);
    }
    const std::optional<Instant> shared = anchorTime(b);
    if (!shared) return {};
    const Instant time = plus(*shared, clockOffset(s), -1);
    const Rows rows = rowsOf(s, b);
    int64_t found = -1;
    for (int64_t i = 0; i < rows.count; ++i) {
      const bool counts = !arrives || exists(s, rows.begin + i, untilOf(*shared));
      if (counts && !isAfter(timeAt(s.times, rows.begin + i), time)) found = i;
    }
    return found;
  }

  std::vector<FetchedRow> gather(size_t n, int64_t b, bool hold) const {
    const Stream& s = call_.streams[n];
    std::vector<FetchedRow> all(static_cast<size_t>(s.num_offsets));
    const Rows rows = rowsOf(s, b);
    const std::optional<int64_t> anchor = anchorRow(n, b);
    for (int64_t o = 0; o < s.num_offsets; ++o) {
      FetchedRow& fetched = all[static_cast<size_t>(o)];
      if (s.values.ndim() != 0) fetched.values.resize(static_cast<size_t>(s.values.extent(1)));
      if (rows.count == 0 || !anchor) continue;
      const Wide row = static_cast<Wide>(*anchor) + integerAt(s.offsets, o);
      const bool inside = row >= 0 && row < rows.count;
      if (!inside && s.params.outside == RBC_OUTSIDE_FILL && !hold) continue;
      const int64_t at = rows.begin + static_cast<int64_t>(row < 0  ? 0
                                                           : inside ? row
                                                                    : rows.count - 1);
      if (s.sample_mask.ndim() != 0 && s.sample_mask.get({at}) == 0) continue;
      if (s.arrivals.ndim() != 0 && !exists(s, at, untilOf(*anchorTime(b)))) continue;
      fetched.row = at;
      fetched.valid = inside;
      fetched.past = row >= rows.count;
      for (size_t d = 0; d < fetched.values.size(); ++d) {
        fetched.values[d] = valueOf(s.values.dtype(), s.values.get({at, static_cast<int64_t>(d)}));
      }
    }
    return all;
  }

  std::vector<FetchedRow> interpolate(size_t n, int64_t b, bool hold) const {
    const Stream& s = call_.streams[n];
    const int64_t channels = s.values.extent(1);
    std::vector<FetchedRow> all(static_cast<size_t>(s.num_offsets));
    for (FetchedRow& row : all) row.values.resize(static_cast<size_t>(channels));
    const Rows rows = rowsOf(s, b);
    const std::optional<Instant> anchor = anchorTime(b);
    if (!anchor || s.num_offsets == 0) return all;
    std::vector<uint64_t> values;
    std::vector<uint64_t> times;
    std::vector<uint64_t> mask;
    std::optional<Instant> last;
    for (int64_t i = rows.begin; i < rows.begin + rows.count; ++i) {
      for (int64_t d = 0; d < channels; ++d) values.push_back(s.values.get({i, d}));
      times.push_back(s.times.get({i}));
      mask.push_back(s.sample_mask.ndim() != 0 ? s.sample_mask.get({i}) : 1);
      if (mask.back() != 0) last = timeAt(s.times, i);
    }
    std::vector<uint64_t> queries;
    std::vector<Instant> untils;
    for (int64_t o = 0; o < s.num_offsets; ++o) {
      const Instant asked = plus(*anchor, timeAt(s.offsets, o), 1);
      queries.push_back(plus(asked, clockOffset(s), -1).bits);
      untils.push_back(untilOf(asked));
    }
    const rbcDType number = same(s.values.dtype(), kF64) ? kF64 : kF32;
    const Array in = arrayOf(s.values.dtype(), {rows.count, channels}, values);
    const Array at = arrayOf(time_dtype_, {rows.count}, times);
    const Array query = arrayOf(time_dtype_, {s.num_offsets}, queries);
    const Array valid(kU8, {s.num_offsets});
    // A channel has a value if it does not depend on the fill value.
    const Array out[] = {Array(number, {s.num_offsets, channels}),
                         Array(number, {s.num_offsets, channels})};
    // With arrivals, the rows that exist differ from one offset to the next.
    const bool arrives = s.arrivals.ndim() != 0;
    for (int64_t o = 0; o < (arrives ? s.num_offsets : 1); ++o) {
      std::vector<uint64_t> existing = mask;
      for (int64_t i = 0; i < rows.count && arrives; ++i) {
        const bool exists_then = exists(s, rows.begin + i, untils[static_cast<size_t>(o)]);
        existing[static_cast<size_t>(i)] = exists_then ? 1 : 0;
      }
      const Array sample_mask = arrayOf(kU8, {rows.count}, existing);
      for (int k = 0; k < 2; ++k) {
        rbcResampleParams params = s.params;
        rbcTensor tensors[] = {in.tensor(),     at.tensor(),    query.tensor(),
                               out[k].tensor(), valid.tensor(), sample_mask.tensor()};
        int64_t one[] = {1, channels};
        if (arrives) {
          const auto part = [&](rbcTensor& tensor, int64_t row_bytes) {
            tensor.byte_offset += static_cast<uint64_t>(o * row_bytes);
            tensor.shape = one;
          };
          part(tensors[2], sizeOf(time_dtype_));
          part(tensors[3], channels * sizeOf(number));
          part(tensors[4], 1);
        }
        params.sample_mask = &tensors[5];
        params.outside =
            s.params.outside == RBC_OUTSIDE_FILL && !hold ? RBC_OUTSIDE_FILL : RBC_OUTSIDE_HOLD;
        params.fill_value = k + 7.25;
        params.groups = s.groups.empty() ? nullptr : s.groups.data();
        params.num_groups = static_cast<int32_t>(s.groups.size());
        static const Context cpu = cpuContext(1);
        require(rbcResample(cpu.get(), &tensors[0], &tensors[1], &tensors[2], &tensors[3],
                            &tensors[4], &params));
      }
    }
    for (int64_t o = 0; o < s.num_offsets; ++o) {
      FetchedRow& row = all[static_cast<size_t>(o)];
      row.valid = valid.get({o}) != 0;
      const Instant asked = {time_dtype_, queries[static_cast<size_t>(o)]};
      row.past = !row.valid && last && isAfter(asked, *last);
      for (int64_t d = 0; d < channels; ++d) {
        const uint64_t bits = out[0].get({o, d});
        if (bits != out[1].get({o, d})) continue;
        row.values[static_cast<size_t>(d)] =
            inRange(s, d, static_cast<double>(decodeFloat(number, bits)));
      }
    }
    return all;
  }

  // Angles that are copied unchanged do not round to the end of their range.
  static double inRange(const Stream& s, int64_t d, double x) {
    const bool plain = s.has_out && s.transforms.empty() && s.shift.ndim() == 0 &&
                       s.scale.ndim() == 0 && s.bias.ndim() == 0 && s.low.ndim() == 0 &&
                       s.high.ndim() == 0;
    for (const rbcChannelGroup& group : s.groups) {
      if (group.period == 0 || d < group.begin || d >= group.begin + group.count) continue;
      constexpr double kTurns[] = {6.283185307179586, 360, 1};
      const double end = kTurns[group.period % 3] / (group.period < 3 ? 2 : 1);
      uint64_t bits = encodeFloat(s.out_dtype, end);
      while (decodeFloat(s.out_dtype, bits) >= end) --bits;
      const auto top = static_cast<double>(decodeFloat(s.out_dtype, bits));
      if (plain && x > top && x < end) return top;
    }
    return x;
  }

  const WindowCall& call_;
  rbcDType time_dtype_ = kF32;
};

// ---- the transforms of values -------------------------------------------------------------------

// A value and a bound on its error; if unknown, it is not checked.
struct Bounded {
  long double value = 0;
  long double error = 0;
  bool known = true;
  bool certain = true;  // whether it is certainly valid
};
using Elements = std::vector<std::optional<Bounded>>;

template <class Number>
class Finish {
 public:
  Finish(const Stream& s, int64_t o) : s_(s), o_(o) {}

  Bounded normalized(Bounded x, int64_t d) const {
    const auto exists = [](const Array& array) { return array.ndim() != 0; };
    if (exists(s_.shift) || exists(s_.scale) || exists(s_.bias)) {
      const Number shift = exists(s_.shift) ? at(s_.shift, d) : Number(0);
      const Number scale = exists(s_.scale) ? at(s_.scale, d) : Number(1);
      Number y = static_cast<Number>(x.value) - shift;
      const bool divides = s_.fields.flags == RBC_WINDOWS_FLAG_SCALE_DIVIDES;
      y = divides ? y / scale : y * scale;
      if (exists(s_.bias)) y = y + at(s_.bias, d);
      if (x.error != 0) {
        const long double factor = std::fabs(divides ? 1 / static_cast<long double>(scale) : scale);
        x.error = x.error * factor + 8 * std::numeric_limits<Number>::epsilon() *
                                         (std::fabs(x.value) + 4) * (factor + 1);
      }
      x.value = y;
    }
    if (exists(s_.low) && x.value < at(s_.low, d)) x.value = at(s_.low, d);
    if (exists(s_.high) && x.value > at(s_.high, d)) x.value = at(s_.high, d);
    return x;
  }
  Bounded neutral(int64_t d) const {
    return {s_.neutral.ndim() != 0 ? at(s_.neutral, d) : Number(0), 0, true};
  }

 private:
  Number at(const Array& array, int64_t d) const {
    const uint64_t bits = array.ndim() == 2 ? array.get({o_, d}) : array.get({d});
    return static_cast<Number>(decodeFloat(array.dtype(), bits));
  }
  const Stream& s_;
  const int64_t o_;
};

bool inDouble(rbcDType dtype) { return !same(dtype, kF32) && dtype.bits >= 32; }

bool computesInDouble(const WindowCall& call, const Stream& s) {
  bool wide = inDouble(s.values.dtype());
  for (const rbcWindowsTransform& t : s.transforms) {
    if (t.kind == RBC_WINDOWS_TRANSFORM_COPY) continue;
    wide = wide ||
           inDouble(call.streams[static_cast<size_t>(t.reference_stream_index)].values.dtype());
  }
  return wide;
}

template <class Number>
Number subtracted(double x, double reference, bool inverse) {
  const auto a = static_cast<Number>(x);
  const auto b = static_cast<Number>(reference);
  return inverse ? a + b : a - b;
}

std::optional<std::vector<double>> channelsOf(const FetchedRow& row, int64_t begin, int64_t count) {
  std::vector<double> values;
  for (int64_t d = begin; d < begin + count; ++d) {
    const std::optional<double>& x = row.values[static_cast<size_t>(d)];
    if (!x) return {};
    values.push_back(*x);
  }
  return values;
}

std::optional<QuadPose> poseAt(const FetchedRow& row, int64_t begin, int32_t rotation) {
  const Representation from = representationOf(rotation);
  const auto values = channelsOf(row, begin, 3 + channelsOf(from));
  if (!values) return {};
  return readPose(from, values->data());
}

// The transform of all offsets of a window: [offset][channel].
template <class Number>
std::vector<Elements> transformed(const Reference& reference, const WindowCall& call,
                                  const Stream& s, const rbcWindowsTransform& t, size_t n,
                                  int64_t b, const std::vector<FetchedRow>& rows) {
  std::vector<Elements> all(rows.size());
  const bool inverse = (t.flags & RBC_WINDOWS_TRANSFORM_FLAG_INVERSE) != 0;
  FetchedRow origin;
  if (t.kind != RBC_WINDOWS_TRANSFORM_COPY) {
    const auto stream = static_cast<size_t>(t.reference_stream_index);
    origin = reference.fetch(stream, b, true)[static_cast<size_t>(t.reference_offset_index)];
  }
  if (t.kind <= RBC_WINDOWS_TRANSFORM_SUBTRACT) {
    for (size_t o = 0; o < rows.size(); ++o) {
      for (int64_t i = 0; i < t.count; ++i) {
        std::optional<Bounded> y;
        const auto& x = rows[o].values[static_cast<size_t>(t.begin + i)];
        if (x && t.kind == RBC_WINDOWS_TRANSFORM_COPY) y = Bounded{*x, 0, true};
        if (x && t.kind == RBC_WINDOWS_TRANSFORM_SUBTRACT) {
          const auto& r = origin.values[static_cast<size_t>(t.reference_begin + i)];
          if (r) y = Bounded{subtracted<Number>(*x, *r, inverse), 0, true};
        }
        all[o].push_back(y);
      }
    }
    return all;
  }
  const Representation to = representationOf(t.out_rotation);
  const auto missing = static_cast<size_t>(3 + channelsOf(to));
  const bool step = t.kind == RBC_WINDOWS_TRANSFORM_SE3_STEP;
  const std::vector<FetchedRow> held = step ? reference.fetch(n, b, true) : rows;
  std::optional<QuadPose> from = poseAt(origin, t.reference_begin, t.reference_rotation);
  for (size_t o = 0; o < rows.size(); ++o) {
    std::optional<QuadPose> pose = poseAt(rows[o], t.begin, t.rotation);
    if (step && !inverse && o > 0) from = poseAt(held[o - 1], t.begin, t.rotation);
    std::optional<QuadPose> result;
    if (from && pose) result = inverse ? joined(t.kind, *from, *pose) : taken(t.kind, *from, *pose);
    if (step && inverse) from = result;
    if (!result) {
      all[o].resize(missing);
      continue;
    }
    for (const BoundedQuad& x : writePose(to, *result)) {
      Bounded y = {static_cast<long double>(x.value), static_cast<long double>(x.error), x.known,
                   result->certain};
      if (y.error == 0 || !std::isfinite(y.value)) {
        y.value = static_cast<Number>(static_cast<double>(x.value));
      } else {
        y.error += std::fabs(y.value) * std::numeric_limits<Number>::epsilon();
        y.known = y.known && std::fabs(y.value) < 1e37L;
      }
      all[o].push_back(y);
    }
  }
  static_cast<void>(s);
  static_cast<void>(call);
  return all;
}

bool isExact(rbcDType dtype, const Bounded& x) {
  return !isFloat(dtype) || x.error == 0 || !std::isfinite(x.value);
}

// Whether an element is right.
bool isRight(rbcDType dtype, uint64_t got, const std::optional<Bounded>& expected,
             double fill_value) {
  if (!expected) return got == encode(dtype, fill_value);
  if (!expected->known) return true;
  if (isExact(dtype, *expected)) return got == encode(dtype, expected->value);
  const int64_t low = orderOf(dtype, encodeFloat(dtype, expected->value - expected->error));
  const int64_t high = orderOf(dtype, encodeFloat(dtype, expected->value + expected->error));
  const int64_t order = orderOf(dtype, got);
  return low <= order && order <= high && !std::isnan(decodeFloat(dtype, got));
}

// Checks one element; "" if it is right.
std::string wrong(rbcDType dtype, uint64_t got, const std::optional<Bounded>& expected,
                  double fill_value) {
  if (isRight(dtype, got, expected, fill_value)) return "";
  std::ostringstream text;  // which takes longer to make than the check
  if (!expected) {
    text << "is not the fill value " << fill_value;
  } else {
    text << "expected " << static_cast<double>(expected->value);
    if (!isExact(dtype, *expected)) text << " +- " << static_cast<double>(expected->error);
  }
  if (isFloat(dtype)) text << ", got " << static_cast<double>(decodeFloat(dtype, got));
  return text.str();
}

template <class Number>
std::string firstErrorOf(const Reference& reference, const WindowCall& call, size_t n,
                         const Bits* valid, const Bits* out) {
  const Stream& s = call.streams[n];
  const auto offsets = static_cast<size_t>(s.num_offsets);
  const auto channels = static_cast<size_t>(s.out_channels);
  for (int64_t b = 0; b < call.windows; ++b) {
    const std::vector<FetchedRow> rows = reference.fetch(n, b, false);
    std::vector<Elements> elements(offsets);
    for (const rbcWindowsTransform& t : coverOf(s)) {
      const auto part = transformed<Number>(reference, call, s, t, n, b, rows);
      for (size_t o = 0; o < offsets; ++o) {
        elements[o].insert(elements[o].end(), part[o].begin(), part[o].end());
      }
    }
    for (size_t o = 0; o < offsets; ++o) {
      const size_t at = static_cast<size_t>(b) * offsets + o;
      const Finish<Number> finish(s, static_cast<int64_t>(o));
      bool is_valid = rows[o].valid;
      bool certain = true;
      for (size_t d = 0; d < channels; ++d) {
        std::optional<Bounded> x = elements[o][d];
        is_valid = is_valid && x;
        certain = certain && (!x || x->certain);
        const auto channel = static_cast<int64_t>(d);
        if (x) {
          const bool neutral =
              s.params.outside == RBC_OUTSIDE_NEUTRAL && rows[o].past &&
              (s.neutral_channels.ndim() == 0 || s.neutral_channels.get({channel}) != 0);
          if (!neutral && isFloat(s.out_dtype)) x = finish.normalized(*x, channel);
          if (neutral && x->certain) x = finish.neutral(channel);
        }
        if (out == nullptr) continue;
        const uint64_t got = (*out)[at * channels + d];
        std::string error;
        if (x && !isFloat(s.out_dtype)) {  // unchanged: 64-bit integers do not fit in a double
          const bool neutral =
              s.params.outside == RBC_OUTSIDE_NEUTRAL && rows[o].past && x->value == 0;
          const uint64_t is = s.values.get({rows[o].row, channel});
          error = got == is || (neutral && got == 0) ? "" : "is not the element itself";
        } else {
          error = wrong(s.out_dtype, got, x, s.params.fill_value);
        }
        if (error.empty()) continue;
        std::ostringstream text;
        text << "streams[" << n << "] window " << b << " offset " << o << " channel " << d << ": "
             << error;
        return text.str();
      }
      if (valid != nullptr && certain && (*valid)[at] != (is_valid ? 1 : 0)) {
        std::ostringstream text;
        text << "streams[" << n << "] window " << b << " offset " << o << ": valid is "
             << (*valid)[at];
        return text.str();
      }
    }
  }
  return "";
}

std::string firstErrorOfNumbers(const Reference& reference, const WindowCall& call, size_t n,
                                const Bits* valid, const Bits* out) {
  const Stream& s = call.streams[n];
  for (int64_t b = 0; b < call.windows; ++b) {
    const std::vector<FetchedRow> rows = reference.fetch(n, b, false);
    for (size_t o = 0; o < rows.size(); ++o) {
      const size_t at = static_cast<size_t>(b) * rows.size() + o;
      const int64_t number =
          rows[o].row >= 0 ? rows[o].row : static_cast<int64_t>(s.params.fill_value);
      const bool right = (out == nullptr || static_cast<int64_t>((*out)[at]) == number) &&
                         (valid == nullptr || (*valid)[at] == (rows[o].valid ? 1 : 0));
      if (!right) {
        return "streams[" + std::to_string(n) + "] window " + std::to_string(b) + " offset " +
               std::to_string(o) + ": expected row " + std::to_string(number);
      }
    }
  }
  return "";
}

}  // namespace

std::string firstError(const WindowCall& call, const WindowResult& result) {
  const Reference reference(call);
  size_t next = 0;
  for (size_t n = 0; n < call.streams.size(); ++n) {
    const Stream& s = call.streams[n];
    const Bits* valid = s.has_valid ? &result.written[next++] : nullptr;
    const Bits* out = s.has_out ? &result.written[next++] : nullptr;
    const auto check = s.values.ndim() == 0        ? firstErrorOfNumbers
                       : computesInDouble(call, s) ? firstErrorOf<double>
                                                   : firstErrorOf<float>;
    const std::string error = check(reference, call, n, valid, out);
    if (!error.empty()) return error;
  }
  return "";
}

}  // namespace support
