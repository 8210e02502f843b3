// Matrices of rotations with 113 bits, from quaternions, rotation vectors and columns, and back.
#include "support/quad_rotation.h"

namespace support {

QuadMatrix product(const QuadMatrix& a, const QuadMatrix& b) {
  QuadMatrix c = {};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 3; ++k) c.m[i][j] += a.m[i][k] * b.m[k][j];
    }
  }
  return c;
}

QuadMatrix transposed(const QuadMatrix& a) {
  QuadMatrix t;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) t.m[i][j] = a.m[j][i];
  }
  return t;
}

QuadMatrix aboutAxis(int axis, Quad angle) {
  const int next = (axis + 1) % 3;
  const int last = (axis + 2) % 3;
  Quad s;
  Quad c;
  sineCosine(angle, &s, &c);
  QuadMatrix r = {};
  r.m[axis][axis] = 1;
  r.m[next][next] = r.m[last][last] = c;
  r.m[last][next] = s;
  r.m[next][last] = -s;
  return r;
}

QuadMatrix ofQuaternion(Quad w, Quad x, Quad y, Quad z) {
  const Quad n = w * w + x * x + y * y + z * z;
  return {
      {{(w * w + x * x - y * y - z * z) / n, 2 * (x * y - w * z) / n, 2 * (x * z + w * y) / n},
       {2 * (x * y + w * z) / n, (w * w - x * x + y * y - z * z) / n, 2 * (y * z - w * x) / n},
       {2 * (x * z - w * y) / n, 2 * (y * z + w * x) / n, (w * w - x * x - y * y + z * z) / n}}};
}

QuadMatrix ofRotvec(const double* v) {
  const Quad x = v[0];
  const Quad y = v[1];
  const Quad z = v[2];
  const Quad square = x * x + y * y + z * z;
  const Quad angle = squareRoot(square);
  Quad s;
  Quad c;
  sineCosine(angle / 2, &s, &c);
  const Quad a = angle == 0 ? Quad(1) : 2 * s * c / angle;     // sin / angle
  const Quad b = angle == 0 ? Quad(0.5) : 2 * s * s / square;  // (1 - cos) / angle^2
  const Quad d = 1 - 2 * s * s;
  return {{{d + b * x * x, b * x * y - a * z, b * x * z + a * y},
           {b * x * y + a * z, d + b * y * y, b * y * z - a * x},
           {b * x * z - a * y, b * y * z + a * x, d + b * z * z}}};
}

QuadMatrix ofMatrix(const double* in, int steps) {
  QuadMatrix r;
  Quad square = 0;
  for (int i = 0; i < 9; ++i) square += static_cast<Quad>(in[i]) * static_cast<Quad>(in[i]);
  const Quad size = squareRoot(square / 3);
  for (int i = 0; i < 9; ++i) r.m[i / 3][i % 3] = in[i] / size;
  for (int step = 0; step < steps; ++step) {
    QuadMatrix correction = product(transposed(r), r);
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        correction.m[i][j] = ((i == j ? 3 : 0) - correction.m[i][j]) / 2;
      }
    }
    r = product(r, correction);
  }
  return r;
}

QuadMatrix byGramSchmidt(const double (&a)[3], const double (&b)[3]) {
  Quad x[3];
  Quad y[3];
  Quad square = 0;
  for (int i = 0; i < 3; ++i) square += static_cast<Quad>(a[i]) * a[i];
  for (int i = 0; i < 3; ++i) x[i] = a[i] / squareRoot(square);
  Quad along = 0;
  for (int i = 0; i < 3; ++i) along += x[i] * b[i];
  square = 0;
  for (int i = 0; i < 3; ++i) {
    y[i] = b[i] - along * x[i];
    square += y[i] * y[i];
  }
  QuadMatrix r;
  for (int i = 0; i < 3; ++i) {
    r.m[i][0] = x[i];
    r.m[i][1] = y[i] = y[i] / squareRoot(square);
  }
  for (int i = 0; i < 3; ++i) {
    const int j = (i + 1) % 3;
    const int k = (i + 2) % 3;
    r.m[i][2] = x[j] * y[k] - x[k] * y[j];
  }
  return r;
}

QuadQuaternion quaternionOf(const QuadMatrix& r) {
  // The column of 4 q q^T with the largest entry on the diagonal.
  const auto& m = r.m;
  const Quad products[4][4] = {
      {1 + m[0][0] + m[1][1] + m[2][2], m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1]},
      {m[2][1] - m[1][2], 1 + m[0][0] - m[1][1] - m[2][2], m[0][1] + m[1][0], m[0][2] + m[2][0]},
      {m[0][2] - m[2][0], m[0][1] + m[1][0], 1 - m[0][0] + m[1][1] - m[2][2], m[1][2] + m[2][1]},
      {m[1][0] - m[0][1], m[0][2] + m[2][0], m[1][2] + m[2][1], 1 - m[0][0] - m[1][1] + m[2][2]}};
  int best = 0;
  for (int i = 1; i < 4; ++i) {
    if (products[i][i] > products[best][best]) best = i;
  }
  const Quad* column = products[best];
  Quad length = 0;
  for (int i = 0; i < 4; ++i) length += column[i] * column[i];
  length = squareRoot(length);
  for (int i = 0; i < 4; ++i) {
    if (column[i] == 0) continue;
    if (column[i] < 0) length = -length;
    break;
  }
  return {column[0] / length, {column[1] / length, column[2] / length, column[3] / length}};
}

}  // namespace support
