#include "reference.h"

#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "reference_methods.h"
#include "reference_rules.h"

namespace support {
namespace {

// ---- one element --------------------------------------------------------------------------------

bool computesInDouble(rbcDType values) {
  return same(values, kF64) || (!isFloat(values) && values.bits >= 32);
}

long double decode(rbcDType dtype, uint64_t bits) {
  if (isFloat(dtype)) return decodeFloat(dtype, bits);
  if (dtype.code != RBC_DTYPE_INT) return static_cast<long double>(bits);
  const int unused = 64 - dtype.bits;
  return static_cast<long double>(static_cast<int64_t>(bits << unused) >> unused);
}

// The expected output of a stream, element by element.
class Elements {
 public:
  Elements(const StreamInputs& in, const StreamCase& c, const SharedCase& shared)
      : in_(in), c_(c), shared_(shared), double_(computesInDouble(c.values)) {
    precision_.unit = double_ ? DBL_EPSILON / 2 : FLT_EPSILON / 2;
    precision_.times = same(shared.times, kF32) ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
    precision_.smallest = double_ ? 0x1p-1074L : 0x1p-149L;
    precision_.moderate = double_ ? 1e100L : 1e12L;
  }

  // The samples of row b that exist for a query computed at `until`: the rules ignore all others,
  // and number these from 0.
  template <class Time>
  const std::vector<int64_t>& enter(int64_t b, Time until) {
    places_.clear();
    for (int64_t i = in_.begin(b); i < in_.begin(b) + in_.count(b); ++i) {
      if (!in_.isMissing(b, i) && in_.hasArrived(b, i, until)) places_.push_back(i);
    }
    return places_;
  }

  // "", or the error of channel d of row b, for a method of the group that begins at `begin`.
  std::string error(const Answer& answer, const rbcChannelGroup& group, int64_t b, int64_t d,
                    uint64_t actual) const {
    if (answer.kind == Kind::kInvalid || isNoRotation(answer, group, b, d)) {
      return differs(encode(shared_.out, c_.fill_value), actual);
    }
    const int64_t i1 = placeOf(answer.sample[0]);
    const int64_t i2 = placeOf(answer.sample[1]);
    if (!isFloat(shared_.out)) return differs(raw(b, i1, d), actual);
    const long double v1 = value(b, i1, d);
    if (group.period != 0) return angleError(answer, group, v1, i2, d, b, actual);
    if (answer.kind == Kind::kSample) return differs(finished(v1, d), actual);

    const bool before = answer.exact.before > 0;
    const bool after = answer.exact.after > 0;
    const long double v2 = value(b, i2, d);
    const long double v[4] = {before ? value(b, placeOf(answer.sample[0] - 1), d) : v1, v1, v2,
                              after ? value(b, placeOf(answer.sample[1] + 1), d) : v1};
    if (group.method == RBC_METHOD_LINEAR) {
      const uint64_t expected = finished(stated(v1, v2, answer.weight), d);
      if (actual != expected) return differs(expected, actual);
      // Intermediate overflows have no bound to compare with.
      const long double most = double_ ? DBL_MAX : FLT_MAX;
      const long double exact = v1 + answer.exact.weight * (v2 - v1);
      if (!(std::fabs(v2 - v1) <= most && std::fabs(exact) <= most)) return "";
      return outside(linearBounds(v, answer.exact, precision_), d, actual);
    }
    if (group.method == RBC_METHOD_SLERP) return slerpError(answer, group, b, d, actual);
    // Between equal samples pchip is flat, for any neighbours.
    const bool flat = group.method == RBC_METHOD_PCHIP && v1 == v2 && std::isfinite(v1);
    const bool two = flat || group.method == RBC_METHOD_ANGLE;
    const int first = two ? 1 : 0;
    const int last = two ? 2 : 3;
    if (anyNaN(v, first, last)) return differs(formatOf(shared_.out).nan(), actual);
    if (!allModerate(v, first, last)) return "";
    constexpr Bounds (*plainAngleBounds)(const long double(&)[4], const Between&,
                                         const Precision&) = angleBounds;
    const auto boundsOf = group.method == RBC_METHOD_CUBIC   ? cubicBounds
                          : group.method == RBC_METHOD_PCHIP ? pchipBounds
                                                             : plainAngleBounds;
    return outside(boundsOf(v, answer.exact, precision_), d, actual);
  }

