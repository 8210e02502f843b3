// Rotations with 113 bits as matrices, by the textbook's formulas.
#pragma once

#include "quad.h"

namespace support {

struct QuadMatrix {
  Quad m[3][3];
};

struct QuadQuaternion {
  Quad w, v[3];
};

QuadMatrix product(const QuadMatrix& a, const QuadMatrix& b);
QuadMatrix transposed(const QuadMatrix& a);
QuadMatrix aboutAxis(int axis, Quad angle);

QuadMatrix ofQuaternion(Quad w, Quad x, Quad y, Quad z);
// Rodrigues' formula.
QuadMatrix ofRotvec(const double* v);
// The nearest rotation by Newton and Schulz's iteration, for singular values not far from each
// other.
QuadMatrix ofMatrix(const double* in, int steps);
// From two columns.
QuadMatrix byGramSchmidt(const double (&a)[3], const double (&b)[3]);

QuadQuaternion quaternionOf(const QuadMatrix& r);

}  // namespace support
