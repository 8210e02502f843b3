// Conversions of rotations, compared with 113 bits: each test prints the largest error of each
// pair.
#include "rotation.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "real.h"
#include "support/random.h"
#include "support/rotation_reference.h"
#include "support/sanitizers.h"
#include "support/share.h"

namespace {

using rbc::EulerAxes;
using rbc::RotationFormat;
using rbc::RotationKind;
using support::Quad;
using support::QuadMatrix;
using support::Random;

constexpr double kPi = 3.141592653589793;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kKinds = 8;
constexpr const char* kNames[kKinds] = {
    "quat_xyzw",     "quat_wxyz",         "rotvec", "matrix", "rot6d_rows",
    "rot6d_columns", "rot6d_interleaved", "euler"};

RotationFormat format(RotationKind kind) { return {kind, {0, 1, 2, false}}; }
RotationFormat euler(int first, int second, int third, bool extrinsic) {
  return {RotationKind::Euler,
          {static_cast<uint8_t>(first), static_cast<uint8_t>(second), static_cast<uint8_t>(third),
           extrinsic}};
}

std::vector<RotationFormat> allEuler() {
  std::vector<RotationFormat> all;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 3; ++k) {
        if (i == j || j == k) continue;
        all.push_back(euler(i, j, k, false));
        all.push_back(euler(i, j, k, true));
      }
    }
  }
  return all;
}

// Every kind, with Euler angles in some order.
RotationFormat someFormat(int kind, Random& random) {
  static const std::vector<RotationFormat> kEuler = allEuler();
  if (kind == kKinds - 1) return kEuler[static_cast<size_t>(random.below(24))];
  return format(static_cast<RotationKind>(kind));
}

bool isAngles(RotationKind kind) {
  return kind == RotationKind::Rotvec || kind == RotationKind::Euler;
}

struct Values {
  double numbers[9] = {};
};

Values convert(const RotationFormat& from, const RotationFormat& to, const Values& in) {
  Values out;
  rbc::convertRotation(from, to, in.numbers, out.numbers);
  return out;
}

Values rounded(const std::vector<Quad>& exact) {
  Values values;
  for (size_t i = 0; i < exact.size(); ++i) values.numbers[i] = static_cast<double>(exact[i]);
  return values;
}

// The largest difference. Angles of pi and -pi are equal, and so are q and -q if rounding may
// choose: if w vanishes but is not 0.
Quad errorOf(const RotationFormat& to, const Values& got, const QuadMatrix& exact) {
  const std::vector<Quad> expected = support::writeReference(to, exact);
  Quad worst = 0;
  Quad other = 0;  // to the negated one
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(got.numbers[i])) return 1e300;
    Quad difference = support::absolute(got.numbers[i] - expected[i]);
    if (to.kind == RotationKind::Euler && difference > 3) {
      difference = support::absolute(2 * support::quadPi() - difference);
    }
    const Quad opposite = support::absolute(got.numbers[i] + expected[i]);
    if (!(difference <= worst)) worst = difference;
    if (!(opposite <= other)) other = opposite;
  }
  const bool signs = to.kind == RotationKind::QuatXyzw || to.kind == RotationKind::QuatWxyz ||
                     to.kind == RotationKind::Rotvec;
  if (!signs || other >= worst) return worst;
  const Quad w = support::quaternionOf(exact).w;
  return w != 0 && w < static_cast<Quad>(0x1p-50) ? other : worst;
}

// The largest error of each pair, in units of 2^-52 of components and 2^-51 of angles.
class Worst {
 public:
  void see(const RotationFormat& from, const RotationFormat& to, const Values& in,
           const Values& got, const QuadMatrix& exact) {
    const Quad unit = isAngles(to.kind) ? 0x1p-51 : 0x1p-52;
    const auto error = static_cast<double>(errorOf(to, got, exact) / unit);
    double& most = most_[static_cast<int>(from.kind)][static_cast<int>(to.kind)];
    if (error <= most) return;
    most = error;
    if (error <= 4) return;
    char text[400];
    std::snprintf(text, sizeof text,
                  "%s (%d%d%d%s) to %s (%d%d%d%s) is off by %.3g units: from "
                  "%.17g %.17g %.17g %.17g to %.17g %.17g %.17g %.17g",
                  kNames[static_cast<int>(from.kind)], from.axes.first, from.axes.second,
                  from.axes.third, from.axes.extrinsic ? "e" : "i",
                  kNames[static_cast<int>(to.kind)], to.axes.first, to.axes.second, to.axes.third,
                  to.axes.extrinsic ? "e" : "i", error, in.numbers[0], in.numbers[1], in.numbers[2],
                  in.numbers[3], got.numbers[0], got.numbers[1], got.numbers[2], got.numbers[3]);
    failure_ = text;
  }