  // Whether channel d belongs to a quaternion of slerp, and one of its samples is zero or not
  // finite.
  bool isNoRotation(const Answer& answer, const rbcChannelGroup& group, int64_t b,
                    int64_t d) const {
    if (group.method != RBC_METHOD_SLERP || answer.kind == Kind::kInvalid) return false;
    const double w = double_ ? answer.weight : static_cast<float>(answer.weight);
    const int64_t base = d - (d - group.begin) % 4;
    for (int i = 0; i < (answer.kind == Kind::kBetween && w != 0 ? 2 : 1); ++i) {
      bool zero = true;
      for (int64_t k = base; k < base + 4; ++k) {
        const long double x = value(b, placeOf(answer.sample[i]), k);
        if (!std::isfinite(x)) return true;
        zero = zero && x == 0;
      }
      if (zero) return true;
    }
    return false;
  }

 private:
  int64_t placeOf(int64_t sample) const { return places_[static_cast<size_t>(sample)]; }
  uint64_t raw(int64_t b, int64_t i, int64_t d) const {
    return in_.values.ndim() == 3 ? in_.values.get({b, i, d}) : in_.values.get({i, d});
  }
  // In the compute type: 64-bit integers are rounded.
  long double value(int64_t b, int64_t i, int64_t d) const {
    const long double x = decode(c_.values, raw(b, i, d));
    return double_ ? static_cast<double>(x) : static_cast<float>(x);
  }
  static bool anyNaN(const long double (&v)[4], int first, int last) {
    for (int i = first; i <= last; ++i) {
      if (std::isnan(v[i])) return true;
    }
    return false;
  }
  bool allModerate(const long double (&v)[4], int first, int last) const {
    for (int i = first; i <= last; ++i) {
      if (!(std::fabs(v[i]) <= precision_.moderate)) return false;
    }
    return true;
  }

  // v1 + w (v2 - v1) in the compute type: the arithmetic stated in resample.h.
  template <class Compute>
  static long double statedIn(long double v1, long double v2, double weight) {
    const auto w = static_cast<Compute>(weight);
    if (w == 0) return v1;
    const auto a = static_cast<Compute>(v1);
    const auto b = static_cast<Compute>(v2);
    const Compute difference = b - a;
    if (std::isfinite(a) && std::isfinite(b) && !std::isfinite(difference)) {
      return std::fma(w, b, static_cast<Compute>(static_cast<Compute>(1 - w) * a));
    }
    if (std::isnan(a) || std::isnan(b)) return a + b;
    // From the left, from the right, or their common value.
    const Compute from_left = std::fma(w, difference, a);
    if (!std::isnan(from_left)) return from_left;
    const Compute from_right = std::fma(static_cast<Compute>(w - 1), difference, b);
    return std::isnan(from_right) && a == b ? a : from_right;
  }
  long double stated(long double v1, long double v2, double weight) const {
    return double_ ? statedIn<double>(v1, v2, weight) : statedIn<float>(v1, v2, weight);
  }

  // The shift or scale of a channel, rounded to the compute type.
  long double affine(const Array& array, int64_t d, long double otherwise) const {
    if (array.ndim() == 0) return otherwise;
    const long double x = decodeFloat(array.dtype(), array.get({d}));
    return double_ ? static_cast<double>(x) : static_cast<float>(x);
  }
  template <class Compute>
  long double normalizedIn(long double v, int64_t d) const {
    auto x = static_cast<Compute>(v);
    if (in_.shift.ndim() != 0) x = x - static_cast<Compute>(affine(in_.shift, d, 0));
    if (in_.scale.ndim() != 0) x = x * static_cast<Compute>(affine(in_.scale, d, 1));
    return x;
  }
  // The bits of an interpolated value in the output.
  uint64_t finished(long double v, int64_t d) const {
    return encodeFloat(shared_.out,
                       double_ ? normalizedIn<double>(v, d) : normalizedIn<float>(v, d));
  }

  // 2 pi rounded to f64 is out of the range as well.
  static long double endOf(const AngleRange& range) {
    return static_cast<double>(range.begin + range.length);
  }
  // The range of a period: both the compute type and the dtype of out must exclude its end.
  AngleRange rangeOf(int32_t period) const {
    constexpr long double kTurns[] = {6.283185307179586476925286766559L, 360, 1};
    AngleRange range = {0, kTurns[period % 3], 0};
    if (period < RBC_PERIOD_RADIANS_POSITIVE) range.begin = -range.length / 2;
    const long double end = endOf(range);
    const auto below = [&](rbcDType dtype) {
      uint64_t bits = encodeFloat(dtype, end);
      while (decodeFloat(dtype, bits) >= end) --bits;
      return decodeFloat(dtype, bits);
    };
    // Normalized values are rounded later, and have no range.
    const bool none = in_.shift.ndim() == 0 && in_.scale.ndim() == 0;
    range.top = below(double_ ? kF64 : kF32);
    if (none) range.top = std::fmin(range.top, below(shared_.out));
    return range;
  }

