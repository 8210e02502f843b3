// The exact value between two samples, in long double, and a bound on the library's error.
#pragma once

#include <cstdint>

namespace support {

// The precision of the arithmetic: units are half the distance from 1 to the next number.
struct Precision {
  long double unit;      // of the compute type
  long double times;     // of the type of the weights
  long double smallest;  // number of the compute type
  long double moderate;  // values up to here do not overflow in any method
};

// The query between its samples: weight, and the lengths of the interval around it and of the
// adjacent ones; 0 without one.
struct Between {
  long double weight;
  long double before;
  long double here;
  long double after;
};

struct Bound {
  long double value;
  long double error;
};

// Several acceptable answers: rounding may decide the direction around a circle.
struct Bounds {
  static constexpr int kMost = 8;
  int count = 0;
  Bound bound[kMost];

  void add(long double value, long double error) {
    if (count < kMost) bound[count++] = {value, error};
  }
};

// v has the samples v0 .. v3; v0 and v3 are used only if there is an interval to them.
Bounds linearBounds(const long double (&v)[4], const Between& t, const Precision& p);
Bounds cubicBounds(const long double (&v)[4], const Between& t, const Precision& p);
Bounds pchipBounds(const long double (&v)[4], const Between& t, const Precision& p);
Bounds angleBounds(const long double (&v)[4], const Between& t, const Precision& p);

// The range of angles with a period, [begin, begin + length), and the largest possible result: the
// largest number of their dtype below the end.
struct AngleRange {
  long double begin;
  long double length;
  long double top;
};
Bounds angleBounds(const long double (&v)[4], const Between& t, const Precision& p,
                   const AngleRange& range);

// For component `i`. Empty if the quaternions cannot be normalized.
Bounds slerpBounds(const long double (&q1)[4], const long double (&q2)[4], int i, const Between& t,
                   const Precision& p);

}  // namespace support
