#include "reference.h"

#include <cfloat>
#include <cstdio>

namespace support {
namespace {

enum class Kind { kInvalid, kSample, kLine };

// The answer to one query: nothing, a sample, or a line through two samples.
struct Answer {
  Kind kind = Kind::kInvalid;
  int64_t sample[2] = {};
  bool mask = false;
  double weight = 0;  // in the arithmetic of the times' dtype
  long double exact_weight = 0;
};

Answer invalid() { return {}; }
Answer sampleAt(int64_t i, bool mask) { return {Kind::kSample, {i, i}, mask, 0, 0}; }

// ---- times --------------------------------------------------------------------------------------

// later - earlier, rounded to f32 or f64; exact for i64.
float difference(float later, float earlier) { return later - earlier; }
double difference(double later, double earlier) { return later - earlier; }
static_assert(LDBL_MANT_DIG >= 64, "long double holds every difference of two i64");
long double difference(int64_t later, int64_t earlier) {
  return static_cast<long double>(later) - static_cast<long double>(earlier);
}

long double exactDifference(long double later, long double earlier) { return later - earlier; }

// Whether a difference exceeds a limit, which is rounded to the dtype of times (i64: down).
bool exceeds(float d, double limit) { return d > static_cast<float>(limit); }
bool exceeds(double d, double limit) { return d > limit; }
bool exceeds(long double ticks, double limit) { return ticks > std::floor(limit); }

double quotient(float a, float b) { return static_cast<double>(a / b); }
double quotient(double a, double b) { return a / b; }
double quotient(long double a, long double b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

template <class Time>
Answer line(const std::vector<Time>& t, Time q, int64_t i, int64_t j, bool mask) {
  const Time a = t[static_cast<size_t>(i)];
  const Time b = t[static_cast<size_t>(j)];
  Answer answer{Kind::kLine, {i, j}, mask, 0, 0};
  answer.weight = quotient(difference(q, a), difference(b, a));
  answer.exact_weight = exactDifference(q, a) / exactDifference(b, a);
  return answer;
}

struct Rules {
  int32_t method;
  int32_t bounds;
  double max_gap;
  double tolerance;
};

// resample.h's rules 1 to 6.
template <class Time>
Answer answerTo(const std::vector<Time>& t, Time q, const Rules& rules) {
  const auto n = static_cast<int64_t>(t.size());
  const auto at = [&](int64_t i) { return t[static_cast<size_t>(i)]; };
  if (n == 0 || q != q) return invalid();  // 1
  int64_t equal = -1;
  int64_t before = -1;  // the last sample earlier than q
  int64_t after = n;    // the first one later
  for (int64_t i = 0; i < n; ++i) {
    if (at(i) == q) equal = i;
    if (at(i) < q) before = i;
    if (at(i) > q && after == n) after = i;
  }
  if (equal >= 0) return sampleAt(equal, true);  // 2

  // The sample that nearest, previous or next take, or -1.
  int64_t taken = -1;
  if (rules.method == RBC_METHOD_PREVIOUS) taken = before;
  if (rules.method == RBC_METHOD_NEXT) taken = after < n ? after : -1;
  if (rules.method == RBC_METHOD_NEAREST) {
    const bool only_after = before < 0;
    const bool only_before = after == n;
    taken = only_after                                              ? after
            : only_before                                           ? before
            : difference(q, at(before)) <= difference(at(after), q) ? before
                                                                    : after;
  }
  if (rules.method != RBC_METHOD_LINEAR && !std::isinf(rules.tolerance)) {  // 3
    if (taken < 0) return invalid();
    const auto distance = at(taken) < q ? difference(q, at(taken)) : difference(at(taken), q);
    return exceeds(distance, rules.tolerance) ? invalid() : sampleAt(taken, true);
  }
  if (before < 0 || after == n) {  // 4
    if (rules.bounds == RBC_BOUNDS_FILL) return invalid();
    if (rules.bounds == RBC_BOUNDS_HOLD) return sampleAt(before < 0 ? 0 : n - 1, false);
    // The outermost distinct times; on each side of a line stands the sample next to its inside.
    int64_t left = n - 1;
    int64_t right = 0;
    if (before < 0) {
      left = 0;
      while (left + 1 < n && at(left + 1) == at(0)) ++left;
      right = left + 1;
    } else {
      right = n - 1;
      while (right > 0 && at(right - 1) == at(n - 1)) --right;
      left = right - 1;
    }
    return left < 0 || right >= n ? invalid() : line(t, q, left, right, false);
  }
  if (!std::isinf(rules.max_gap) && exceeds(difference(at(after), at(before)), rules.max_gap)) {
    return invalid();  // 5
  }
  if (rules.method != RBC_METHOD_LINEAR) return sampleAt(taken, true);  // 6
  return line(t, q, before, after, true);
}

// ---- values -------------------------------------------------------------------------------------

// v0 + w (v1 - v0) in the compute type: the arithmetic that resample.h states.
template <class Compute>
long double stated(long double v0, long double v1, double weight) {
  const auto w = static_cast<Compute>(weight);
  if (w == 0) return v0;
  const auto a = static_cast<Compute>(v0);
  const auto b = static_cast<Compute>(v1);
  return std::fma(w, static_cast<Compute>(b - a), a);
}

// Where the exact line lies, give or take what that arithmetic may lose.
struct Interval {
  long double low;
  long double high;
};

Interval boundOf(long double v0, long double v1, const Answer& answer, rbcDType times,
                 bool compute_f64) {
  const long double compute_unit = compute_f64 ? DBL_EPSILON / 2 : FLT_EPSILON / 2;
  const long double time_unit = same(times, kF32) ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
  const long double smallest = compute_f64 ? 0x1p-1074L : 0x1p-149L;
  const long double exact = v0 + answer.exact_weight * (v1 - v0);
  // Two differences and a division of times; then the weight, the difference of values, the sum.
  const long double relative = 1.01L * (3 * time_unit + 2 * compute_unit);
  const long double error = std::fabs(answer.exact_weight * (v1 - v0)) * relative +
                            std::fabs(exact) * compute_unit * 1.01L +
                            2 * smallest * (1 + std::fabs(v1 - v0));
  return {exact - error, exact + error};
}

// "" or what is wrong with one element.
std::string elementError(const ResampleInputs& in, const Answer& answer, long double v0,
                         long double v1, uint64_t raw, uint64_t actual) {
  const ResampleCase& c = in.c;
  uint64_t expected = 0;
  std::string error;
  if (answer.kind == Kind::kInvalid) {
    expected = encode(c.out, c.fill_value);
  } else if (!isFloat(c.out)) {
    expected = raw;
  } else if (answer.kind == Kind::kSample) {
    expected = encodeFloat(c.out, v0);
  } else {
    const bool compute_f64 = same(c.values, kF64);
    const long double result =
        compute_f64 ? stated<double>(v0, v1, answer.weight) : stated<float>(v0, v1, answer.weight);
    expected = encodeFloat(c.out, result);
    // What overflows on the way has no bound to be held against.
    const long double most = compute_f64 ? DBL_MAX : FLT_MAX;
    if (std::isfinite(result) && std::fabs(v1 - v0) <= most && std::isfinite(answer.weight)) {
      const Interval bound = boundOf(v0, v1, answer, c.times, compute_f64);
      const int64_t order = orderOf(c.out, actual);
      if (order < orderOf(c.out, encodeFloat(c.out, bound.low)) ||
          order > orderOf(c.out, encodeFloat(c.out, bound.high))) {
        error = " is outside the bound of the exact result;";
      }
    }
  }
  if (actual == expected && error.empty()) return "";
  char text[256];
  if (isFloat(c.out)) {
    std::snprintf(text, sizeof text, "%s is 0x%llx (%.9Lg), expected 0x%llx (%.9Lg)", error.c_str(),
                  static_cast<unsigned long long>(actual), decodeFloat(c.out, actual),
                  static_cast<unsigned long long>(expected), decodeFloat(c.out, expected));
  } else {
    std::snprintf(text, sizeof text, " is 0x%llx, expected 0x%llx",
                  static_cast<unsigned long long>(actual),
                  static_cast<unsigned long long>(expected));
  }
  return text;
}

// ---- the whole output ---------------------------------------------------------------------------

template <class Time>
Time timeAt(const Array& times, int64_t b, int64_t i) {
  const uint64_t bits = times.ndim() == 2 ? times.get({b, i}) : times.get({i});
  Time t;
  std::memcpy(&t, &bits, sizeof t);
  return t;
}

template <class Time>
std::string firstErrorFor(const ResampleInputs& in, const ResampleOutput& output) {
  const ResampleCase& c = in.c;
  const double unit = same(c.times, kI64) ? detail::kPeriod * 1e9 : detail::kPeriod;
  const Rules rules = {c.method, c.bounds, c.max_gap * unit, c.tolerance * unit};
  const auto B = c.batch;
  if (output.out.size() != static_cast<size_t>(B * c.queries * c.channels))
    return "out: wrong size";
  if (output.mask.size() != static_cast<size_t>(c.mask ? B * c.queries : 0))
    return "mask: wrong size";
  size_t next = 0;
  size_t next_mask = 0;
  for (int64_t b = 0; b < B; ++b) {
    const int64_t begin = in.begin(b);
    std::vector<Time> t;
    for (int64_t i = 0; i < in.count(b); ++i) t.push_back(timeAt<Time>(in.times, b, begin + i));
    for (int64_t k = 0; k < c.queries; ++k) {
      const Time q = timeAt<Time>(in.query_times, b, k);
      const Answer answer = k < in.queryCount(b) ? answerTo(t, q, rules) : invalid();
      const std::string where = "[" + std::to_string(b) + "," + std::to_string(k);
      if (c.mask && output.mask[next_mask++] != (answer.mask ? 1u : 0u)) {
        return "mask" + where + "] is " + std::to_string(output.mask[next_mask - 1]) +
               ", expected " + std::to_string(answer.mask) + " (q = " + std::to_string(q) + ")";
      }
      for (int64_t d = 0; d < c.channels; ++d) {
        uint64_t raw[2] = {};
        long double v[2] = {};
        for (int side = 0; side < 2 && answer.kind != Kind::kInvalid; ++side) {
          const int64_t i = begin + answer.sample[side];
          raw[side] = in.values.ndim() == 3 ? in.values.get({b, i, d}) : in.values.get({i, d});
          if (isFloat(c.values)) v[side] = decodeFloat(c.values, raw[side]);
        }
        const std::string error = elementError(in, answer, v[0], v[1], raw[0], output.out[next++]);
        if (!error.empty()) return "out" + where + "," + std::to_string(d) + "]" + error;
      }
    }
  }
  return "";
}

}  // namespace

std::string firstError(const ResampleInputs& inputs, const ResampleOutput& output) {
  if (same(inputs.c.times, kF32)) return firstErrorFor<float>(inputs, output);
  if (same(inputs.c.times, kF64)) return firstErrorFor<double>(inputs, output);
  return firstErrorFor<int64_t>(inputs, output);
}

}  // namespace support