  std::string angleError(const Answer& answer, const rbcChannelGroup& group, long double v1,
                         int64_t i2, int64_t d, int64_t b, uint64_t actual) const {
    const AngleRange range = rangeOf(group.period);
    const long double end = endOf(range);
    const double w = double_ ? answer.weight : static_cast<float>(answer.weight);
    if (answer.kind == Kind::kSample || w == 0) {
      return differs(finished(v1 < end ? std::fmin(v1, range.top) : v1, d), actual);
    }
    const long double v[4] = {v1, v1, value(b, i2, d), v1};
    if (anyNaN(v, 1, 2)) return differs(formatOf(shared_.out).nan(), actual);
    const long double got = decodeFloat(shared_.out, actual);
    const bool none = in_.shift.ndim() == 0 && in_.scale.ndim() == 0;
    if (none && (got < range.begin || got >= end)) return " is outside of the range of its period";
    if (!allModerate(v, 1, 2)) return "";
    return outside(angleBounds(v, answer.exact, precision_, range), d, actual);
  }

  std::string slerpError(const Answer& answer, const rbcChannelGroup& group, int64_t b, int64_t d,
                         uint64_t actual) const {
    const int64_t base = d - (d - group.begin) % 4;
    long double q1[4];
    long double q2[4];
    for (int64_t k = 0; k < 4; ++k) {
      q1[k] = value(b, placeOf(answer.sample[0]), base + k);
      q2[k] = value(b, placeOf(answer.sample[1]), base + k);
    }
    if (!allModerate(q1, 0, 3) || !allModerate(q2, 0, 3)) return "";
    const Bounds bounds = slerpBounds(q1, q2, static_cast<int>(d - base), answer.exact, precision_);
    return bounds.count == 0 ? "" : outside(bounds, d, actual);
  }

  // "" if the element is within one of the bounds, after shift and scale.
  std::string outside(const Bounds& bounds, int64_t d, uint64_t actual) const {
    const long double shift = affine(in_.shift, d, 0);
    const long double scale = affine(in_.scale, d, 1);
    const bool none = in_.shift.ndim() == 0 && in_.scale.ndim() == 0;
    if (!std::isfinite(shift) || !std::isfinite(scale)) return "";
    const bool nan = actual == formatOf(shared_.out).nan();
    const int64_t order = orderOf(shared_.out, actual);
    for (int i = 0; i < bounds.count; ++i) {
      const long double exact = (bounds.bound[i].value - shift) * scale;
      if (std::fabs(exact) > (double_ ? DBL_MAX : FLT_MAX)) return "";  // overflows, or nearly
      const long double lost = none ? 0
                                    : 3 * precision_.unit * std::fabs(exact) +
                                          2 * precision_.smallest * (1 + std::fabs(scale));
      const long double error = bounds.bound[i].error * std::fabs(scale) * 1.01L + lost;
      if (!nan && order >= orderOf(shared_.out, encodeFloat(shared_.out, exact - error)) &&
          order <= orderOf(shared_.out, encodeFloat(shared_.out, exact + error)))
        return "";
    }
    char text[256];
    std::snprintf(text, sizeof text, " is 0x%llx (%.9Lg), expected %.9Lg give or take %.3Lg",
                  static_cast<unsigned long long>(actual), decodeFloat(shared_.out, actual),
                  (bounds.bound[0].value - shift) * scale, bounds.bound[0].error * scale);
    return text;
  }

  std::string differs(uint64_t expected, uint64_t actual) const {
    if (actual == expected) return "";
    char text[256];
    if (isFloat(shared_.out)) {
      std::snprintf(text, sizeof text, " is 0x%llx (%.9Lg), expected 0x%llx (%.9Lg)",
                    static_cast<unsigned long long>(actual), decodeFloat(shared_.out, actual),
                    static_cast<unsigned long long>(expected), decodeFloat(shared_.out, expected));
    } else {
      std::snprintf(text, sizeof text, " is 0x%llx, expected 0x%llx",
                    static_cast<unsigned long long>(actual),
                    static_cast<unsigned long long>(expected));
    }
    return text;
  }

  const StreamInputs& in_;
  const StreamCase& c_;
  const SharedCase& shared_;
  const bool double_;
  Precision precision_;
  std::vector<int64_t> places_;  // of the current row
};

// ---- the whole output ---------------------------------------------------------------------------

template <class Time>
Time timeAt(const Array& times, int64_t b, int64_t i) {
  const uint64_t bits = times.ndim() == 2 ? times.get({b, i}) : times.get({i});
  Time t;
  std::memcpy(&t, &bits, sizeof t);
  return t;
}

struct StreamOfCase {
  const StreamCase* c;
  const StreamInputs* in;
};

// The answers to one query by every method of a stream, each computed once.
template <class Time>
class AnswersTo {
 public:
  AnswersTo(const StreamCase& c, const std::vector<Time>& times, Time q, bool valid)
      : c_(c), times_(times), q_(reference::onClock(q, c)), valid_(valid) {}

