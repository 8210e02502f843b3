// A number as the unevaluated sum of two doubles: about 104 bits, for formulas in which
// cancellation would lose 53. Such formulas are written once, for double and for DoubleDouble.
#if !defined(RBC_MATH_DOUBLE_DOUBLE_H) || defined(RBC_FORMULAS_AGAIN)
#define RBC_MATH_DOUBLE_DOUBLE_H

#include <cmath>

#include "number.h"

namespace RBC_FORMULAS {

// The head is the rounded sum. Sums are off by 2^-104 of the larger summand, other results by that
// part of the result.
struct DoubleDouble {
  DoubleDouble() = default;
  RBC_HD DoubleDouble(double value) : head(value), tail(0) {}
  RBC_HD DoubleDouble(double head, double tail) : head(head), tail(tail) {}

  double head;
  double tail;
};

namespace detail {

// a + b for |a| >= |b|.
RBC_HD DoubleDouble sumOfOrdered(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

}  // namespace detail

RBC_HD DoubleDouble exactSum(double a, double b) {
  const double sum = a + b;
  const double of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}

RBC_HD DoubleDouble exactProduct(double a, double b) {
  const double product = a * b;
  return {product, mulAdd(a, b, -product)};
}

RBC_HD DoubleDouble operator-(DoubleDouble a) { return {-a.head, -a.tail}; }
RBC_HD DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble heads = exactSum(a.head, b.head);
  return detail::sumOfOrdered(heads.head, heads.tail + (a.tail + b.tail));
}
RBC_HD DoubleDouble operator-(DoubleDouble a, DoubleDouble b) { return a + -b; }
RBC_HD DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble heads = exactProduct(a.head, b.head);
  return detail::sumOfOrdered(heads.head,
                              mulAdd(a.head, b.tail, mulAdd(a.tail, b.head, heads.tail)));
}
RBC_HD DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
  const double quotient = a.head / b.head;
  const DoubleDouble rest = a - b * DoubleDouble(quotient);
  return detail::sumOfOrdered(quotient, rest.head / b.head);
}

RBC_HD double squareRoot(double x) { return std::sqrt(x); }
RBC_HD DoubleDouble squareRoot(DoubleDouble x) {
  const double root = std::sqrt(x.head);
  const DoubleDouble rest = x - exactProduct(root, root);
  return detail::sumOfOrdered(root, root > 0 ? rest.head / (2 * root) : 0.0);
}

// x * 2^n, for power = 2^n.
RBC_HD double scaled(double x, double power) { return x * power; }
RBC_HD DoubleDouble scaled(DoubleDouble x, double power) {
  return {x.head * power, x.tail * power};
}

RBC_HD double head(double x) { return x; }
RBC_HD double head(DoubleDouble x) { return x.head; }

// Converts to the type of the second argument.
RBC_HD double as(DoubleDouble x, double) { return x.head; }
RBC_HD DoubleDouble as(DoubleDouble x, DoubleDouble) { return x; }

// a b - c d. In double within 1.5 units in the last place, also if the products cancel.
RBC_HD double differenceOfProducts(double a, double b, double c, double d) {
  const double cd = c * d;
  return mulAdd(a, b, -cd) - mulAdd(c, d, -cd);
}
RBC_HD DoubleDouble differenceOfProducts(DoubleDouble a, DoubleDouble b, DoubleDouble c,
                                         DoubleDouble d) {
  return a * b - c * d;
}

}  // namespace RBC_FORMULAS

#endif
