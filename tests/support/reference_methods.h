// What lies between two samples, in long double, and how far the library may be from it.
#pragma once

#include <cstdint>

namespace support {

// What the arithmetic is done in: units are half the distance from 1 to the next number.
struct Precision {
  long double unit;      // of the compute type
  long double times;     // of the type that weights are computed in
  long double smallest;  // number of the compute type
  long double moderate;  // values up to here do not overflow on the way, whatever the method
};

// The query between its samples: weight, and the lengths of the interval around it and of those
// beside it, 0 where there is none.
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

// A few answers of which each is right: where rounding may turn either way round a circle.
struct Bounds {
  static constexpr int kMost = 8;
  int count = 0;
  Bound bound[kMost];

  void add(long double value, long double error) {
    if (count < kMost) bound[count++] = {value, error};
  }
};

// v holds the samples v0 .. v3; v0 and v3 count only where there is an interval to them.
Bounds linearBounds(const long double (&v)[4], const Between& t, const Precision& p);
Bounds cubicBounds(const long double (&v)[4], const Between& t, const Precision& p);
Bounds pchipBounds(const long double (&v)[4], const Between& t, const Precision& p);
Bounds angleBounds(const long double (&v)[4], const Between& t, const Precision& p);

// Where angles of a period are kept, [begin, begin + length), and the largest number that results
// may have: that of their dtype below the end.
struct AngleRange {
  long double begin;
  long double length;
  long double top;
};
Bounds angleBounds(const long double (&v)[4], const Between& t, const Precision& p,
                   const AngleRange& range);

// Of component `i`. None if the quaternions cannot be normalized.
Bounds slerpBounds(const long double (&q1)[4], const long double (&q2)[4], int i, const Between& t,
                   const Precision& p);

}  // namespace support