  void check(const std::string& what, double bound = 4) const {
    double most = 0;
    for (int from = 0; from < kKinds; ++from) {
      std::string line = what + ", largest errors from " + kNames[from] + ":";
      bool any = false;
      for (int to = 0; to < kKinds; ++to) {
        if (most_[from][to] < 0) continue;
        any = true;
        if (most_[from][to] > most) most = most_[from][to];
        char text[60];
        std::snprintf(text, sizeof text, " %s %.2f", kNames[to], most_[from][to]);
        line += text;
      }
      if (any) MESSAGE(line);
    }
    CHECK_MESSAGE(most <= bound, failure_);
    CHECK_MESSAGE(most > bound / 8, what, ": nothing was measured, or the bound is slack");
  }

 private:
  double most_[kKinds][kKinds] = {
      {-1, -1, -1, -1, -1, -1, -1, -1}, {-1, -1, -1, -1, -1, -1, -1, -1},
      {-1, -1, -1, -1, -1, -1, -1, -1}, {-1, -1, -1, -1, -1, -1, -1, -1},
      {-1, -1, -1, -1, -1, -1, -1, -1}, {-1, -1, -1, -1, -1, -1, -1, -1},
      {-1, -1, -1, -1, -1, -1, -1, -1}, {-1, -1, -1, -1, -1, -1, -1, -1}};
  std::string failure_;
};

// A rotation by `angle` about a random axis.
QuadMatrix someRotation(Random& random, double angle) {
  double axis[3];
  double square = 0;
  do {
    square = 0;
    for (double& x : axis) {
      x = random.uniform(-1, 1);
      square += x * x;
    }
  } while (square > 1 || square < 0.01);
  const double scale = angle / std::sqrt(square);
  const double v[3] = {axis[0] * scale, axis[1] * scale, axis[2] * scale};
  return support::ofRotvec(v);
}

QuadMatrix uniformRotation(Random& random) {
  double q[4];
  double square = 0;
  do {
    square = 0;
    for (double& x : q) {
      x = random.uniform(-1, 1);
      square += x * x;
    }
  } while (square > 1 || square < 0.01);
  return support::ofQuaternion(q[0], q[1], q[2], q[3]);
}

// Converts from `from` to every kind.
void convertToAll(const RotationFormat& from, const Values& in, Random& random, Worst* worst,
                  int steps = 3) {
  const QuadMatrix exact = support::readReference(from, in.numbers, steps);
  for (int kind = 0; kind < kKinds; ++kind) {
    const RotationFormat to = someFormat(kind, random);
    worst->see(from, to, in, convert(from, to, in), exact);
  }
}

void convertMany(RotationKind kind, uint64_t seed) {
  Random random(seed);
  Worst worst;
  const uint64_t rounds = support::randomShareOf(support::kSanitized ? 10000 : 100000);
  for (uint64_t round = 0; round < rounds; ++round) {
    const RotationFormat from = someFormat(static_cast<int>(kind), random);
    const QuadMatrix rotation = uniformRotation(random);
    convertToAll(from, rounded(support::writeReference(from, rotation)), random, &worst);
  }
  worst.check("uniform rotations");
}

}  // namespace

TEST_CASE("rotation: from quaternions, x y z w") { convertMany(RotationKind::QuatXyzw, 1); }
TEST_CASE("rotation: from quaternions, w x y z") { convertMany(RotationKind::QuatWxyz, 2); }
TEST_CASE("rotation: from rotation vectors") { convertMany(RotationKind::Rotvec, 3); }
TEST_CASE("rotation: from matrices") { convertMany(RotationKind::Matrix, 4); }
TEST_CASE("rotation: from 6-D by rows") { convertMany(RotationKind::Rot6dRows, 5); }
TEST_CASE("rotation: from 6-D by columns") { convertMany(RotationKind::Rot6dColumns, 6); }
TEST_CASE("rotation: from interleaved 6-D") { convertMany(RotationKind::Rot6dInterleaved, 7); }
TEST_CASE("rotation: from Euler angles") { convertMany(RotationKind::Euler, 8); }

TEST_CASE("rotation: every order of Euler angles to every other") {
  Random random(9);
  Worst worst;
  for (const RotationFormat& from : allEuler()) {
    for (const RotationFormat& to : allEuler()) {
      for (int round = 0; round < 20; ++round) {
        const Values in = {{random.uniform(-7, 7), random.uniform(-7, 7), random.uniform(-7, 7)}};
        worst.see(from, to, in, convert(from, to, in), support::readReference(from, in.numbers));
      }
    }
  }
  worst.check("all orders");
}