  const Answer& by(const rbcChannelGroup& group) {
    const bool causal = (group.flags & RBC_FLAG_CAUSAL) != 0;
    const double unit = std::is_integral_v<Time> ? kPeriod * 1e9 : kPeriod;
    const double max_age = c_.groups.empty() ? c_.max_age * unit : group.max_age;
    std::optional<Answer>& answer = known_[{group.method, causal, max_age}];
    if (!answer && !valid_) answer = reference::invalid();
    if (!answer) {
      answer = reference::answerTo(
          times_, q_,
          {group.method, c_.outside, c_.max_gap * unit, c_.tolerance * unit, causal, max_age});
    }
    return *answer;
  }

 private:
  const StreamCase& c_;
  const std::vector<Time>& times_;
  const Time q_;
  const bool valid_;
  std::map<std::tuple<int32_t, bool, double>, std::optional<Answer>> known_;
};

template <class Time>
std::string firstErrorOf(const SharedCase& c, const SharedInputs& shared,
                         const std::vector<StreamOfCase>& streams, const Output& output) {
  int64_t channels = 0;
  for (const StreamOfCase& stream : streams) channels += stream.c->channels;
  const auto N = static_cast<int64_t>(streams.size());
  const int64_t rows = c.batch * c.queries;
  if (output.out.size() != static_cast<size_t>(rows * channels)) return "out: wrong size";
  if (output.mask.size() != static_cast<size_t>(c.mask ? rows * N : 0)) return "mask: wrong size";
  int64_t first_channel = 0;
  for (int64_t n = 0; n < N; ++n) {
    const StreamCase& own = *streams[static_cast<size_t>(n)].c;
    const StreamInputs& in = *streams[static_cast<size_t>(n)].in;
    Elements elements(in, own, c);
    const std::vector<rbcChannelGroup> segments = own.segments();
    for (int64_t b = 0; b < c.batch; ++b) {
      std::vector<Time> t;
      for (int64_t k = 0; k < c.queries; ++k) {
        const Time q = timeAt<Time>(shared.query_times, b, k);
        if (k == 0 || in.arrivals.ndim() != 0) {
          t.clear();
          for (const int64_t place : elements.enter(b, reference::untilOf(q, c))) {
            t.push_back(timeAt<Time>(in.times, b, place));
          }
        }
        AnswersTo<Time> answers(own, t, q, k < shared.queryCount(b));
        const int64_t row = b * c.queries + k;
        const std::string where = "[" + std::to_string(b) + "," + std::to_string(k) + ",";
        bool mask = true;
        for (const rbcChannelGroup& segment : segments) {
          const Answer& answer = answers.by(segment);
          mask = mask && answer.mask;
          for (int64_t d = segment.begin; d < segment.begin + segment.count; ++d) {
            mask = mask && !elements.isNoRotation(answer, segment, b, d);
            const int64_t at = first_channel + d;
            const std::string error = elements.error(
                answer, segment, b, d, output.out[static_cast<size_t>(row * channels + at)]);
            if (error.empty()) continue;
            return "out" + where + std::to_string(at) + "] (stream " + std::to_string(n) + ", " +
                   methodName(segment.method) + ")" + error;
          }
        }
        if (!c.mask) continue;
        const uint64_t got = output.mask[static_cast<size_t>(row * N + n)];
        if (got != (mask ? 1u : 0u)) {
          return "mask" + where + std::to_string(n) + "] is " + std::to_string(got) +
                 ", expected " + std::to_string(mask) + " (q = " + std::to_string(q) + ")";
        }
      }
    }
    first_channel += own.channels;
  }
  return "";
}

std::string firstErrorOf(const SharedCase& c, const SharedInputs& shared,
                         const std::vector<StreamOfCase>& streams, const Output& output) {
  if (same(c.times, kF32)) return firstErrorOf<float>(c, shared, streams, output);
  if (same(c.times, kF64)) return firstErrorOf<double>(c, shared, streams, output);
  return firstErrorOf<int64_t>(c, shared, streams, output);
}

}  // namespace

std::string firstError(const ResampleInputs& inputs, const Output& output) {
  return firstErrorOf(inputs.c, inputs, {{&inputs.c, &inputs}}, output);
}

std::string firstError(const FuseInputs& inputs, const Output& output) {
  std::vector<StreamOfCase> streams;
  for (size_t n = 0; n < inputs.streams.size(); ++n)
    streams.push_back({&inputs.c.streams[n], &inputs.streams[n]});
  return firstErrorOf(inputs.c, inputs, streams, output);
}

}  // namespace support
