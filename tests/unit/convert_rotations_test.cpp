// rbcConvertRotations against 113 bits: every representation to every other, every dtype and
// layout.
#include "robocache/rotations.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "support/expect.h"
#include "support/interrupted_call.h"
#include "support/random.h"
#include "support/rotation_reference.h"
#include "support/rotation_representations.h"
#include "support/run.h"

namespace {

using rbc::RotationKind;
using support::allRepresentations;
using support::Array;
using support::Context;
using support::kF64;
using support::Layout;
using support::Quad;
using support::Representation;

double numberOf(uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

void put(const Array& array, const std::vector<double>& numbers) {
  size_t next = 0;
  array.each([&](std::byte* p) {
    const uint64_t bits = support::encodeFloat(array.dtype(), numbers[next++]);
    std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(array.dtype())));
  });
}

std::vector<double> randomQuaternions(int64_t count, uint64_t seed) {
  support::Random random(seed);
  std::vector<double> all(static_cast<size_t>(4 * count));
  for (double& x : all) x = random.uniform(-1, 1);
  return all;
}

void convert(const Context& context, const Array& in, const Array& out, const Representation& from,
             const Representation& to) {
  const rbcTensor source = in.tensor();
  const rbcTensor target = out.tensor();
  rbcConvertRotationsParams params = rbcConvertRotationsParamsInit();
  params.source = from.value;
  params.target = to.value;
  CHECK_SUCCEEDS(rbcConvertRotations(context.get(), &source, &target, &params));
}

const Representation kQuaternions = {RBC_ROTATION_QUAT_XYZW, {RotationKind::QuatXyzw, {}}};

class Converting : public support::LongCall {
 public:
  Converting() {
    support::Random random(5);
    for (int64_t i = 0; i < 4 * kRotations; ++i) {
      rotations_.as<double>()[i] = random.uniform(-1, 1);
    }
    outputs_.emplace_back(kF64, std::vector<int64_t>{kRotations, 3});
  }

 private:
  static constexpr int64_t kRotations = 10000;

  rbcStatus_t call(rbcContext_t context) override {
    const rbcTensor in = rotations_.tensor();
    const rbcTensor out = outputs_[0].tensor();
    rbcConvertRotationsParams params = rbcConvertRotationsParamsInit();
    params.target = RBC_ROTATION_ROTVEC;
    return rbcConvertRotations(context, &in, &out, &params);
  }

  support::CallMemory rotations_{kF64, {kRotations, 4}};
};

}  // namespace

TEST_CASE("convert rotations: every representation to every other") {
  const Context context = support::cpuContext(1);
  constexpr int64_t kCount = 8;
  for (const Representation& from : allRepresentations()) {
    const std::vector<double> quaternions = randomQuaternions(kCount, 1);
    std::vector<double> numbers;
    for (int64_t i = 0; i < kCount; ++i) {
      const auto exact = support::writeReference(
          from.format, support::readReference(kQuaternions.format, &quaternions[4 * i]));
      for (const Quad x : exact) numbers.push_back(static_cast<double>(x));
    }
    const Array in(kF64, {kCount, channelsOf(from)});
    put(in, numbers);
    for (const Representation& to : allRepresentations()) {
      CAPTURE(from.value);
      CAPTURE(to.value);
      const Array out(kF64, {kCount, channelsOf(to)});
      convert(context, in, out, from, to);
      const auto kind = to.format.kind;
      const bool angles = kind == RotationKind::Rotvec || kind == RotationKind::Euler;
      for (int64_t i = 0; i < kCount; ++i) {
        const auto exact = support::writeReference(
            to.format, support::readReference(from.format, &numbers[i * channelsOf(from)]));
        for (int64_t k = 0; k < channelsOf(to); ++k) {
          const Quad error = support::absolute(numberOf(out.get({i, k})) - exact[k]);
          CHECK(static_cast<double>(error) <= (angles ? 0x1p-49 : 0x1p-50));
        }
      }
    }
  }
}