TEST_CASE("rotation: angles at and near 0 and pi") {
  Random random(10);
  Worst worst;
  for (const double angle : {0.0, 1e-160, 1e-20, 1e-12, 1e-8, 1e-7, 1e-5, 1e-3, 0.1, kPi / 2,
                             kPi - 1e-3, kPi - 1e-9, kPi - 1e-15, kPi}) {
    for (int kind = 0; kind < kKinds; ++kind) {
      for (int round = 0; round < 200; ++round) {
        const RotationFormat from = someFormat(kind, random);
        const QuadMatrix rotation = someRotation(random, angle);
        convertToAll(from, rounded(support::writeReference(from, rotation)), random, &worst);
      }
    }
  }
  worst.check("near 0 and pi");
}

TEST_CASE("rotation: Euler angles near their singularity") {
  Random random(11);
  Worst worst;
  for (const RotationFormat& order : allEuler()) {
    const bool symmetric = order.axes.first == order.axes.third;
    for (const double end : {symmetric ? 0.0 : -kPi / 2, symmetric ? kPi : kPi / 2}) {
      for (const double distance : {0.0, 1e-12, 1e-9, 0.99e-7, 1.01e-7, 1e-6, 1e-4}) {
        for (const double side : {-1, 1}) {
          const Values angles = {
              {random.uniform(-kPi, kPi), end + side * distance, random.uniform(-kPi, kPi)}};
          const QuadMatrix rotation = support::readReference(order, angles.numbers);
          for (int kind = 0; kind < kKinds; ++kind) {
            const RotationFormat from =
                kind == kKinds - 1 && random.chance(0.5) ? order : someFormat(kind, random);
            const Values in = rounded(support::writeReference(from, rotation));
            const QuadMatrix exact = support::readReference(from, in.numbers);
            const Values got = convert(from, order, in);
            worst.see(from, order, in, got, exact);
            if (distance < 0.995e-7) CHECK(got.numbers[2] == 0);
            if (distance > 1.005e-7) CHECK(got.numbers[2] != 0);
          }
        }
      }
    }
  }
  worst.check("near the singularity");
}

TEST_CASE("rotation: large angles") {
  Random random(12);
  Worst worst;
  for (const double size : {10.0, 1e3, 1e6, 1e9, 1e12, 1e15}) {
    for (int round = 0; round < 500; ++round) {
      const Values in = {{size * random.uniform(-1, 1), size * random.uniform(-1, 1),
                          size * random.uniform(-1, 1)}};
      convertToAll(format(RotationKind::Rotvec), in, random, &worst);
      convertToAll(someFormat(kKinds - 1, random), in, random, &worst);
    }
  }
  worst.check("large angles");
}

TEST_CASE("rotation: quaternions of every length") {
  Random random(13);
  Worst worst;
  for (const double length : {1e-300, 1e-200, 1e-150, 1e-30, 1e-5, 3.0, 1e5, 1e30, 1e200, 1e307}) {
    for (int round = 0; round < 200; ++round) {
      Values in;
      for (int i = 0; i < 4; ++i) in.numbers[i] = length * random.uniform(-1, 1);
      convertToAll(format(RotationKind::QuatXyzw), in, random, &worst);
    }
  }
  worst.check("quaternions of every length");
  const Values largest = {{1.7e308, 1.7e308, 1.7e308, 1.7e308}};
  const Values smallest = {{5e-324, 5e-324, 5e-324, 5e-324}};
  for (const Values& in : {largest, smallest}) {
    const Values out = convert(format(RotationKind::QuatXyzw), format(RotationKind::QuatWxyz), in);
    for (int i = 0; i < 4; ++i) CHECK(out.numbers[i] == 0.5);
  }
}

TEST_CASE("rotation: 6-D of any two vectors") {
  Random random(14);
  Worst worst;
  for (int kind = static_cast<int>(RotationKind::Rot6dRows); kind < kKinds - 1; ++kind) {
    for (int round = 0; round < 3000; ++round) {
      Values in;
      for (int i = 0; i < 6; ++i) in.numbers[i] = random.uniform(-1, 1);
      if (kind == static_cast<int>(RotationKind::Rot6dRows) && round % 2 == 0) {
        // Nearly parallel, and of unlike lengths.
        const double near = std::pow(10, -random.uniform(0, 12));
        for (int i = 0; i < 3; ++i)
          in.numbers[3 + i] = 1e150 * (in.numbers[i] + near * in.numbers[3 + i]);
      }
      convertToAll(format(static_cast<RotationKind>(kind)), in, random, &worst);
    }
  }
  worst.check("6-D of any two vectors");
}

TEST_CASE("rotation: a matrix that is not a rotation becomes the nearest one") {
  Random random(15);
  Worst worst;
  const RotationFormat matrix = format(RotationKind::Matrix);
  for (const double noise : {0.0, 1e-7, 1e-3, 0.03, 0.2}) {
    for (const double factor : {1.0, 1e-200, 7.0, 1e200}) {
      for (int round = 0; round < 300; ++round) {
        Values in = rounded(support::writeReference(matrix, uniformRotation(random)));
        for (double& x : in.numbers) x = factor * (x + noise * random.uniform(-1, 1));
        convertToAll(matrix, in, random, &worst, 12);
      }
    }
  }
  worst.check("matrices with errors");
}

TEST_CASE("rotation: the smallest vectors come back") {
  const RotationFormat rotvec = format(RotationKind::Rotvec);
  const RotationFormat quaternion = format(RotationKind::QuatXyzw);
  for (const double size : {5e-324, 1e-320, 1e-310, 1e-300, 1e-160, 1e-100, 1e-20, 1e-9}) {
    const Values in = {{size, -2 * size, 3 * size}};
    const Values direct = convert(rotvec, rotvec, in);
    const Values q = convert(rotvec, quaternion, in);
    const Values back = convert(quaternion, rotvec, q);
    CHECK(q.numbers[3] == 1);
    for (int i = 0; i < 3; ++i) {
      CHECK(direct.numbers[i] == in.numbers[i]);
      CHECK(q.numbers[i] == in.numbers[i] / 2);
      if (size > 1e-307) CHECK(back.numbers[i] == in.numbers[i]);
    }
  }
}

TEST_CASE("rotation: one of two quaternions, one of two axes") {
  const RotationFormat quaternion = format(RotationKind::QuatXyzw);
  const RotationFormat rotvec = format(RotationKind::Rotvec);
  struct Case {
    Values in, quaternion, rotvec;
  };
  const Case cases[] = {
      {{{0, 0, 0, -2}}, {{0, 0, 0, 1}}, {{0, 0, 0}}},
      {{{-3, 0, 0, 0}}, {{1, 0, 0, 0}}, {{kPi, 0, 0}}},
      {{{-3, 0, 0, -0.0}}, {{1, 0, 0, 0}}, {{kPi, 0, 0}}},
      {{{0, -1, 0, 0}}, {{0, 1, 0, 0}}, {{0, kPi, 0}}},
      {{{0, 0, -1, 0}}, {{0, 0, 1, 0}}, {{0, 0, kPi}}},
      {{{0, -3, 4, 0}}, {{0, 0.6, -0.8, 0}}, {{0, 0.6 * kPi, -0.8 * kPi}}},
      {{{0, 1, 0, -1e-200}}, {{0, -1, 0, 1e-200}}, {{0, -kPi, 0}}},
  };
  for (const Case& c : cases) {
    const Values q = convert(quaternion, quaternion, c.in);
    const Values v = convert(quaternion, rotvec, c.in);
    for (int i = 0; i < 4; ++i) CHECK(std::fabs(q.numbers[i] - c.quaternion.numbers[i]) <= 0x1p-52);
    for (int i = 0; i < 3; ++i) CHECK(std::fabs(v.numbers[i] - c.rotvec.numbers[i]) <= 0x1p-51);
  }
  // By half a turn, as a matrix.
  const Values q =
      convert(format(RotationKind::Matrix), quaternion, {{-1, 0, 0, 0, 1, 0, 0, 0, -1}});
  CHECK(q.numbers[1] == 1);
  CHECK(q.numbers[3] == 0);
}

TEST_CASE("rotation: a chain of conversions, and back") {
  Random random(17);
  Worst worst;
  const RotationFormat from = format(RotationKind::QuatXyzw);
  for (int round = 0; round < 20000; ++round) {
    const Values in = rounded(support::writeReference(from, uniformRotation(random)));
    const Values other = rounded(support::writeReference(from, uniformRotation(random)));
    const QuadMatrix a = support::readReference(from, in.numbers);
    const QuadMatrix b = support::readReference(from, other.numbers);
    const auto qa = rbc::readRotation<double>(from, in.numbers);
    const auto qb = rbc::readRotation<double>(from, other.numbers);
    const RotationFormat to = format(RotationKind::Rot6dRows);
    Values product;
    rbc::writeRotation(to, qa * qb, product.numbers);
    worst.see(from, to, in, product, support::product(a, b));
    const RotationFormat matrix = format(RotationKind::Matrix);
    Values relative;
    rbc::writeRotation(matrix, inverse(qa) * qb, relative.numbers);
    worst.see(from, matrix, in, relative, support::product(support::transposed(a), b));
  }
  worst.check("products");
}