TEST_CASE("convert rotations: every dtype is widened, and rounded once") {
  const Context context = support::cpuContext(1);
  const std::vector<double> quaternions = randomQuaternions(100, 2);
  const Representation to = {RBC_ROTATION_MATRIX, {RotationKind::Matrix, {}}};
  for (const rbcDType in_dtype : support::kFloatDTypes) {
    const Array in(in_dtype, {100, 4});
    put(in, quaternions);
    std::vector<double> widened;
    for (const uint64_t bits : in.elements()) {
      widened.push_back(static_cast<double>(support::decodeFloat(in_dtype, bits)));
    }
    const Array in_f64(kF64, {100, 4});
    put(in_f64, widened);
    const Array exact(kF64, {100, 9});
    convert(context, in_f64, exact, kQuaternions, to);
    for (const rbcDType out_dtype : support::kFloatDTypes) {
      CAPTURE(support::nameOf(in_dtype));
      CAPTURE(support::nameOf(out_dtype));
      const Array out(out_dtype, {100, 9});
      convert(context, in, out, kQuaternions, to);
      std::vector<uint64_t> expected;
      for (const uint64_t bits : exact.elements()) {
        expected.push_back(support::encodeFloat(out_dtype, numberOf(bits)));
      }
      CHECK(out.elements() == expected);
    }
  }
}

TEST_CASE("convert rotations: any strides and ranks") {
  const Context context = support::cpuContext(2);
  const Representation to = {RBC_ROTATION_ROTVEC, {RotationKind::Rotvec, {}}};
  const std::vector<int64_t> kShapes[] = {{},        {7},       {1, 1},
                                          {3, 1, 5}, {2, 3, 4}, {2, 1, 3, 1, 2, 1, 2}};
  for (const std::vector<int64_t>& shape : kShapes) {
    std::vector<int64_t> in_shape = shape;
    std::vector<int64_t> out_shape = shape;
    in_shape.push_back(4);
    out_shape.push_back(3);
    for (const Layout in_layout : support::kLayouts) {
      for (const Layout out_layout : support::kLayouts) {
        if (out_layout == Layout::kBroadcast) continue;
        CAPTURE(shape.size());
        CAPTURE(support::nameOf(in_layout));
        CAPTURE(support::nameOf(out_layout));
        const Array in(support::kF32, in_shape, in_layout);
        put(in, randomQuaternions(in.count() / 4, 3));
        const Array out(support::kF32, out_shape, out_layout);
        convert(context, in, out, kQuaternions, to);
        // The final contents of a broadcast array.
        const Array plain = support::arrayOf(support::kF32, in_shape, in.elements());
        const Array expected(support::kF32, out_shape);
        convert(context, plain, expected, kQuaternions, to);
        CHECK(out.elements() == expected.elements());
        CHECK(out.gapsArePoison());
        CHECK(!expected.untouched());
      }
    }
  }
}

TEST_CASE("convert rotations: the same bits from any number of threads and any SIMD level") {
  constexpr int64_t kCount = 10'007;
  const Context one = support::cpuContext(1, RBC_SIMD_PORTABLE);
  for (const Representation& from : allRepresentations()) {
    // Each target in turn, so that all pairs of groups are among them.
    for (const Representation& to : allRepresentations()) {
      const bool few = from.format.kind == RotationKind::Euler &&
                       to.format.kind == RotationKind::Euler && from.value != to.value;
      if (few) continue;
      CAPTURE(from.value);
      CAPTURE(to.value);
      const int64_t count = from.value == RBC_ROTATION_QUAT_XYZW ? kCount : 300;
      const Array in(kF64, {count, channelsOf(from)});
      std::vector<double> numbers = randomQuaternions(3 * count, 4);  // for any channels
      numbers[0] = std::nan("");
      put(in, numbers);
      const Array expected(kF64, {count, channelsOf(to)});
      convert(one, in, expected, from, to);
      for (const int32_t level : support::simdLevels()) {
        const Context other = support::cpuContext(3, level);
        const Array out(kF64, {count, channelsOf(to)});
        convert(other, in, out, from, to);
        CHECK(out.elements() == expected.elements());
      }
    }
  }
}

TEST_CASE("interrupt: rotations") { support::checkInterrupts(Converting()); }