TEST_CASE("rotation: an invalid rotation gives NaN in every channel") {
  Random random(16);
  const auto check_nan = [&](const RotationFormat& from, const Values& in) {
    for (int kind = 0; kind < kKinds; ++kind) {
      const RotationFormat to = someFormat(kind, random);
      const Values out = convert(from, to, in);
      for (int i = 0; i < rbc::channelsOf(to.kind); ++i) {
        CHECK_MESSAGE(std::isnan(out.numbers[i]), kNames[static_cast<int>(from.kind)], " to ",
                      kNames[kind], ", channel ", i);
      }
    }
  };
  for (int kind = 0; kind < kKinds; ++kind) {
    const RotationFormat from = someFormat(kind, random);
    const Values good = rounded(support::writeReference(from, uniformRotation(random)));
    for (int i = 0; i < rbc::channelsOf(from.kind); ++i) {
      for (const double bad : {kInfinity, -kInfinity, std::nan(""), -std::nan("")}) {
        Values in = good;
        in.numbers[i] = bad;
        check_nan(from, in);
      }
    }
    if (!isAngles(from.kind)) check_nan(from, Values());
  }
  const RotationFormat rows = format(RotationKind::Rot6dRows);
  const RotationFormat interleaved = format(RotationKind::Rot6dInterleaved);
  check_nan(rows, {{1, 2, 3, 0, 0, 0}});
  check_nan(rows, {{0, 0, 0, 1, 2, 3}});
  check_nan(rows, {{0.1, 0.2, 0.3, 0.1, 0.2, 0.3}});
  check_nan(rows, {{0.1, 0.2, 0.3, -0.3, -0.6, -0.9}});
  check_nan(interleaved, {{1, 2, 2, 4, 3, 6}});
  const RotationFormat matrix = format(RotationKind::Matrix);
  check_nan(matrix, {{-1, 0, 0, 0, 1, 0, 0, 0, 1}});  // a reflection
  check_nan(matrix, {{1, 2, 3, 4, 5, 6, 7, 8, 9}});   // of rank 2
  check_nan(matrix,
            {{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}});  // singular except for rounding
  check_nan(matrix, {{1, 1, 1, 1, 1, 1, 1, 1, 1}});
}

TEST_CASE("rotation: numbers that f32 holds give the same bits without scaling") {
  // The squares of the smallest and the largest of them, zeros of both signs, vectors that are
  // almost parallel, and NaN and infinities.
  Random random(17);
  const float special[] = {0.0f,
                           -0.0f,
                           0x1p-149f,
                           -0x1p-126f,
                           0x1.fffffep127f,
                           1.0f,
                           -1.0f,
                           std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN()};
  const auto number = [&](int style, int exponent) {
    const auto near = static_cast<float>(std::ldexp(random.uniform(-1, 1), exponent));
    const auto any = static_cast<float>(
        std::ldexp(random.uniform(-1, 1), static_cast<int>(random.below(279)) - 150));
    if (style == 0) return near;
    if (style == 1) return any;
    if (style == 2) return random.chance(0.5) ? near : random.pick(special);
    return static_cast<float>(std::ldexp(1 + 0x1p-20 * random.uniform(), exponent - 1));
  };
  for (int kind = 0; kind < kKinds; ++kind) {
    for (int target = 0; target < kKinds; ++target) {
      int wrong = 0;
      for (int i = 0; i < 4000; ++i) {
        const RotationFormat from = someFormat(kind, random);
        const RotationFormat to = someFormat(target, random);
        const int exponent = static_cast<int>(random.below(278)) - 149;
        Values in;
        for (double& x : in.numbers) x = number(i % 4, exponent);
        const Values expected = convert(from, to, in);
        Values out;
        rbc::convertRotation(from, to, in.numbers, out.numbers, true);
        for (int c = 0; c < rbc::channelsOf(to.kind); ++c) {
          const uint64_t a = rbc::bitCast<uint64_t>(rbc::canonical(out.numbers[c]));
          const uint64_t b = rbc::bitCast<uint64_t>(rbc::canonical(expected.numbers[c]));
          if (a != b) ++wrong;
        }
      }
      CHECK_MESSAGE(wrong == 0, kNames[kind], " to ", kNames[target]);
    }
  }
}
